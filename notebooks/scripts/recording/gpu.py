"""What the parts of record_gpu.py share: the GPU's name, precisions and clocks."""

import gc
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from recording import common

Call = Callable[[], object]


def provenance(part: str, small: bool) -> dict[str, str | int]:
    """The GPU, its driver and libraries, and how ``part`` was recorded on it."""
    device = torch.cuda.get_device_properties(0)
    rehearsal = " --rehearse" if small else ""
    return common.provenance(
        "record_gpu.py",
        device.name,
        f"python scripts/record_gpu.py FOLDER {part}{rehearsal}",
        **{
            "GPU memory": device.total_memory,
            "multiprocessors": device.multi_processor_count,
            "compute capability": f"{device.major}.{device.minor}",
            "L2 cache": device.L2_cache_size,
            "processor": common.processor(),
            "driver": driver(),
            "torch": torch.__version__,
            "CUDA": torch.version.cuda or "none",
            "cuDNN": torch.backends.cudnn.version() or "none",
            "tf32 in products and convolutions": f"{torch.backends.cuda.matmul.allow_tf32}, "
            f"{torch.backends.cudnn.allow_tf32}, unless a part says otherwise",
        },
    )


def driver() -> str:
    """The driver's version, as nvidia-smi tells it."""
    return ask("driver_version") or "unknown"


def state() -> str:
    """Clocks, power and temperature at this moment, as nvidia-smi tells them."""
    return ask("clocks.sm,clocks.mem,power.draw,temperature.gpu") or "unknown"


def ask(query: str) -> str:
    words = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.split("\n")[0].strip()


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Whether float32 products and convolutions may use tf32 on the tensor cores.

    The switches are the old ones on purpose: as of 2.13, whoever sets the new ones,
    ``fp32_precision``, makes reading the old ones an error, and torch.compile reads them.
    """
    products, layers = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, layers.allow_tf32
    products.allow_tf32 = layers.allow_tf32 = allowed
    try:
        yield
    finally:
        products.allow_tf32, layers.allow_tf32 = before


def warm_up(call: Call, seconds: float = 0.2) -> None:
    """Call at least three times and for ``seconds``, then wait for the GPU."""
    end = time.perf_counter() + seconds
    calls = 0
    while calls < 3 or time.perf_counter() < end:
        call()
        calls += 1
        torch.cuda.synchronize()


def host_seconds(call: Call, wait: bool = True) -> float:
    """One call by the host's clock, with or without waiting for the GPU's work."""
    start = time.perf_counter()
    call()
    if wait:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def event_seconds(call: Call, calls: int = 1) -> float:
    """The time of one of ``calls`` between two CUDA events, by the GPU's clock.

    Of small kernels this is the pace at which the host launches them: the GPU waits for it.
    """
    opened = torch.cuda.Event(enable_timing=True)
    closed = torch.cuda.Event(enable_timing=True)
    opened.record()
    for _ in range(calls):
        call()
    closed.record()
    torch.cuda.synchronize()  # the events have no time before this
    return opened.elapsed_time(closed) / 1e3 / calls


def queued_seconds(call: Call, calls: int) -> float:
    """The same, with all calls in the queue before the GPU begins: the kernels' own time.

    The queue holds about a thousand launches, so ``calls`` times their kernels must be fewer.
    """
    launching = host_seconds(lambda: [call() for _ in range(calls)], wait=False)
    torch.cuda.synchronize()
    torch.cuda._sleep(int(3e9 * launching) + 1_000_000)  # GPU cycles, some 2e9 in a second
    return event_seconds(call, calls)


def gpu_samples(call: Call, budget: float = 0.3, most: int = 10) -> list[float]:
    """Seconds a call, queued: three samples or more, within about ``budget``."""
    warm_up(call, budget / 3)
    calls = max(1, min(100, int(2e-3 / max(event_seconds(call), 1e-7))))
    samples: list[float] = []
    end = time.perf_counter() + budget
    while len(samples) < 3 or (len(samples) < most and time.perf_counter() < end):
        samples.append(queued_seconds(call, calls))
    return samples


def free() -> None:
    """Give back what nothing refers to any more."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


NO_MEMORY = r"out of memory|ALLOC_FAILED|unable to find an engine|CUDNN_STATUS_INTERNAL_ERROR"


def does_not_fit(error: RuntimeError) -> dict[str, Any]:
    """What is kept of an out-of-memory error, without the list of processes; others pass on.

    cuDNN and cuBLAS, too, need memory, and say it in words of their own.
    """
    if not re.search(NO_MEMORY, str(error)):
        raise error
    return {"fits": False, "message": str(error).split(" GPU ")[0].split("\n")[0].strip()}
