"""Record what lesson 11 reads: a real report, and what the real nsys says to flags.

    python -m tools.record_nsys FOLDER [cpu] [flags] [facts] [traps]

Writes nsys_cpu.sqlite and nsys_cpu.json (a report of example_torch_profile.py, and
what torch.profiler saw in the same run), nsys_flags.json (which flags it accepts),
nsys_facts.json (what a recording keeps, costs and gives away) and nsys_traps.json
(forked workers, ranks). Needs nsys on the PATH or in $NSYS, and uses ncu from
the PATH or $NCU for its flags.

Run it as an ordinary user: as root, nsys sees other people's processes. Every tool
is started with an empty environment, and of a report only the tables and rows that
the lesson reads are kept.
"""

import argparse
import importlib.metadata
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

from helpers import machine
from tools import recording
from tools.nsight import QUIET, RANGE, record, stats, strip
from tools.recording import SCRIPTS, run, save, tool, version

# The commands of the documents that this lesson brings up to date, word for word.
COMMANDS = [
    "nsys profile python myapp.py",
    "nsys profile -w true -t cuda,nvtx,osrt,cudnn,cublas -s none -o nsight_report"
    " -f true -x true python script.py args...",
    "nsys profile -w true -t cuda,nvtx,osrt,cudnn,cublas -s cpu -o nsight_report"
    " -f true --cudabacktrace=true --cudabacktrace-threshold=10000"
    " --osrt-threshold=10000 -x true python script.py args...",
    "nsys profile -w true -t cuda,nvtx,osrt,cudnn,cublas -s cpu -o nsight_report"
    " -f true --capture-range=cudaProfilerApi --stop-on-range-end=true"
    " --cudabacktrace=true --cudabacktrace-threshold=10000"
    " --osrt-threshold=10000 -x true python script.py args...",
    "nsys profile -w true -t cuda,nvtx,osrt,cudnn,cublas -s cpu"
    " --capture-range=cudaProfilerApi --cudabacktrace=true -x true -o my_profile"
    " python example_torch_profile.py --force-overwrite true"
    " --cuda-memory-usage true",
]

# One flag each, as the commands and the lesson write it.
NSYS_FLAGS = [
    "-w true", "-x true", "-f true", "-o report", "-n false", "-e NAME=value",
    "-t cuda,nvtx,osrt,cudnn,cublas", "-t nvtx,osrt",
    "-s none", "-s process-tree", "-s cpu", "-s gpu", "--cpuctxsw=none",
    "--osrt-threshold=10000", "--cuda-memory-usage=true", "--stats=true",
    "--export=sqlite", "--capture-range=cudaProfilerApi", "-c nvtx", "-p capture",
    "--capture-range-end=stop", "--stop-on-range-end=true",
    "--cudabacktrace=true", "--cudabacktrace=all", "--cudabacktrace=all:10000",
    "--cudabacktrace-threshold=10000", "--force-overwrite=true",
    "--pytorch=autograd-nvtx", "--python-functions-trace=functions.json",
    "--discard-environment=true", "--cuda-graph-trace=node", "--delay=60", "--duration=20",
    "--kill=none",
    "--gpu-metrics-devices=all", "--trace-fork-before-exec=true", "--python-sampling=true",
]  # fmt: skip
NCU_FLAGS = [
    "-k regex:gemm", "--kernel-id ::regex:gemm:", "--kernel-regex gemm",
    "-c 3", "--launch-skip 10", "--set basic", "-o report",
    "-c 3 --kill yes", "--cache-control none", "--csv", "--page raw",
    "--clock-control none", "--replay-mode application",
    "--nvtx --nvtx-include forward/",
]  # fmt: skip

JOBS = sorted((recording.ROOT / "assets" / "jobs").glob("*/*"))
TEMPLATES = [path for path in JOBS if path.stem != "train_ddp"]  # those that profile

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
import json, os, time

def ask():
    for _ in range(2000):
        os.stat(".")

def count():
    total = 0
    for number in range(100000):
        total += number

best = {}
works = {"2,000 calls of os.stat": ask, "100,000 additions": count}
for name, work in works.items():
    times = []
    for _ in range(100):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    best[name] = min(times)
with open("times.json", "w") as file:
    json.dump(best, file)
"""


def message(text: str, folder: Path) -> str:
    """What a tool printed, without progress bars, paths and numbers of this run."""
    text = re.sub(r"\S*nsys-report-[0-9a-f]+", "nsys-report-0000", text)
    text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    text = text.replace(sys.executable, "python")
    text = re.sub(r"[^\n]*\r", "", text)
    lines = [line.rstrip() for line in text.splitlines()]
    progress = ("[1/1]", "Generating ", "usage: ", "Try 'nsys")
    kept = [line for line in lines if line and not line.startswith(progress)]
    return "\n".join(kept)


def ranges(database: Path | None) -> dict[str, int] | None:
    """How often each NVTX range is in a report; None without ranges or report."""
    if database is None:
        return None
    query = f"""SELECT coalesce(text, value) AS name, count(*) FROM NVTX_EVENTS
        LEFT JOIN StringIds ON id = textId WHERE eventType = {RANGE} GROUP BY name"""
    with sqlite3.connect(database) as db:
        tables = db.execute("SELECT name FROM sqlite_master").fetchall()
        return dict(db.execute(query)) if ("NVTX_EVENTS",) in tables else None


def record_cpu(folder: Path, about: dict[str, str]) -> dict:
    """A report of the training script, stripped, and Kineto's marks from the same run."""
    arguments = ["example_torch_profile.py", "--kineto", "--json", "run.json"]
    program = [sys.executable, str(SCRIPTS / arguments[0]), *arguments[1:]]
    flags = ["-t", "nvtx,osrt", *QUIET, "--osrt-threshold=10000"]
    _, _, database = record(flags, program, folder)
    about["command"] = " ".join(["nsys profile", *flags, "python", *arguments])
    strip(database, folder / "nsys_cpu.sqlite", about)
    seen = json.loads((folder / "run.json").read_text())
    table = stats(database, "nvtx_sum", folder)
    return {"kineto": seen["kineto"], "nsys stats": {"nvtx_sum": table}}


# Options that are only allowed beside another one.
COMPANIONS = {"--capture-range-end=stop": ["-c", "nvtx"]}


# The complaint that is left when every flag was taken: about the program that does not exist.
STARTED = ("Executable not found", "is not an executable")


def verdict(said: str) -> dict:
    """Whether a parser took the words that it was given, and else what it said."""
    fine = any(sign in said for sign in STARTED)
    return {"accepted": fine, "message": "" if fine else said}


def accepted(path: str, words: list[str], folder: Path) -> dict:
    """Whether the tool's parser takes ``words``; it is given no real program."""
    _, text = run([path, *words, "no-such-program"], folder)
    return verdict(message(text, folder))


# What a cluster has, as far as a template needs it: it starts the rest of its words.
CLUSTER = {
    "srun": 'exec "$@"',
    "torchrun": 'while [ "$1" != --no-python ]; do shift; done; shift; exec "$@"',
}


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
    _, text = run(["bash", path, "no-such-program"], folder, **job)
    words = (folder / "words").read_text().splitlines()
    return {"words": words, **verdict(message(text, folder))}


def record_flags(folder: Path, about: dict[str, str]) -> dict:
    """What the parsers say to each flag, to the documents' commands, and to our templates."""
    nsys, ncu = tool("nsys"), tool("ncu")
    about["command"] = "nsys profile FLAG no-such-program"
    found = {
        "nsys": {
            flag: accepted(nsys, ["profile", *COMPANIONS.get(flag, []), *flag.split()], folder)
            for flag in NSYS_FLAGS
        },
        "commands": [],
        "templates": {path.name: template(path, folder) for path in TEMPLATES},
    }
    for line in COMMANDS:
        words = line.replace(" python ", " no-such-program ").split()[1:]
        _, text = run([nsys, *words], folder)
        found["commands"].append({"line": line, **verdict(message(text, folder))})
    if ncu:
        flags = {flag: accepted(ncu, flag.split(), folder) for flag in NCU_FLAGS}
        found["ncu"] = {"version": version(ncu), "flags": flags}
    return found


def capture_facts(folder: Path) -> dict[str, dict]:
    """What a capture range does to the program and to the report."""
    (folder / "myapp.py").write_text(RANGES)
    one = ["-c", "nvtx", "-p", "step 2"]
    stop, cuda = "--capture-range-end=stop", "--capture-range=cudaProfilerApi"
    cases = {
        "no capture range": [],
        '-c nvtx -p "step 2"': one,
        f'-c nvtx -p "step 2" {stop}': [*one, stop],
        cuda: [cuda],
        "--cuda-memory-usage=true": ["--cuda-memory-usage=true"],
    }
    found = {}
    for name, flags in cases.items():
        program = [sys.executable, "myapp.py"]
        words = ["-t", "nvtx", *QUIET, *flags]
        for _ in range(3):  # on a busy computer nsys may miss a short capture
            status, text, database = record(words, program, folder)
            if kept := ranges(database):
                break
        finished = "the last line" in text
        found[name] = {"status": status, "program finished": finished, "ranges": kept}
    return found


def behaviour(folder: Path) -> dict[str, dict]:
    """Capture ranges, misplaced flags, secrets: the same every time."""
    nsys, found = tool("nsys"), {"capture": capture_facts(folder)}
    python, basic = sys.executable, ["-t", "nvtx", *QUIET]

    late = ["--force-overwrite", "true", "--cuda-memory-usage", "true"]
    _, text, _ = record(basic, [python, "myapp.py", *late], folder)
    argv = next(line for line in text.splitlines() if line.startswith("argv"))
    found["flags after the script"] = {"given": late, "the script printed": argv}

    (folder / "taken.nsys-rep").touch()
    words = [nsys, "profile", *basic, "-o", "taken", python, "myapp.py"]
    status, _ = run(words, folder)
    size = (folder / "taken.nsys-rep").stat().st_size
    found["the name is taken"] = {"status": status, "bytes in the file": size}

    ways = {"as usual": ([], True), "-n false": (["-n", "false"], True), "env -i": ([], False)}
    found["secrets"] = {}
    for name, (flags, given) in ways.items():
        secret = {"API_TOKEN": "not-a-real-token"} if given else {}
        _, _, database = record([*basic, *flags], ["true"], folder, **secret)
        leaked = b"not-a-real-token" in database.read_bytes()
        found["secrets"][name] = {"token in the report": leaked}
    return found


def record_facts(folder: Path, about: dict[str, str]) -> dict:
    """What a recording keeps, gives away, and costs."""
    return {**behaviour(folder), "distortion": distortion(folder)}


def record_traps(folder: Path, about: dict[str, str]) -> dict:
    """Which workers are followed, and what keeps the reports of ranks apart."""
    return {"workers": workers(folder), "reports of four ranks": ranks(folder)}


def ranks(folder: Path) -> dict[str, int]:
    """How many reports four ranks leave, by the name that each gives to its own."""
    found = {}
    for name in ("same", "rank%q{RANK}"):
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        words += ["--nproc-per-node=4", "--no-python", tool("nsys"), "profile", "-t", "nvtx"]
        run([*words, *QUIET, "-f", "true", "-o", name, "sleep", "1"], folder)
        found[f"-o {name}"] = len(list(folder.glob(f"{name[:4]}*.nsys-rep")))
    return found


def workers(folder: Path) -> dict[str, dict[str, list[str]]]:
    """By start method: the ranges in the report, as usual and with forks traced."""
    (folder / "worker.py").write_text(WORKER)
    found: dict[str, dict[str, list[str]]] = {}
    for name in ("spawn", "fork", "forkserver", "DataLoader"):
        found[name] = {}
        for flag in ("", "--trace-fork-before-exec=true"):
            flags = ["-t", "nvtx", *QUIET, *([flag] if flag else [])]
            seen: set[str] = set()
            for _ in range(6 if flag else 3):
                _, _, report = record(flags, [sys.executable, "worker.py", name], folder)
                seen |= set(ranges(report) or {})
                if "worker" in seen:
                    break
            found[name][flag] = sorted(seen)
    return found


SETTINGS = [
    "-t nvtx -s none",
    "-t nvtx,osrt -s none --osrt-threshold=10000",
    "-t nvtx,osrt -s none",
    "-t nvtx,osrt -s process-tree",
]  # without samples, without thread switches too


def distortion(folder: Path) -> dict[str, dict[str, float]]:
    """The fastest time of two small pieces of work, in seconds, watched and not."""
    (folder / "work.py").write_text(WORK)
    best: dict[str, dict[str, float]] = {}
    for _ in range(6):  # in turns, so that a slow moment hits every setting
        for name in ("no nsys", *SETTINGS):
            if name == "no nsys":
                run([sys.executable, "work.py"], folder)
            else:
                flags = name.replace("-s none", " ".join(QUIET)).split()
                record(flags, [sys.executable, "work.py"], folder)
            times = json.loads((folder / "times.json").read_text())
            before = best.get(name, times)
            best[name] = {work: min(before[work], times[work]) for work in times}
    return best


PARTS = {"cpu": record_cpu, "flags": record_flags, "facts": record_facts, "traps": record_traps}


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what lesson 11 reads.")
    parser.add_argument("folder", type=Path, help="where the recordings go")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default all")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}, but {', '.join(unknown)} came")
    if not tool("nsys"):
        parser.error("no nsys on the PATH and none in $NSYS")
    if os.geteuid() == 0:
        print("As root, nsys sees every process here. Better: an ordinary user.")
    options.folder.mkdir(parents=True, exist_ok=True)
    device = f"{machine.describe()['processor']}, no GPU"
    versions = {"nsys": version(tool("nsys")), "torch": importlib.metadata.version("torch")}
    for name in options.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            about = recording.provenance("record_nsys.py", device, "nsys profile …", **versions)
            found = PARTS[name](Path(folder), about)
            save(options.folder / f"nsys_{name}.json", {"provenance": about, **found})
            for report in Path(folder).glob("nsys_*.sqlite"):
                shutil.copy(report, options.folder)
        print(f"recorded: {name}")


if __name__ == "__main__":
    main()
