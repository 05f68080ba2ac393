"""The sandbox of a student's kernel: bubblewrap, and the limits of what runs in it."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tools import notebooks

DISK = 256 * 2**20  # bytes of a file, and of a kernel's temporary folder
TASKS = 256  # a kernel's processes and threads
OPEN = 1024  # files that each process may have open
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/sys/devices/system"),
    *("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime"),
)
VISIBLE = ("helpers", "tools", "grading", "assets", "notebooks/scripts")  # to a student's code
WITHOUT = " --no-sandbox grades without a sandbox: use it only for code that you trust."


@dataclass(frozen=True)
class Limits:
    cell: float = 60.0  # seconds
    submission: float = 300.0  # seconds
    memory: float = 4.0  # GB, of all processes together
    sandbox: bool = True
    see: tuple[str, ...] = ()  # more folders that can be read
    hide: tuple[str, ...] = ()  # folders that cannot be read, even inside those that can


def problem(limits: Limits) -> str:
    """Why no sandbox can be made here, and what to do; "" if one can be made."""
    if not limits.sandbox:
        return ""
    if shutil.which("bwrap") is None or shutil.which("prlimit") is None:
        return f"bubblewrap is not installed: apt-get install bubblewrap (Linux only).{WITHOUT}"
    if "--perms" not in bubblewrap("--help"):
        version = bubblewrap("--version").strip()
        needed = "version 0.5 or newer is needed"
        return f"The installed {version} is too old to make a sandbox: {needed}.{WITHOUT}"
    with tempfile.TemporaryDirectory() as folder:
        line = command(Path(folder), limits, ["true"])
        trial = subprocess.run(line, capture_output=True, text=True, env=environment())
    if trial.returncode == 0:
        return ""
    return (
        f"bubblewrap cannot make a sandbox here ({trial.stderr.strip()[-300:]}). If this system or "
        "container forbids user namespaces, ask for kernel.unprivileged_userns_clone=1, and on "
        f"Ubuntu also for kernel.apparmor_restrict_unprivileged_userns=0.{WITHOUT}"
    )


def bubblewrap(option: str) -> str:
    return subprocess.run(["bwrap", option], capture_output=True, text=True).stdout


def environment() -> dict[str, str]:
    """All variables that a kernel sees: none of the grader's own."""
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {
        **notebooks.KERNEL_ENVIRONMENT,
        **dict.fromkeys(threads, "1"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "PYTHONPATH": str(notebooks.ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "USER": "student",
    }


def command(folder: Path, limits: Limits, words: list[str]) -> list[str]:
    """The command that runs ``words`` in a sandbox, where only ``folder`` can be written to."""
    if not limits.sandbox:
        return words
    root = notebooks.ROOT
    owner = folder.stat().st_uid if os.getuid() == 0 else None
    course = [root / name for name in VISIBLE]
    visible = [*SYSTEM, *limits.see, *course, sys.base_prefix, sys.prefix]
    visible = [Path(path).absolute() for path in visible if Path(path).exists()]
    # As root, bubblewrap needs no user namespace, and its processes get the folder's owner,
    # because Linux never limits the processes of root.
    spaces = [f"--unshare-{kind}" for kind in ("pid", "net", "ipc", "uts", "cgroup-try")]
    if owner is None:
        spaces = ["--unshare-all"]
        if "--disable-userns" in bubblewrap("--help"):  # version 0.8: none can be made inside
            spaces += ["--unshare-user", "--disable-userns"]
    line = [shutil.which("bwrap") or "bwrap", *spaces]
    line += ["--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
    size = ["--size", str(DISK)] if "--size" in bubblewrap("--help") else []
    for place in ("/tmp", "/dev/shm"):
        line += ["--perms", "1777", *size, "--tmpfs", place]
    line += ["--remount-ro", "/dev"]  # it has no size
    above = {parent for path in (*visible, folder) for parent in path.parents}
    for parent in sorted(above - {Path("/"), Path("/tmp")}):
        if not any(parent == path or path in parent.parents for path in visible):
            line += ["--perms", "0755", "--dir", str(parent)]
    for path in visible:
        line += ["--ro-bind", str(path), str(path)]
    for path in map(Path, (*limits.hide, root / ".git", root / "notebooks" / "solutions")):
        if path.exists() and any(seen in path.resolve().parents for seen in visible):
            line += ["--tmpfs", str(path.resolve())]
    line += ["--bind", str(folder), str(folder), "--chdir", "/tmp", "--remount-ro", "/"]
    if owner is not None:
        line += ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups"]
        line += ["--bounding-set=-all", "--no-new-privs"]
    addresses = int(limits.memory * 1e9) + 4 * 10**9  # bytes; torch reserves many
    line += ["prlimit", f"--as={addresses}", f"--nproc={TASKS + other_tasks(owner)}"]
    line += [
        f"--nofile={OPEN}",
        f"--fsize={DISK}",
        f"--cpu={int(limits.submission) + 30}",
        "--core=0",
    ]
    return [*line, *words]


def other_tasks(owner: int | None) -> int:
    """Before Linux 5.14, the limit on processes counts the grader's own, too."""
    release = [int("".join(filter(str.isdigit, n))) for n in platform.release().split(".")[:2]]
    return 0 if owner is not None or release >= [5, 14] else 8192
