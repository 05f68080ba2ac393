import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from helpers._input import each, filled, not_negative, number, positive, whole


@pytest.mark.parametrize(
    ("check", "value", "error", "message"),
    [
        (whole, 2.0, TypeError, "n must be a whole number, but 2.0 came"),
        (whole, True, TypeError, "n must be a whole number, but True came"),
        (whole, 0, ValueError, "n must be a whole number, at least 1, but 0 came"),
        (lambda *it: whole(*it, 5, "a line"), 4, ValueError, "n must be a line, at least 5, b"),
        (number, "3", TypeError, "n must be a number, but a str came: '3'"),
        (number, True, TypeError, "n must be a number, but a bool came: True"),
        (number, math.inf, ValueError, "n must be a number, finite, but inf came"),
        (not_negative, math.nan, ValueError, "n must be a number, finite and not negative, but na"),
        (not_negative, -0.1, ValueError, "n must be a number, finite and not negative, but -0.1"),
        (not_negative, None, TypeError, "n must be a number, but a NoneType came"),
        (positive, 0, ValueError, "n must be a number, finite and positive, but 0 came"),
        (positive, math.nan, ValueError, "n must be a number, finite and positive, but nan came"),
        (lambda *it: filled(*it, "bar"), [], ValueError, "n must hold at least one bar, but none"),
        (lambda *it: each(number, *it, "x"), (), ValueError, "n must hold at least one value, but"),
        (lambda *it: each(number, *it, "x"), {"b": "c"}, TypeError, r"n\['b'\] must be x, but"),
        (lambda *it: each(positive, *it, "x"), [1, 0], ValueError, r"n\[1\] must be x, .* po"),
    ],
)
def test_wrong_input_is_named(check: Callable, value: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        check("n", value)


RIGHT = [
    (whole, 1),
    (whole, np.int64(7)),
    (number, -2),
    (not_negative, 0),
    (positive, np.float32(1)),
]


@pytest.mark.parametrize(("check", "value"), RIGHT)
def test_what_is_right_comes_back_as_plain_python(check: Callable, value: float) -> None:
    assert check("n", value) == value
    assert type(check("n", value)) is (int if check is whole else float)


@pytest.mark.parametrize(
    "values", [[1, 2.5], (1, 2.5), {"a": 1, "b": 2.5}, np.array([1, 2.5]), torch.tensor([1, 2.5])]
)
def test_each_takes_sequences_and_mappings(values: object) -> None:
    assert each(positive, "values", values, "a time") == [1.0, 2.5]
    assert whole("n", 0, least=0) == 0
