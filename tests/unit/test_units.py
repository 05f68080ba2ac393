from collections.abc import Callable

import pytest

from helpers import units


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (units.seconds(1.84e-3), "~1.84 ms"),
        (units.seconds(9.996e-4), "~1.00 ms"),
        (units.seconds(9.994e-4), "~999 µs"),
        (units.seconds(59.99), "~60.0 s"),
        (units.seconds(0.0), "~0 s"),
        (units.size(16_400_000.0), "~16.4 MB"),
        (units.rate(8.62e10, "FLOP"), "~86.2 GFLOP/s"),
        (units.rate(3.5e10, "B"), "~35.0 GB/s"),
        (units.rate(12_345.0, "images"), "~12,300 images/s"),
        (units.ratio(1234.5), "~1,230×"),
        (units.ratio(0.0123), "~0.0123×"),
        (units.percent(0.4712), "~47.1 %"),
        (units.number(2), "~2"),
        (units.number(-2.5), "~-2.50"),
        (units.number(3.81e-6), "~3.81e-06"),
        (units.name("AMD EPYC"), "~[AMD EPYC]"),
    ],
)
def test_printed(printed: str, expected: str) -> None:
    assert printed == expected


@pytest.mark.parametrize("function", [units.seconds, units.size, units.ratio, units.percent])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1.0, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("3", TypeError),
        (None, TypeError),
        (True, TypeError),
    ],
)
def test_refused(function: Callable, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"(value|fraction) must be .*came") as raised:
        function(value)
    assert str(value) in str(raised.value)


def test_a_name_is_a_string() -> None:
    with pytest.raises(TypeError, match="text must be a string, but a int came: 3"):
        units.name(3)
