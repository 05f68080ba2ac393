"""Launch one kernel twenty times: for ncu, which asks why it is slow.

With a GPU, ``ncu -k "regex:gemm|nvjet" --launch-skip 10 -c 1 --kill yes python
scripts/launch_kernels.py "product bf16"``; or submit assets/jobs/slurm/ncu.sbatch.
"""

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F


def product(dtype: torch.dtype, tf32: bool = False) -> Callable[[], object]:
    """A square matrix product."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=dtype) for _ in range(2))
    return lambda: a @ b


def linear(batch: int) -> Callable[[], object]:
    """The last layer of ResNet-50, 2048 to 1000 features, in bf16."""
    x = torch.randn(batch, 2048, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(1000, 2048, device="cuda", dtype=torch.bfloat16)
    return lambda: F.linear(x, weight)


def resize() -> Callable[[], object]:
    """Twice the height and width: 10 samples of 16 channels, 64 × 64."""
    images = torch.rand(10, 16, 64, 64, device="cuda")
    return lambda: F.interpolate(images, scale_factor=2, mode="bilinear")


KERNELS: dict[str, Callable[[], Callable[[], object]]] = {
    "product float32": lambda: product(torch.float32),
    "product tf32": lambda: product(torch.float32, tf32=True),
    "product bf16": lambda: product(torch.bfloat16),
    "linear 4": lambda: linear(4),
    "linear 512": lambda: linear(512),
    "resize": resize,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Launch one kernel, for ncu.")
    parser.add_argument("kernel", choices=KERNELS)
    name = parser.parse_args().kernel
    if not torch.cuda.is_available():
        parser.error("this needs an NVIDIA GPU that PyTorch can use; there is none")
    launch = KERNELS[name]()
    for _ in range(20):
        launch()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
