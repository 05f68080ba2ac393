"""Install what the course needs into the Python that runs this: ``python tools/install.py``.

On Linux without an NVIDIA GPU torch comes from PyTorch's CPU index: the ordinary build brings
several gigabytes of CUDA there. A torch that is installed already stays. ``--check`` only says
whether this Python will do.
"""

import importlib.util
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PIP = [sys.executable, "-m", "pip", "install"]
OLDEST, NEWEST = (3, 11), (3, 14)
ALL = ["-r", str(ROOT / "requirements.txt"), "-c", str(ROOT / "constraints.txt")]


def wants_cpu_build(system: str, devices: Path = Path("/dev")) -> bool:
    """Whether this is a Linux in which no NVIDIA driver can be seen, WSL's neither."""
    seen = any((devices / name).exists() for name in ("nvidiactl", "dxg"))
    return system == "Linux" and not seen


def main(check_only: bool = False, python: tuple = sys.version_info[:2]) -> int:
    if not OLDEST <= python <= NEWEST:
        oldest, newest, here = (".".join(map(str, v)) for v in (OLDEST, NEWEST, python))
        print(
            f"This course needs Python {oldest} to {newest}, but {sys.executable} is {here}. "
            "Name another one, as in: make lab PYTHON=python3.12",
            file=sys.stderr,
        )
        return 1
    if check_only:
        return 0
    if importlib.util.find_spec("torch"):
        print("torch is installed already; its build stays.", flush=True)
    elif wants_cpu_build(platform.system()):
        lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
        (torch,) = (line.split()[0] for line in lines if line.startswith("torch=="))
        once = ["--no-deps", "--retries", "1", "--timeout", "15", "--index-url", CPU_INDEX]
        if subprocess.call([*PIP, *once, torch], cwd=ROOT) == 0:
            print(f"No NVIDIA GPU here: {torch} is the CPU build.", flush=True)
        else:
            print(
                f"No NVIDIA GPU here, but the CPU build of {torch} could not be fetched from "
                f"{CPU_INDEX}: taking the ordinary build, several gigabytes.",
                flush=True,
            )
    # In the course's folder, because the requirements name it: "-e ."
    return subprocess.call([*PIP, *ALL], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["--check"]))
