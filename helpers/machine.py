"""What this computer is, its theoretical peak, and how fast it was seen to be.

The peak is a multiplication: cores × lanes × multiply-add units × 2 × clock. The ceilings are
measured: the best rates of a few workloads that are made to be fast. They are lower bounds on what
the computer can do: another program, or a quieter moment, may be faster still.
"""

import os
import platform
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import psutil
import torch
import torch.nn.functional as F

from helpers import _input, units

MATRIX_SIZES = (256, 512, 1024)
BUDGET = 0.03  # seconds for each measurement
COPY_BYTES = 128_000_000  # per tensor; 64 MB still fit into the last cache of some servers
# Multiply-add units per core, an assumption: most cores with AVX2 have two, Apple's fast ones and
# ARM's Neoverse V four, and of those with AVX-512 some have only one of its full width, or run it
# in two halves.
FMA_UNITS = 2
# CUDA's major version: the oldest driver of NVIDIA that it works with.
OLDEST_DRIVERS = {"12": 525, "13": 580}
OLDER_BUILD = (
    "PyTorch's build for CUDA 12.6, which has kernels for GPUs from Maxwell to Hopper "
    "(Troubleshooting has the command)"
)
THREADS = torch.get_num_threads()  # read once: an interrupted cell may leave another number


class Ceilings(NamedTuple):
    """The best rates seen: lower bounds on what the computer can do.

    ``copy`` counts every byte read and every byte written, once each. That is not all there is:
    reading alone may be faster, and a processor may also fetch what it is about to overwrite.
    """

    matrix_product: float  # FLOP/s
    convolution: float  # FLOP/s
    copy: float  # B/s

    @property
    def compute(self) -> float:
        """The better of the two arithmetic rates, in FLOP/s."""
        return max(self.matrix_product, self.convolution)


def describe() -> dict[str, str | int]:
    """What this computer is: names as strings, counts as integers, memory in bytes.

    "vector instructions" are the widest that PyTorch's own code uses, followed by those of the
    processor for products of bfloat16 numbers.
    """
    known = torch.cpu.get_capabilities()
    widest = torch.backends.cpu.get_cpu_capability()
    if known.get("neon") and widest in ("DEFAULT", "NO AVX"):  # PyTorch has no name for it
        widest = "NEON"
    bfloat16 = [name for name in ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16") if known.get(name)]
    return {
        "processor": _processor(),
        "operating system": f"{platform.system()} {platform.machine()}",
        "physical cores": psutil.cpu_count(logical=False) or 1,
        "logical cores": os.cpu_count() or 1,
        "memory": psutil.virtual_memory().total,
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "torch threads": torch.get_num_threads(),
        "vector instructions": ", ".join([widest, *bfloat16]),
        "GPU": _gpu(),
    }


def gpu_problem() -> str | None:
    """Why this PyTorch cannot use this computer's NVIDIA GPU, and what helps; None if it can.

    ``torch.cuda.is_available()`` does not tell: it is true for a GPU for which the build of PyTorch
    has no kernels, and false, as without a GPU, if the driver is too old. It is also None if there
    is no NVIDIA GPU, if CUDA_VISIBLE_DEVICES hides it, and for a build of PyTorch without CUDA.
    Nothing is initialised on the GPU.
    """
    if not torch.version.cuda or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return None
    build = f"PyTorch's build for CUDA {torch.version.cuda}"
    for name, driver in _nvidia_smi("name", "driver_version"):
        oldest = OLDEST_DRIVERS.get(torch.version.cuda.split(".")[0], 0)
        if driver[:1].isdigit() and int(driver.split(".")[0]) < oldest:
            return (
                f"{build} needs NVIDIA's driver {oldest} or newer, but the {name} has {driver}: "
                f"update the driver, or install {OLDER_BUILD}"
            )
    gpus = _nvidia_smi("name", "compute_cap")
    if gpus and not any(_has_kernels(capability) for _, capability in gpus):
        name, capability = gpus[0]
        return (
            f"{build} has no kernels for the {name} (compute capability {capability}), "
            f"so every operation on it fails: install {OLDER_BUILD}"
        )
    return None


def table() -> pd.DataFrame:
    """``describe`` as a table, in which every value is marked as this computer's own."""
    about = describe()
    rows = {
        key: units.name(value) if isinstance(value, str) else units.number(value)
        for key, value in about.items()
    }
    rows["memory"] = units.size(about["memory"])
    return pd.DataFrame({"this computer": rows})


def lanes(dtype: torch.dtype = torch.float32) -> int | None:
    """On how many values of ``dtype`` one vector instruction works; None where that is unknown.

    For float32: 16 with AVX-512, 8 with AVX2, 4 with ARM's NEON. An ARM processor with wider SVE
    instructions has more. ``dtype`` is float32 or float64: smaller types need instructions of
    other shapes, which many processors lack, so the number means little for them.
    """
    known = torch.cpu.get_capabilities()
    for name, width in {"avx512_f": 64, "avx2": 32, "neon": 16}.items():  # bytes, the widest first
        if known.get(name):
            return width // dtype.itemsize
    return None


def clock() -> float | None:
    """The highest clock frequency that the system reports, in Hz; None where it reports none.

    If the cores differ, it is the mean over them. It may be the frequency that the maker
    guarantees, which a cool processor exceeds, or the highest that one busy core reaches alone
    (Linux with ``intel_pstate``), which all cores together do not.
    """
    try:
        reported = psutil.cpu_freq()
    except (AttributeError, OSError, RuntimeError, SystemError):
        return None
    hertz = 1e6 * max(reported.max, reported.current) if reported else 0.0
    return hertz if hertz > 1e8 else None  # psutil 7.2 reports 4 MHz for an Apple M4


def peak(dtype: torch.dtype = torch.float32, threads: int = 1) -> float | None:
    """The theoretical peak, in FLOP/s, or None where lanes or clock are unknown.

    Cores, one for each of the ``threads``, × lanes × FMA_UNITS × 2 operations per multiply-add ×
    clock.
    """
    width, frequency = lanes(dtype), clock()
    return threads * width * FMA_UNITS * 2 * frequency if width and frequency else None


def ceilings(threads: int | None = None) -> Ceilings:
    """Measure the ceilings with ``threads`` threads (all of torch's when None).

    Each of five workloads is repeated for ``BUDGET`` seconds, the copy at least ten times, and its
    fastest run counts. The number of torch's threads is afterwards as before.
    """
    before = torch.get_num_threads()
    threads = _input.whole("threads", before if threads is None else threads)
    torch.set_num_threads(threads)
    try:
        product = max(map(_matrix_product_rate, MATRIX_SIZES))
        return Ceilings(product, _convolution_rate(), _copy_rate())
    finally:
        torch.set_num_threads(before)


def _matrix_product_rate(size: int) -> float:
    """FLOP/s of a square float32 matrix product: ``size``³ multiply-adds, two operations each."""
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, size, size, generator=generator)
    out = torch.empty(size, size)
    return 2 * size**3 / _fastest(lambda: torch.matmul(a, b, out=out))


def _convolution_rate() -> float:
    """FLOP/s of 64 → 64 channels, 3 × 3, on 8 images of 56 × 56, in channels_last."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(8, 64, 56, 56, generator=generator)
    weights = torch.randn(64, 64, 3, 3, generator=generator)
    images = images.contiguous(memory_format=torch.channels_last)
    weights = weights.contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        fastest = _fastest(lambda: F.conv2d(images, weights, padding=1))
    return 2 * 8 * 64 * 56 * 56 * 64 * 9 / fastest


def _copy_rate() -> float:
    """B/s read and written while one tensor is copied to another, both beyond most caches."""
    source = torch.ones(COPY_BYTES // 4)
    target = torch.zeros_like(source)
    return 2 * COPY_BYTES / _fastest(lambda: target.copy_(source), least=10)


def _fastest(run: Callable[[], object], least: int = 3) -> float:
    """The shortest of at least ``least`` runs after a warm-up, in seconds.

    The shortest, because everything else the computer does mostly adds time.
    """
    run()
    samples: list[float] = []
    while len(samples) < least or sum(samples) < BUDGET:
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    return min(samples)


def _processor() -> str:
    """The processor's name, where the system tells it, and otherwise its kind."""
    try:
        if platform.system() == "Linux":
            lines = Path("/proc/cpuinfo").read_text().splitlines()
            return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
        if platform.system() == "Darwin":
            command = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except (OSError, StopIteration):
        pass  # a system that hides it, or a processor without a name, such as most ARM's
    return platform.processor() or platform.machine()


def _gpu() -> str:
    """The GPU's name, if possible without initialising CUDA, which would take memory on it."""
    names = {name for (name,) in _nvidia_smi("name")}
    if gpu_problem():
        return f"{', '.join(sorted(names))}, which this PyTorch cannot use"
    if not torch.cuda.is_available():
        return "none"
    # Of several kinds of GPU, torch knows which is its first. AMD's have no nvidia-smi.
    return names.pop() if len(names) == 1 else torch.cuda.get_device_name()


def _nvidia_smi(*fields: str) -> list[list[str]]:
    """What NVIDIA's driver says of its GPUs, a row for each; none without an NVIDIA driver."""
    line = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(line, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return []
    return [row.split(", ") for row in answer.stdout.splitlines()]


def _has_kernels(capability: str) -> bool:
    """Whether this build of PyTorch has code for GPUs of a compute capability such as "7.0".

    Code for sm_80 also runs on 8.6, but not on 9.0; code for compute_90 on all that are newer.
    """
    if not re.fullmatch(r"\d+\.\d+", capability):
        return True  # the driver does not say, so nothing speaks against it
    major, minor = map(int, capability.split("."))
    for code in torch.cuda.get_arch_list():
        kind, _, number = code.partition("_")
        digits = re.sub(r"\D", "", number)
        built = int(digits[:-1]), int(digits[-1])
        same = built[0] == major or kind == "compute"
        if same and built <= (major, minor):
            return True
    return False
