"""Install what the course needs into the Python that runs this: ``python tools/install.py``.

With a name, such as requirements-grade.txt, it installs what this file lists, which only some need.
``--into .venv``, as make calls it, first makes that virtual environment. One that was copied with
its folder is made anew, because its programs would run the other folder's code.

Each step says how much it downloads, and every few seconds how far it is. What pip itself prints
is in ``install.log``, in the environment.

On Linux without an NVIDIA GPU that PyTorch's CUDA build can use, torch comes from PyTorch's CPU
index: the ordinary build brings several gigabytes of CUDA there. The pinned torch stays if it is
installed already, whatever its build. ``--check`` only says whether this Python will do.
"""

from __future__ import annotations  # an older Python, too, must read this as far as its check

import argparse
import contextlib
import errno
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
OLDEST, NEWEST = (3, 11), (3, 15)
LOCK = ["-c", str(ROOT / "constraints.txt")]
# What a file of requirements is for, and about how many megabytes it downloads.
NEEDS = {
    "requirements.txt": ("JupyterLab, and all that the lessons need", 190),
    "requirements-make.txt": ("what make slides, make site and make test-all need", 121),
    "requirements-grade.txt": ("what make grade and make refresh need", 25),
    "requirements-hub.txt": ("what a hub needs", 20),
}
# The same of torch: its CPU build for Linux, and the ordinary one of each system.
CPU_BUILD = 190
ORDINARY_BUILD = {"Linux": 2700, "Darwin": 90, "Windows": 120}
# What the CUDA 13 of the ordinary build needs.
OLDEST_DRIVER, OLDEST_CAPABILITY = 580, 7.5
# How pip reports a full disk, and a used-up quota.
DISK_FULL = [f"[Errno {number}]" for number in (errno.ENOSPC, errno.EDQUOT)]
# How pip reports that it cannot reach an address, for the last time. Then it ends with an error
# that does not say so.
LAST_RETRY = "Retrying (Retry(total=0"
# Seconds between two signs of life, in a terminal (True) and in a file.
PAUSE = {True: 0.5, False: 5}
INSTALLING = "Installing collected packages: "


def main(words: list[str] | None = None, python: tuple = sys.version_info[:2]) -> None:
    if not OLDEST <= python <= NEWEST:
        oldest, newest, here = (".".join(map(str, v)) for v in (OLDEST, NEWEST, python))
        sys.exit(
            f"This course needs Python {oldest} to {newest}, but {sys.executable} is {here}. "
            "Name another one, as in: make lab PYTHON=python3.12"
        )
    parser = argparse.ArgumentParser(prog="python tools/install.py")
    parser.add_argument("requirements", nargs="?", choices=NEEDS, default="requirements.txt")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--into", type=Path, metavar=".venv")
    parser.add_argument("--step", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args(words or [])
    if options.check:
        return
    if options.into:
        print(f"[1/3] A virtual environment in {options.into}", flush=True)
        python_inside = make_environment(options.into)
        os.execv(python_inside, [str(python_inside), __file__, "--step", "2"])
    step = last = options.step
    if options.requirements == "requirements.txt":
        last += 1
        if failure := install_torch(f"[{step}/{last}]"):
            sys.exit(failure)
    purpose, size = NEEDS[options.requirements]
    print(f"[{last}/{last}] {capital(purpose)}: about {size} MB to download", flush=True)
    sys.exit(pip_install("-r", str(ROOT / options.requirements), *LOCK) or 0)


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def make_environment(folder: Path) -> Path:
    """Make a virtual environment, anew if it was copied from elsewhere; return its Python."""
    words = [sys.executable, "-m", "venv", str(folder)]
    original = made_as(folder)
    if original and original != folder.absolute():
        print(f"      anew, because the one here is a copy of {original}", flush=True)
        words.insert(3, "--clear")
    with tempfile.TemporaryFile("w+") as log:
        if status := run(words, log, lambda: "working"):
            log.seek(0)
            sys.stderr.write(log.read())
            sys.exit(status)
    return folder / "bin" / "python"


def made_as(environment: Path) -> Path | None:
    """The folder in which a virtual environment was made, if that is known."""
    try:
        settings = (environment / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^command = .* -m venv (?:--\S+ )*(.+)$", settings, re.M)
    return Path(found[1]) if found else None


def install_torch(step: str) -> str:
    """Install the torch that is pinned for this Python; return "" if it is there, else why not."""
    from pip._vendor.packaging.requirements import Requirement  # an older Python may lack it

    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line.split("#")[0]) for line in lines if line.startswith("torch==")]
    (pin,) = (f"torch{pin.specifier}" for pin in pins if not pin.marker or pin.marker.evaluate())
    name = pin.replace("torch==", "PyTorch ")
    if is_installed(pin):
        print(f"{step} {name} is installed already", flush=True)
        return ""
    system = platform.system()
    if reason := reason_for_cpu_build(system):
        print(f"{step} {name}, CPU build: about {CPU_BUILD} MB to download", flush=True)
        print(f"      the CPU build, because {reason}", flush=True)
        once = ["--no-deps", "--retries", "1", "--timeout", "15", "--index-url", CPU_INDEX]
        if not pip_install(*once, pin):
            return ""
        print(
            f"The CPU build of {pin} could not be fetched from {CPU_INDEX}: taking the ordinary "
            "build, several gigabytes."
        )
    size = ORDINARY_BUILD.get(system, ORDINARY_BUILD["Linux"])
    print(f"{step} {name}: about {size:,} MB to download", flush=True)
    return pip_install(pin, *LOCK)


def reason_for_cpu_build(system: str, devices: Path = Path("/dev")) -> str:
    """Why torch's CPU build is the right one here; "" if the ordinary one is.

    On Linux, a driver shows itself in ``devices``, WSL's too. What nvidia-smi cannot tell is
    believed to be new enough.
    """
    if system != "Linux":
        return ""
    if not any((devices / name).exists() for name in ("nvidiactl", "dxg")):
        return "there is no NVIDIA GPU here"
    query = ["nvidia-smi", "--query-gpu=driver_version,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    gpus = re.findall(r"^(\d+)[.\d]*, (\d+\.\d+)$", answer, re.M)
    if gpus and int(gpus[0][0]) < OLDEST_DRIVER:
        return (
            f"the CUDA build needs an NVIDIA driver from {OLDEST_DRIVER} on, and this one is "
            f"{gpus[0][0]} (docs/troubles.md)"
        )
    if gpus and all(float(capability) < OLDEST_CAPABILITY for _, capability in gpus):
        return (
            f"the CUDA build needs a GPU of compute capability {OLDEST_CAPABILITY} or more, and "
            f"this one has {gpus[0][1]} (docs/troubles.md)"
        )
    return ""


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
    with open_log() as log, tempfile.TemporaryDirectory() as scratch:
        print("$", *line, file=log, flush=True)
        begin = log.tell()

        def printed() -> str:
            return Path(log.name).read_bytes()[begin:].decode(errors="replace")

        packages = Path(sysconfig.get_path("purelib"))
        before = len([*packages.glob("*.dist-info")])

        def how_far() -> str:
            if listed := re.search(f"^{INSTALLING}(.+)$", printed(), re.M):
                done = len([*packages.glob("*.dist-info")]) - before
                return f"{max(0, done)} of {listed[1].count(',') + 1} packages installed"
            files = (path for path in Path(scratch).rglob("*") if path.is_file())
            return f"{sum(path.stat().st_size for path in files) / 1e6:.0f} MB fetched so far"

        if not run(line, log, how_far, TMPDIR=scratch, TEMP=scratch, TMP=scratch):
            return ""
        said = printed()
    if any(sign in said for sign in DISK_FULL):
        sys.exit(
            f"The disk is full, so the course could not be installed in {sys.prefix}. Free some "
            "space (docs/troubles.md says how much it takes), and call this again."
        )
    if LAST_RETRY in said:
        return (
            "Some packages could not be fetched, because their address could not be reached. The "
            "installation needs a network (behind a proxy, set HTTPS_PROXY): call this again when "
            f"there is one, and it goes on from here. All that pip printed is in {log.name}"
        )
    sys.stderr.writelines(f"{line}\n" for line in said.splitlines()[-15:])
    return (
        "The packages could not be installed: the lines of pip above say why, and all that it "
        f"printed is in {log.name}"
    )


def open_log() -> IO[str]:
    """pip's log in the environment, or where that cannot be written, in a temporary file."""
    try:
        return Path(sys.prefix, "install.log").open("a", encoding="utf-8")
    except OSError:
        return tempfile.NamedTemporaryFile("a", suffix=".log", delete=False, encoding="utf-8")


def run(line: list[str], log: IO[str], how_far: Callable[[], str], **variables: str) -> int:
    """Run a program that prints into ``log``, and show how far it is; return its exit status.

    A terminal has one line for this, which is written again and again; a file gets a line every
    five seconds.
    """
    in_terminal, begin = sys.stdout.isatty(), time.monotonic()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **variables}
    with subprocess.Popen(
        line, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
    ) as program:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return program.wait(PAUSE[in_terminal])
                with contextlib.suppress(OSError):  # a file went while its size was asked for
                    seconds = int(time.monotonic() - begin)
                    text = f"      {seconds // 60}:{seconds % 60:02}  {how_far()}"
                    width = shutil.get_terminal_size().columns - 1
                    print(
                        f"\r{text[:width]:<{width}}" if in_terminal else text,
                        end="" if in_terminal else "\n",
                        flush=True,
                    )
        except KeyboardInterrupt:  # the program was interrupted, too, and clears up
            program.wait()
            sys.exit("Stopped. Call this again to finish the installation.")
        finally:
            if in_terminal:
                print("\r\033[K", end="", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
