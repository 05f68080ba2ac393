"""Record what profiling.sampling reports, for readers whose Python is older: tachyon.json.

    python3.15 assets/recordings/make/record_tachyon.py

Runs the commands of lesson 12 on scripts of notebooks/scripts, and keeps the collapsed stacks of
each profile. A child process has a file of its own, whose name holds its process ID. Record on a
computer that does nothing else, or give the recorder nearly all of its processors.
"""

import itertools
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import recording

from helpers import machine, terminal

SAMPLING = "python -m profiling.sampling"
OPTIONS = "-a --subprocesses --collapsed"
PLAIN = "python known_split.py --rounds 3"
WAITS = "wait_for_others.py --seconds 0.6"
RATES, PROFILES = (50, 47), 3  # of the running program

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    for script in ("known_split", "wait_for_others", "repeat_regularly"):
        shutil.copy(recording.ROOT / "notebooks" / "scripts" / f"{script}.py", folder)

    without: dict[str, list[float]] = {}
    for _ in range(5):
        for part, seconds in json.loads(terminal.run(PLAIN, folder).stdout).items():
            without.setdefault(part, []).extend(seconds)
    test = f"{SAMPLING} run --collapsed -o split.collapsed known_split.py --rounds 12"
    tested = re.search(r"\{.*\}", terminal.run(test, folder).stdout)[0]
    terminal.run(f"{SAMPLING} run {OPTIONS} -o w.collapsed {WAITS}", folder)
    with terminal.started("python repeat_regularly.py --seconds 60", folder) as running:
        running.stdout.readline()
        for rate, number in itertools.product(RATES, range(PROFILES)):
            attach = f"{SAMPLING} attach {running.pid} -d 1 -r {rate} --collapsed"
            terminal.run(f"{attach} -o {rate}-{number}.collapsed", folder)
    found = {
        file.name: file.read_text(encoding="utf-8").splitlines()
        for file in sorted(folder.glob("*.collapsed"))
    }

about = recording.provenance(
    __file__,
    f"{machine.describe()['processor']}, {os.cpu_count()} cores",
    f"{test}; for the others, see the recorder",
)
printed = {"without a profiler": json.dumps(without), "with profiling.sampling": tested}
recording.save("tachyon", about, printed=printed, profiles=found)
