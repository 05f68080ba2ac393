"""Count how often ``helpers.compare`` errs and how much it finds, where the answer is known.

    python assets/recordings/make/compare_rates.py --minutes 25 [--changes 0 5 -5] [--busy 1]

Each workload does 100 equal pieces of work (or a multiple), and its new version exactly as many, or
3, 5 or 10 % more or fewer. Both are compared as functions in this process and by name in processes,
on the computer as it is, or beside so many programs that never stop counting (``--busy``). Each
result is appended to the file of ``--results``, and the table counts all that are in it: a later
call continues an earlier one.
"""

import argparse
import contextlib
import itertools
import os
import random
import time
import types
from collections.abc import Callable
from pathlib import Path

# Before torch is imported, in every process. Those that measure import this file by its name.
os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
os.environ["PYTHONPATH"] = str(Path(__file__).parent)

from helpers import terminal, units
from helpers.compare import compare, differs

BUSY = "import time\nwhile time.process_time() < 300: pass"  # it ends even if it is forgotten


def additions(count: int) -> Callable[[], object]:
    def run() -> float:
        total = 0.0
        for number in itertools.repeat(1.0, count):
            total += number
        return total

    return run


def dictionary(count: int) -> Callable[[], object]:
    def run() -> int:
        squares = {}
        for number in range(count):
            squares[number] = number * number
        return sum(squares[number] for number in range(count))

    return run


def convolutions(count: int, side: int, channels: int) -> Callable[[], object]:
    import torch
    import torch.nn.functional as F

    image = torch.rand(1, channels, side, side, generator=torch.Generator().manual_seed(0))
    kernel = torch.rand(16, channels, 3, 3, generator=torch.Generator().manual_seed(1))

    def run() -> None:
        for _ in range(count):
            F.conv2d(image, kernel, padding=1)

    return run


def training(count: int) -> Callable[[], object]:
    """A training step of a linear layer, its gradients added up over so many small batches."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    images, labels = torch.rand(8, 64), torch.randint(10, (8,))

    def run() -> None:
        optimizer.zero_grad()
        for _ in range(count):
            torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return run


# Name: how a version with so many pieces is made, and how many pieces the old one has.
WORKLOADS = {
    "additions_short": (additions, 1_000),
    "additions": (additions, 40_000),
    "dictionary": (dictionary, 10_000),
    "convolutions_1ms": (lambda count: convolutions(count, 16, 3), 200),
    "convolutions_3ms": (lambda count: convolutions(count, 40, 3), 200),
    "convolutions_40ms": (lambda count: convolutions(count, 64, 16), 200),
    "training": (training, 100),
}


def __getattr__(name: str) -> Callable[[], object]:
    """The version called ``additions__41200``, as a process that measures asks for it."""
    workload, _, count = name.partition("__")
    if workload not in WORKLOADS or not count:
        raise AttributeError(name)
    return WORKLOADS[workload][0](int(count))


def versions(way: str, workload: str, change: int) -> tuple:
    """Old and new, as ``compare`` takes them."""
    make, pieces = WORKLOADS[workload]
    changed = pieces * (100 + change) // 100
    if way == "processes":
        return tuple(f"compare_rates:{workload}__{count}" for count in (pieces, changed))
    old, new = make(pieces), make(changed)
    # With a code object of its own, as a function that was written twice has.
    copy = types.FunctionType(new.__code__.replace(), new.__globals__, closure=new.__closure__)
    return old, copy


def experiment(busy: int, way: str, workload: str, change: int) -> dict[str, object]:
    """One comparison, as a row of the results."""
    with contextlib.ExitStack() as programs:
        for _ in range(busy):
            programs.enter_context(terminal.started(["python", "-c", BUSY]))
        start = time.perf_counter()
        result = compare(*versions(way, workload, change))
        seconds = time.perf_counter() - start
    found = 0
    if differs(result.interval) and not differs(result.null):
        found = 1 if result.ratio > 1 else -1
    truth = (change > 0) - (change < 0)
    return {
        "busy": busy,
        "way": way,
        "workload": workload,
        "change": change,
        "right": int(found == truth),
        "wrong": int(found not in (0, truth)),
        "call": result.old,
        "ratio": result.ratio,
        "low": result.interval[0],
        "high": result.interval[1],
        "slowdown": result.limits[1] - 1,
        "clock": result.clock,
        "seconds": seconds,
    }


def main() -> None:
    import pandas as pd  # here, because the processes that measure import this module, too

    parser = argparse.ArgumentParser(description="Count how often compare errs.")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--results", type=Path, default=Path("build/compare_rates.csv"))
    parser.add_argument("--busy", type=int, default=0, help="so many busy programs run beside it")
    parser.add_argument("--changes", type=int, nargs="+", default=[0, 3, -3, 5, -5, 10, -10])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    cases = list(itertools.product(["functions", "processes"], options.workloads, options.changes))
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        for case in random.sample(cases, len(cases)):
            if time.monotonic() < end:
                row = pd.DataFrame([experiment(options.busy, *case)])
                row.to_csv(
                    options.results, mode="a", header=not options.results.exists(), index=False
                )
    groups = pd.read_csv(options.results).groupby(["busy", "workload", "way", "change"])
    counts = groups[["right", "wrong"]].sum().assign(comparisons=groups.size())
    typical = groups[["call", "ratio", "slowdown", "seconds"]].median()
    typical["call"] = typical["call"].map(units.seconds)
    print(counts.join(typical.round(3)).to_string())


if __name__ == "__main__":
    main()
