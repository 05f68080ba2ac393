"""Record the pairs of times that lesson 01 draws its experiments from: timing_pairs.csv.gz.

    python assets/recordings/make/record_pairs.py [--crowd 8]

Each process is a new Python that runs notebooks/scripts/time_pairs.py, and each line begins with
the number of its process. With a crowd, so many other programs compute at the same time, half of
them on small numbers and half on arrays of 64 MB, and timing_pairs_crowded.* keep the ready pairs.
The stored timing_pairs.csv.gz is from before the script wrote CPU times.
"""

import argparse
import contextlib
import gzip
import os

import recording
import torch

from helpers import machine, terminal

PROCESSES, PAIRS = 24, 150
COMMAND = f"python notebooks/scripts/time_pairs.py --pairs {PAIRS}"
COUNTS = "while True: sum(range(1000))"
COPIES = "import numpy as np\na = np.ones(8_000_000)\nwhile True: b = a + 1"

parser = argparse.ArgumentParser()
parser.add_argument("--crowd", type=int, default=0, help="so many programs beside it")
crowd = parser.parse_args().crowd
name = "timing_pairs_crowded" if crowd else "timing_pairs"

lines, load = [], []
with contextlib.ExitStack() as programs:
    for number in range(crowd):
        program = [COUNTS, COPIES][number % 2]
        programs.enter_context(terminal.started(["python", "-c", program]))
    for process in range(PROCESSES):
        done = terminal.run(f"{COMMAND} --seed {process}", recording.ROOT, timeout=3600)
        header, *rows = done.stdout.splitlines()
        lines += [f"{process},{row}" for row in rows if not crowd or row.startswith("ready")]
        load.append(os.getloadavg()[0])
text = "\n".join([f"process,{header}", *lines]) + "\n"
(recording.RECORDINGS / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
about = recording.provenance(
    __file__,
    f"{machine.describe()['processor']}, {os.cpu_count()} cores",
    f"{COMMAND} --seed 0 to {PROCESSES - 1}",
    torch=torch.__version__,
    load=f"{crowd} other programs" if crowd else f"{min(load):.0f} to {max(load):.0f} programs",
    **({"kept": "the ready pairs"} if crowd else {}),
)
recording.save(name, about)
