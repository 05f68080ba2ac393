"""Renew what lesson 11 reads: a real report, and what the real nsys does with flags and programs.

    python assets/recordings/make/record_nsys.py [cpu] [flags] [facts] [traps]

Writes nsys_cpu.sqlite and nsys_cpu.json (a report of example_torch_profile.py, and what
torch.profiler saw in the same run), nsys_flags.json (what the parser says), nsys_facts.json (what
a recording keeps, costs and gives away) and nsys_traps.json (forked workers, ranks). What is tried
are the flags, commands and cases that these recordings name: add one there to have it tried.

Needs nsys on the PATH or in $NSYS, and a quiet computer: on a busy one nsys may miss what is short,
so compare what is new with what was there. Every tool is started with an empty environment, and of
a report only what the lesson reads is kept.
"""

import csv
import importlib.metadata
import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import recording
from recording import RANGE, RECORDINGS, ROOT

from helpers import machine, terminal

NSYS = shutil.which(os.environ.get("NSYS", "nsys"))
QUIET = ["-s", "none", "--cpuctxsw=none"]
BASIC = ["-t", "nvtx", *QUIET]

RANGES = """
import sys, time, nvtx
print("argv", sys.argv[1:], flush=True)
for step in range(4):
    with nvtx.annotate(f"step {step}"):
        time.sleep(0.3)
time.sleep(1)
print("the last line", flush=True)
"""
# A range in the program, and some in a worker that it starts by the named method. A forked worker
# leaves without sending nsys its last events, hence several ranges, and the repetitions in
# workers().
WORKER = """
import multiprocessing, sys, time, nvtx
def work(batch=None):
    for _ in range(5):
        with nvtx.annotate("worker"):
            time.sleep(0.2)
if __name__ == "__main__":
    with nvtx.annotate("program"):
        if sys.argv[1] == "DataLoader":
            from torch.utils.data import DataLoader
            list(DataLoader([0], num_workers=1, collate_fn=work))
        else:
            worker = multiprocessing.get_context(sys.argv[1]).Process(target=work)
            worker.start()
            worker.join()
"""
WORK = """
import json, timeit
def best(line, number):
    return min(timeit.repeat(line, "import os; total = 0", number=number, repeat=100))
calls, additions = best("os.stat('.')", 2000), best("total += 1", 100_000)
print(json.dumps({"2,000 calls of os.stat": calls, "100,000 additions": additions}))
"""


def run(words: list[str | Path], folder: Path, **variables: str) -> tuple[int, str]:
    """Exit status and output of a command that sees nothing of our environment."""
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(folder)} | variables
    given = [f"{name}={value}" for name, value in variables.items()]
    words = ["env", "-i", *given, *words]
    with terminal.started(words, folder, stderr=subprocess.STDOUT) as child:
        text = child.communicate(timeout=300)[0]
    return child.returncode, text


def record(
    flags: list[str], program: list[str], folder: Path, before: Sequence = (), **environment: str
) -> tuple[int, str, Path | None]:
    """Run ``nsys profile``, perhaps with words before it; status, output and exported report."""
    report, database = folder / "r.nsys-rep", folder / "r.sqlite"
    for old in (report, database):
        old.unlink(missing_ok=True)
    words = [*before, NSYS, "profile", *flags, "-f", "true", "-o", "r", *program]
    status, text = run(words, folder, **environment)
    if not report.exists():
        return status, text, None
    export = [NSYS, "export", "-t", "sqlite", "-f", "true", "-o", database, report]
    return status, text + run(export, folder)[1], database


def recorded(name: str) -> dict:
    return json.loads((RECORDINGS / f"nsys_{name}.json").read_text(encoding="utf-8"))


def record_cpu(folder: Path, about: dict[str, str]) -> dict:
    """A report of the training script, stripped, and Kineto's marks from the same run."""
    name, *arguments = ["example_torch_profile.py", "--kineto", "--json", "run.json"]
    program = [sys.executable, str(ROOT / "notebooks" / "scripts" / name), *arguments]
    flags = ["-t", "nvtx,osrt", *QUIET, "--osrt-threshold=10000"]
    _, _, database = record(flags, program, folder)
    about["command"] = " ".join(["nsys profile", *flags, "python", name, *arguments])
    recording.strip(database, RECORDINGS / "nsys_cpu.sqlite", about)
    _, text = run([NSYS, "stats", "-q", "-r", "nvtx_sum", "-f", "csv", database], folder)
    table = list(csv.DictReader(io.StringIO(text[text.index("Time (%),") :])))
    marks = json.loads((folder / "run.json").read_text())
    return {"kineto": marks["kineto"], "nsys stats": {"nvtx_sum": table}}


def verdict(words: list[str | Path], folder: Path, **environment: str) -> dict:
    """Whether the parser accepts its words, and else its message; the program does not exist."""
    _, text = run(words, folder, **environment)
    accepted = "Executable not found" in text
    lines = [line for line in text.splitlines() if line]
    message = "\n".join(line for line in lines if not line.startswith(("usage:", "Try '")))
    return {"accepted": accepted, "message": "" if accepted else message}


def record_flags(folder: Path, about: dict[str, str]) -> dict:
    """What the parser answers to each flag and to the documents' commands."""
    about["command"] = "nsys profile FLAG no-such-program"
    beside = {"--capture-range-end=stop": ["-c", "nvtx"]}  # only allowed so
    flags, commands = {}, []
    for flag in recorded("flags")["nsys"]:
        words = [*beside.get(flag, []), *flag.split()]
        flags[flag] = verdict([NSYS, "profile", *words, "no-such-program"], folder)
    for line in (command["line"] for command in recorded("flags")["commands"]):
        words = line.replace(" python ", " no-such-program ").split()[1:]
        commands.append({"line": line, **verdict([NSYS, *words], folder)})
    return {"nsys": flags, "commands": commands}


def ranges(database: Path | None) -> dict[str, int] | None:
    """How often each NVTX range is in a report; None without a report."""
    if database is None:
        return None
    query = f"""SELECT coalesce(text, value) AS name, count(*) FROM NVTX_EVENTS
        LEFT JOIN StringIds ON id = textId WHERE eventType = {RANGE} GROUP BY name"""
    with sqlite3.connect(database) as db:
        return dict(db.execute(query))


def record_facts(folder: Path, about: dict[str, str]) -> dict:
    """What a recording keeps, gives away, and costs."""
    program = [sys.executable, "myapp.py"]
    (folder / "myapp.py").write_text(RANGES)
    capture = {}
    for name in recorded("facts")["capture"]:
        flags = shlex.split(name) if name.startswith("-") else []
        status, text, database = record([*BASIC, *flags], program, folder)
        finished = "the last line" in text
        names = ranges(database)
        capture[name] = {"status": status, "program finished": finished, "ranges": names}

    late = ["--force-overwrite", "true", "--cuda-memory-usage", "true"]
    _, text, _ = record(BASIC, [*program, *late], folder)
    argv = next(line for line in text.splitlines() if line.startswith("argv"))

    (folder / "taken.nsys-rep").touch()
    status, _ = run([NSYS, "profile", *BASIC, "-o", "taken", *program], folder)
    size = (folder / "taken.nsys-rep").stat().st_size

    secret, secrets = {"API_TOKEN": "not-a-real-token"}, {}
    emptied = ["env", "-i", "PATH=/usr/bin:/bin", f"HOME={folder}"]
    ways = {"as usual": ([], []), "-n false": (["-n", "false"], []), "env -i": ([], emptied)}
    for name, (flags, before) in ways.items():
        _, _, database = record([*BASIC, *flags], ["true"], folder, before, **secret)
        secrets[name] = {"token in the report": b"not-a-real-token" in database.read_bytes()}
    return {
        "capture": capture,
        "flags after the script": {"given": late, "the script printed": argv},
        "the name is taken": {"status": status, "bytes in the file": size},
        "secrets": secrets,
        "distortion": distortion(folder),
    }


def distortion(folder: Path) -> dict[str, dict[str, float]]:
    """The fastest time of two small pieces of work, in seconds, watched and not."""
    (folder / "work.py").write_text(WORK)
    program, best = [sys.executable, "work.py"], {}
    for _ in range(6):  # in turns, so that a slow moment hits every setting
        for name in recorded("facts")["distortion"]:
            if name == "no nsys":
                _, text = run(program, folder)
            else:
                flags = name.replace("-s none", " ".join(QUIET)).split()
                _, text, _ = record(flags, program, folder)
            times = json.loads(re.search(r"^{.*}$", text, re.M)[0])
            before = best.get(name, times)
            best[name] = {work: min(before[work], times[work]) for work in times}
    return best


def record_traps(folder: Path, about: dict[str, str]) -> dict:
    """Which workers are followed, and how many reports four ranks leave under one name or each."""
    (folder / "worker.py").write_text(WORKER)
    workers: dict[str, dict[str, list[str]]] = {}
    for name, cases in recorded("traps")["workers"].items():
        words = [sys.executable, "worker.py", name]
        workers[name] = {}
        for flag in cases:
            reports = [record([*BASIC, *flag.split()], words, folder)[2] for _ in range(4)]
            workers[name][flag] = sorted({label for report in reports for label in ranges(report)})

    ranks = {}
    for name in ("same", "rank%q{RANK}"):
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        words += ["--nproc-per-node=4", "--no-python", NSYS, "profile", *BASIC]
        run([*words, "-f", "true", "-o", name, "sleep", "1"], folder)
        ranks[f"-o {name}"] = len(list(folder.glob(f"{name[:4]}*.nsys-rep")))
    return {"workers": workers, "reports of four ranks": ranks}


PARTS = {"cpu": record_cpu, "flags": record_flags, "facts": record_facts, "traps": record_traps}

if __name__ == "__main__":
    if set(sys.argv[1:]) - set(PARTS) or not NSYS:
        sys.exit(__doc__)
    device = f"{machine.describe()['processor']}, no GPU"
    answer = terminal.run([NSYS, "--version"]).stdout
    versions = {"nsys": re.search(r"version ([\d.]+)", answer)[1]}
    versions["torch"] = importlib.metadata.version("torch")
    for name in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            about = recording.provenance(__file__, device, "nsys profile …", **versions)
            results = PARTS[name](Path(folder), about)
        recording.save(f"nsys_{name}", about, **results)
        print(f"recorded: {name}")
