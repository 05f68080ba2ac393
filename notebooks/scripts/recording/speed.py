"""Lessons 00, 01 and 03: the ceilings, the roofline, and what a stopwatch sees."""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers import workloads
from recording import gpu


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    # Not zeros: a GPU multiplies them faster, because it saves power on them.
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator).to("cuda", dtype)


def ceilings(out: Path, small: bool) -> dict[str, Any]:
    """Seconds of square matrix products by precision and size, and of copies by size.

    A product of size n is 2 n³ operations. A copy reads and writes its bytes once.
    The launch is the smallest kernel, by the host's clock and by the GPU's.
    """
    sizes = (64, 128) if small else (1024, 2048, 4096, 8192)
    megabytes = (1, 2) if small else (64, 256, 1024)
    found: dict[str, Any] = {"matrix product": {}, "copy": {}}
    for name in ("float32", "tf32", "bf16"):
        dtype = torch.bfloat16 if name == "bf16" else torch.float32
        found["matrix product"][name] = seconds = {}
        for size in sizes:
            a, b = random(size, size, dtype=dtype), random(size, size, dtype=dtype)
            result = torch.empty_like(a)
            with gpu.tf32(name == "tf32"):
                seconds[str(size)] = gpu.gpu_samples(
                    lambda a=a, b=b, result=result: torch.mm(a, b, out=result)
                )
    for size in megabytes:
        source = random(size * 250_000)
        target = torch.empty_like(source)
        found["copy"][str(source.nbytes)] = gpu.gpu_samples(
            lambda source=source, target=target: target.copy_(source)
        )
    one = torch.ones(1, device="cuda")
    gpu.warm_up(lambda: one.add_(1))
    found["launch"] = {
        "host, not waiting": [
            gpu.host_seconds(lambda: one.add_(1), wait=False) for _ in range(200)
        ],
        "host, waiting": [gpu.host_seconds(lambda: one.add_(1)) for _ in range(200)],
        "GPU, one of 100": [gpu.event_seconds(lambda: one.add_(1), 100) for _ in range(20)],
        "GPU, one of 100, queued": [
            gpu.queued_seconds(lambda: one.add_(1), 100) for _ in range(20)
        ],
        "synchronize alone": [gpu.host_seconds(lambda: None) for _ in range(200)],
    }
    return found


def roofline(out: Path, small: bool) -> dict[str, Any]:
    """The six operators of lesson 03: work, least traffic, and seconds on the GPU.

    Twice: in the lesson's sizes, and in sizes that fill a GPU. The bytes are those of
    every input and the output in float32, once (bf16 moves half); FLOP are two for each
    multiply-add. The lesson's tensors fit into a large GPU's cache.
    """
    cases = {
        "the lesson's": (512, 4),
        "a GPU's": (128, 2) if small else (8192, 256),
    }
    found: dict[str, Any] = {}
    for title, (n, batch) in cases.items():
        found[title] = {"n": n, "batch": batch, "operators": {}}
        a, b = random(n, n), random(n, n)
        x, y = random(batch, 64, 56, 56), random(batch, 64, 56, 56)
        full, point = random(64, 64, 3, 3), random(64, 64, 1, 1)
        depth = random(64, 1, 3, 3)
        outputs = x.numel()
        operators = {
            "matrix product": (torch.mm, [a, b], {}, 2 * n**3),
            "3 × 3": (F.conv2d, [x, full], {"padding": 1}, 2 * outputs * 64 * 9),
            "1 × 1": (F.conv2d, [x, point], {}, 2 * outputs * 64),
            "depthwise": (
                F.conv2d,
                [x, depth],
                {"padding": 1, "groups": 64},
                2 * outputs * 9,
            ),
            "ReLU": (F.relu, [x], {}, outputs),
            "add": (torch.add, [x, y], {}, outputs),
        }
        for name, (function, inputs, options, flop) in operators.items():
            row = {"flop": flop, "bytes": 0, "seconds": {}}
            for kind in ("float32", "tf32", "bf16"):
                given = [t.bfloat16() if kind == "bf16" else t for t in inputs]
                with gpu.tf32(kind == "tf32"), torch.inference_mode():
                    result = function(*given, **options)
                    row["bytes"] = row["bytes"] or sum(t.nbytes for t in [*given, result])
                    row["seconds"][kind] = gpu.gpu_samples(
                        lambda f=function, i=given, o=options: f(*i, **o)
                    )
            found[title]["operators"][name] = row
    return found


def timing(out: Path, small: bool) -> dict[str, Any]:
    """Two convolutions, timed wrongly and rightly: 200 samples each, in seconds.

    The first samples of all are those without a warm-up, so this must run in a
    process of its own. The others are interleaved. Around one call on an idle GPU the events
    also hold the time that the host needs to launch it; of calls that are queued up they do not.
    """
    samples = 10 if small else 200
    cases = {
        "photograph, 3 to 16 channels": (
            workloads.photograph()[None],
            torch.randn(16, 3, 3, 3),
        ),
        "layer, 64 to 64 channels, 8 images": (
            torch.randn(8, 64, 56, 56),
            torch.randn(64, 64, 3, 3),
        ),
    }
    on_gpu = {name: [t.cuda() for t in tensors] for name, tensors in cases.items()}
    torch.cuda.synchronize()
    found: dict[str, Any] = {}
    for name, (images, weights) in on_gpu.items():

        def call(images: Tensor = images, weights: Tensor = weights) -> None:
            F.conv2d(images, weights, padding=1)

        def on_cpu(tensors: tuple[Tensor, Tensor] = cases[name]) -> None:
            F.conv2d(*tensors, padding=1)

        cold = [gpu.host_seconds(call) for _ in range(samples)]
        gpu.warm_up(call)
        row: dict[str, list[float]] = {
            "no warm-up": cold,
            "no synchronize": [],
            "synchronize": [],
            "events": [],
            "events, one of 100": [],
            "events, one of 100, queued": [],
        }
        for _ in range(samples):
            row["no synchronize"].append(gpu.host_seconds(call, wait=False))
            torch.cuda.synchronize()  # not measured: the next sample starts idle
            row["synchronize"].append(gpu.host_seconds(call))
            row["events"].append(gpu.event_seconds(call))
        for _ in range(samples // 10):
            row["events, one of 100"].append(gpu.event_seconds(call, 100))
            row["events, one of 100, queued"].append(gpu.queued_seconds(call, 100))
        on_cpu()
        row["on the CPU, all threads"] = [gpu.host_seconds(on_cpu) for _ in range(samples // 10)]
        found[name] = row
    return found
