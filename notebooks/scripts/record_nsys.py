"""Record what lesson 07 reads: a real report, and what the real nsys says to flags.

    python scripts/record_nsys.py FOLDER [report] [flags] [facts]

Writes nsys_cpu.sqlite and nsys_cpu.json (a report of example_torch_profile.py, and
what torch.profiler saw in the same run), nsys_flags.json (which flags are accepted)
and nsys_facts.json (what a recording keeps, costs and gives away). Needs nsys on
the PATH or in $NSYS, and uses ncu from the PATH or $NCU for its flags.

Run it as an ordinary user: as root, nsys sees other people's processes. Every tool
is started with an empty environment, and of a report only the tables and rows that
the lesson reads are kept.
"""

import argparse
import csv
import datetime
import io
import json
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
QUIET = ["-s", "none", "--cpuctxsw=none"]

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
    "--discard-environment=true",
]  # fmt: skip
NCU_FLAGS = [
    "-k regex:gemm", "--kernel-id ::regex:gemm:", "--kernel-regex gemm",
    "-c 3", "--launch-skip 10", "--set basic", "-o report",
    "--csv", "--page raw", "--clock-control none", "--replay-mode application",
    "--nvtx --nvtx-include forward/",
]  # fmt: skip

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
PARENT = """
import subprocess, sys, nvtx
child = "import nvtx\\nwith nvtx.annotate('child'): pass"
with nvtx.annotate("parent"):
    subprocess.run([sys.executable, "-c", child], check=True)
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

# What a stripped report keeps, beside names in use. Everything else is dropped.
TABLES = ["NVTX_EVENTS", "OSRT_API"]
RANGE = 59  # NVTX_EVENTS.eventType of a range that was pushed and popped


def tool(name: str) -> str | None:
    """The path of ``name`` from $NSYS, $NCU or the PATH, or None."""
    return shutil.which(os.environ.get(name.upper()) or name)


def run(words: list[str], folder: Path, **environment: str) -> tuple[int, str]:
    """Exit status and output of a command started with an empty environment."""
    done = subprocess.run(
        words,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout


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


def version(path: str) -> str:
    text = subprocess.run(
        [path, "--version"], capture_output=True, text=True
    ).stdout
    return re.search(r"[Vv]ersion (\d+\.\d+\.\d+[.\d]*)", text)[1]


def provenance(command: str, **versions: str) -> dict[str, str]:
    from helpers import machine

    described = machine.describe()
    return {
        "device": f"{described['processor']}, no GPU",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **versions,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "recorder": "notebooks/scripts/record_nsys.py",
    }


def save(path: Path, content: dict) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def record(
    flags: list[str], program: list[str], folder: Path, **environment: str
) -> tuple[int, str, Path | None]:
    """Run ``nsys profile``; return status, output and the exported report."""
    nsys = tool("nsys")
    report, database = folder / "r.nsys-rep", folder / "r.sqlite"
    for old in (report, database):
        old.unlink(missing_ok=True)
    words = [nsys, "profile", *flags, "-f", "true", "-o", "r", *program]
    status, text = run(words, folder, **environment)
    if not report.exists():
        return status, text, None
    export = [nsys, "export", "-t", "sqlite", "-f", "true", "-o", database, report]
    run([str(word) for word in export], folder)
    return status, text, database


def ranges(database: Path | None) -> dict[str, int] | None:
    """How often each NVTX range is in a report; None without ranges or report."""
    if database is None or "NVTX_EVENTS" not in rows_of(database):
        return None
    with sqlite3.connect(database) as db:
        rows = db.execute(
            "SELECT coalesce(text, value) AS name, count(*) FROM NVTX_EVENTS"
            " LEFT JOIN StringIds ON id = textId WHERE eventType = ? GROUP BY name",
            [RANGE],
        )
        return dict(rows.fetchall())


def strip(source: Path, target: Path, about: dict[str, str]) -> None:
    """Copy what the lesson reads into a new database, and nothing else."""
    target.unlink(missing_ok=True)
    old, new = sqlite3.connect(source), sqlite3.connect(target)
    for table in [*TABLES, "StringIds", "META_DATA_EXPORT"]:
        query = "SELECT sql FROM sqlite_master WHERE name = ?"
        new.execute(old.execute(query, [table]).fetchone()[0])
    strings: set[int] = set()
    for table, column in {"NVTX_EVENTS": "textId", "OSRT_API": "nameId"}.items():
        kept = f"WHERE eventType = {RANGE}" if table == "NVTX_EVENTS" else ""
        cursor = old.execute(
            f"SELECT * FROM {table} {kept} ORDER BY start, end DESC"
        )
        names = [name for name, *_ in cursor.description]
        for row in cursor.fetchall():
            marks = ", ".join("?" * len(row))
            new.execute(f"INSERT INTO {table} VALUES ({marks})", row)
            strings.add(row[names.index(column)])
    for identity in sorted(strings - {None}):
        query = "SELECT id, value FROM StringIds WHERE id = ?"
        row = old.execute(query, [identity]).fetchone()
        new.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", row)
    schema = (
        "SELECT name, value FROM META_DATA_EXPORT WHERE name LIKE 'EXPORT_SCHEMA%'"
    )
    insert = "INSERT INTO META_DATA_EXPORT (name, value) VALUES (?, ?)"
    new.executemany(insert, old.execute(schema).fetchall())
    new.execute("CREATE TABLE PROVENANCE (name TEXT PRIMARY KEY, value TEXT)")
    new.executemany("INSERT INTO PROVENANCE VALUES (?, ?)", about.items())
    new.commit()
    new.execute("VACUUM")
    new.close()


def rows_of(database: Path) -> dict[str, int]:
    """How many rows each table of a report holds; enumerations left out."""
    with sqlite3.connect(database) as db:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        tables = [
            name for (name,) in db.execute(query) if not name.startswith("ENUM")
        ]
        count = "SELECT count(*) FROM {}".format
        return {table: db.execute(count(table)).fetchone()[0] for table in tables}


def stats(database: Path, name: str, folder: Path) -> list[dict]:
    """The rows of ``nsys stats``, as it computes them from the same report."""
    words = [tool("nsys"), "stats", "-q", "-r", name, "-f", "csv", str(database)]
    _, text = run(words, folder)
    if "Time (%)" not in text:
        raise RuntimeError(f"nsys stats printed no table, but: {text}")
    text = text[text.index("Time (%)") :]
    return list(csv.DictReader(io.StringIO(text)))


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
                name: stats(database, name, folder)
                for name in ("nvtx_sum", "osrt_sum")
            },
            "rows before stripping": rows_of(database),
        },
    )


# Options that are only allowed beside another one.
COMPANIONS = {"--capture-range-end=stop": ["-c", "nvtx"]}


def accepted(path: str, words: list[str], folder: Path) -> dict:
    """Whether the tool's parser takes ``words``; it is given no real program."""
    _, text = run([path, *words, "no-such-program"], folder)
    said = message(text, folder)
    started = ("Executable not found", "is not an executable")
    fine = any(sign in said for sign in started)
    return {"accepted": fine, "message": "" if fine else said}


def record_flags(out: Path, folder: Path) -> None:
    """What the parsers say to each flag, and to the documents' commands."""
    nsys, ncu = tool("nsys"), tool("ncu")
    command = "nsys profile FLAG no-such-program"
    found = {
        "provenance": provenance(command, nsys=version(nsys)),
        "nsys": {
            flag: accepted(
                nsys, ["profile", *COMPANIONS.get(flag, []), *flag.split()], folder
            )
            for flag in NSYS_FLAGS
        },
        "alone": {
            flag: accepted(nsys, ["profile", flag], folder) for flag in COMPANIONS
        },
        "commands": [],
    }
    for line in COMMANDS:
        words = line.replace(" python ", " no-such-program ").split()[1:]
        _, text = run([nsys, *words], folder)
        said = message(text, folder)
        fine = "Executable not found" in said
        row = {"line": line, "accepted": fine, "message": "" if fine else said}
        found["commands"].append(row)
    if ncu:
        _, sets = run([ncu, "--list-sets"], folder)
        row = r"^(\w+) .*? (yes|no) +(\d+) *$"
        found["ncu"] = {
            "version": version(ncu),
            "metrics in a set": {
                name: int(count) for name, _, count in re.findall(row, sets, re.M)
            },
            "flags": {
                flag: accepted(ncu, flag.split(), folder) for flag in NCU_FLAGS
            },
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
    """Capture ranges, misplaced flags, children, secrets: the same every time."""
    nsys, found = tool("nsys"), {"capture": capture_facts(folder)}
    python, basic = sys.executable, ["-t", "nvtx", *QUIET]

    late = ["--force-overwrite", "true", "--cuda-memory-usage", "true"]
    _, text, _ = record(basic, [python, "myapp.py", *late], folder)
    argv = next(line for line in text.splitlines() if line.startswith("argv"))
    found["flags after the script"] = {"given": late, "the script printed": argv}

    (folder / "taken.nsys-rep").touch()
    words = [nsys, "profile", *basic, "-o", "taken", python, "myapp.py"]
    status, text = run(words, folder)
    lines = [
        line for line in text.splitlines() if "taken" in line or "--force" in line
    ]
    size = (folder / "taken.nsys-rep").stat().st_size
    found["the name is taken"] = {
        "status": status,
        "message": message("\n".join(lines), folder),
        "bytes in the file": size,
    }

    (folder / "parent.py").write_text(PARENT)
    _, _, database = record(basic, [python, "parent.py"], folder)
    with sqlite3.connect(database) as db:
        query = (
            "SELECT DISTINCT globalTid >> 24 FROM NVTX_EVENTS WHERE eventType = ?"
        )
        processes = len(db.execute(query, [RANGE]).fetchall())
    found["children"] = {"ranges": ranges(database), "processes": processes}

    found["secrets"] = {}
    for name, flags in {"as usual": [], "-n false": ["-n", "false"]}.items():
        secret = {"API_TOKEN": "not-a-real-token"}
        _, _, database = record([*basic, *flags], ["true"], folder, **secret)
        given_away = b"not-a-real-token" in database.read_bytes()
        found["secrets"][name] = {"token in the report": given_away}
    _, _, database = record(basic, ["true"], folder)
    given_away = b"not-a-real-token" in database.read_bytes()
    found["secrets"]["env -i"] = {"token in the report": given_away}

    return found


def record_facts(out: Path, folder: Path) -> None:
    """What a recording keeps, gives away, and costs."""
    versions = {"nsys": version(tool("nsys"))}
    found = {
        "provenance": provenance("nsys profile -t nvtx …", **versions),
        **behaviour(folder),
        "cost": cost(folder),
        "distortion": distortion(folder),
    }
    save(out / "nsys_facts.json", found)


SETTINGS = {
    "-t nvtx -s none": ["-t", "nvtx", *QUIET],
    "-t nvtx,osrt -s none --osrt-threshold=10000": [
        "-t", "nvtx,osrt", *QUIET, "--osrt-threshold=10000",
    ],
    "-t nvtx,osrt -s none": ["-t", "nvtx,osrt", *QUIET],
    "-t nvtx,osrt -s process-tree": ["-t", "nvtx,osrt", "-s", "process-tree"],
}  # fmt: skip


def cost(folder: Path) -> dict[str, dict]:
    """How much is written about one run of the training script."""
    program = [sys.executable, str(SCRIPTS / "example_torch_profile.py")]
    found = {}
    for name, flags in SETTINGS.items():
        _, _, database = record(flags, program, folder)
        rows = rows_of(database)
        kept = ["NVTX_EVENTS", "OSRT_API", "COMPOSITE_EVENTS"]
        found[name] = {
            "bytes": (folder / "r.nsys-rep").stat().st_size,
            "rows": {table: rows.get(table, 0) for table in kept},
        }
    return found


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
    parts = {"report": record_report, "flags": record_flags, "facts": record_facts}
    parser = argparse.ArgumentParser(description="Record what lesson 07 reads.")
    parser.add_argument("folder", type=Path, help="where the recordings go")
    parser.add_argument(
        "parts", nargs="*", help=f"of {', '.join(parts)}; default all"
    )
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
