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
    "TraceLens": ("AMD-AGI/TraceLens @ 171dd74721ca1ec45709e5805b68ae1f65e27811", "MIT"),
    "pytorch-image-models": (
        "huggingface/pytorch-image-models @ aa4b5850c1543fa488abf260f18390eda46cf85d",
        "Apache-2.0"),
    "segment-anything-fast": (
        "pytorch-labs/segment-anything-fast @ e6aadeb86f3ae1f58c3f98e2a91e251716e0f2aa",
        "Apache-2.0"),
}  # fmt: skip
SAID = ("correlation", "stream", "bytes", "External id", "Input Dims", "Input type")
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


def networks(source: Path) -> None:
    """Lesson 13: Segment Anything by batch size; timm's networks by layout, and compiled."""
    sizes = ("1", "8", "32")
    tables = [pd.read_csv(source / f"a100_sam_bs{size}.csv", dtype=str) for size in sizes]
    for size, table in zip(sizes, tables, strict=True):
        table["batch_size"] = size  # a row that ends in ERROR does not say
    kept = ["technique", "pytorch_version", "sam_model_type", "batch_size", "memory(MiB)"]
    write("a100_sam_batches.csv", pd.concat(tables)[[*kept, "img_s(avg)", "mIoU"]])
    describe(
        "a100_sam_batches", "segment-anything-fast", "experiments/results_bs{1,8,32}.csv",
        "NVIDIA A100-SXM4-40GB", versions="torch 2.2 nightly: pytorch_version in each row",
        workload="Segment Anything, ViT-B, inference, by technique and batch size",
    )  # fmt: skip
    runs = {  # name here, there
        "rtx3090_train_amp_nchw": "train-amp-nchw-pt112-cu113-rtx3090",
        "rtx3090_train_amp_nhwc": "train-amp-nhwc-pt112-cu113-rtx3090",
        "rtx4090_infer_amp_eager": "infer-amp-nchw-pt240-cu124-rtx4090",
        "rtx4090_infer_amp_dynamo": "infer-amp-nchw-pt240-cu124-rtx4090-dynamo",
    }
    for name, there in runs.items():
        table = pd.read_csv(source / f"{name}.csv", dtype=str)
        table.columns = [column.removeprefix(f"{there[:5]}_") for column in table]
        write(f"{name}.csv", table[["model", "img_size", "batch_size", "samples_per_sec"]])
        describe(
            name, "pytorch-image-models", f"results/benchmark-{there}.csv",
            f"NVIDIA GeForce RTX {name[3:7]}",
            versions="torch 1.12" if "pt112" in there else "torch 2.4",
            workload=f"timm's networks, {there[:5]}, automatic mixed precision, {name[18:]}",
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


TRACES = {  # name: file, repository, its path there, device, date, versions, workload
    "v100_resnet50": (
        "hta_v100_resnet_gpu_bound", "HolisticTraceAnalysis",
        "tests/data/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
        "Tesla V100-SXM2-32GB", "2024-04-04", "NCCL 2.17.1; torch not recorded",
        "ResNet-50 training, batch 32, float32"),
    "a100_resnet50": (
        "hta_a100x2_resnet_ddp_cpu_bound", "HolisticTraceAnalysis",
        "tests/data/nccl_parser_config/nccl_data.json.gz",
        "NVIDIA A100-PG509-200", "2024-05-23", "NCCL 2.17.1; torch not recorded",
        "ResNet-50 training, batch 32, one of two GPUs"),
    "v100_workers0": (
        "kineto_v100_resnet50_fp32_workers0_steps16-21", "kineto",
        "tb_plugin/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        "Tesla V100-DGXS-32GB", "2021-06-08", "torch not recorded",
        "ResNet-50 training, batch 32, no worker"),
    "v100_workers4": (
        "kineto_v100_resnet50_fp32_workers4_steps16-21", "kineto",
        "tb_plugin/samples/resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz",
        "Tesla V100-DGXS-32GB", "2021-06-09", "torch not recorded",
        "ResNet-50 training, batch 32, four workers"),
    "h100_bert": (
        "h100_bert_small_b1_infer", "TraceLens",
        "tests/traces/h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "NVIDIA H100 80GB HBM3", "2025-07-18", "torch 2.6.0+cu124",
        "BERT small, inference, one text, bfloat16"),
    "h100_timesformer": (
        "h100_timesformer_align1_infer", "TraceLens",
        "tests/traces/h100/facebook_timesformer-base-finetuned-k400__1016002.json.gz",
        "NVIDIA H100 80GB HBM3", "2025-07-18", "torch 2.6.0+cu124",
        "TimeSformer, inference, one video, bfloat16"),
    "a100_sam": (
        "a100_sam_bf16_amg", "segment-anything-fast", "amg_example/amg_example_trace.json.gz",
        "NVIDIA A100-SXM4-40GB", "2023-11-30", "torch not recorded",
        "Segment Anything, one picture, bfloat16"),
}  # fmt: skip
CPU_ROWS = ("Trace", "user_annotation", "cpu_op", "Operator")
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::_softmax")  # rows with shapes
DEVICE_ROWS = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")


def thin(path: Path) -> bytes:
    """A Chrome trace with the rows of the device, the calls that asked for them or wait for it,
    the CPU's other rows of 1 ms or more, and products with their shapes; of each what is SAID."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    rows = [row for row in trace["traceEvents"] if row.get("ph") == "X"]
    start = min(row["ts"] for row in rows)
    asked = {row["args"]["correlation"] for row in rows if row["cat"] in DEVICE_ROWS}
    kept = []
    for row in rows:
        said, call = row.get("args", {}), row["cat"] in ("cuda_runtime", "cuda_driver", "Runtime")
        wanted = row["cat"] in DEVICE_ROWS
        wanted |= call and (said.get("correlation") in asked or "Synchronize" in row["name"])
        wanted |= row["cat"] in CPU_ROWS and row["dur"] >= 1000
        if wanted or (row["name"] in PRODUCTS and "Input Dims" in said):
            row["args"] = {key: said[key] for key in SAID if key in said}
            kept.append(row | {"ts": round(row["ts"] - start, 3)})
    device = [{key: gpu[key] for key in ("id", "name")} for gpu in trace["deviceProperties"][:1]]
    head = {"schemaVersion": 1, "deviceProperties": device}
    return json.dumps(head | {"traceEvents": kept}, separators=(",", ":")).encode()


def timelines(source: Path) -> None:
    """Lesson 06: seven traces."""
    for name, (file, repository, path, device, date, versions, workload) in TRACES.items():
        data = thin(source / f"{file}.json.gz")
        (TARGET / f"{name}.json.gz").write_bytes(gzip.compress(data, mtime=0))
        describe(name, repository, path, device, date=date, versions=versions, workload=workload)


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


def segment_anything(source: Path) -> None:
    """Lesson 14: what each optimisation brought on an A100; calls there that wait for it."""
    table = pd.read_csv(source / "a100_sam_results.csv", dtype=str, keep_default_na=False)
    names = {
        "technique": "technique",
        "sam_model_type": "model",
        "batch_size": "batch",
        "img_s(avg)": "images_per_s",
        "memory(MiB)": "memory_mib",
        "mIoU": "miou",
    }
    table = table[list(names)].rename(columns=names)
    write("a100_sam_ladder.csv", table)
    trace, _ = events(source / "a100_sam_bf16_amg.json.gz")
    on_device = ("kernel", "gpu_memcpy", "gpu_memset")
    rows = [
        ["device" if event.get("cat") in on_device else event["name"], event["ts"], event["dur"]]
        for event in trace
        if event.get("cat") in on_device or event["name"] in ("aten::item", "aten::nonzero")
    ]
    waits = pd.DataFrame(rows, columns=["what", "start_us", "duration_us"])
    waits["start_us"] -= trace[0]["ts"]
    write("a100_sam_waits.csv.gz", waits)
    device, model = "NVIDIA A100-SXM4-40GB", "Segment Anything, inference"
    describe(
        "a100_sam_ladder", "segment-anything-fast", "experiments/results.csv", device,
        versions="torch 2.2.0.dev20231023 to dev20231026, cu121; it differs between rows",
        workload=f"{model}: vit_b and vit_h, batch 8 and 32, pictures of COCO",
    )  # fmt: skip
    describe(
        "a100_sam_waits", "segment-anything-fast", "amg_example/amg_example_trace.json.gz", device,
        date="2023-11-30", versions="torch not recorded",
        workload=f"{model}: masks for one picture; the calls of two operators that wait for"
        " the device, and when the device worked",
    )  # fmt: skip


def main() -> None:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    source = Path(sys.argv[1])
    (TARGET / "licences").mkdir(parents=True, exist_ok=True)
    for repository in SOURCES:
        licence = f"licences/{repository}.txt"
        shutil.copyfile(source / licence, TARGET / licence)
    for part in (steps, memory, tables, networks, report, timelines, collectives, segment_anything):
        part(source)


if __name__ == "__main__":
    main()
