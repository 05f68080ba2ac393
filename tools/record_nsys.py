"""Record what lesson 11 reads: a real report, and what the real nsys says to flags.

    python -m tools.record_nsys FOLDER [report] [flags] [facts] [traps]

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
import json
import os
import re
import sqlite3
import sys
import tempfile
from pathlib import Path

from helpers import machine
from tools import recording
from tools.nsight import QUIET, RANGE, record, stats, strip, tables_of
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

TEMPLATES = sorted((recording.ROOT / "assets" / "jobs").glob("*/*"))

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
def work():
    for _ in range(5):
        with nvtx.annotate("worker"):
            time.sleep(0.2)
if __name__ == "__main__":
    with nvtx.annotate("program"):
        worker = multiprocessing.get_context(sys.argv[1]).Process(target=work)
        worker.start()
        worker.join()
"""
LOADER = """
import time, nvtx
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        with nvtx.annotate("worker"):
            time.sleep(0.1)
        return index
if __name__ == "__main__":
    with nvtx.annotate("program"):
        list(DataLoader(Numbers(), num_workers=1))
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


def provenance(command: str, **versions: str) -> dict[str, str]:
    device = f"{machine.describe()['processor']}, no GPU"
    return recording.provenance("record_nsys.py", device, command, **versions)


def ranges(database: Path | None) -> dict[str, int] | None:
    """How often each NVTX range is in a report; None without ranges or report."""
    if database is None or "NVTX_EVENTS" not in tables_of(database):
        return None
    with sqlite3.connect(database) as db:
        rows = db.execute(
            "SELECT coalesce(text, value) AS name, count(*) FROM NVTX_EVENTS"
            " LEFT JOIN StringIds ON id = textId WHERE eventType = ? GROUP BY name",
            [RANGE],
        )
        return dict(rows.fetchall())


def record_report(out: Path, folder: Path) -> None:
    """The report of the training script, and Kineto's marks from the same run."""
    import torch

    arguments = ["example_torch_profile.py", "--kineto", "--json", "run.json"]
    program = [sys.executable, str(SCRIPTS / arguments[0]), *arguments[1:]]
    flags = ["-t", "nvtx,osrt", *QUIET, "--osrt-threshold=10000"]
    _, _, database = record(flags, program, folder)
    command = " ".join(["nsys profile", *flags, "python", *arguments])
    versions = {"nsys": version(tool("nsys")), "torch": torch.__version__}
    about = provenance(command, **versions)
    strip(database, out / "nsys_cpu.sqlite", about)
    seen = json.loads((folder / "run.json").read_text())
    save(
        out / "nsys_cpu.json",
        {
            "provenance": about,
            "kineto": seen["kineto"],
            "nsys stats": {
                name: stats(database, name, folder) for name in ("nvtx_sum", "osrt_sum")
            },
        },
    )


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


def record_flags(out: Path, folder: Path) -> None:
    """What the parsers say to each flag, to the documents' commands, and to our templates."""
    nsys, ncu = tool("nsys"), tool("ncu")
    command = "nsys profile FLAG no-such-program"
    found = {
        "provenance": provenance(command, nsys=version(nsys)),
        "nsys": {
            flag: accepted(nsys, ["profile", *COMPANIONS.get(flag, []), *flag.split()], folder)
            for flag in NSYS_FLAGS
        },
        "alone": {flag: accepted(nsys, ["profile", flag], folder) for flag in COMPANIONS},
        "commands": [],
        "templates": {path.name: template(path, folder) for path in TEMPLATES},
    }
    for line in COMMANDS:
        words = line.replace(" python ", " no-such-program ").split()[1:]
        _, text = run([nsys, *words], folder)
        found["commands"].append({"line": line, **verdict(message(text, folder))})
    if ncu:
        found["ncu"] = {
            "version": version(ncu),
            "flags": {flag: accepted(ncu, flag.split(), folder) for flag in NCU_FLAGS},
        }
    save(out / "nsys_flags.json", found)


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
        said = [line for line in text.splitlines() if "WARNING" in line]
        found[name] = {
            "status": status,
            "program finished": "the last line" in text,
            "ranges": kept,
            "message": message("\n".join(said), folder),
        }
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
    status, text = run(words, folder)
    lines = [line for line in text.splitlines() if "taken" in line or "--force" in line]
    size = (folder / "taken.nsys-rep").stat().st_size
    found["the name is taken"] = {
        "status": status,
        "message": message("\n".join(lines), folder),
        "bytes in the file": size,
    }

    ways = {"as usual": ([], True), "-n false": (["-n", "false"], True), "env -i": ([], False)}
    found["secrets"] = {}
    for name, (flags, given) in ways.items():
        secret = {"API_TOKEN": "not-a-real-token"} if given else {}
        _, _, database = record([*basic, *flags], ["true"], folder, **secret)
        leaked = b"not-a-real-token" in database.read_bytes()
        found["secrets"][name] = {"token in the report": leaked}
    return found


def record_facts(out: Path, folder: Path) -> None:
    """What a recording keeps, gives away, and costs."""
    versions = {"nsys": version(tool("nsys"))}
    found = {
        "provenance": provenance("nsys profile -t nvtx …", **versions),
        **behaviour(folder),
        "distortion": distortion(folder),
    }
    save(out / "nsys_facts.json", found)


def record_traps(out: Path, folder: Path) -> None:
    """Which workers are followed, and what keeps the reports of ranks apart."""
    found = {
        "provenance": provenance("nsys profile …", nsys=version(tool("nsys"))),
        "workers": workers(folder),
        "reports of four ranks": ranks(folder),
    }
    save(out / "nsys_traps.json", found)


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
    (folder / "loader.py").write_text(LOADER)
    programs = {
        **{name: ["worker.py", name] for name in ("spawn", "fork", "forkserver")},
        "DataLoader": ["loader.py"],
    }
    found: dict[str, dict[str, list[str]]] = {}
    for name, program in programs.items():
        found[name] = {}
        for flag in ("", "--trace-fork-before-exec=true"):
            flags = ["-t", "nvtx", *QUIET, *([flag] if flag else [])]
            seen: set[str] = set()
            for _ in range(6 if flag else 3):
                _, _, report = record(flags, [sys.executable, *program], folder)
                seen |= set(ranges(report) or {})
                if "worker" in seen:
                    break
            found[name][flag] = sorted(seen)
    return found


SETTINGS = {
    "-t nvtx -s none": ["-t", "nvtx", *QUIET],
    "-t nvtx,osrt -s none --osrt-threshold=10000": [
        "-t", "nvtx,osrt", *QUIET, "--osrt-threshold=10000",
    ],
    "-t nvtx,osrt -s none": ["-t", "nvtx,osrt", *QUIET],
    "-t nvtx,osrt -s process-tree": ["-t", "nvtx,osrt", "-s", "process-tree"],
}  # fmt: skip


def distortion(folder: Path) -> dict[str, dict[str, float]]:
    """The fastest time of two small pieces of work, in seconds, watched and not."""
    (folder / "work.py").write_text(WORK)
    best: dict[str, dict[str, float]] = {}
    for _ in range(6):  # in turns, so that a slow moment hits every setting
        for name, flags in {"no nsys": None, **SETTINGS}.items():
            if flags is None:
                run([sys.executable, "work.py"], folder)
            else:
                record(flags, [sys.executable, "work.py"], folder)
            times = json.loads((folder / "times.json").read_text())
            before = best.get(name, times)
            best[name] = {work: min(before[work], times[work]) for work in times}
    return best


def main() -> None:
    parts = {
        "report": record_report,
        "flags": record_flags,
        "facts": record_facts,
        "traps": record_traps,
    }
    parser = argparse.ArgumentParser(description="Record what lesson 11 reads.")
    parser.add_argument("folder", type=Path, help="where the recordings go")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; default all")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(parts):
        parser.error(f"parts are {', '.join(parts)}, but {', '.join(unknown)} came")
    if not tool("nsys"):
        parser.error("no nsys on the PATH and none in $NSYS")
    if os.geteuid() == 0:
        print("As root, nsys sees every process here. Better: an ordinary user.")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.parts or parts:
        with tempfile.TemporaryDirectory() as folder:
            parts[name](options.folder.resolve(), Path(folder))
        print(f"recorded: {name}")


if __name__ == "__main__":
    main()
