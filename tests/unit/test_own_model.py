"""A model of the reader's own is called right, taken apart right, or refused in a sentence."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from helpers import own_model

LINE, X = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.rand(2, 3)


def refusal(call) -> str:
    """The one sentence in which ``call`` refuses: what was expected, what came, what to do."""
    with pytest.raises(own_model.Refused) as error:
        call()
    sentence = str(error.value)
    assert re.fullmatch(r"[^\n]+ must [^\n]+, but [^\n]+: [^\n]{20,}", sentence)
    return sentence


def test_a_function_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(build=lambda: (LINE, X), number=3, asks=lambda size: size)
    module.alone, module.broken = lambda: LINE, lambda: {}["x"]
    monkeypatch.setitem(sys.modules, "mine", module)
    assert own_model.load("mine:build") == (LINE, X)
    for name, came in {
        "": "MODEL must be package.module:function, but nothing came",
        "mine:build()": "MODEL must be package.module:function, but 'mine:build()' came",
        "nowhere:build": "but ModuleNotFoundError (No module named 'nowhere') came",
        "mine:built": "but AttributeError",
        "mine:number": "but TypeError",
        "mine:asks": "mine:asks must be a function that can be called without arguments, but TypeE",
        "mine:broken": "but KeyError ('x') came",
        "mine:alone": "mine:alone must return a model and an example, but a Sequential came",
    }.items():
        assert came in refusal(lambda name=name: own_model.load(name))
    assert f"this is {Path.cwd()}" in refusal(lambda: own_model.load("nowhere:build"))


class Adds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.weight = nn.Linear(2, 2, bias=False), nn.Parameter(torch.ones(3))

    def forward(self, a: torch.Tensor, b: torch.Tensor, twice: bool = False) -> dict:
        if self.training or torch.is_grad_enabled():
            raise ValueError("not for training.\nSee the manual")
        return {"sum": [self.first(a) + (self.first(b) if twice else b)]}


def test_an_example_is_one_argument_or_several_or_by_name() -> None:
    pair = torch.ones(2), torch.ones(2)
    by_name = {"b": pair[0], "a": pair[1]}
    assert own_model.arguments(LINE, X) == ((X,), {})
    assert own_model.arguments(Adds(), pair) == (pair, {})
    assert own_model.arguments(Adds(), by_name) == ((), by_name)


META = nn.Linear(3, 4, device="meta")
WRITTEN = nn.Sequential(torch.jit.ScriptModule())
SPARSE = nn.Sequential(nn.Linear(3, 4))
SPARSE.register_buffer("mask", torch.eye(3).to_sparse())
with torch.inference_mode():
    INFERENCE = torch.rand(2, 3)


@dataclass
class Batch:
    images: torch.Tensor


@pytest.mark.parametrize(
    ("model", "example", "sentence"),
    [
        (LINE, X.double(), "model must take the example, but (2, 3) float64 came, and RuntimeEr"),
        (nn.Linear, X, "model must be an nn.Module, but the class Linear came"),
        (WRITTEN, X, "model must be one that can be watched inside, but a ScriptModule came"),
        (META, X, "model and example must be on the CPU or on a CUDA GPU, but a tensor on meta"),
        (SPARSE, X, "must hold ordinary tensors, but one of kind sparse_coo came"),
        (LINE, INFERENCE, "must hold ordinary tensors, but one of kind inference came"),
        (LINE, [Batch(X)], "example must hold its tensors in tuples, lists and dicts, where the"),
    ],
)
def test_what_does_not_fit_is_refused(model: object, example: object, sentence: str) -> None:
    assert sentence in refusal(lambda: own_model.arguments(model, example))


def test_each_call_of_a_module_has_a_row_with_its_own_part() -> None:
    clock = iter([0, 10, 13, 20, 25, 100])  # Adds begins, first twice begins and ends, Adds ends
    pair, model = (torch.ones(2), torch.ones(2)), Adds().eval()
    with torch.no_grad():
        rows = own_model.by_module(model, pair, {"twice": True}, lambda: next(clock))
    assert list(rows.index) == ["first", "first (2)", "the model"]
    assert list(rows.own) == [3, 5, 92]
    assert list(rows.kind) == ["Linear", "Linear", "Adds"]
    assert list(rows.gives) == 3 * ["(2,) float32"]
    assert list(rows.leaf) == [True, True, False]
    assert list(rows.bytes) == [2 * 8 + 16, 2 * 8 + 16, 3 * 8 + 12]


def test_of_an_embedding_only_what_is_looked_up_moves() -> None:
    for module in (nn.Embedding(100, 4), nn.EmbeddingBag(100, 4)):
        rows = own_model.by_module(module, (torch.zeros(2, 3, dtype=torch.int64),), {}, lambda: 0)
        assert rows.bytes["the model"] == 6 * 8 + module(torch.zeros(2, 3).long()).nbytes


def test_no_hook_stays_even_after_an_error() -> None:
    model = Adds()
    with pytest.raises(ValueError, match="not for training"):
        own_model.by_module(model, (X, X), {}, lambda: 0)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
