"""Count how often ``helpers.compare`` errs, by comparisons whose answer is known.

    python -m tools.compare_rates --minutes 25 [--results build/compare_rates.csv]

The work is a loop of 1,000 additions, and the new version makes as many, or exactly 3 % or 10 %
more or fewer. With torch it is the 103 convolutions of ``notebooks/scripts/time_pairs.py`` against
as many, or against 100. They are compared in processes, the additions also in blocks of this one;
on the computer as it is, and beside a program that never stops counting. Each result is appended to
the file, and the table counts all that are in it: a later call continues an earlier one.
"""

import argparse
import contextlib
import itertools
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from helpers import terminal
from helpers.compare import compare

COUNTS = {"none": 1000, "+3 %": 1030, "-3 %": 970, "+10 %": 1100, "-10 %": 900}
NAMES = dict(zip(COUNTS, ["copy", "slower_3", "faster_3", "slower_10", "faster_10"], strict=True))
CONVOLUTIONS = {"none": ("old", "copy"), "+3 %": ("less", "old"), "-3 %": ("old", "less")}
LOADS = ["as it is", "busy loop"]
BUSY = "import time\nwhile time.process_time() < 100: pass"  # it ends even if it is forgotten


def additions(count: int) -> Callable[[], float]:
    def run() -> float:
        total = 0.0
        for number in itertools.repeat(1.0, count):
            total += number
        return total

    return run


old = additions(1000)
copy, slower_3, faster_3, slower_10, faster_10 = map(additions, COUNTS.values())


def versions(way: str, change: str) -> tuple:
    """Old and new, as ``compare`` takes them."""
    if way == "blocks":  # made anew each time, at another place in memory
        return additions(COUNTS["none"]), additions(COUNTS[change])
    if way == "torch":
        return tuple(f"notebooks.scripts.time_pairs:{name}" for name in CONVOLUTIONS[change])
    return "tools.compare_rates:old", f"tools.compare_rates:{NAMES[change]}"


def experiment(load: str, way: str, change: str) -> dict[str, object]:
    """One comparison, as a row of the results."""
    counting = terminal.started(["python", "-c", BUSY])
    with counting if load == "busy loop" else contextlib.nullcontext():
        start = time.perf_counter()
        comparison = compare(*versions(way, change))
        seconds = time.perf_counter() - start
    verdict = comparison.verdict.split()[-2]  # "takes … % less time", "no difference … % found"
    answer = {"n": "%", "+": "more", "-": "less"}[change[0]]
    row = {"load": load, "way": way, "change": change, "right": verdict == answer}
    row["wrong"] = verdict not in (answer, "%")  # also a difference between copies
    return row | {"ratio": comparison.ratio, "smallest": comparison.smallest, "seconds": seconds}


def main() -> None:
    import pandas as pd  # here, because the processes that measure import this module, too

    parser = argparse.ArgumentParser(description="Count how often compare errs.")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--results", type=Path, default=Path("build/compare_rates.csv"))
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # beside the busy loop one core of two is left
    # Copies come more often, because their false verdicts are to be shown to be rare.
    cases = [*itertools.product(LOADS, ["blocks", "processes"], [*COUNTS, "none", "none"])] * 2
    cases += itertools.product(LOADS, ["torch"], CONVOLUTIONS)
    random.Random(0).shuffle(cases)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    done = len(pd.read_csv(options.results)) if options.results.exists() else 0
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        row = pd.DataFrame([experiment(*cases[done % len(cases)])])
        row.to_csv(options.results, mode="a", header=not done, index=False)
        done += 1
    groups = pd.read_csv(options.results).groupby(["load", "way", "change"])
    counts = groups[["right", "wrong"]].sum().assign(comparisons=groups.size())
    typical = groups[["ratio", "smallest", "seconds"]].median().round(3)
    print(counts.join(typical).assign(longest=groups.seconds.max().round(1)).to_string())


if __name__ == "__main__":
    main()
