import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from helpers import _input


@pytest.mark.parametrize(
    ("check", "value", "error", "message"),
    [
        (_input.whole, 2.0, TypeError, "n must be a whole number, but 2.0 came"),
        (_input.whole, True, TypeError, "n must be a whole number, but True came"),
        (_input.whole, 0, ValueError, "n must be a whole number, at least 1, but 0 came"),
        (_input.number, "3", TypeError, "n must be a number, but a str came: '3'"),
        (_input.number, True, TypeError, "n must be a number, but a bool came: True"),
        (_input.number, math.inf, ValueError, "n must be a number, finite, but inf came"),
        (_input.not_negative, math.nan, ValueError, "finite and not negative, but nan came"),
        (_input.not_negative, -0.1, ValueError, "finite and not negative, but -0.1 came"),
        (_input.not_negative, None, TypeError, "n must be a number, but a NoneType came"),
        (_input.positive, 0, ValueError, "n must be a number, finite and positive, but 0 came"),
        (_input.positive, math.nan, ValueError, "finite and positive, but nan came"),
    ],
)
def test_wrong_input_is_named(
    check: Callable, value: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check("n", value)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (_input.whole, 1),
        (_input.whole, np.int64(7)),
        (_input.number, -2),
        (_input.not_negative, 0),
        (_input.positive, np.float32(0.5)),
    ],
)
def test_what_is_right_comes_back_as_plain_python(check: Callable, value: float) -> None:
    assert check("n", value) == value
    assert type(check("n", value)) is (int if check is _input.whole else float)


def test_the_least_whole_number_may_be_another() -> None:
    assert _input.whole("n", 0, least=0) == 0
    with pytest.raises(ValueError, match="n must be a line, at least 5, but 4 came"):
        _input.whole("n", 4, least=5, what="a line")


@pytest.mark.parametrize(
    "values", [[1, 2.5], (1, 2.5), {"a": 1, "b": 2.5}, np.array([1, 2.5]), torch.tensor([1, 2.5])]
)
def test_each_takes_sequences_and_mappings(values: object) -> None:
    assert _input.each(_input.positive, "values", values, "a time") == [1.0, 2.5]


def test_each_names_the_one_that_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"times\['b'\] must be a time, finite and positive"):
        _input.each(_input.positive, "times", {"a": 1.0, "b": -1.0}, "a time")
    with pytest.raises(ValueError, match="times must hold at least one value, but none came"):
        _input.each(_input.positive, "times", [], "a time")
