"""Launch one kernel between cudaProfilerStart and cudaProfilerStop: for ncu.

Run it with ``ncu --profile-from-start off --set full python
scripts/launch_kernels.py "product bf16"``. Lesson 11 reads the counters.
"""

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F

SIZE = 4096


def product(precision: str) -> Callable[[], object]:
    """A square matrix product, in float32, tf32 or bf16."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    a = torch.randn(SIZE, SIZE, device="cuda", dtype=dtype)
    b = torch.randn(SIZE, SIZE, device="cuda", dtype=dtype)
    return lambda: a @ b


def linear(batch: int) -> Callable[[], object]:
    """The last layer of ResNet-50, 2048 to 1000 features, in bf16."""
    x = torch.randn(batch, 2048, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(1000, 2048, device="cuda", dtype=torch.bfloat16)
    return lambda: F.linear(x, weight)


def resize() -> Callable[[], object]:
    """Twice the height and width: 10 samples of 16 channels, 64 × 64."""
    images = torch.rand(10, 16, 64, 64, device="cuda")
    return lambda: F.interpolate(
        images, scale_factor=2, mode="bilinear", align_corners=False
    )


def relu() -> Callable[[], object]:
    """256 million bytes in, and as many out."""
    x = torch.randn(64_000_000, device="cuda")
    return lambda: F.relu(x)


KERNELS: dict[str, Callable[[], Callable[[], object]]] = {
    "product float32": lambda: product("float32"),
    "product tf32": lambda: product("tf32"),
    "product bf16": lambda: product("bf16"),
    "resize": resize,
    "relu": relu,
    "linear 4": lambda: linear(4),
    "linear 512": lambda: linear(512),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Launch one kernel, for ncu.")
    parser.add_argument("kernel", choices=KERNELS)
    name = parser.parse_args().kernel
    if not torch.cuda.is_available():
        parser.error("this needs an NVIDIA GPU that PyTorch can use; there is none")
    torch.manual_seed(0)
    launch = KERNELS[name]()
    for _ in range(3):  # warm-up: libraries are loaded, the kernel is chosen
        launch()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    launch()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main()
