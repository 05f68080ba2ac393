"""A student's values cross between processes as data, and nothing else does."""

import json

import numpy as np
import pytest
import torch

from helpers.exercises import expect
from tools import values

DATA = [
    *(None, True, 3, 2.5, float("inf"), "ö", [1, [2, "x"]], {"a": 1, 2: [None]}, {}, ...),
    *(torch.ones(2, 3), torch.zeros(0, 2), torch.tensor([True]), torch.tensor(3)),
    *(np.arange(3)[::-1], np.float32(2), np.bool_(True), {np.int64(1): (2, None)}),
    *({"float": "x"}, {"tensor": 1}),
]


def test_data_comes_back_as_it_was() -> None:
    for value in DATA:
        back = values.unpack(json.loads(json.dumps(values.pack(value), allow_nan=False)))
        if isinstance(value, float | type(...)):
            assert back == value
        else:
            expect("the notebook's check", value, value)
            expect("the grader's check", back, value)
        if isinstance(value, torch.Tensor):
            assert back.dtype == value.dtype


NOT_DATA = [
    (len, "got a builtin_function_or_method; expected numbers"),
    ({1.5: 2}, "keys are neither strings nor whole numbers"),
    ({1, 2}, "got a set; expected numbers"),
    (torch.zeros(5_000_000), "got a tensor of 20,000,000 bytes"),
    (torch.zeros(2, dtype=torch.complex64), "got a tensor of complex64"),
    ("x" * 17_000_000, "a string of 17,000,000 characters"),
    (np.array(["a"]), "got a tensor of <U1; expected numbers"),
]
FORGED = [
    {"remote": 0, "busy": False},
    {"tensor": "AAAAAAAAAAA=", "shape": [1], "dtype": "complex64"},
    {"tensor": "AAAAAAAAAAA=", "shape": [1], "dtype": "O"},
    {"tensor": "!!", "shape": [1], "dtype": "int8"},
    {"tensor": "AAAA", "shape": [9], "dtype": "int8"},
    {"tensor": "", "shape": [10**12], "dtype": "float32"},
]


def test_what_is_not_data_is_refused() -> None:
    for value, sentence in NOT_DATA:
        with pytest.raises(ValueError, match=sentence):
            values.pack(value)
        if isinstance(value, dict | set):
            with pytest.raises(AssertionError):  # the notebook's check agrees
                expect("it", value, value)
    for packed in FORGED:
        with pytest.raises((ValueError, TypeError)):
            values.unpack(packed)
