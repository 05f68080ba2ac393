"""What this computer is, and how fast three kinds of work ran on it at best.

The ceilings are measured, so they are lower bounds on the true ones: some other matrix product,
or a quieter moment, may be faster still. The copy is no limit of reading: a sum, which writes
nothing, can take its bytes from memory faster.
"""

import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch
import torch.nn.functional as F

MATRIX_SIZES = (256, 512, 1024)
COPY_BYTES = 64_000_000  # read once and written once: beyond the caches of most computers


@dataclass(frozen=True)
class Ceilings:
    """The best rates seen with this many threads."""

    threads: int
    matrix_product: float  # FLOP/s
    convolution: float  # FLOP/s
    copy: float  # B/s, bytes read plus bytes written

    @property
    def compute(self) -> float:
        """The better of the two arithmetic rates, in FLOP/s."""
        return max(self.matrix_product, self.convolution)


def describe() -> dict[str, str | int]:
    """What this computer is: names as strings, counts as integers, memory in bytes."""
    cuda = torch.cuda.is_available()
    return {
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "physical cores": psutil.cpu_count(logical=False) or 1,
        "logical cores": os.cpu_count() or 1,
        "memory": psutil.virtual_memory().total,
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "torch threads": torch.get_num_threads(),
        "vector instructions": torch.backends.cpu.get_cpu_capability(),
        "GPU": torch.cuda.get_device_name() if cuda else "none",
    }


def ceilings(threads: int | None = None, budget: float = 0.03) -> Ceilings:
    """Measure the ceilings with ``threads`` threads (all of torch's when None).

    Each of five workloads is repeated for ``budget`` seconds, the long copy at least ten times,
    and its fastest run counts.
    """
    threads = torch.get_num_threads() if threads is None else threads
    with _threads(threads):
        products = [matrix_product_rate(size, budget=budget) for size in MATRIX_SIZES]
        return Ceilings(threads, max(products), _convolution_rate(budget), _copy_rate(budget))


def matrix_product_rate(
    size: int, dtype: torch.dtype = torch.float32, budget: float = 0.03
) -> float:
    """FLOP/s of a square matrix product: ``size``³ multiply-adds, two operations each."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(size, size, generator=generator).to(dtype) for _ in range(2))
    out = torch.empty(size, size, dtype=dtype)
    return 2 * size**3 / _fastest(lambda: torch.matmul(a, b, out=out), budget)


def _convolution_rate(budget: float) -> float:
    """FLOP/s of 64 → 64 channels, 3 × 3, on 8 images of 56 × 56, in channels_last."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(8, 64, 56, 56, generator=generator)
    weights = torch.randn(64, 64, 3, 3, generator=generator)
    images = images.contiguous(memory_format=torch.channels_last)
    weights = weights.contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        fastest = _fastest(lambda: F.conv2d(images, weights, padding=1), budget)
    return 2 * 8 * 64 * 56 * 56 * 64 * 9 / fastest


def _copy_rate(budget: float) -> float:
    source = torch.ones(COPY_BYTES // 4)
    target = torch.zeros_like(source)
    return 2 * COPY_BYTES / _fastest(lambda: target.copy_(source), budget, least=10)


def _fastest(run: Callable[[], object], budget: float, least: int = 3) -> float:
    """The shortest of at least ``least`` runs after a warm-up, in seconds.

    The shortest, because everything else the computer does can only add time.
    """
    if budget <= 0:
        raise ValueError(f"budget must be a positive time in seconds, but {budget} came")
    run()
    samples: list[float] = []
    while len(samples) < least or sum(samples) < budget:
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    return min(samples)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"threads must be a whole number, but {count!r} came")
    if count < 1:
        raise ValueError(f"threads must be at least 1, but {count} came")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _processor() -> str:
    try:
        if platform.system() == "Linux":
            lines = Path("/proc/cpuinfo").read_text().splitlines()
            models = [line.split(":", 1)[1] for line in lines if line.startswith("model name")]
            if models:
                return models[0].strip()
        if platform.system() == "Darwin":
            command = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        pass  # a system that hides it: the general name below will do
    return platform.processor() or platform.machine()
