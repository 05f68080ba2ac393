"""Install what the course needs into the Python that runs this: ``python tools/install.py``.

With a name, such as requirements-grade.txt, it installs what this file lists, which only some need.

On Linux without an NVIDIA GPU torch comes from PyTorch's CPU index: the ordinary build brings
several gigabytes of CUDA there. The pinned torch stays if it is installed already, whatever its
build. ``--check`` only says whether this Python will do.
"""

from __future__ import annotations  # an older Python, too, must read this as far as its check

import errno
import importlib.metadata
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
OLDEST, NEWEST = (3, 11), (3, 14)
LOCK = ["-c", str(ROOT / "constraints.txt")]
EVERYTHING = ["-r", str(ROOT / "requirements.txt"), *LOCK]
# How pip reports a full disk, and a used-up quota.
DISK_FULL = [f"[Errno {number}]" for number in (errno.ENOSPC, errno.EDQUOT)]
# How pip reports that it cannot reach an address: that it tries again, and for the last time. Then
# it ends with an error that does not say so.
RETRY, LAST_RETRY = "Retrying (Retry(", "Retrying (Retry(total=0"


def main(words: list[str] | None = None, python: tuple = sys.version_info[:2]) -> None:
    if not OLDEST <= python <= NEWEST:
        oldest, newest, here = (".".join(map(str, v)) for v in (OLDEST, NEWEST, python))
        sys.exit(
            f"This course needs Python {oldest} to {newest}, but {sys.executable} is {here}. "
            "Name another one, as in: make lab PYTHON=python3.12"
        )
    if words == ["--check"]:
        return
    if words:
        sys.exit(pip_install("--quiet", "-r", str(ROOT / words[0]), *LOCK) or 0)
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    (torch,) = (line.split()[0] for line in lines if line.startswith("torch=="))
    if wants_cpu_build(platform.system()) and not is_installed(torch):
        once = ["--no-deps", "--retries", "1", "--timeout", "15", "--index-url", CPU_INDEX]
        if not pip_install(*once, torch):
            print(f"No NVIDIA GPU here: {torch} is the CPU build.", flush=True)
        else:
            print(
                f"No NVIDIA GPU here, but the CPU build of {torch} could not be fetched from "
                f"{CPU_INDEX}: taking the ordinary build, several gigabytes.",
                flush=True,
            )
    sys.exit(pip_install(*EVERYTHING) or 0)


def wants_cpu_build(system: str, devices: Path = Path("/dev")) -> bool:
    """Whether this is a Linux in which no NVIDIA driver can be seen, WSL's neither."""
    has_driver = any((devices / name).exists() for name in ("nvidiactl", "dxg"))
    return system == "Linux" and not has_driver


def is_installed(pin: str, folders: list[str] | None = None) -> bool:
    """Whether all of ``pin``, such as "torch==2.13.0", is in ``folders``, by default Python's path.

    Its build, the "+cpu" of 2.13.0+cpu, may be any. An installation that was interrupted does not
    count, although it can be imported: its RECORD, which is installed last, is missing.
    """
    name, version = pin.split("==")
    places = {} if folders is None else {"path": folders}
    return any(
        installed.read_text("RECORD") and installed.version.partition("+")[0] == version
        for installed in importlib.metadata.distributions(name=name, **places)
    )


def pip_install(*words: str) -> str:
    """Call ``pip install``; return "" if it succeeds, else why not.

    If the disk is full, this ends the program. pip runs in the course's folder, because the
    requirements name that: "-e .".
    """
    line = [sys.executable, "-m", "pip", "install", *words]
    full, held_back = False, []
    with subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE, text=True) as pip:
        try:
            for error in pip.stderr:
                full = full or any(sign in error for sign in DISK_FULL)
                if held_back or RETRY in error:
                    held_back.append(error)
                else:
                    sys.stderr.write(error)
        except KeyboardInterrupt:  # pip was interrupted, too, and clears up
            pip.wait()
            sys.exit("Stopped. Call this again to finish the installation.")
    if not pip.returncode:
        return ""
    if any(LAST_RETRY in error for error in held_back) and not full:
        return (
            "Some packages could not be fetched, because their address could not be reached. The "
            "installation needs a network (behind a proxy, set HTTPS_PROXY): call this again when "
            "there is one, and it goes on from here."
        )
    sys.stderr.writelines(held_back)
    if full:
        sys.exit(
            f"The disk is full, so the course could not be installed in {sys.prefix}. Free some "
            "space (docs/troubles.md says how much it takes), and call this again."
        )
    return "The packages could not be installed: the lines of pip above say why."


if __name__ == "__main__":
    main(sys.argv[1:])
