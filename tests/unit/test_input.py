import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from helpers._input import each, not_negative, number, positive, whole


@pytest.mark.parametrize(
    ("check", "value", "error", "message"),
    [
        (whole, 2.0, TypeError, "n must be a whole number, but 2.0 came"),
        (whole, True, TypeError, "n must be a whole number, but True came"),
        (whole, 0, ValueError, "n must be a whole number, at least 1, but 0 came"),
        (number, "3", TypeError, "n must be a number, but a str came: '3'"),
        (number, math.inf, ValueError, "n must be a number, finite, but inf came"),
        (not_negative, math.nan, ValueError, "n must be a number, finite and not negative, but na"),
        (not_negative, -0.1, ValueError, "n must be a number, finite and not negative, but -0.1"),
        (positive, 0, ValueError, "n must be a number, finite and positive, but 0 came"),
        (lambda *it: each(number, *it, "x"), (), ValueError, "n must hold at least one value, but"),
        (lambda *it: each(number, *it, "x"), {"b": "c"}, TypeError, r"n\['b'\] must be x, but"),
        (lambda *it: each(positive, *it, "x"), [1, 0], ValueError, r"n\[1\] must be x, .* po"),
    ],
)
def test_wrong_input_is_named(check: Callable, value: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        check("n", value)


def test_valid_input_is_returned_as_plain_python() -> None:
    assert type(whole("n", np.int64(7))) is int
    assert type(positive("n", np.float32(1))) is float
    assert (number("n", -2), not_negative("n", 0), whole("n", 0, least=0)) == (-2, 0, 0)
    for values in ((1, 2.5), {"a": 1, "b": 2.5}, np.array([1, 2.5]), torch.tensor([1, 2.5])):
        assert each(positive, "values", values, "a time") == [1.0, 2.5]
