"""Record what torch.compile costs and gains here: assets/recordings/compile_cpu.csv, for lesson 14.

python -m tools.record_compile
"""

import os
import subprocess
import sys

import torch

from helpers import machine
from tools import recording


def main() -> None:
    folder = recording.ROOT / "assets" / "recordings"
    environment = {**os.environ, "PYTHONPATH": str(recording.ROOT)}
    command = [sys.executable, recording.SCRIPTS / "compile_some.py"]
    text = subprocess.check_output(command, env=environment, text=True)
    (folder / "compile_cpu.csv").write_text(text, encoding="utf-8")
    processor = machine.describe()["processor"]
    about = recording.provenance(
        "record_compile.py",
        f"{processor}, one of {os.cpu_count()} cores",
        "python -m tools.record_compile",
        torch=torch.__version__,
        vectors=torch.backends.cpu.get_cpu_capability(),
    )
    recording.save(folder / "compile_cpu.json", {"provenance": about})


if __name__ == "__main__":
    main()
