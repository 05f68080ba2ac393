"""Compare an old and a new version of some work: did its time change, and by how much?

For work in a module: ``python -m helpers.compare module:old module:new``.
"""

import argparse
import json
import math
import pkgutil
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from helpers import _input, terminal, units

BLOCKS = 5  # processes, or parts of the time in one process
QUANTILE = 2.776  # of Student's t with BLOCKS - 1 degrees of freedom, for intervals of 95 %
FLOOR = 0.01  # equal functions may differ by this, as they are stored at different addresses
SAMPLE_NS = 100_000  # shorter work is repeated in a sample, as reading the clock takes 50 ns
ROUNDS = 20  # whose minima give one ratio

Work = Callable[[], object]


@dataclass(frozen=True, repr=False)
class Comparison:
    """What ``compare`` measured. Each ratio is a time of new divided by a time of old."""

    ratio: float
    interval: tuple[float, float]  # 95 % confidence interval of the ratio
    null: tuple[float, float]  # the same for each version against itself
    smallest: float  # a slowdown by this fraction is found about half of the time

    @property
    def verdict(self) -> str:
        """In words, such as ``takes ~8.12 % less time``: new, compared with old."""
        if abs(math.log(self.ratio)) <= math.log1p(self.smallest):
            return f"no difference larger than {units.percent(self.smallest)} found"
        more = "more" if self.ratio > 1 else "less"
        return f"takes {units.percent(abs(self.ratio - 1))} {more} time"

    def __repr__(self) -> str:
        low, high, null_low, null_high = map(units.ratio, self.interval + self.null)
        measured = f"{units.ratio(self.ratio)} the time of old"
        interval = f"95 % confidence interval {low} to {high}"
        itself = f"each against itself {null_low} to {null_high}"
        return f"{self.verdict} ({measured}, {interval}; {itself})"


def compare(
    old: Work | str, new: Work | str, seconds: float = 1.5, varies: bool = False
) -> Comparison:
    """Time old and new in turn, and return a ``Comparison``: print it, or read its ``verdict``.

    Two functions without arguments are measured in five blocks in this process; two names such as
    ``"module:function"`` in five processes, one block in each, because processes differ. In each
    round of a block both versions are timed twice, in an order drawn anew. Twenty to 39 rounds, or
    fewer of calls that take more than a few milliseconds, give a ratio of minima, which hold little
    of the noise of other programs; the median of these is the block's ratio. ``varies=True`` takes
    the ratio of medians instead, for work that itself varies. (If only some samples change, minima
    and medians mislead: let old and new do the work of many calls.) The mean of five blocks has an
    interval by Student's t, on logarithms. New is slower or faster if that interval is farther from
    1 than that of the A/A tests, the mean of both versions against themselves, and farther than 1
    %.

    How it erred (``tools/compare_rates.py``, on two cores, quiet and beside a busy loop; each block
    in this process still had a warm-up of its own): of 78 comparisons of copies of one loop none
    was called different; 3 % was found in 60 of 60, 10 % in 49 of 49. Beside 8 to 26 other
    programs: 0 of 107 copies, 55 of 55 and 19 of 19; of convolutions of one millisecond 3 % was
    found in 4 of 5. Of 126 copies of three other Python functions in one process, 4 were called
    different, by 2 to 3 %, and the same pairs again when repeated there.

    Give both the same data: arrays at two addresses can differ by some percent in speed. Check
    first that their results are equal, and synchronise a GPU inside both. First calls are not
    counted; garbage collection stays on, but minima and medians leave out most of its time;
    processes use as many torch threads as this one.
    ``seconds`` are for measuring, in all, but each block has at least two rounds, however long they
    take; to start a process with torch takes about one more. The calling loop is measured, too, so
    ratios of very short work are too close to 1. Raises ValueError if processes fail,
    TimeoutExpired if a process takes 110 s more than its share, and what old and new raise here.
    """
    _input.positive("seconds", seconds)
    named = all(isinstance(work, str) and ":" in work for work in (old, new))
    if not named and not (callable(old) and callable(new)):
        expected = "two functions without arguments, or two names such as 'module:function'"
        raise TypeError(f"old and new must be {expected}, but got {old!r} and {new!r}")
    if named:
        work, measure = (old, new), measure_in_process
    else:
        work, measure = (old, new, calls_per_sample(old, new)), measure_block
    return conclude([measure(*work, seconds / BLOCKS, varies) for _ in range(BLOCKS)])


def conclude(logarithms: list[list[float]]) -> Comparison:
    """Decide by each block's logarithms of the ratios new / old and again / first."""
    means = np.mean(logarithms, axis=0)
    margins = QUANTILE * np.std(logarithms, axis=0, ddof=1) / math.sqrt(BLOCKS)
    noise = max(abs(means[1]) + margins[1], math.log1p(FLOOR))
    interval, null = np.exp([means - margins, means + margins]).T.tolist()
    smallest = math.expm1(noise + margins[0])
    return Comparison(math.exp(means[0]), tuple(interval), tuple(null), smallest)


def calls_per_sample(old: Work, new: Work) -> int:
    """How many calls of each version a sample needs, found after a warm-up."""
    old()  # first calls take longer
    new()
    repeats = 1
    while nanoseconds(old, repeats) + nanoseconds(new, repeats) < 2 * SAMPLE_NS:
        repeats *= 2
    return repeats


def measure_block(old: Work, new: Work, repeats: int, seconds: float, varies: bool) -> list[float]:
    """Time two or more rounds for so many seconds: the logarithms of new / old, again / first."""
    versions = [old, old, new, new]
    rounds, order = [], random.Random()  # which leaves the caller's random numbers alone
    start = time.perf_counter()
    while len(rounds) < 2 or time.perf_counter() - start < seconds:
        times = [0] * len(versions)
        for version in order.sample(range(len(versions)), len(versions)):
            times[version] = nanoseconds(versions[version], repeats)
        rounds.append(times)
    return log_ratios(np.array(rounds), varies)


def nanoseconds(work: Work, repeats: int) -> int:
    """The time of so many calls, at least 1."""
    start = time.perf_counter_ns()
    for _ in range(repeats):
        work()
    return max(1, time.perf_counter_ns() - start)


def log_ratios(rounds: np.ndarray, varies: bool) -> list[float]:
    """From the times of a block, a row for each round: old, old again, new, new again."""
    if varies:
        typical = np.median(rounds, axis=0, keepdims=True)
    else:
        parts = np.array_split(rounds, max(len(rounds) // ROUNDS, 1))
        typical = np.array([part.min(axis=0) for part in parts])
    old, old_again, new, new_again = np.log(typical).T
    change = (new + new_again - old - old_again) / 2
    null = (new_again - new + old_again - old) / 2
    return [float(np.median(change)), float(np.median(null))]


def measure_in_process(old: str, new: str, seconds: float, varies: bool) -> list[float]:
    """``measure_block`` in a new process, which is started in the current folder."""
    command = ["python", "-m", "helpers.compare", old, new, f"--block={seconds}"]
    torch = sys.modules.get("torch")
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())} if torch else {}
    try:
        child = terminal.run(command + ["--varies"] * varies, timeout=seconds + 110, **threads)
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.splitlines() or [f"the process ended with {error.returncode}"])[-1]
        raise ValueError(f"{old!r} and {new!r} could not be compared: {reason}") from error
    return json.loads(child.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="compare", description="Which version is faster?")
    parser.add_argument("old", help="a function without arguments, as module:function")
    parser.add_argument("new", help="the same")
    parser.add_argument("--seconds", type=float, default=1.5, help="time for measuring, in all")
    parser.add_argument("--varies", action="store_true", help="the work varies from call to call")
    parser.add_argument("--block", type=float, help="measure one block of so many seconds")
    options = parser.parse_args()
    if options.block:
        try:
            works = [pkgutil.resolve_name(name) for name in (options.old, options.new)]
            repeats = calls_per_sample(*works)
            logarithms = measure_block(*works, repeats, options.block, options.varies)
        except (Exception, SystemExit) as error:
            message = " ".join(str(error).split())  # in one line
            sys.exit(f"{type(error).__name__}: {message or 'no message'}")
        print(f"\n{json.dumps(logarithms)}")  # on a line that the work has not begun
        return
    try:
        print(compare(options.old, options.new, options.seconds, options.varies))
    except (TypeError, ValueError, subprocess.TimeoutExpired) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Interrupted: no verdict.")


if __name__ == "__main__":
    main()
