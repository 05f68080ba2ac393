"""Printing what was measured.

Every value that is measured when a cell runs is printed after a tilde: ``~1.84 ms``. The mark
tells the reader that theirs will differ, and tells the tests to compare all but the number and its
SI prefix. Exact values (counts, shapes, sizes) are printed with plain f-strings, without a mark.
Units are decimal: 1 kB is 1,000 bytes. A value that is no number is refused with a ``TypeError``;
one that is not finite, or is negative where it cannot be, with a ``ValueError``.
"""

import math
from numbers import Integral

from helpers import _input

NAME_MARK = "\u2060"  # Unicode's word joiner: no width, no ink
_PREFIXES = {-4: "p", -3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P"}


def seconds(value: float) -> str:
    """A duration of ``value`` seconds, as ``~1.84 ms``."""
    return _with_prefix(_input.not_negative("value", value, what="a duration in seconds"), "s")


def size(value: float) -> str:
    """A measured size of ``value`` bytes, as ``~16.4 MB``."""
    return _with_prefix(_input.not_negative("value", value, what="a size in bytes"), "B")


def rate(value: float, unit: str) -> str:
    """``value`` of ``unit`` a second: ``~86.2 GFLOP/s``, ``~35.1 GB/s``, ``~12,300 images/s``.

    FLOP, MAC and B (bytes) take an SI prefix, things that are counted do not.
    """
    checked = _input.not_negative("value", value, what=f"a rate in {unit}/s")
    if unit in ("FLOP", "MAC", "B"):
        return _with_prefix(checked, f"{unit}/s")
    return f"~{_three_digits(checked)} {unit}/s"


def ratio(value: float) -> str:
    """How many times, as ``~12.3×``."""
    return f"~{_three_digits(_input.not_negative('value', value, what='a ratio'))}×"


def percent(fraction: float) -> str:
    """A share given as a fraction, 0.47 as ``~47.0 %``; below 0.001 % it is shown as 0.

    It may be negative, as a difference of two measurements can be.
    """
    magnitude = abs(_input.number("fraction", fraction))
    shown = _three_digits(100 * magnitude if magnitude >= 1e-5 else 0)
    return f"~{'-' if fraction < 0 and magnitude >= 1e-5 else ''}{shown} %"


def number(value: float) -> str:
    """A plain number that depends on the machine, 2 as ``~2`` and 3.14159 as ``~3.14``.

    It may be negative.
    """
    magnitude = abs(_input.number("value", value))
    if isinstance(value, Integral):
        return f"~{int(value):,}"
    return f"~{'-' if value < 0 else ''}{_three_digits(magnitude)}"


def name(text: object) -> str:
    """A name that depends on the machine, each line between two marks that only the tests see."""
    return "\n".join(f"{NAME_MARK}{line}{NAME_MARK}" for line in str(text).splitlines() or [""])


def _with_prefix(value: float, unit: str) -> str:
    # 999.6 µs would print as "1000 µs": take the prefix of the value after rounding.
    rounded = float(f"{value:.3g}")
    group = min(max(math.floor(math.log10(rounded) / 3), -4), 5) if rounded else 0
    return f"~{_three_digits(value / 1000.0**group)} {_PREFIXES[group]}{unit}"


def _three_digits(value: float) -> str:
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    if not 1e-4 <= rounded < 1e15:
        return f"{value:.2e}"
    decimals = max(0, 2 - math.floor(math.log10(rounded)))
    return f"{rounded:,.{decimals}f}"
