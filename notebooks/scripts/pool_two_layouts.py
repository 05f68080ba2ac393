"""How many times as fast is max pooling in channels_last? Prints one number.

Run it with ``python scripts/pool_two_layouts.py``. It uses one thread, and it
prints the median ratio of 15 pairs of calls.
"""

import statistics
import time

import torch
import torch.nn.functional as F


def seconds(activation: torch.Tensor) -> float:
    start = time.perf_counter()
    F.max_pool2d(activation, 2)
    return time.perf_counter() - start


def speedup() -> float:
    usual = torch.randn(64, 16, 32, 32).relu()
    last = usual.to(memory_format=torch.channels_last)
    ratios = [seconds(usual) / seconds(last) for _ in range(18)]
    return statistics.median(ratios[3:])  # the first calls are the warm-up


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(speedup())
