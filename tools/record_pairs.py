"""Record the pairs of times that lesson 01 draws its experiments from.

    python -m tools.record_pairs [--processes 24] [--pairs 150]

Each process is a fresh Python that runs notebooks/scripts/time_pairs.py; its number is added to
its lines. Writes assets/recordings/timing_pairs.csv.gz and, beside it, where it comes from.
"""

import argparse
import gzip
import os
import subprocess
import sys

import torch

from helpers import machine
from tools import recording

FOLDER = recording.ROOT / "assets" / "recordings"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=24)
    parser.add_argument("--pairs", type=int, default=150)
    arguments = parser.parse_args()
    lines, load = [], [os.getloadavg()[0]]
    for process in range(arguments.processes):
        options = ["--pairs", str(arguments.pairs), "--seed", str(process)]
        command = [sys.executable, recording.SCRIPTS / "time_pairs.py", *options]
        environment = {**os.environ, "PYTHONPATH": str(recording.ROOT)}
        header, *rows = subprocess.check_output(command, env=environment, text=True).splitlines()
        lines += [f"{process},{row}" for row in rows]
        load.append(os.getloadavg()[0])
    text = "\n".join([f"process,{header}", *lines]) + "\n"
    (FOLDER / "timing_pairs.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    about = recording.provenance(
        "record_pairs.py",
        f"{machine.describe()['processor']}, {os.cpu_count()} cores",
        f"python -m tools.record_pairs --processes {arguments.processes} --pairs {arguments.pairs}",
        torch=torch.__version__,
        load=f"{min(load):.0f} to {max(load):.0f} programs at a time",
    )
    recording.save(FOLDER / "timing_pairs.json", {"provenance": about})


if __name__ == "__main__":
    main()
