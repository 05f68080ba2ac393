"""The one place that checks the numbers that the helpers are given.

Wrong input raises an error that names the argument, says what came and what was expected: a
``TypeError`` for the wrong kind of thing, a ``ValueError`` for the wrong value. Valid input is
returned as plain Python.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Sized
from numbers import Integral, Real

_WITHIN = {  # nan is within none of them
    "finite": math.isfinite,
    "finite and not negative": lambda value: 0 <= value < math.inf,
    "finite and positive": lambda value: 0 < value < math.inf,
}


def whole(argument: str, value: object, least: int = 1, what: str = "a whole number") -> int:
    """A whole number of at least ``least``, but not ``True``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{argument} must be {what}, but got {value!r}")
    if value < least:
        raise ValueError(f"{argument} must be {what}, at least {least}, but got {value}")
    return int(value)


def number(argument: str, value: object, what: str = "a number", limits: str = "finite") -> float:
    """A finite number, but not ``True``."""
    if isinstance(value, bool) or not isinstance(value, Real):
        kind = type(value).__name__
        raise TypeError(f"{argument} must be {what}, but got a {kind}: {value!r}")
    if not _WITHIN[limits](value):
        raise ValueError(f"{argument} must be {what}, {limits}, but got {value}")
    return float(value)


def not_negative(argument: str, value: object, what: str = "a number") -> float:
    """A finite number, zero or more."""
    return number(argument, value, what, "finite and not negative")


def positive(argument: str, value: object, what: str = "a number") -> float:
    """A finite number above zero."""
    return number(argument, value, what, "finite and positive")


def each(check: Callable, argument: str, values: Sequence | Mapping, what: str) -> list[float]:
    """At least one number, each as ``check`` wants it; of a mapping its values."""
    filled(argument, values, "value")
    values = values.tolist() if hasattr(values, "tolist") else values  # arrays and tensors
    pairs = values.items() if isinstance(values, Mapping) else enumerate(values)
    return [check(f"{argument}[{key!r}]", value, what) for key, value in pairs]


def filled(argument: str, values: Sized, what: str) -> None:
    """A container that holds at least one ``what``."""
    if len(values) == 0:
        raise ValueError(f"{argument} must hold at least one {what}, but got none")
