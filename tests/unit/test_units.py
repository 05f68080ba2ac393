from collections.abc import Callable

import pytest

from helpers import units


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (units.seconds(9.996e-4), "~1.00 ms"),
        (units.seconds(9.994e-4), "~999 µs"),
        (units.seconds(59.99), "~60.0 s"),
        (units.seconds(0.0), "~0 s"),
        (units.seconds(2.5e-15), "~0.00250 ps"),
        (units.size(3e18), "~3,000 PB"),
        (units.rate(3.5e10, "B"), "~35.0 GB/s"),
        (units.rate(3.5e10, "MAC"), "~35.0 GMAC/s"),
        (units.rate(12_345.0, "images"), "~12,300 images/s"),
        (units.ratio(1234.5), "~1,230×"),
        (units.percent(0.4712), "~47.1 %"),
        (units.percent(-0.0054), "~-0.540 %"),  # a median that moved the other way
        (units.number(2), "~2"),
        (units.number(-12345), "~-12,345"),
        (units.number(-0.0), "~0"),
        (units.number(0.0001), "~0.000100"),
        (units.number(0.00009994), "~9.99e-05"),
        (units.number(1e15), "~1.00e+15"),
        (units.name("AMD EPYC"), "\u2060AMD EPYC\u2060"),
    ],
)
def test_printed(printed: str, expected: str) -> None:
    assert printed == expected


@pytest.mark.parametrize(
    "function", [units.seconds, units.size, units.ratio, units.percent, units.number]
)
@pytest.mark.parametrize(
    ("value", "error"), [(float("nan"), ValueError), (float("inf"), ValueError), ("3", TypeError)]
)
def test_what_is_no_number_is_refused(
    function: Callable, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error, match=f"(value|fraction) must be .*{value}.*"):
        function(value)


def test_a_negative_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="value must be a duration in seconds, finite and not ne"):
        units.seconds(-1.0)
