"""Times old and new versions of the same work in pairs: one process of many.

Run it with ``python scripts/time_pairs.py --pairs 150 --seed 3``. In each turn it
times one pair of every series, the series in random order. The work is 103 calls of
a small convolution; *less* makes 100, 3 % less. The others change nothing:
*itself* is the old function again, *copy* and *renamed* are copies of it.

ready: one call that is not measured, then the pair, its order drawn at random.
random, fixed: other work, then the pair; its order is drawn, or old goes first.

The output is CSV, one line for each pair: how, series, the wall times old_ns and
new_ns, and the CPU times old_cpu_ns and new_cpu_ns.
"""

import argparse
import random
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

from helpers import workloads

image = workloads.photograph(16, 16)[None]
photo = workloads.photograph(64, 64)
kernel = torch.randn(16, 3, 3, 3)


def old() -> None:
    for _ in range(103):
        F.conv2d(image, kernel, padding=1)


def copy() -> None:
    for _ in range(103):
        F.conv2d(image, kernel, padding=1)


def renamed() -> None:
    for _count in range(103):
        F.conv2d(image, kernel, padding=1)


def less() -> None:
    for _ in range(100):
        F.conv2d(image, kernel, padding=1)


def nanoseconds(work: Callable[[], object]) -> tuple[int, int]:
    """The wall time and the CPU time of one call."""
    cpu_start = time.thread_time_ns()
    start = time.perf_counter_ns()
    work()
    wall = time.perf_counter_ns() - start
    return wall, time.thread_time_ns() - cpu_start


def main() -> None:
    parser = argparse.ArgumentParser(description="Time versions in pairs.")
    parser.add_argument("--pairs", type=int, default=150)
    parser.add_argument("--seed", type=int, help="of the order (default: any)")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    torch.set_num_threads(1)

    series = [("ready", new) for new in (old, copy, renamed, less)]
    series += [(how, new) for how in ("random", "fixed") for new in (old, copy)]
    for _ in range(20):
        old()  # warm-up
    print("how,series,old_ns,new_ns,old_cpu_ns,new_cpu_ns")
    for _ in range(arguments.pairs):
        for how, new in rng.sample(series, len(series)):
            if how == "ready":
                old()
            else:
                workloads.conv2d_numpy(photo, kernel)
            if how != "fixed" and rng.random() < 0.5:
                new_times, old_times = nanoseconds(new), nanoseconds(old)
            else:
                old_times, new_times = nanoseconds(old), nanoseconds(new)
            name = "itself" if new is old else new.__name__
            (old_wall, old_cpu), (new_wall, new_cpu) = old_times, new_times
            print(f"{how},{name},{old_wall},{new_wall},{old_cpu},{new_cpu}")


if __name__ == "__main__":
    main()
