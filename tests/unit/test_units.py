from collections.abc import Callable

import pytest

from helpers import units

PREFIXES = ["p", "n", "µ", "m", "", "k", "M", "G", "T", "P"]


@pytest.mark.parametrize(("step", "prefix"), list(enumerate(PREFIXES, -4)))
def test_every_prefix(step: int, prefix: str) -> None:
    assert units.seconds(1.5 * 1000.0**step) == f"~1.50 {prefix}s"
    assert units.size(999 * 1000.0**step) == f"~999 {prefix}B"
    assert units.rate(20 * 1000.0**step, "FLOP") == f"~20.0 {prefix}FLOP/s"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (units.seconds(9.996e-4), "~1.00 ms"),
        (units.seconds(9.994e-4), "~999 µs"),
        (units.seconds(59.99), "~60.0 s"),
        (units.seconds(0.0), "~0 s"),
        (units.seconds(2.5e-15), "~0.00250 ps"),
        (units.size(3e18), "~3,000 PB"),
        (units.size(0), "~0 B"),
        (units.rate(3.5e10, "B"), "~35.0 GB/s"),
        (units.rate(3.5e10, "MAC"), "~35.0 GMAC/s"),
        (units.rate(12_345.0, "images"), "~12,300 images/s"),
        (units.ratio(1234.5), "~1,230×"),
        (units.ratio(0.0123), "~0.0123×"),
        (units.ratio(9.996), "~10.0×"),
        (units.percent(0.4712), "~47.1 %"),
        (units.number(2), "~2"),
        (units.number(-12345), "~-12,345"),
        (units.number(-2.5), "~-2.50"),
        (units.number(0.0), "~0"),
        (units.number(-0.0), "~0"),
        (units.number(0.0001), "~0.000100"),
        (units.number(0.00009994), "~9.99e-05"),
        (units.number(1e15), "~1.00e+15"),
        (units.number(9.99e14), "~999,000,000,000,000"),
        (units.name("AMD EPYC"), "~[AMD EPYC]"),
    ],
)
def test_printed(printed: str, expected: str) -> None:
    assert printed == expected


def a_rate(value: float) -> str:
    return units.rate(value, "images")


@pytest.mark.parametrize(
    "function", [units.seconds, units.size, a_rate, units.ratio, units.percent, units.number]
)
@pytest.mark.parametrize(
    ("value", "error"),
    [(-1.0, ValueError), (float("nan"), ValueError), (float("inf"), ValueError), ("3", TypeError)],
)
def test_refused(function: Callable, value: object, error: type[Exception]) -> None:
    if function is units.number and value == -1.0:
        assert function(value) == "~-1.00"
        return
    with pytest.raises(error, match=f"(value|fraction) must be .*{value}.*"):
        function(value)


def test_a_name_is_a_string() -> None:
    with pytest.raises(TypeError, match="text must be a string, but a int came: 3"):
        units.name(3)
