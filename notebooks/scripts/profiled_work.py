"""Time six pieces of work without and with cProfile, and keep a profile of each.

Run it in notebooks/ with ``python -m scripts.profiled_work FOLDER``. FOLDER then
holds times.csv, with the seconds without and with cProfile, and the profiles. It
also holds conv2d_loops.prof, the profile of a small loops convolution, and
two_blocks.prof, the profile of another program.
"""

import cProfile
import operator
import pstats
import random
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path

import torch
from scripts import two_blocks
from scripts.train_small_cnn import training_step

from helpers import workloads

LEFT, RIGHT = [0.5] * 200, [0.25] * 200
NUMBERS = random.Random(0).sample(range(100_000), 2_000)


def add(a, b):
    return a + b


def multiply(a, b):
    return a * b


def many_small_calls():
    """Ten dot products, with two calls of a Python function per pair of values."""
    for _ in range(10):
        total = 0.0
        for a, b in zip(LEFT, RIGHT, strict=True):
            total = add(total, multiply(a, b))


def few_large_calls():
    """75 dot products, with one call of sum for each of them."""
    for _ in range(75):
        sum(map(operator.mul, LEFT, RIGHT))


def negative(number):
    return -number


def sort_with_a_key():
    sorted(NUMBERS, key=negative)


def nothing(a, b):
    pass


def empty_calls():
    """4,000 calls of a function that does nothing."""
    for _ in range(4_000):
        nothing(0.5, 0.25)


def loop_without_calls():
    total = 0.0
    for number in range(8_000):
        total += number * 0.5


def make_work():
    """The six pieces of work, each a function without arguments."""
    torch.manual_seed(0)
    model = workloads.SmallCNN()
    images, labels = workloads.synthetic_cifar(16)

    def train_small_cnn():
        training_step(model, images, labels)

    work = [many_small_calls, few_large_calls, empty_calls, sort_with_a_key]
    work += [loop_without_calls, train_small_cnn]
    return {function.__name__: function for function in work}


def measure(function, profile=None):
    """The seconds of one call, in ``profile`` if there is one."""
    start = time.perf_counter()
    if profile:
        profile.runcall(function)
    else:
        function()
    return time.perf_counter() - start


def main():
    folder, rounds = Path(sys.argv[1]), 30
    work = make_work()
    image, kernel = workloads.photograph(8, 8), torch.randn(2, 3, 3, 3)
    work["conv2d_loops"] = partial(workloads.conv2d_loops, image, kernel)
    shortest = dict.fromkeys(product(work, (False, True)), float("inf"))
    kept = {}
    for function in work.values():
        function()  # warm-up
    for _ in range(rounds):
        for name in random.sample(list(work), len(work)):
            seconds = {}
            for profile in random.sample([None, cProfile.Profile()], 2):
                seconds[profile is not None] = measure(work[name], profile)
                if profile and seconds[True] < shortest[name, True]:
                    kept[name] = profile
            # Other programs can only add time, so the shortest run counts.
            for traced in (False, True):
                shortest[name, traced] = min(
                    shortest[name, traced], seconds[traced]
                )

    lines = ["work,without cProfile,with cProfile"]
    for name in work:
        if name != "conv2d_loops":  # only its profile is needed
            lines.append(f"{name},{shortest[name, False]},{shortest[name, True]}")
    (folder / "times.csv").write_text("\n".join(lines) + "\n")
    kept["two_blocks"] = cProfile.Profile()
    kept["two_blocks"].runcall(two_blocks.main)
    for name, profile in kept.items():
        pstats.Stats(profile).dump_stats(folder / f"{name}.prof")


if __name__ == "__main__":
    main()
