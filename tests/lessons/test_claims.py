"""A claim is refused when a conjunct of it could not have been false, and only then."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.lessons.claims import complaints


class Model:
    calls = 3
    grad = None


def measure(f: object) -> float:
    return 2.0


measure.__module__ = "__main__"  # as a function of a lesson

SCOPE = {
    "np": np, "torch": torch, "math": math, "measure": measure, "Model": Model, "ok": True,
    "a": 3.0, "n": 2, "b": [1.0, 2.0], "counts": {"x": 3, "y": 1}, "flags": [True],
    "t": torch.arange(1.0, 5.0), "array": np.ones(3), "model": Model(), "rows": [Model()],
    "text": "it works",
    "table": pd.DataFrame({"calls": [3, 1]}, index=["x", "y"]), "path": Path("/"), "none": [],
}  # fmt: skip


@pytest.mark.parametrize(
    "condition",
    [
        "all([])",
        "bool(1)",
        "len(b) >= 0",
        "all(v == v for v in b)",
        "(a > 1 or not a > 1) and a < 5",
        "True",
        "1 < 2",
        "len('ab') == 2",
        "math.sqrt(4) == 2",
        "n >= 0",
        "a > 1 and n >= 0",
        "0 <= n < 5",
        "not (a > 5 or len(b) < 0)",
        "all([a > 1, n >= 0])",
        "(a > 1) & (n >= 0)",
        "abs(a) >= 0",
        "max(b) >= min(b)",
        "max(b) >= b[0]",
        "t.numel() >= 0",
        "table['calls'].max() >= table['calls'].min()",
        "array is array",
        "model is not None or model is None",
        "a < 0",  # not true here
        "unknown > 1",
    ],
)
def test_a_conjunct_that_cannot_be_false_is_refused(condition: str) -> None:
    (complaint,) = complaints(f"claim('so', {condition}, a=a)", SCOPE)
    assert complaint.startswith("claim 'so': ")


@pytest.mark.parametrize("condition", ["ok", "not not ok", "model.ok", "flags[0]", "a > 1 and ok"])
def test_a_boolean_computed_elsewhere_is_refused(condition: str) -> None:
    model = Model()
    model.ok = True
    (complaint,) = complaints(f"claim('so', {condition}, a=a)", {**SCOPE, "model": model})
    assert "rests on a boolean computed elsewhere: write the comparison" in complaint


@pytest.mark.parametrize(
    "condition", ["all(flags)", "ok == True", "sum(flags) == 1", "int(ok) == 1"]
)
def test_a_boolean_is_not_changed(condition: str) -> None:
    (complaint,) = complaints(f"claim('so', {condition}, a=a)", SCOPE)
    assert "nothing in it was measured" in complaint


@pytest.mark.parametrize(
    "condition",
    [
        "a > 1",
        "0 < a < 5",
        "a > 1 and max(b) < 5 and n == 2",
        "a > 1 or n > 1",
        "not (a > 5 or n > 5)",
        "all(v < 5 for v in b)",
        "any(v > 1 for v in b)",
        "sum(v > 5 for v in b) == 0",
        "sorted(b) == b",
        "b[0] < b[1]",
        "len(b) == 2",
        "counts['x'] > 2 * counts['y']",
        "counts == {'x': 3, 'y': 1}",
        "set(counts) == {'x', 'y'}",
        "'works' in text",
        "'fails' not in text",
        "'z' not in counts",
        "not none",
        "math.isclose(a, 3)",
        "math.isfinite(a)",
        "np.allclose(array, 1)",
        "array.sum() == 3",
        "torch.equal(t, torch.arange(1.0, 5.0))",
        "(t >= 0).all()",
        "t.shape == (4,)",
        "t.dtype == torch.float32",
        "t.is_contiguous()",
        "t.grad_fn is None",
        "model.calls == 3",
        "model.grad is None",
        "rows[0].calls == 3",
        "isinstance(model, Model)",
        "measure(len) < 5",
        "path.exists()",
        "table.loc['x', 'calls'] > 2 * table.loc['y', 'calls']",
        "list(table.index) == ['x', 'y']",
        "table['calls'].sum() == 4",
        "len(table) == 2",
    ],
)
def test_a_claim_that_can_fail_is_accepted(condition: str) -> None:
    assert list(complaints(f"claim('so', {condition}, a=a)", SCOPE)) == []
