"""``claim``: a sentence of the text, confirmed by what was just measured."""

from numbers import Integral, Real

from helpers import units


class ClaimError(AssertionError):
    """The measurement did not bear out the claim."""


def claim(text: str, holds: bool, **measured: object) -> None:
    """Print ``text`` with what was measured if it ``holds``, or raise ``ClaimError``.

    ``measured`` names the values that the claim rests on, at least one. A float is a measurement
    and is printed with the ``~`` mark; integers and strings are exact and printed as they are.

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
    if not holds:
        raise ClaimError(f"not confirmed on this run: {text}  ({evidence})")
    print(f"✓ {text}  ({evidence})")


def _shown(value: object) -> str:
    if isinstance(value, Integral):  # bool is one too
        return str(value) if isinstance(value, bool) else f"{int(value):,}"
    if isinstance(value, Real):
        return units.number(float(value))
    return str(value)
