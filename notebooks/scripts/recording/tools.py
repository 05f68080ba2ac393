"""Lessons 05 and 07: what kernprof, nsys and ncu say of a program that they start."""

import csv
import io
import json
import os
import pstats
import subprocess
import sys
from pathlib import Path
from typing import Any

from recording import gpu
from recording.common import ROOT, SCRIPTS, run, save, tool, tools, version
from recording.nsight import QUIET, record, rows_of, stats, strip

# What lesson 07 measures with ncu, by launch_kernels.py's names.
KERNELS = [
    "product float32", "product tf32", "product bf16", "resize", "relu",
    "linear 4", "linear 512",
]  # fmt: skip


class Missing(RuntimeError):
    """A tool or a permission is missing: not an error of the recorder."""


def here() -> dict[str, str]:
    """Where a started program finds the course, also when it is not installed."""
    folders = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, folders))}


def raw_folder(out: Path) -> Path:
    """Where what a tool wrote stays until the end: it may be kept, and is not shipped."""
    folder = out / "raw"
    folder.mkdir(exist_ok=True)
    return folder


def lines(out: Path, small: bool) -> dict[str, Any]:
    """kernprof's and cProfile's tables of convolve_on_gpu.py, launches blocking and not.

    ``rows`` are [line number, hits, seconds]; ``functions`` are [name, calls, tottime].
    """
    try:
        from line_profiler import load_stats
    except ModuleNotFoundError as error:
        raise Missing("line_profiler is not installed") from error
    script, raw = SCRIPTS / "convolve_on_gpu.py", raw_folder(out)
    program = [script, "2" if small else "64"]  # images
    found: dict[str, Any] = {"script": script.name, "rows": {}, "functions": {}}
    found["source"] = script.read_text(encoding="utf-8").splitlines()
    for title, environment in {
        "as it is": {},
        "CUDA_LAUNCH_BLOCKING=1": {"CUDA_LAUNCH_BLOCKING": "1"},
    }.items():
        for words in (
            ["-m", "kernprof", "-l", "-o", "run.lprof", *program],
            ["-m", "cProfile", "-o", "run.prof", *program],
        ):
            status, said = run([sys.executable, *words], raw, 60, **here(), **environment)
            if status:
                raise RuntimeError(f"{words[1]} ended with status {status}: {said}")
        measured = load_stats(str(raw / "run.lprof"))
        ((_, rows),) = measured.timings.items()
        found["rows"][title] = [[line, hits, ticks * measured.unit] for line, hits, ticks in rows]
        functions = pstats.Stats(str(raw / "run.prof")).stats.items()
        found["functions"][title] = [
            [name, calls, tottime]
            for (_, _, name), (_, calls, tottime, _, _) in functions
            if any(part in name for part in ("convolve_and_sum", "conv2d", "'sum'", "'item'"))
        ]
    return found


def nsys(out: Path, small: bool) -> dict[str, Any]:
    """nsys's report of example_torch_profile.py, stripped, and its own summaries.

    Every nsys of this machine is tried, and each with fewer kinds of calls, until one sees the
    kernels: an old one may not understand a new driver.
    """
    raw = raw_folder(out)
    arguments = ["example_torch_profile.py", "--json", "run.json"]
    if small:
        arguments += ["--steps", "2", "--warm-up", "1", "--batch-size", "2"]
    program = [sys.executable, str(SCRIPTS / arguments[0]), *arguments[1:]]
    said = []
    for path in tools("nsys"):
        for kinds in ("cuda,nvtx,osrt,cudnn,cublas", "cuda,nvtx,osrt"):
            flags = ["-t", kinds, *QUIET, "--osrt-threshold=10000"]
            try:
                status, text, database = record(flags, program, raw, path, 50, **here())
            except subprocess.TimeoutExpired:
                said.append(f"nsys {version(path)} -t {kinds} took longer than 50 s")
                continue
            rows = rows_of(database) if database else {}
            if not rows.get("CUPTI_ACTIVITY_KIND_KERNEL"):
                what = "saw no kernel" if database else f"made no report: {last(text)}"
                said.append(f"nsys {version(path)} -t {kinds} {what}")
                continue
            command = " ".join(["nsys profile", *flags, "python", *arguments])
            about = gpu.provenance("nsys", small) | {"nsys": version(path), "command": command}
            strip(database, out / "nsys.sqlite", about)
            return {
                "nsys": version(path),
                "traced with": command,
                "status": status,
                "steps": json.loads((raw / "run.json").read_text())["steps"],
                "rows before stripping": rows,
                "nsys stats": summaries(database, raw, path),
                "tried before": said,
            }
    raise Missing("; ".join(said) or "nsys is neither on the PATH nor in $NSYS")


def summaries(database: Path, folder: Path, path: str) -> dict[str, list[dict[str, str]]]:
    """What ``nsys stats`` makes of the report, where this nsys has it."""
    found = {}
    for name in (
        "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_api_sum", "nvtx_sum",
        "nvtx_gpu_proj_sum",
    ):  # fmt: skip
        try:
            found[name] = stats(database, name, folder, path)
        except (RuntimeError, subprocess.TimeoutExpired):
            found[name] = []
    return found


# Columns of ncu's tables that name the machine or the process.
PRIVATE = ("Process ID", "Process Name", "Host Name")


# Of the several hundred metrics of a kernel these describe the device, over and over.
OF_THE_DEVICE = "device__attribute_"


def ncu(out: Path, small: bool) -> dict[str, Any]:
    """ncu's counters of seven kernels of launch_kernels.py, caches emptied before each.

    ``ncu.NAME.csv`` is the page of details as ncu prints it, less the columns that
    name the machine; ``ncu.counters.json.gz`` holds all metrics as [value, unit] by kernel.
    """
    path = tool("ncu")
    if path is None:
        raise Missing("ncu is neither on the PATH nor in $NCU")
    raw = raw_folder(out)
    found: dict[str, Any] = {"ncu": version(path), "cases": {}, "not measured": {}}
    measured: dict[str, list[dict[str, Any]]] = {}
    for case in KERNELS[:1] if small else KERNELS:
        file = f"ncu.{case.replace(' ', '_')}.csv"
        report = raw / f"{file}.ncu-rep"
        words = [
            path, "--clock-control", "none", "--set", "full", "--apply-rules", "no",
            "--profile-from-start", "off", "-f", "-o", report.with_suffix(""),
            sys.executable, SCRIPTS / "launch_kernels.py", case,
        ]  # fmt: skip
        try:
            status, text = run(words, raw, 90, **here())
            if not report.exists():
                raise Missing(f"ncu {version(path)} made no report: {last(text)}")
            pages = [path, "--import", report, "--csv", "--page"]
            details = table(run([*pages, "details"], raw, 30)[1])
            measured[case] = counters(table(run([*pages, "raw"], raw, 30)[1]))
        except (Missing, subprocess.TimeoutExpired) as error:
            found["not measured"][case] = str(error)
            if len(found["not measured"]) > 1:  # the next will end like this one
                break
            continue
        write_table(out / file, [row for row in details if row.get("Metric Name")])
        found["cases"][case] = {
            "status": status,
            "command": "ncu --clock-control none --set full --profile-from-start off"
            f' python launch_kernels.py "{case}"',
            "details": file,
            "kernels": [kernel["kernel"] for kernel in measured[case]],
        }
    if not found["cases"]:
        raise Missing(next(iter(found["not measured"].values())))
    save(out / "ncu.counters.json.gz", measured)
    return found


def table(text: str) -> list[dict[str, str]]:
    """The rows of the CSV in what ncu printed, from its header on."""
    start = text.find('"ID"')
    rows = csv.DictReader(io.StringIO(text[start:] if start >= 0 else ""))
    return [{key: value for key, value in row.items() if key not in PRIVATE} for row in rows]


def write_table(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        kept = [name for name in rows[0] if not name.startswith("Rule")]
        writer = csv.DictWriter(
            file, kept, extrasaction="ignore", quoting=csv.QUOTE_ALL,
            lineterminator="\n",
        )  # fmt: skip
        writer.writeheader()
        writer.writerows(rows)


def counters(raw: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The raw page: its first row holds the units, each other row is a kernel."""
    if not raw:
        return []
    units, *kernels = raw
    return [
        {
            "kernel": row["Kernel Name"],
            "metrics": {
                name: [value, units[name]]
                for name, value in row.items()
                if value and name != "Kernel Name" and not name.startswith(OF_THE_DEVICE)
            },
        }
        for row in kernels
    ]


def last(text: str) -> str:
    """The line of a tool's output that says most: its first error, or its last."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in said if "error" in line.lower() or "ERR_" in line]
    return (errors or said or ["it printed nothing"])[0 if errors else -1]
