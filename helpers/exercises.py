"""What the exercises stand on: inputs that vary with the student, and checks that say what came.

A check asks with ``expect``: it prints one line when the answer is right, and raises a sentence
when it is not. What a check hands to a student's function, and what it gets back, is data: numbers,
strings, lists, dictionaries, tensors, or one of the small classes at the end of this module.
"""

import hashlib
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from statistics import median

from helpers import _input, units

most_goes = 5  # at a check of something timed; one is enough for an answer known to be wrong
RECORDINGS = Path(__file__).resolve().parent.parent / "assets" / "recordings"


def draw(student: str, task: str) -> random.Random:
    """Random numbers that are the same for each run of this student's task, and for no other's.

    >>> draw("ada", "03, a block").randint(1, 6) == draw("ada", "03, a block").randint(1, 6)
    True
    """
    if not isinstance(student, str) or not student.strip():
        raise ValueError(f"student must be your id, such as 'ada', but {student!r} came: "
                         "write it into the first cell, and run that again")  # fmt: skip
    seed = hashlib.sha256(f"{student.strip()}\n{task}".encode()).digest()
    return random.Random(int.from_bytes(seed[:8], "big"))


def expect(what: str, came: object, expected: object, within: float = 0.0) -> None:
    """Print that ``what`` is right, or raise an AssertionError that says what came.

    ``within`` is the share by which a number, or each number in a list, a dictionary or a tensor,
    may differ from what was expected. Lists and tuples are alike; a whole number may come as a
    float; True is not 1.
    """
    if came is ...:
        raise AssertionError(f"{what}: not answered yet")
    if not _same(_plain(came), _plain(expected), _input.not_negative("within", within)):
        near = f", within {100 * within:g}%" if within else ""
        raise AssertionError(f"{what}: expected {_shown(expected)}{near}, but {_shown(came)} came")
    print(f"✓ {what}")


def one_of(what: str, came: object, options: str) -> None:
    """Print that a choice was made among ``options``, such as "abcd", or raise a sentence."""
    if not isinstance(came, str) or len(came) != 1 or came not in options:
        listed = ", ".join(f'"{option}"' for option in options)
        raise AssertionError(f"{what}: expected one of {listed}, but {_shown(came)} came")
    print(f"✓ {what}: {came} was chosen")


def patiently(check: Callable[[], None], times: int = 3) -> None:
    """Run a ``check`` of something timed, again if it fails: a busy computer can spoil a time."""
    for left in reversed(range(min(_input.whole("times", times), most_goes))):
        try:
            return check()
        except AssertionError:
            if not left:
                raise


def faster(
    what: str,
    mine: Callable,
    theirs: Callable,
    inputs: Sequence[tuple],
    at_least: float = 2.0,
    within: float = 1e-4,
) -> None:
    """Print that ``mine`` gives what ``theirs`` gives, and is ``at_least`` times as fast.

    Each of the ``inputs``, the arguments of one call, is given to both, in random order; the first
    is a warm-up. What counts is the median of the ratios, at the best of three goes. The results
    must be small, because fetching them is timed too, and a call of ``theirs`` should take 0.1 s or
    more.
    """
    for left in reversed(range(min(3, most_goes))):
        ratio = median([_ratio(what, mine, theirs, given, within) for given in inputs][1:])
        if ratio >= at_least:
            break
        if not left:
            raise AssertionError(
                f"{what}: expected at least {at_least:g} times as fast, "
                f"but {units.ratio(ratio)} came"
            )
    print(f"✓ {what}: the same result, {units.ratio(ratio)} as fast")


def _ratio(what: str, mine: Callable, theirs: Callable, given: tuple, within: float) -> float:
    """How many times as fast ``mine`` is for one input; an AssertionError if it differs."""
    # A grader's stand-in for a student's function first brings the arguments to where it runs.
    bring = getattr(mine, "prepared", partial(partial, mine))
    calls = {"mine": bring(*given), "theirs": partial(theirs, *given)}
    results, seconds = {}, {}
    for name in random.sample(sorted(calls), 2):
        start = time.perf_counter()
        results[name] = calls[name]()
        seconds[name] = time.perf_counter() - start
    if not _same(results["mine"], results["theirs"], within):
        raise AssertionError(
            f"{what}: a different result, so its speed does not count: expected "
            f"{_shown(results['theirs'])}, but {_shown(results['mine'])} came"
        )
    return seconds["theirs"] / seconds["mine"]


def _plain(value: object) -> object:
    """Tuples as lists, numpy's numbers and tensors of one number without axes as Python's."""
    if isinstance(value, tuple):
        return list(value)
    if getattr(value, "ndim", 1) == 0:
        return value.item()
    return value.detach().cpu() if _is_tensor(value) else value


def _is_tensor(value: object) -> bool:
    """Whether it is torch's; a set that does without torch need not wait for its import."""
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def _same(came: object, expected: object, within: float) -> bool:
    came, expected = _plain(came), _plain(expected)
    if isinstance(expected, bool) or isinstance(came, bool) or expected is None:
        return type(came) is type(expected) and came == expected
    if isinstance(expected, Real):
        return isinstance(came, Real) and abs(came - expected) <= within * abs(expected)
    if _is_tensor(expected):
        if not _is_tensor(came) or came.shape != expected.shape:
            return False
        if not (came.is_floating_point() or expected.is_floating_point()):
            return came.equal(expected)
        worst = within * expected.double().abs().max().item() if expected.numel() else 0.0
        return came.double().allclose(expected.double(), rtol=0, atol=worst)
    if isinstance(expected, list):
        return (
            isinstance(came, list)
            and len(came) == len(expected)
            and all(_same(*pair, within) for pair in zip(came, expected, strict=True))
        )
    if isinstance(expected, dict):
        return (
            isinstance(came, dict)
            and came.keys() == expected.keys()
            and all(_same(came[key], expected[key], within) for key in expected)
        )
    return type(came) is type(expected) and came == expected


def _shown(value: object) -> str:
    if value is ...:
        return "..."
    if _is_tensor(value) and value.numel() > 6:
        return f"a tensor of shape {tuple(value.shape)}, sum {value.double().sum():.6g}"
    if isinstance(value, Integral) and not isinstance(value, bool):
        return f"{int(value):,}"
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 160 else f"{text[:160]}…"


# What a check may hand to a student's function besides plain data.


@dataclass
class Work:
    """A function to be timed: its n-th call takes ``seconds[n]``, further ones as the last."""

    seconds: list[float]
    calls: int = 0

    def __call__(self) -> int:
        """Take the time, and return the number of calls so far."""
        time.sleep(self.seconds[min(self.calls, len(self.seconds) - 1)])
        self.calls += 1
        return self.calls


@dataclass
class Device:
    """A pretended GPU. Its n-th call asks for ``seconds[n]`` of work, further ones as the last.

    A call returns at once; ``synchronize`` returns when all is done. ``waiting`` seconds of
    somebody else's work stand in the queue before the first call.
    """

    seconds: list[float]
    waiting: float = 0.0
    calls: int = 0
    free: float = 0.0  # when all is done, on the clock of time.perf_counter

    def __call__(self) -> int:
        """Ask for one piece of work, and return the number of calls so far."""
        begins = max(self._all_done(), time.perf_counter())
        self.free = begins + self.seconds[min(self.calls, len(self.seconds) - 1)]
        self.calls += 1
        return self.calls

    def synchronize(self) -> None:
        """Wait until all that was asked for is done."""
        time.sleep(max(0.0, self._all_done() - time.perf_counter()))

    def _all_done(self) -> float:
        self.free = self.free or time.perf_counter() + self.waiting
        return self.free
