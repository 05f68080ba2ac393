"""``claim``: a sentence of the text, confirmed by what was just measured."""

from numbers import Integral, Real
from pathlib import Path

from helpers import units

# What tools/lab.py leaves beside the lessons of a reader's own copy.
LEDGER = ".course.json"


class ClaimError(AssertionError):
    """The measurement did not bear out the claim."""


def claim(text: str, holds: bool, **measured: object) -> None:
    """Print ``text`` with what was measured if it ``holds``, or raise ``ClaimError``.

    ``measured`` names the values that the claim rests on, at least one. A float is a measurement
    and is printed with the ``~`` mark; integers and strings are exact and printed as they are.
    In a reader's own copy of the course a claim on a measurement that fails is said, in amber, and
    the notebook goes on: another computer may differ. An exact claim that fails always raises.

    >>> claim("im2col beats the loops by 10x", 152.0 > 10, ratio=152.0)
    ✓ im2col beats the loops by 10x  (ratio = ~152)
    """
    if not isinstance(text, str) or not text:
        raise TypeError(f"text must be a sentence, but {text!r} came")
    if not measured:
        raise TypeError(f"claim {text!r} must show what it rests on, such as ratio=a / b")
    if type(holds).__name__ != "bool":  # numpy's own is welcome
        raise TypeError(f"holds must be True or False, but a {type(holds).__name__} came")
    evidence = ", ".join(f"{key} = {_shown(value)}" for key, value in measured.items())
    if holds:
        print(f"✓ {text}  ({evidence})")
        return
    failed = f"not confirmed on this run: {text}  ({evidence})"
    exact = not any(_is_float(value) for value in measured.values())
    if exact or not Path(LEDGER).exists():
        raise ClaimError(failed)
    print(f"\x1b[1;33m△ {failed}\x1b[0m")


def _is_float(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, Integral)


def _shown(value: object) -> str:
    if isinstance(value, Integral):  # bool is one too
        return str(value) if isinstance(value, bool) else f"{int(value):,}"
    if _is_float(value):
        return units.number(float(value))
    return str(value)
