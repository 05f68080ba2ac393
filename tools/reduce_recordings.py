"""Reduce public recordings of GPUs to what the lessons read, in assets/recordings/gpu.

    python -m tools.reduce_recordings SOURCE-FOLDER

SOURCE-FOLDER holds the files as their repositories publish them (named below) and their
licences. Nothing is computed that a lesson should compute: rows and columns are left out,
times start at 0 and get their unit into their name. Beside each file lies NAME.json, which
says where it comes from.
"""

import gzip
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd

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
TELLING = ["Process ID", "Process Name", "Host Name", "timestamp"]  # columns that are left out


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


def write(name: str, table: pd.DataFrame) -> None:
    """A CSV; packed if its name ends in .gz, the same bytes for the same rows."""
    data = table.to_csv(index=False, lineterminator="\n").encode()
    (TARGET / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def events(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The events of a Chrome trace that have a time, in its order; and its profiler steps."""
    found = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    trace = sorted((event for event in found if "ts" in event), key=lambda event: event["ts"])
    steps = [event for event in trace if event["name"].startswith("ProfilerStep")]
    return trace, [step for step in steps if step.get("cat") in ("user_annotation", "Operator")]


def within(step: dict[str, Any], trace: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events that begin in a profiler step."""
    return [event for event in trace if 0 <= event["ts"] - step["ts"] < step["dur"]]


def steps(source: Path) -> None:
    """Lesson 01: five training steps, as the CPU's clock and as the GPU saw them."""
    trace, marks = events(source / "hta_v100_resnet_gpu_bound.json.gz")
    device = ("kernel", "gpu_memcpy", "gpu_memset")
    on_device = [event for event in trace if event.get("cat") in device]
    done = {event["args"]["correlation"]: event["ts"] + event["dur"] for event in on_device}
    rows = []
    for mark in marks:
        calls = [event for event in within(mark, trace) if event.get("cat") == "cuda_runtime"]
        numbers = [call["args"].get("correlation") for call in calls]
        launched = [done[number] for number in numbers if number in done]
        times = (mark["ts"], mark["ts"] + mark["dur"], max(launched))
        since = [round((time - marks[0]["ts"]) / 1000, 3) for time in times]
        rows.append([int(mark["name"].split("#")[1]), *since, len(launched)])
    columns = ["step", "cpu_start_ms", "cpu_end_ms", "gpu_end_ms", "launches"]
    write("v100_resnet50_steps.csv", pd.DataFrame(rows, columns=columns))
    describe(
        "v100_resnet50_steps", "HolisticTraceAnalysis",
        "tests/data/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
        "Tesla V100-SXM2-32GB", date="2024-04-04", versions="NCCL 2.17.1; torch not recorded",
        workload="ResNet-50, training, float32, batch 32, one GPU, no synchronize",
    )  # fmt: skip


def memory(source: Path) -> None:
    """Lesson 09: what a GPU's allocator handed out and took back."""
    trace, marks = events(source / "kineto_v100_resnet50_fp32_workers0_steps16-21.json.gz")
    rows = [
        [int(mark["name"].split("#")[1]), (event["ts"] - marks[0]["ts"]) / 1000, what["Bytes"]]
        for mark in marks
        for event, what in on_gpu(within(mark, trace))
    ]
    columns = ["step", "time_ms", "change_bytes"]
    write("v100_resnet50_memory.csv.gz", pd.DataFrame(rows, columns=columns))
    describe(
        "v100_resnet50_memory", "kineto",
        "tb_plugin/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        "Tesla V100-DGXS-32GB", date="2021-06-08", versions="torch not recorded",
        workload="ResNet-50, training, float32, batch 32, pictures of 224 × 224; the CUDA"
        " device's rows: changes, what lay there before is not recorded",
    )  # fmt: skip

    trace, (_, mark, *_) = events(source / "hta_v100x2_mlp_ddp_2020_allreduce.json.gz")
    rows = [
        [(event["ts"] - mark["ts"]) / 1000, what["Total Allocated"], what["Total Reserved"]]
        for event, what in on_gpu(within(mark, trace))
    ]
    columns = ["time_ms", "allocated_bytes", "reserved_bytes"]
    write("v100_mlp_memory.csv.gz", pd.DataFrame(rows, columns=columns))
    describe(
        "v100_mlp_memory", "HolisticTraceAnalysis",
        "tests/data/df_index_resolver/df_index_resolver.json.gz",
        "Tesla V100-SXM2-32GB", date="2022-11-30", versions="torch not recorded",
        workload="a multi-layer perceptron, training, DistributedDataParallel on two GPUs;"
        " one step of one of them",
    )  # fmt: skip


def on_gpu(trace: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The rows of the GPU's allocator, each with what it says."""
    rows = [(event, event["args"]) for event in trace if event["name"] == "[memory]"]
    return [(event, what) for event, what in rows if what["Device Type"] == 1]


def tables(source: Path) -> None:
    """Lessons 04 and 11: times, ceilings and counters of an RTX 5070, counters of a T4."""

    def kept(name: str) -> pd.DataFrame:  # every value as it is written there
        table = pd.read_csv(source / f"{name}.csv", dtype=str, keep_default_na=False)
        return table.drop(columns=TELLING, errors="ignore")

    for name in ("rtx5070_peaks", "rtx5070_timing"):
        write(f"{name}.csv", kept(name))
    versions = ("naive", "tiled", "register_blocked", "vectorized")
    products = [kept(f"rtx5070_ncu_gemm_{version}") for version in versions]
    write("rtx5070_ncu_gemm.csv", pd.concat(products))
    write("t4_ncu_copy.csv", kept("t4_ncu_copy_blocked"))
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


def report(source: Path) -> None:
    """Lesson 11: the database of a T4."""
    about = describe(
        "t4_power_iteration", "nsightful", "tests/power_iteration__baseline.sqlite",
        "Tesla T4, 40 SM", versions="nsys 2025.3.1, driver 550.54",
        workload="CuPy, power iteration with an 8192 × 8192 matrix of float64, NVTX ranges",
    )  # fmt: skip
    original = source / "t4_cupy_power_iteration_nsys.sqlite"
    strip(original, TARGET / "t4_power_iteration.sqlite", about, (RANGE, CREATED))


def collectives(source: Path) -> None:
    """Lesson 10: what a GPU's streams did under NCCL, and when the CPU had asked for it."""
    columns = ["step", "name", "elements", "launched_us", "start_us", "end_us"]
    for name, file, path, device, date, versions, workload, kept in (
        ("a100x2_allreduce", "hta_a100x2_resnet_ddp_cpu_bound",
         "nccl_parser_config/nccl_data.json.gz", "NVIDIA A100-PG509-200", "2024-05-23",
         "NCCL 2.17.1; torch not recorded",
         "ResNet-50, training, batch 32, DistributedDataParallel on two GPUs", slice(None)),
        ("v100x2_allreduce", "hta_v100x2_mlp_ddp_2020_allreduce",
         "df_index_resolver/df_index_resolver.json.gz", "Tesla V100-SXM2-32GB", "2022-11-30",
         "torch not recorded",
         "a multi-layer perceptron, training, two GPUs; 404 gradients", slice(1, 2)),
    ):  # fmt: skip
        trace, marks = events(source / f"{file}.json.gz")
        calls = {e["args"].get("correlation"): e for e in trace if e.get("cat") == "cuda_runtime"}
        rows = []
        for row in trace:
            call = calls.get(row.get("args", {}).get("correlation"))
            if row.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset") or not call:
                continue
            for mark in marks[kept]:
                if within(mark, [call]):
                    what = row["name"].split("(")[0] if "nccl" in row["name"] else row["cat"]
                    times = (call["ts"] + call["dur"], row["ts"], row["ts"] + row["dur"])
                    since = [round(time - marks[kept][0]["ts"], 3) for time in times]
                    elements, step = row["args"].get("In msg nelems"), mark["name"].split("#")[1]
                    rows.append([step, what, elements, *since])
        table = pd.DataFrame(rows, columns=columns).astype({"elements": "Int64"})
        write(f"{name}.csv.gz", table)
        describe(name, "HolisticTraceAnalysis", f"tests/data/{path}", device, date=date,
                 versions=versions, workload=workload)  # fmt: skip


def main() -> None:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    source = Path(sys.argv[1])
    (TARGET / "licences").mkdir(parents=True, exist_ok=True)
    for repository in SOURCES:
        licence = f"licences/{repository}.txt"
        shutil.copyfile(source / licence, TARGET / licence)
    for part in (steps, memory, tables, report, collectives):
        part(source)


if __name__ == "__main__":
    main()
