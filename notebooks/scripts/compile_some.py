"""What torch.compile costs and gains on this CPU: CSV, one line for each workload.

Run it with ``python scripts/compile_some.py``; it needs a C++ compiler and takes a
minute or two. One thread, and its CPU time, which leaves out waits.
compiling_s: CPU seconds of the first call, compiler included (except on Windows,
which does not report the time of other processes). The cache of graphs is empty for
the first line only. (PyTorch keeps precompiled headers elsewhere, so usually only
the first run includes them.)
eager_ms, compiled_ms: medians of 30 calls each, in random order.
"""

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch._inductor.exc import InductorError

from helpers import workloads


def activation(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.045 * x**3)))


def product(x: torch.Tensor) -> torch.Tensor:
    return x @ x


images, labels = workloads.synthetic_cifar(64)
images = images.to(memory_format=torch.channels_last)
model = workloads.SmallCNN().to(memory_format=torch.channels_last)


def step(images: torch.Tensor) -> torch.Tensor:
    loss = F.cross_entropy(model(images), labels[: len(images)])
    loss.backward()
    return loss.detach()


def seconds(call: Callable[[], object]) -> float:
    """Processor seconds of this process and of those that it waited for."""
    before = os.times()
    call()
    return sum(os.times()[:4]) - sum(before[:4])


def milliseconds(call: Callable[[], object]) -> float:
    start = time.thread_time()
    call()
    return 1e3 * (time.thread_time() - start)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    chain, million = torch.compile(activation), torch.randn(1000, 1000)
    rows = [
        ("first compilation", torch.compile(torch.neg), torch.neg, torch.ones(9)),
        ("chain of 1000 rows", chain, activation, million),
        ("chain of 900 rows", chain, activation, million[:900]),
        ("chain of 800 rows", chain, activation, million[:800]),
        ("matmul", torch.compile(product), product, million[:, :1000]),
        ("training step", torch.compile(step), step, images),
    ]
    print("what,compiling_s,eager_ms,compiled_ms,largest_difference")
    for name, compiled, usual, data in rows:
        try:
            first = seconds(lambda c=compiled, d=data: c(d))
        except InductorError as error:
            sys.exit(
                f"torch.compile found no C++ compiler that it can use: {error}"
            )
        off = (compiled(data) - usual(data)).abs().max().item()
        taken: dict[Callable, list[float]] = {usual: [], compiled: []}
        for _ in range(30):
            for version in random.sample([usual, compiled], 2):
                taken[version].append(milliseconds(lambda v=version, d=data: v(d)))
        typical = ",".join(f"{statistics.median(t):.4f}" for t in taken.values())
        print(f"{name},{first:.2f},{typical},{off:.1e}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        main()
