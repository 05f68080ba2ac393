"""Lesson 04, and the models' lesson: Kineto traces, batch sizes, compiled code."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.flop_counter import FlopCounterMode

from helpers import models, workloads
from recording import common, gpu

MODELS: dict[str, Callable[[], nn.Module]] = {
    "ResNet-50": models.ResNet50,
    "ViT-B/16": models.ViT_B_16,
}
BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
CATEGORIES = {
    *ON_GPU, "overhead", "cpu_op", "user_annotation", "gpu_user_annotation", "cuda_runtime",
    "cuda_driver", "ac2g", "fwdbwd",
}  # fmt: skip
ARGUMENTS = (
    "External id", "correlation", "stream", "device", "grid", "block", "bytes",
    "registers per thread", "shared memory", "blocks per SM", "warps per SM",
    "est. achieved occupancy %", "memory bandwidth (GB/s)", "Input Dims", "name",
    "labels", "sort_index",
)  # fmt: skip


def reduced(trace: dict[str, Any]) -> dict[str, Any]:
    """A Chrome trace with what the lessons and a viewer read, times from zero."""
    kept = []
    events = trace["traceEvents"]
    start = min(event["ts"] for event in events if event.get("cat") in CATEGORIES)
    for event in events:
        if event["ph"] != "M" and event.get("cat") not in CATEGORIES:
            continue
        small = {key: value for key, value in event.items() if key != "args"}
        if event["ph"] == "M":
            small["ts"] = 0
        else:
            small["ts"] = round(event["ts"] - start, 3)
        given = event.get("args", {})
        if args := {key: given[key] for key in ARGUMENTS if key in given}:
            small["args"] = args
        kept.append(small)
    return {
        "deviceProperties": trace.get("deviceProperties", []),
        "displayTimeUnit": "ms",
        "traceEvents": kept,
    }


def operators(prof: profile) -> list[dict[str, Any]]:
    """The rows of ``key_averages``: times in µs, memory in bytes."""
    names = (
        "count", "cpu_time_total", "self_cpu_time_total", "device_time_total",
        "self_device_time_total", "cpu_memory_usage", "device_memory_usage",
        "self_device_memory_usage",
    )  # fmt: skip
    rows = [
        {
            "name": row.key,
            "device": row.device_type.name,
            "mark": row.is_user_annotation,  # its time is also in the kernels' rows
            **{name: getattr(row, name) for name in names},
        }
        for row in prof.key_averages()
    ]
    return sorted(rows, key=lambda row: -row["self_device_time_total"])


def record(
    out: Path, name: str, step: Callable[[], object], steps: int, **options: bool
) -> dict[str, Any]:
    """Profile ``steps`` steps after others; write the trace, return the operators' table.

    The profiler's own first steps are thrown away, too: while it starts, CUPTI takes time, and
    may lose the first kernels of a second session (pytorch issue 192021).
    """
    for _ in range(3):
        step()
    plain = [gpu.host_seconds(step) for _ in range(5)]
    phases = schedule(wait=0, warmup=2, active=steps, repeat=1)
    with profile(activities=BOTH, schedule=phases, **options) as prof:
        for number in range(-2, steps):
            with record_function(f"step {number}"):
                step()
            torch.cuda.synchronize()
            prof.step()
    trace = exported(prof, out, name)
    events = trace["traceEvents"]
    kernels = [event for event in events if event.get("cat") in ON_GPU]
    if not kernels:
        raise RuntimeError("torch.profiler saw nothing on the GPU: is CUPTI in use?")
    done = {kernel["args"]["correlation"] for kernel in kernels}
    launched = [event for event in events if "LaunchKernel" in event["name"] and "args" in event]
    lost = [event for event in launched if event["args"].get("correlation") not in done]
    common.save(out / name, trace)
    return {
        "trace": name,
        "on the GPU": len(kernels),
        "launches without a kernel": len(lost),
        "seconds without the profiler": plain,
        "operators": operators(prof),
    }


def exported(prof: profile, out: Path, name: str) -> dict[str, Any]:
    """The trace, reduced; the whole one goes into the folder that may be kept, not shipped."""
    raw = out / "raw"
    raw.mkdir(exist_ok=True)
    path = raw / name.removesuffix(".gz")
    prof.export_chrome_trace(str(path))
    whole = common.load(path)
    path.unlink()
    common.save(raw / f"{path.name}.gz", whole)
    return reduced(whole)


def training_step(
    model: nn.Module, images: Tensor, labels: Tensor, bf16: bool = False
) -> Callable[[], None]:
    """A step of ``model`` on one batch, with a mark around each phase.

    With ``bf16`` the forward pass is autocast, and only that: autocast keeps the cast weights
    until it ends, so around several steps it would use old ones.
    """
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def step() -> None:
        with record_function("forward"), half(bf16):
            loss = F.cross_entropy(model(images), labels)
        with record_function("backward"):
            loss.backward()
        with record_function("optimiser"):
            optimiser.step()
            optimiser.zero_grad()

    return step


def forward_step(model: nn.Module, images: Tensor, bf16: bool = False) -> Callable[[], None]:
    def step() -> None:
        with torch.inference_mode(), record_function("forward"), half(bf16):
            model(images)

    return step


def half(enabled: bool) -> torch.autocast:
    return torch.autocast("cuda", torch.bfloat16, enabled=enabled)


def prepared(
    model: nn.Module,
    mode: str,
    batch: int,
    layout: torch.memory_format = torch.contiguous_format,
    bf16: bool = False,
) -> Callable[[], None]:
    """A step of ``mode`` on a batch of random images of 224 × 224."""
    model.train(mode == "training")
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=layout)
    if mode == "forward":
        return forward_step(model, images, bf16)
    labels = torch.arange(batch, device="cuda") % 1000
    return training_step(model, images, labels, bf16)


def small_cnn(out: Path, small: bool) -> dict[str, Any]:
    """Three training steps of SmallCNN, 64 images: trace, operators, input shapes."""
    torch.manual_seed(0)
    model = workloads.SmallCNN().cuda()
    images, labels = (tensor.cuda() for tensor in workloads.synthetic_cifar(64))
    step = training_step(model, images, labels)
    options = {"record_shapes": True, "profile_memory": True}
    return {
        "batch": 64,
        **record(out, "small_cnn.trace.json.gz", step, 3, **options),
    }


def traces(out: Path, small: bool, model_name: str) -> dict[str, Any]:
    """One step of a model, forward and training, batch 4 and 512, and 512 in other formats.

    "default" is PyTorch's: a convolution may use tf32, and a matrix product may not.
    """
    torch.manual_seed(0)
    few, many = (1, 2) if small else (4, 512)
    cases = [(mode, batch, "default") for mode in ("forward", "training") for batch in (few, many)]
    cases += [("training", many, title) for title in ("tf32", "bf16", "bf16, channels_last")]
    found: dict[str, Any] = {"model": model_name, "runs": []}
    for mode, batch, title in cases[: 4 if small else None]:
        precision, layout = FORMATS[title]
        model = MODELS[model_name]().cuda().to(memory_format=layout)
        words = [slug(model_name), mode, str(batch), title.replace(", ", "_")]
        file = f"{'.'.join(words)}.trace.json.gz"
        row: dict[str, Any] = {"mode": mode, "batch": batch, "format": title}
        try:
            with in_precision(precision):
                step = prepared(model, mode, batch, layout, precision == "bf16")
                row |= record(out, file, step, 1)
        except RuntimeError as error:
            row |= gpu.does_not_fit(error)
        step = model = None
        gpu.free()
        found["runs"].append(row)
    found["FLOP, one image, forward"] = counted(model_name)
    return found


def in_precision(name: str) -> AbstractContextManager:
    return nullcontext() if name == "default" else gpu.tf32(name == "tf32")


def counted(model_name: str) -> int:
    """FlopCounterMode on the GPU, where it knows the fused attention."""
    model = MODELS[model_name]().cuda().eval()
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model(torch.randn(1, 3, 224, 224, device="cuda"))
    return counter.get_total_flops()


def slug(model_name: str) -> str:
    return {"ResNet-50": "resnet50", "ViT-B/16": "vit"}[model_name]


FORMATS = {
    "default": ("default", torch.contiguous_format),
    "float32": ("float32", torch.contiguous_format),
    "tf32": ("tf32", torch.contiguous_format),
    "bf16": ("bf16", torch.contiguous_format),
    "bf16, channels_last": ("bf16", torch.channels_last),
}


def sweep(
    out: Path, small: bool, model_name: str, mode: str, seconds: float = 80
) -> dict[str, Any]:
    """Latency and peak memory by batch size and format, until one does not fit.

    Throughput is the batch over the latency. bf16 is autocast; the weights stay in
    float32. Every format has its share of the time; points that it did not reach are listed.
    """
    batches = (1,) if small else (1, 4, 16, 64, 256, 512, 1024, 2048)
    formats = {title: how for title, how in FORMATS.items() if title != "default"}
    start = time.monotonic()
    torch.manual_seed(0)
    rows, left = [], []
    for number, (title, (precision, layout)) in enumerate(formats.items(), start=1):
        model = MODELS[model_name]().cuda().to(memory_format=layout)
        end = start + seconds * number / len(formats)
        fits = True
        for batch in batches:
            row: dict[str, Any] = {"format": title, "batch": batch}
            if not fits:
                break
            if time.monotonic() > end:
                left.append(row)
                continue
            row |= point(model, mode, batch, precision, layout, end, least=1 if small else 3)
            fits = row["fits"]
            rows.append(row)
        model = None
        gpu.free()
    return {"model": model_name, "mode": mode, "points": rows, "no time for": left}


def point(
    model: nn.Module,
    mode: str,
    batch: int,
    precision: str,
    layout: torch.memory_format,
    end: float,
    least: int,
) -> dict[str, Any]:
    """Seconds of ``least`` to twenty steps after two others, and the peak in bytes.

    A step so slow that the others would end after ``end`` stands for all.
    """
    gpu.free()
    before = torch.cuda.memory_stats().get("num_alloc_retries", 0)
    step = None
    try:
        with gpu.tf32(precision == "tf32"):
            step = prepared(model, mode, batch, layout, precision == "bf16")
            first = gpu.host_seconds(step)
            samples = [gpu.host_seconds(step)]
            count = max(least, min(20, int(0.3 / samples[0])))
            if time.monotonic() + count * samples[0] < end + 5:
                samples = [gpu.host_seconds(step) for _ in range(count)]
        row = {
            "fits": True,
            "first step": first,
            "seconds": samples,
            "allocated at most": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.memory_reserved(),
            "retries": torch.cuda.memory_stats().get("num_alloc_retries", 0) - before,
        }
    except RuntimeError as error:
        row = gpu.does_not_fit(error)
    step = None
    model.zero_grad()
    gpu.free()
    return row


def compiled(out: Path, small: bool) -> dict[str, Any]:
    """ResNet-50, forward, tf32, batch 4: as it is, and compiled in two modes.

    The first call includes compiling, from an empty cache; the samples are
    interleaved, in seconds. Of each way one step is traced.
    """
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        os.environ[name] = str(out / name.lower())
    batch, count = (1, 3) if small else (4, 50)
    torch.manual_seed(0)
    model = MODELS["ResNet-50"]().cuda().eval()
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    ways = {
        "eager": model,
        "compiled": torch.compile(model),
        "compiled, reduce-overhead": torch.compile(model, mode="reduce-overhead"),
    }
    rows: dict[str, Any] = {}
    steps = {name: forward_step(way, images) for name, way in ways.items()}
    with gpu.tf32(True):
        for name, step in steps.items():
            try:
                rows[name] = {"first call": gpu.host_seconds(step), "seconds": []}
                gpu.warm_up(step)
            except Exception as error:  # of whatever compiler is missing here
                rows[name] = {"error": f"{type(error).__name__}: {error}".split("\n")[0]}
        working = {name: step for name, step in steps.items() if "error" not in rows[name]}
        for _ in range(count):
            for name, step in working.items():
                rows[name]["seconds"].append(gpu.host_seconds(step))
        for name, step in working.items():
            file = f"compiled.{name.replace(', ', '_')}.trace.json.gz"
            rows[name] |= record(out, file, step, 1)
    return {"model": "ResNet-50", "batch": batch, "ways": rows}
