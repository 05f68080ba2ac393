"""Reduce public recordings of GPUs to what the lessons read, in assets/recordings/gpu.

    python -m tools.reduce_recordings SOURCE-FOLDER

SOURCE-FOLDER holds the files as their repositories publish them (named below) and their
licences. Nothing is computed that a lesson should compute: rows and columns are left out,
times start at 0 and get their unit into their name. Beside each file lies NAME.json, which
says where it comes from.
"""

import csv
import gzip
import io
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.nsight import CREATED, RANGE, strip
from tools.recording import ROOT, save

TARGET = ROOT / "assets" / "recordings" / "gpu"
GITHUB = "https://github.com/"
# repository → address with commit, licence
SOURCES = {
    "HolisticTraceAnalysis": (
        "facebookresearch/HolisticTraceAnalysis @ f4d0062c382f42bd8a74838bcdad1916c7d5d2da", "MIT"),
    "kineto": ("pytorch/kineto @ be239c044d2f4b62982e1ff64144097acd69f59a", "BSD-3-Clause"),
    "nsightful": ("brycelelbach/nsightful @ 454dfa5124ebea193f64302058b327f2034ccd8e",
                  "BSD-3-Clause"),
    "GPU-Roofline-Profiler": (
        "Olajide-Badejo/GPU-Roofline-Profiler @ 14f29c68d4c89178838f8f3d110f5789a0d58055", "MIT"),
}  # fmt: skip
TELLING = {"Process ID", "Process Name", "Host Name"}  # columns of ncu


def describe(name: str, repository: str, path: str, device: str, **more: str) -> dict[str, str]:
    """Write NAME.json and the licence; return the provenance, for a database holds it too."""
    source, licence = SOURCES[repository]
    about = {
        "device": device,
        **more,
        "source": f"{GITHUB}{source}",
        "source file": path,
        "licence": licence,
        "licence text": f"licences/{repository}.txt",
        "recorder": "tools/reduce_recordings.py",
    }
    save(TARGET / f"{name}.json", {"provenance": about})
    return about


def write_rows(path: Path, columns: list[str], rows: Iterable[Iterable[Any]]) -> None:
    """A CSV; packed if its name ends in .gz, the same bytes for the same rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def events(path: Path) -> list[dict[str, Any]]:
    """The events of a Chrome trace that have a time, in its order."""
    found = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return sorted((event for event in found if "ts" in event), key=lambda event: event["ts"])


def profiler_steps(trace: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The CPU's ranges ProfilerStep#n."""
    cats = ("user_annotation", "Operator")
    return [e for e in trace if e["name"].startswith("ProfilerStep") and e.get("cat") in cats]


def steps(source: Path) -> None:
    """Lesson 01: five training steps, as the CPU's clock and as the GPU saw them."""
    trace = events(source / "hta_v100_resnet_gpu_bound.json.gz")
    done = {}  # correlation → when the GPU was done with it
    for event in trace:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            done[event["args"]["correlation"]] = event["ts"] + event["dur"]
    marks, rows = profiler_steps(trace), []
    zero = marks[0]["ts"]
    for mark in marks:
        start, end = mark["ts"], mark["ts"] + mark["dur"]
        launched = [
            done[e["args"]["correlation"]]
            for e in trace
            if e.get("cat") == "cuda_runtime"
            and start <= e["ts"] < end
            and e["args"].get("correlation") in done
        ]
        times = [round((time - zero) / 1000, 3) for time in (start, end, max(launched))]
        rows.append([int(mark["name"].split("#")[1]), *times, len(launched)])
    columns = ["step", "cpu_start_ms", "cpu_end_ms", "gpu_end_ms", "launches"]
    write_rows(TARGET / "v100_resnet50_steps.csv", columns, rows)
    describe(
        "v100_resnet50_steps", "HolisticTraceAnalysis",
        "tests/data/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
        "Tesla V100-SXM2-32GB", date="2024-04-04", versions="NCCL 2.17.1; torch not recorded",
        workload="ResNet-50, training, float32, batch 32, one GPU, no synchronize",
    )  # fmt: skip


def on_device(trace: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the GPU's allocator."""
    return [e for e in trace if e["name"] == "[memory]" and e["args"]["Device Type"] == 1]


def memory(source: Path) -> None:
    """Lesson 09: what a GPU's allocator handed out and took back."""
    trace = events(source / "kineto_v100_resnet50_fp32_workers0_steps16-21.json.gz")
    marks, rows = profiler_steps(trace), []
    zero = marks[0]["ts"]
    for event in on_device(trace):
        step = next(m for m in marks if m["ts"] <= event["ts"] < m["ts"] + m["dur"])
        number = int(step["name"].split("#")[1])
        rows.append([number, (event["ts"] - zero) / 1000, event["args"]["Bytes"]])
    columns = ["step", "time_ms", "change_bytes"]
    write_rows(TARGET / "v100_resnet50_memory.csv.gz", columns, rows)
    describe(
        "v100_resnet50_memory", "kineto",
        "tb_plugin/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        "Tesla V100-DGXS-32GB", date="2021-06-08", versions="torch not recorded",
        workload="ResNet-50, training, float32, batch 32, pictures of 224 × 224; the CUDA"
        " device's rows: changes, what lay there before is not recorded",
    )  # fmt: skip

    trace = events(source / "hta_v100x2_mlp_ddp_2020_allreduce.json.gz")
    mark = profiler_steps(trace)[1]
    rows = []
    for event in on_device(trace):
        if mark["ts"] <= event["ts"] < mark["ts"] + mark["dur"]:
            sizes = (event["args"][name] for name in ("Total Allocated", "Total Reserved"))
            rows.append([(event["ts"] - mark["ts"]) / 1000, *sizes])
    columns = ["time_ms", "allocated_bytes", "reserved_bytes"]
    write_rows(TARGET / "v100_mlp_memory.csv.gz", columns, rows)
    describe(
        "v100_mlp_memory", "HolisticTraceAnalysis",
        "tests/data/df_index_resolver/df_index_resolver.json.gz",
        "Tesla V100-SXM2-32GB", date="2022-11-30", versions="torch not recorded",
        workload="a multi-layer perceptron, training, DistributedDataParallel on two GPUs;"
        " one step of one of them",
    )  # fmt: skip


def tables(source: Path) -> None:
    """Lessons 04 and 11: times, ceilings and counters of an RTX 5070, counters of a T4."""
    for name in ("peaks", "timing"):
        with (source / f"rtx5070_{name}.csv").open(newline="") as file:
            columns, *rows = csv.reader(file)
        kept = [index for index, column in enumerate(columns) if column != "timestamp"]
        rows = [[row[index] for index in kept] for row in rows]
        columns = [columns[index] for index in kept]
        write_rows(TARGET / f"rtx5070_{name}.csv", columns, rows)
    names = ("naive", "tiled", "register_blocked", "vectorized")
    ncu([source / f"rtx5070_ncu_gemm_{name}.csv" for name in names], "rtx5070_ncu_gemm")
    ncu([source / "t4_ncu_copy_blocked.csv"], "t4_ncu_copy")
    results = {"peaks": "peaks.csv", "timing": "timing.csv", "ncu_gemm": "ncu/gemm_*.csv"}
    for name, file in results.items():
        describe(
            f"rtx5070_{name}", "GPU-Roofline-Profiler", f"results/sample_run/{file}",
            "NVIDIA GeForce RTX 5070, 48 SM", date="2026-07-22", system="Windows 11",
            versions="driver 610.62, nvcc 13.3, ncu 2026.2.1",
            workload="float32: matrix products in five versions, saxpy, transpose; the runs"
            " that were timed and those under ncu are not the same",
        )  # fmt: skip
    describe(
        "t4_ncu_copy", "nsightful", "tests/copy_blocked.csv", "Tesla T4, 40 SM",
        versions="ncu not recorded",
        workload="a kernel that copies 64-bit integers; each thread copies neighbours",
    )  # fmt: skip


def ncu(paths: list[Path], name: str) -> None:
    """The tables of ncu --csv, one below the other, without process and host."""
    rows = [row for path in paths for row in csv.DictReader(path.open(newline=""))]
    columns = [column for column in rows[0] if column not in TELLING]
    table = [[row[column] for column in columns] for row in rows]
    write_rows(TARGET / f"{name}.csv", columns, table)


def report(source: Path) -> None:
    """Lesson 11: the database of a T4."""
    about = describe(
        "t4_power_iteration", "nsightful", "tests/power_iteration__baseline.sqlite",
        "Tesla T4, 40 SM", versions="nsys 2025.3.1, driver 550.54",
        workload="CuPy, power iteration with an 8192 × 8192 matrix of float64, NVTX ranges",
    )  # fmt: skip
    original = source / "t4_cupy_power_iteration_nsys.sqlite"
    strip(original, TARGET / "t4_power_iteration.sqlite", about, (RANGE, CREATED))


def main() -> None:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    source = Path(sys.argv[1])
    (TARGET / "licences").mkdir(parents=True, exist_ok=True)
    for repository in SOURCES:
        licence = f"licences/{repository}.txt"
        shutil.copyfile(source / licence, TARGET / licence)
    for part in (steps, memory, tables, report):
        part(source)


if __name__ == "__main__":
    main()
