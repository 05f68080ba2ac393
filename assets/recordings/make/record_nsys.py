"""Renew what lesson 11 reads: a real report, and what the real nsys does with flags and programs.

    python assets/recordings/make/record_nsys.py FOLDER [cpu] [flags] [facts] [traps]

Writes nsys_cpu.sqlite and nsys_cpu.json (a report of example_torch_profile.py, and what
torch.profiler saw in the same run), nsys_flags.json (what the parsers say), nsys_facts.json (what
a recording keeps, costs and gives away) and nsys_traps.json (forked workers, ranks). What is tried
are the flags, commands and cases that the recordings in assets/recordings name: add one there to
have it tried. Needs nsys on the PATH or in $NSYS; ncu, from the PATH or $NCU, for its flags.

Run it as an ordinary user: as root, nsys sees other people's processes. Every tool is started with
an empty environment, and of a report only what the lesson reads is kept.
"""

import importlib.metadata
import json
import re
import shlex
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import recording
from nsight import QUIET, RANGE, record, stats, strip
from recording import SCRIPTS, run, save, tool, version

from helpers import machine

JOBS = sorted((recording.ROOT / "assets" / "jobs").glob("*/*"))
TEMPLATES = [path for path in JOBS if path.stem not in ("train_ddp", "grade")]  # those that profile
BASIC = ["-t", "nvtx", *QUIET]

# Long ranges, and a pause at the end: on a busy computer nsys needs time to react.
RANGES = """
import sys, time, nvtx
print("argv", sys.argv[1:], flush=True)
for step in range(4):
    with nvtx.annotate(f"step {step}"):
        time.sleep(0.3)
time.sleep(1)
print("the last line", flush=True)
"""
# A range in the program, and some in a worker that it starts by the named method.
# A forked worker leaves without sending nsys its last events, hence several ranges;
# on a busy computer nsys may not see it at all, hence the repetitions in workers().
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
# What a cluster has, as far as a template needs it: it starts the rest of its words.
CLUSTER = {
    "srun": 'exec "$@"',
    "torchrun": 'while [ "$1" != --no-python ]; do shift; done; shift; exec "$@"',
}


def recorded(name: str) -> dict:
    path = recording.ROOT / "assets" / "recordings" / f"nsys_{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def record_cpu(folder: Path, about: dict[str, str]) -> dict:
    """A report of the training script, stripped, and Kineto's marks from the same run."""
    arguments = ["example_torch_profile.py", "--kineto", "--json", "run.json"]
    program = [sys.executable, str(SCRIPTS / arguments[0]), *arguments[1:]]
    flags = ["-t", "nvtx,osrt", *QUIET, "--osrt-threshold=10000"]
    _, _, database = record(flags, program, folder)
    about["command"] = " ".join(["nsys profile", *flags, "python", *arguments])
    strip(database, folder / "nsys_cpu.sqlite", about)
    marks = json.loads((folder / "run.json").read_text())
    return {"kineto": marks["kineto"], "nsys stats": {"nvtx_sum": stats(database, folder)}}


def verdict(words: list[str | Path], folder: Path, **environment: str) -> dict:
    """Whether a parser accepts its words, and else its message; the program does not exist."""
    _, text = run(words, folder, **environment)
    accepted = "Executable not found" in text or "is not an executable" in text
    lines = [line for line in text.splitlines() if line]
    message = "\n".join(line for line in lines if not line.startswith(("usage:", "Try '")))
    return {"accepted": accepted, "message": "" if accepted else message}


def template(path: Path, folder: Path) -> dict:
    """The words that a job's template hands to nsys or ncu, and what their parser says."""
    programs = dict(CLUSTER)
    for name in ("nsys", "ncu"):
        real = tool(name) or "false"
        programs[name] = f'printf "%s\\n" {name} "$@" > words; exec {real} "$@"'
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    job = {"SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "2", "PBS_JOBID": "17.cluster"}
    job |= {"PROGRAM": "no-such-program", "PATH": f"{folder}/bin:/usr/bin:/bin"}
    answer = verdict(["bash", path, "no-such-program"], folder, **job)
    return {"words": (folder / "words").read_text().splitlines(), **answer}


def record_flags(folder: Path, about: dict[str, str]) -> dict:
    """What the parsers answer to each flag, to the documents' commands, and to our templates."""
    about["command"] = "nsys profile FLAG no-such-program"
    then, nsys, ncu = recorded("flags"), tool("nsys"), tool("ncu")
    beside = {"--capture-range-end=stop": ["-c", "nvtx"]}  # only allowed so
    results = {"nsys": {}, "commands": []}
    for flag in then["nsys"]:
        words = [*beside.get(flag, []), *flag.split()]
        results["nsys"][flag] = verdict([nsys, "profile", *words, "no-such-program"], folder)
    for line in (command["line"] for command in then["commands"]):
        words = line.replace(" python ", " no-such-program ").split()[1:]
        results["commands"].append({"line": line, **verdict([nsys, *words], folder)})
    results["templates"] = {path.name: template(path, folder) for path in TEMPLATES}
    if ncu:
        flags = {flag: [ncu, *flag.split(), "no-such-program"] for flag in then["ncu"]["flags"]}
        answers = {flag: verdict(words, folder) for flag, words in flags.items()}
        results["ncu"] = {"version": version(ncu), "flags": answers}
    return results


def ranges(database: Path | None) -> dict[str, int] | None:
    """How often each NVTX range is in a report; None without ranges or report."""
    if database is None:
        return None
    query = f"""SELECT coalesce(text, value) AS name, count(*) FROM NVTX_EVENTS
        LEFT JOIN StringIds ON id = textId WHERE eventType = {RANGE} GROUP BY name"""
    with sqlite3.connect(database) as db:
        tables = db.execute("SELECT name FROM sqlite_master").fetchall()
        return dict(db.execute(query)) if ("NVTX_EVENTS",) in tables else None


def behaviour(folder: Path, about: dict[str, str]) -> dict[str, dict]:
    """Capture ranges, misplaced flags, secrets: the same every time."""
    program = [sys.executable, "myapp.py"]
    (folder / "myapp.py").write_text(RANGES)
    results: dict[str, dict] = {"capture": {}}
    for name in recorded("facts")["capture"]:
        flags = shlex.split(name) if name.startswith("-") else []
        for _ in range(3):  # on a busy computer nsys may miss a short capture
            status, text, database = record([*BASIC, *flags], program, folder)
            if names := ranges(database):
                break
        finished = "the last line" in text
        results["capture"][name] = {"status": status, "program finished": finished, "ranges": names}

    late = ["--force-overwrite", "true", "--cuda-memory-usage", "true"]
    _, text, _ = record(BASIC, [*program, *late], folder)
    argv = next(line for line in text.splitlines() if line.startswith("argv"))
    results["flags after the script"] = {"given": late, "the script printed": argv}

    (folder / "taken.nsys-rep").touch()
    status, _ = run([tool("nsys"), "profile", *BASIC, "-o", "taken", *program], folder)
    size = (folder / "taken.nsys-rep").stat().st_size
    results["the name is taken"] = {"status": status, "bytes in the file": size}

    secret, results["secrets"] = {"API_TOKEN": "not-a-real-token"}, {}
    ways = {"as usual": ([], secret), "-n false": (["-n", "false"], secret), "env -i": ([], {})}
    for name, (flags, variables) in ways.items():
        _, _, database = record([*BASIC, *flags], ["true"], folder, **variables)
        leaked = b"not-a-real-token" in database.read_bytes()
        results["secrets"][name] = {"token in the report": leaked}
    return results


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


def record_facts(folder: Path, about: dict[str, str]) -> dict:
    """What a recording keeps, gives away, and costs."""
    return {**behaviour(folder, about), "distortion": distortion(folder)}


def workers(folder: Path) -> dict[str, dict[str, list[str]]]:
    """By start method: the ranges in the report, as usual and with forks traced."""
    (folder / "worker.py").write_text(WORKER)
    results: dict[str, dict[str, list[str]]] = {}
    for name, cases in recorded("traps")["workers"].items():
        results[name] = {}
        for flag in cases:
            seen: set[str] = set()
            for _ in range(6 if flag else 3):
                words = [sys.executable, "worker.py", name]
                seen |= set(ranges(record([*BASIC, *flag.split()], words, folder)[2]) or {})
                if "worker" in seen:
                    break
            results[name][flag] = sorted(seen)
    return results


def ranks(folder: Path) -> dict[str, int]:
    """How many reports four ranks leave, by the name that each gives to its own."""
    results = {}
    for name in ("same", "rank%q{RANK}"):
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        words += ["--nproc-per-node=4", "--no-python", tool("nsys"), "profile", *BASIC]
        for _ in range(3):  # on a busy computer the four may remove each other's
            run([*words, "-f", "true", "-o", name, "sleep", "1"], folder)
            if count := len(list(folder.glob(f"{name[:4]}*.nsys-rep"))):
                break
        results[f"-o {name}"] = count
    return results


def record_traps(folder: Path, about: dict[str, str]) -> dict:
    """Which workers are followed, and what keeps the reports of ranks apart."""
    return {"workers": workers(folder), "reports of four ranks": ranks(folder)}


PARTS = {"cpu": record_cpu, "flags": record_flags, "facts": record_facts, "traps": record_traps}


def main(target: str = "", *parts: str) -> None:
    if not target or set(parts) - set(PARTS) or not tool("nsys"):
        sys.exit(__doc__)
    Path(target).mkdir(parents=True, exist_ok=True)
    device = f"{machine.describe()['processor']}, no GPU"
    versions = {"nsys": version(tool("nsys")), "torch": importlib.metadata.version("torch")}
    for name in parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            about = recording.provenance("record_nsys.py", device, "nsys profile …", **versions)
            results = PARTS[name](Path(folder), about)
            save(Path(target) / f"nsys_{name}.json", {"provenance": about, **results})
            for report in Path(folder).glob("nsys_*.sqlite"):
                shutil.copy(report, target)
        print(f"recorded: {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
