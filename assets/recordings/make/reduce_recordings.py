"""Reduce public recordings of GPUs to what the lessons read, in assets/recordings/gpu.

    python assets/recordings/make/reduce_recordings.py SOURCE-FOLDER

SOURCE-FOLDER holds the files as their repositories publish them, under the names below. Nothing
is computed that a lesson should compute: rows and columns are left out, and times start at 0 and
get their unit into their name. NAME.json beside each file is written by hand: it says where the
file comes from, under which licence, and what was recorded.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from recording import CREATED, RANGE, RECORDINGS, strip

TARGET = RECORDINGS / "gpu"
Event = dict[str, Any]
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def write(name: str, rows: pd.DataFrame | list, columns: list[str] | None = None) -> None:
    """Write a CSV, compressed if its name ends in .gz; equal rows give equal bytes."""
    data = pd.DataFrame(rows, columns=columns).to_csv(index=False, lineterminator="\n").encode()
    (TARGET / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def table(path: Path) -> pd.DataFrame:
    """Every value as it is written there, without the columns that name the machine."""
    names = ["Process ID", "Process Name", "Host Name", "timestamp"]
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    return rows.drop(columns=names, errors="ignore")


def events(path: Path) -> tuple[list[Event], list[Event]]:
    """The events of a Chrome trace that have a time, in its order; and its profiler steps."""
    found = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    trace = sorted((event for event in found if "ts" in event), key=lambda event: event["ts"])
    steps = [event for event in trace if event["name"].startswith("ProfilerStep")]
    return trace, [step for step in steps if step.get("cat") in ("user_annotation", "Operator")]


def within(step: Event, trace: list[Event]) -> list[Event]:
    """The events that begin in a profiler step."""
    return [event for event in trace if 0 <= event["ts"] - step["ts"] < step["dur"]]


def allocations(step: Event, trace: list[Event]) -> list[Event]:
    """The events of the GPU's allocator in a profiler step."""
    rows = [event for event in within(step, trace) if event["name"] == "[memory]"]
    return [event for event in rows if event["args"]["Device Type"] == 1]


def launches(step: Event, trace: list[Event]) -> list[tuple[Event, Event]]:
    """The calls in a profiler step that gave the GPU work, each with what the GPU then did."""
    calls = [event for event in within(step, trace) if event.get("cat") == "cuda_runtime"]
    by_number = {call["args"].get("correlation"): call for call in calls}
    device = [event for event in trace if event.get("cat") in ON_DEVICE]
    numbered = [(event["args"].get("correlation"), event) for event in device]
    return [(by_number[number], event) for number, event in numbered if number in by_number]


def steps(source: Path) -> None:
    """Lesson 01: five training steps, as the CPU's clock and as the GPU saw them."""
    trace, marks = events(source / "hta_v100_resnet_gpu_bound.json.gz")
    rows = []
    for mark in marks:
        ends = [event["ts"] + event["dur"] for _, event in launches(mark, trace)]
        times = (mark["ts"], mark["ts"] + mark["dur"], max(ends))
        since = [round((time - marks[0]["ts"]) / 1000, 3) for time in times]
        rows.append([mark["name"].split("#")[1], *since, len(ends)])
    columns = ["step", "cpu_start_ms", "cpu_end_ms", "gpu_end_ms", "launches"]
    write("v100_resnet50_steps.csv", rows, columns)


def memory(source: Path) -> None:
    """Lesson 09: what a GPU's allocator handed out and took back."""
    trace, marks = events(source / "kineto_v100_resnet50_fp32_workers0_steps16-21.json.gz")
    rows = [
        [mark["name"].split("#")[1], (event["ts"] - marks[0]["ts"]) / 1000, event["args"]["Bytes"]]
        for mark in marks
        for event in allocations(mark, trace)
    ]
    write("v100_resnet50_memory.csv.gz", rows, ["step", "time_ms", "change_bytes"])

    trace, (_, mark, *_) = events(source / "hta_v100x2_mlp_ddp_2020_allreduce.json.gz")
    names = ("Total Allocated", "Total Reserved")
    rows = [
        [(event["ts"] - mark["ts"]) / 1000, *(event["args"][name] for name in names)]
        for event in allocations(mark, trace)
    ]
    write("v100_mlp_memory.csv.gz", rows, ["time_ms", "allocated_bytes", "reserved_bytes"])


def counters(source: Path) -> None:
    """Lessons 04 and 11: times, ceilings and counters of an RTX 5070, counters of a T4."""
    for name in ("rtx5070_peaks", "rtx5070_timing"):
        write(f"{name}.csv", table(source / f"{name}.csv"))
    versions = ("naive", "tiled", "register_blocked", "vectorized")
    products = [table(source / f"rtx5070_ncu_gemm_{version}.csv") for version in versions]
    write("rtx5070_ncu_gemm.csv", pd.concat(products))
    write("t4_ncu_copy.csv", table(source / "t4_ncu_copy_blocked.csv"))


def networks(source: Path) -> None:
    """Lesson 13: timm's networks by memory format, and compiled."""
    columns = ["model", "img_size", "batch_size", "samples_per_sec"]
    for name in ("train_amp_nchw", "train_amp_nhwc", "infer_amp_eager", "infer_amp_dynamo"):
        kind, device = name[:5], "rtx3090" if name.startswith("train") else "rtx4090"
        rows = table(source / f"{device}_{name}.csv")
        rows.columns = rows.columns.str.removeprefix(f"{kind}_")
        write(f"{device}_{name}.csv", rows[columns])


def report(source: Path) -> None:
    """Lesson 11: the database of a T4."""
    target, original = TARGET / "t4_power_iteration.json", "t4_cupy_power_iteration_nsys.sqlite"
    about = json.loads(target.read_text(encoding="utf-8"))["provenance"]
    strip(source / original, target.with_suffix(".sqlite"), about, (RANGE, CREATED))


TRACES = {
    "v100_resnet50": "hta_v100_resnet_gpu_bound",
    "a100_resnet50": "hta_a100x2_resnet_ddp_cpu_bound",
    "v100_workers0": "kineto_v100_resnet50_fp32_workers0_steps16-21",
    "v100_workers4": "kineto_v100_resnet50_fp32_workers4_steps16-21",
    "h100_bert": "h100_bert_small_b1_infer",
    "h100_timesformer": "h100_timesformer_align1_infer",
    "a100_sam": "a100_sam_bf16_amg",
}
DEVICE_ROWS = (*ON_DEVICE, "Kernel", "Memcpy", "Memset")
CALLS = ("cuda_runtime", "cuda_driver", "Runtime")
CPU_ROWS = ("Trace", "user_annotation", "cpu_op", "Operator")
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::_softmax")  # rows with shapes
ARGUMENTS = ("correlation", "stream", "bytes", "External id", "Input Dims", "Input type")


def thin(path: Path) -> bytes:
    """A Chrome trace with the rows of the device, the calls that asked for them or wait for it,
    the CPU's other rows of 1 ms or more, and products with their shapes."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    rows = [row for row in trace["traceEvents"] if row.get("ph") == "X"]
    start = min(row["ts"] for row in rows)
    asked = {row["args"]["correlation"] for row in rows if row["cat"] in DEVICE_ROWS}
    shortened = []
    for row in rows:
        arguments, is_call = row.get("args", {}), row["cat"] in CALLS
        wanted = row["cat"] in DEVICE_ROWS
        wanted |= is_call and arguments.get("correlation") in asked
        wanted |= is_call and "Synchronize" in row["name"]
        wanted |= row["cat"] in CPU_ROWS and row["dur"] >= 1000
        if wanted or (row["name"] in PRODUCTS and "Input Dims" in arguments):
            row["args"] = {key: arguments[key] for key in ARGUMENTS if key in arguments}
            shortened.append(row | {"ts": round(row["ts"] - start, 3)})
    device = [{key: gpu[key] for key in ("id", "name")} for gpu in trace["deviceProperties"][:1]]
    head = {"schemaVersion": 1, "deviceProperties": device}
    return json.dumps(head | {"traceEvents": shortened}, separators=(",", ":")).encode()


def timelines(source: Path) -> None:
    """Lesson 06: seven traces."""
    for name, file in TRACES.items():
        data = thin(source / f"{file}.json.gz")
        (TARGET / f"{name}.json.gz").write_bytes(gzip.compress(data, mtime=0))


def collectives(source: Path) -> None:
    """Lesson 10: what a GPU's streams did under NCCL, and when the CPU had asked for it."""
    columns = ["step", "name", "elements", "launched_us", "start_us", "end_us"]
    for name, file, chosen in (
        ("a100x2_allreduce", "hta_a100x2_resnet_ddp_cpu_bound", slice(None)),
        ("v100x2_allreduce", "hta_v100x2_mlp_ddp_2020_allreduce", slice(1, 2)),
    ):
        trace, marks = events(source / f"{file}.json.gz")
        marks, rows = marks[chosen], []
        for mark in marks:
            for call, row in launches(mark, trace):
                kind = row["name"].split("(")[0] if "nccl" in row["name"] else row["cat"]
                times = (call["ts"] + call["dur"], row["ts"], row["ts"] + row["dur"])
                since = [round(time - marks[0]["ts"], 3) for time in times]
                elements = row["args"].get("In msg nelems")
                rows.append([mark["name"].split("#")[1], kind, elements, *since])
        write(f"{name}.csv.gz", pd.DataFrame(rows, columns=columns).astype({"elements": "Int64"}))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    parts = (steps, memory, counters, networks, report, timelines, collectives)
    for part in parts:
        part(Path(sys.argv[1]))
