"""A chain of convolutions on a GPU, where there is one: a program to be profiled.

Run it with ``python -m kernprof -lv convolve_on_gpu.py``, and once more with the
environment variable CUDA_LAUNCH_BLOCKING=1. Lesson 07, line_profiler, compares the
two tables.
"""

import sys

import torch
import torch.nn.functional as F
from line_profiler import profile
from torch import Tensor


@profile
def convolve_and_sum(images: Tensor, weights: Tensor) -> float:
    """The sum of ``images`` after ten convolutions with ``weights``."""
    for _ in range(10):
        images = F.conv2d(images, weights, padding=1)
    total = images.sum()
    return total.item()


def main() -> None:
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    count = int(sys.argv[1]) if sys.argv[1:] else 64 if on_gpu else 1
    torch.manual_seed(0)
    images = torch.randn(count, 64, 56, 56, device=device)
    weights = torch.randn(64, 64, 3, 3, device=device) / 24
    F.conv2d(images, weights, padding=1).sum().item()  # warm-up, not profiled
    for _ in range(5):
        convolve_and_sum(images, weights)


if __name__ == "__main__":
    main()
