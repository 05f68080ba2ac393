"""Record the pairs of times that lesson 01 draws its experiments from: timing_pairs.csv.gz.

    python assets/recordings/make/record_pairs.py

Each process is a new Python that runs notebooks/scripts/time_pairs.py, and each line begins with
the number of its process. timing_pairs_crowded.* are the ready pairs of a second run, with 200
pairs for each process, beside busy programs.
"""

import gzip
import os

import recording
import torch

from helpers import machine, terminal

PROCESSES, PAIRS = 24, 150
COMMAND = f"python notebooks/scripts/time_pairs.py --pairs {PAIRS}"

lines, load = [], [os.getloadavg()[0]]
for process in range(PROCESSES):
    done = terminal.run(f"{COMMAND} --seed {process}", recording.ROOT, timeout=3600)
    header, *rows = done.stdout.splitlines()
    lines += [f"{process},{row}" for row in rows]
    load.append(os.getloadavg()[0])
text = "\n".join([f"process,{header}", *lines]) + "\n"
(recording.RECORDINGS / "timing_pairs.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
about = recording.provenance(
    __file__,
    f"{machine.describe()['processor']}, {os.cpu_count()} cores",
    f"{COMMAND} --seed 0 to {PROCESSES - 1}",
    torch=torch.__version__,
    load=f"{min(load):.0f} to {max(load):.0f} programs at a time",
)
recording.save("timing_pairs", about)
