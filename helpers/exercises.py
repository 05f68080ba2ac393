"""What the exercises use: inputs that vary with the student, and checks that end in a sentence.

A check asks with ``expect`` whether an answer is right, or with ``fits`` whether it is possible:
they print one line if it is, and raise ``WrongAnswer`` with a sentence if it is not. Before a check
computes with an answer, it asks with ``answer`` or ``function`` whether the answer has the right
type. What a check hands to a student's function, and what it gets back, is data: numbers, strings,
lists, dictionaries and tensors. What pretends to work, of ``helpers.simulated``, stays with the
check, and the student's function can only call it. What a check has to find out about code that a
student wrote, it asks of the code itself: it takes its text, with ``source``, and runs it with
functions of the course, which ``apart`` gives.
"""

import hashlib
import inspect
import io
import math
import os
import random
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import partial, wraps
from itertools import repeat
from numbers import Integral, Real
from pathlib import Path
from statistics import median

from helpers import units

most_goes = 5  # at a check of something timed; one is enough for a check that is to fail
seed_of_unseen = os.environ.get("UNSEEN_SEED", "")  # the grader has a secret one for each check
RECORDINGS = Path(__file__).resolve().parent.parent / "assets" / "recordings"


class OneLine(Exception):
    """An error of which a notebook shows its sentence, because a traceback leads only to here."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback; the cell has failed all the same."""
        sentence = " ".join(str(self).splitlines())
        return [f"\x1b[31m✗\x1b[0m {sentence}"]  # a red mark


class WrongAnswer(OneLine, AssertionError):
    """An answer is wrong, or there is none yet."""


class MissingId(OneLine, ValueError):
    """There is no id to draw numbers from."""


def draw(student: str, task: str) -> random.Random:
    """Random numbers that are the same for each run of this student's task, and for no other's."""
    if not isinstance(student, str) or not student.strip():
        raise MissingId(
            f"student must be your id, such as 'ada', but got {_shown(student)}: type your id "
            "between the quotes in the first code cell, run that cell, and then run this one again"
        )
    # A letter with an accent may be written as one character or as two: the same id.
    name = unicodedata.normalize("NFC", student.strip())
    seed = hashlib.sha256(f"{name}\n{task}".encode()).digest()
    return random.Random(int.from_bytes(seed[:8], "big"))


def unseen() -> random.Random:
    """Random numbers for a hidden check, which a student cannot foresee."""
    return random.Random(seed_of_unseen or random.getrandbits(64))


def expect(what: str, result: object, expected: object, within: float = 0.0) -> None:
    """Print that ``what`` is right, or raise a WrongAnswer that shows the answer.

    ``within`` is the share by which a number, or each number in a list, a dictionary or a tensor,
    may differ from what was expected. Lists, tuples, arrays and tensors of the same numbers are
    alike; a whole number may come as a float; True is not 1; infinity and nan equal themselves.
    """
    if result is ...:
        raise WrongAnswer(f"{what}: not answered yet")
    if not _same(result, expected, within):
        near = f", within {100 * within:g}%" if within else ""
        text = f"{what}: expected {_shown(expected)}{near}, but got {_shown(result)}"
        result, expected = _plain(result), _plain(expected)
        if _is_tensor(expected) and _is_tensor(result) and result.shape == expected.shape:
            differences = (result.double() - expected.double()).abs()
            if (differences > 0).any():  # not only nan
                largest = differences[differences > 0].max().item()
                text += f"; two values differ by {largest:.3g}"
        raise WrongAnswer(text)
    print(f"✓ {what}")


def fits(what: str, value: object, expected: str, right: bool) -> None:
    """Print that ``what`` is as ``expected``, or raise a WrongAnswer that shows its ``value``.

    For a condition that many answers meet: ``expected`` says it in words, such as "at least 1".

    >>> fits("size", 16, "a number from 8 to 32", 8 <= 16 <= 32)
    ✓ size is a number from 8 to 32
    """
    if value is ...:
        raise WrongAnswer(f"{what}: not answered yet")
    if not right:
        raise WrongAnswer(f"{what}: expected {expected}, but got {_shown(value)}")
    print(f"✓ {what} is {expected}")


def one_of(what: str, result: object, options: str) -> None:
    """Print that a choice was made among ``options``, such as "abcd", or raise a sentence."""
    if result is ...:
        raise WrongAnswer(f"{what}: not answered yet")
    if not isinstance(result, str) or len(result) != 1 or result not in options:
        listed = ", ".join(f'"{option}"' for option in options)
        raise WrongAnswer(f"{what}: expected one of {listed}, but got {_shown(result)}")
    print(f"○ {what}: {result} was chosen; a hidden check says whether it is right")


def hidden_checks_follow() -> None:
    """Print that a ✓ is not the end: once per task, after its last check that a student sees."""
    print("… hidden checks follow when your work is graded")


def answer(name: str, value: object, kind: object) -> object:
    """Return ``value``, the answer called ``name``, or raise a sentence if it is of another kind.

    A kind is ``float`` (any number), ``int`` (any whole number), another class, a list of kinds (a
    list of that length), ``[kind, ...]`` (a list of one or more), a dictionary of kinds (one with
    these keys at least), or ``{str: kind}`` (one with any names as keys). Where a list is expected,
    a tuple, an array or a tensor is welcome, and is returned as a list.
    """
    if value is ...:
        raise WrongAnswer(f"{name}: not answered yet")
    fitted = _fitted(value, kind)
    if not _is_kind(fitted, kind):
        raise WrongAnswer(f"{name}: expected {_kind_name(kind)}, but got {_shown(value)}")
    return fitted


def function(
    name: str, value: object, returns: object = object, *, in_place: bool = False
) -> Callable:
    """Return the student's function called ``name``, which then returns that kind or a sentence.

    A function that has an attribute ``in_place`` runs in another process, on copies of its
    arguments. If ``in_place`` is true, it changes the check's tensors and lists as it has changed
    the copies, so that a check sees what the student's notebook sees.
    """
    value = getattr(value, "unchecked", value)  # a check may run again
    if not callable(value):
        raise WrongAnswer(f"{name}: expected a function, but got {_shown(value)}")

    if hasattr(value, "in_place"):
        value.in_place = in_place

    @wraps(value)
    def checked(*arguments: object) -> object:
        result = value(*arguments)
        return result if returns is object else answer(f"what {name} returns", result, returns)

    checked.unchecked = value
    return checked


def source(name: str, value: object) -> str:
    """The text of the student's function called ``name``, which can be run elsewhere."""
    if not callable(value):
        raise WrongAnswer(f"{name}: expected a function, but got {_shown(value)}")
    try:
        # A function that runs in another process knows its text there.
        text = value.source() if hasattr(value, "source") else inspect.getsource(value)
    except (OSError, TypeError):
        raise WrongAnswer(
            f"{name}: expected a function that is written in your answer's cell, but its text was "
            "not found; write it there with def, and run the cell again"
        ) from None
    return textwrap.dedent(text)


def apart(*functions: Callable) -> list[Callable]:
    """The course's ``functions``, for a check to run a student's text with.

    The grader runs them in a new process, in which none of the student's cells ran: these could
    have changed what the functions find. In a notebook, they run where they are.
    """
    return elsewhere(functions)


elsewhere: Callable[[Sequence[Callable]], list[Callable]] = list  # what the grader replaces


def _fitted(value: object, kind: object) -> object:
    """``value`` in Python's own types, with lists wherever the kind is a list."""
    value = _plain(value)
    if kind is list:
        return _listed(value)
    if isinstance(kind, list):
        value = _listed(value)
        kinds = kind[:1] * len(value) if isinstance(value, list) and kind[-1] is ... else kind
        if isinstance(value, list) and len(value) == len(kinds):
            return list(map(_fitted, value, kinds))
    elif isinstance(kind, dict) and isinstance(value, dict):
        other = kind.get(str, object)
        return {key: _fitted(item, kind.get(key, other)) for key, item in value.items()}
    return value


def _is_kind(value: object, kind: object) -> bool:
    """Whether ``value``, which is fitted, is of the kind, as ``answer`` describes kinds."""
    if kind in (int, float):
        number = isinstance(value, Real) and not isinstance(value, bool)
        whole = isinstance(value, Integral) or (number and float(value).is_integer())
        return number and (kind is float or whole)
    if isinstance(kind, list):
        if not isinstance(value, list) or not value:
            return False
        kinds = kind[:1] * len(value) if kind[-1] is ... else kind
        return len(kinds) == len(value) and all(map(_is_kind, value, kinds))
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            return False
        kinds = dict.fromkeys(value, kind[str]) if str in kind else kind
        named = all(isinstance(key, str) and key in value for key in kinds)
        return named and all(_is_kind(value[key], kinds[key]) for key in kinds)
    return isinstance(value, kind)


def _kind_name(kind: object) -> str:
    """A kind in words, such as "a list of 7, each a number"."""
    names = {float: "a number", int: "a whole number", str: "a string", dict: "a dictionary"}
    if isinstance(kind, list):
        parts = [_kind_name(part) for part in kind if part is not ...]
        size = "" if kind[-1] is ... else f" of {len(kind)}"
        same = len(set(parts)) == 1
        return f"a list{size}, each {parts[0]}" if same else f"a list{size}: {', '.join(parts)}"
    if isinstance(kind, dict):
        parts = [f"{key!r}: {_kind_name(part)}" for key, part in kind.items()]
        return _kind_name(dict) if str in kind else f"a dictionary with {', '.join(parts)}"
    return names.get(kind, f"a {kind.__name__}")


def patiently(check: Callable[[], None], times: int = 3) -> None:
    """Run a ``check`` of something timed, again if it fails: a busy computer can spoil a time.

    Only the last run prints what it found.
    """
    for go in range(1, min(times, most_goes) + 1):
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                check()
        except AssertionError:
            if go < min(times, most_goes):
                continue
            print(printed.getvalue(), end="")
            raise
        print(printed.getvalue(), end="")
        return


def faster(
    what: str,
    fast: Callable,
    slow: Callable,
    inputs: Sequence[tuple],
    at_least: float = 2.0,
    within: float = 1e-4,
) -> None:
    """Print that ``fast`` gives what ``slow`` gives, and is ``at_least`` times as fast.

    Each of the ``inputs``, the arguments of one call, is given to both, in random order; the first
    is a warm-up. What counts is the median of the ratios, at the best of three goes. The results
    must be small, because fetching them is timed too, and a call of ``slow`` should take 0.1 s or
    more.
    """
    for _ in range(min(3, most_goes)):
        ratio = median([_ratio(what, fast, slow, given, within) for given in inputs][1:])
        if ratio >= at_least:
            print(f"✓ {what}: the same result, {units.ratio(ratio)} as fast")
            return
    came = units.ratio(ratio)
    raise WrongAnswer(f"{what}: expected at least {at_least:g} times as fast, but got {came}")


def _ratio(what: str, fast: Callable, slow: Callable, given: tuple, within: float) -> float:
    """How many times as fast ``fast`` is for one input; a WrongAnswer if it differs."""
    # A function in another process may first bring the arguments there, which is not timed, and
    # whatever that process has started must not slow down the other function.
    fast = getattr(fast, "unchecked", fast)
    alone = {"fast": nullcontext, "slow": getattr(fast, "paused", nullcontext)}
    call = fast.prepared(*given) if hasattr(fast, "prepared") else partial(fast, *given)
    calls = {"fast": call, "slow": partial(slow, *given)}
    results, seconds = {}, {}
    for name in random.sample(sorted(calls), 2):
        with alone[name]():
            start = time.perf_counter()
            results[name] = calls[name]()
            seconds[name] = time.perf_counter() - start
    if not _same(results["fast"], results["slow"], within):
        raise WrongAnswer(
            f"{what}: a different result, so its speed does not count: expected "
            f"{_shown(results['slow'])}, but got {_shown(results['fast'])}"
        )
    return seconds["slow"] / seconds["fast"]


def _plain(value: object) -> object:
    """Tuples as lists, arrays as tensors, arrays and tensors without axes as Python's numbers."""
    if isinstance(value, tuple):
        return list(value)
    if getattr(value, "ndim", 1) == 0:
        return value.item()
    if "torch" in sys.modules and _is_array(value):
        return sys.modules["torch"].as_tensor(value.copy())
    return value.detach().cpu() if _is_tensor(value) else value


def _listed(value: object) -> object:
    """A plain value; an array or a tensor as a list of its rows or of its numbers."""
    if _is_array(value) or _is_tensor(value):
        return list(map(_plain, value))
    return value


def _is_array(value: object) -> bool:
    """Whether it is an array of NumPy's that holds numbers."""
    return type(value).__name__ == "ndarray" and value.dtype.kind in "biuf"


def _is_tensor(value: object) -> bool:
    """Whether it is torch's; a set that does without torch need not wait for its import."""
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def _same(result: object, expected: object, within: float) -> bool:
    result, expected = _plain(result), _plain(expected)
    if isinstance(expected, bool) or isinstance(result, bool) or expected is None:
        return type(result) is type(expected) and result == expected
    if isinstance(expected, Real):
        return isinstance(result, Real) and _near(result, expected, within)
    if _is_tensor(expected):
        if not _is_tensor(result) or result.shape != expected.shape:
            return False
        if not (result.is_floating_point() or expected.is_floating_point()):
            return result.equal(expected)
        sizes = expected.double().abs()
        sizes = sizes[sizes.isfinite()]
        worst = within * sizes.max().item() if sizes.numel() else 0.0
        return result.double().allclose(expected.double(), rtol=0, atol=worst, equal_nan=True)
    if isinstance(expected, list):
        result = _listed(result)
        alike = isinstance(result, list) and len(result) == len(expected)
        return alike and all(map(_same, result, expected, repeat(within)))
    if isinstance(expected, dict):
        alike = isinstance(result, dict) and result.keys() == expected.keys()
        return alike and all(
            isinstance(key, str | Integral) and _same(result[key], expected[key], within)
            for key in expected
        )
    return isinstance(result, str) and result == expected


def _near(result: Real, expected: Real, within: float) -> bool:
    """Whether two numbers differ by at most this share; only the same infinity is near one."""
    try:
        if math.isfinite(result) and math.isfinite(expected):
            return bool(abs(result - expected) <= within * abs(expected))
        return result == expected or (math.isnan(result) and math.isnan(expected))
    except OverflowError:  # a whole number larger than every float
        return result == expected


def _shown(value: object) -> str:
    """``value`` in one line, cut if it is long."""
    if value is ...:
        return "..."
    value = _without_numpy(value)
    if (_is_tensor(value) or _is_array(value)) and math.prod(value.shape) > 6:
        kind = "a tensor" if _is_tensor(value) else "an array"
        return f"{kind} of shape {tuple(value.shape)}, sum {value.sum().item():.6g}"
    if type(value).__name__ in ("Series", "DataFrame"):
        return f"a {type(value).__name__} of pandas"
    if isinstance(value, Integral) and not isinstance(value, bool):
        text = f"{int(value):,}"
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = " ".join(line.strip() for line in repr(value).splitlines())
    return text if len(text) <= 160 else f"{text[:160]}…"


def _without_numpy(value: object) -> object:
    """``value`` with Python's numbers, also in containers: "2.5", not "np.float64(2.5)"."""
    if type(value) in (list, tuple):
        return type(value)(map(_without_numpy, value))
    if type(value) is dict:
        return {key: _without_numpy(item) for key, item in value.items()}
    return value.item() if getattr(value, "ndim", None) == 0 else value
