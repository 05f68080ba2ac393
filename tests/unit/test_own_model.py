"""A model of the reader's own is called right, taken apart right, or refused in a sentence."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from helpers import own_model

LINE, X = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.rand(2, 3)


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mine")
    module.build, module.number = lambda: (LINE, X), 3
    module.alone, module.three = lambda: LINE, lambda: (LINE, X, X)
    module.asks = lambda size: size
    module.broken = lambda: {}["x"]
    monkeypatch.setitem(sys.modules, "mine", module)


def test_a_function_is_found_by_its_name(mine: None) -> None:
    assert own_model.load("mine:build") == (LINE, X)


@pytest.mark.parametrize(
    ("name", "expected", "came"),
    [
        ("", "MODEL must be package.module:function", "nothing came"),
        ("mine", "MODEL must be package.module:function", "'mine' came"),
        ("mine:build()", "MODEL must be package.module:function", "'mine:build()' came"),
        ("nowhere:build", "nowhere must be a module", "(No module named 'nowhere') came"),
        ("mine:built", "mine must hold a function built", "there is none"),
        ("mine:number", "mine must hold a function number", "there is none"),
        ("mine:asks", "mine:asks must be callable without arguments", "TypeError"),
        ("mine:broken", "mine:broken must be callable without arguments", "KeyError ('x') came"),
        ("mine:alone", "mine:alone must return a model and an example", "a Sequential came"),
        ("mine:three", "mine:three must return a model and an example", "a tuple came"),
    ],
)
def test_a_wrong_name_is_refused(name: str, expected: str, came: str, mine: None) -> None:
    refused(expected, came, lambda: own_model.load(name))


def refused(expected: str, came: str, call) -> None:
    with pytest.raises(own_model.Refused) as error:
        call()
    said = str(error.value)
    assert said.startswith(expected)
    assert f" {came}" in said.partition(", but")[2]
    assert len(said.partition(": ")[2]) > 20  # what to do
    assert "\n" not in said


def test_the_folder_is_named_where_the_module_was_looked_for() -> None:
    with pytest.raises(own_model.Refused, match=f"this is {Path.cwd()}"):
        own_model.load("nowhere:build")


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
TWO = "model and example must be on "


@pytest.mark.parametrize(
    ("model", "example", "expected", "came"),
    [
        (LINE, torch.rand(2, 5), "model must take the example", "(2, 5) float32 came, and Runti"),
        (LINE, X.double(), "model must take the example", "(2, 3) float64 came, and Runti"),
        (LINE, (X, X), "model must take the example", "(2, 3) float32, (2, 3) float32 came"),
        (nn.Module(), X, "model must take the example", "(2, 3) float32 came, and NotImpl"),
        (LINE, "x", "model must take the example", "a str came, and TypeError"),
        (nn.Linear, X, "model must be an nn.Module", "the class Linear came"),
        (
            nn.Sequential(torch.jit.ScriptModule()),
            X,
            "model must be one that",
            "a ScriptModule came",
        ),
        (torch.relu, X, "model must be an nn.Module", "a builtin_function_or_method came"),
        (LINE, X.to("meta"), f"{TWO}the CPU", "a tensor on meta came"),
        (META, X, f"{TWO}the CPU", "a tensor on meta came"),
    ],
)
def test_what_does_not_fit_is_refused(
    model: object, example: object, expected: str, came: str
) -> None:
    refused(expected, came, lambda: own_model.arguments(model, example))


def test_two_devices_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_model, "DEVICES", "cpu|meta")  # as a GPU would be
    came = "the model came on cpu, the example on meta, and "
    refused(f"{TWO}one device", came, lambda: own_model.arguments(LINE, X.to("meta")))
    bare = "the model came on none, the example on cpu and meta, and "
    pair = X, X.to("meta")
    refused(f"{TWO}one device", bare, lambda: own_model.arguments(nn.ReLU(), pair))


def test_only_the_first_line_of_an_error_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    model, pair = Adds(), (torch.ones(2), torch.ones(2))
    monkeypatch.setattr(torch, "no_grad", torch.enable_grad)
    came = "(2,) float32, (2,) float32 came, and ValueError (not for training): "
    refused("model must take the example", came, lambda: own_model.arguments(model, pair))


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


def test_home_is_where_most_parameters_are() -> None:
    model = nn.Sequential(nn.Linear(9, 9).half(), nn.Linear(2, 2), nn.Linear(2, 2))
    assert own_model.home(model) == ("cpu", torch.float16)
    assert own_model.home(META) == ("meta", torch.float32)
    assert own_model.home(nn.ReLU()) == ("cpu", torch.float32)


def test_shapes_and_types_are_described() -> None:
    x, y = torch.ones(2, 3), torch.ones(4, dtype=torch.int64)
    assert own_model.described({"a": [x], "b": (y, "word")}) == "(2, 3) float32, (4,) int64"
    assert own_model.described([y] * 5) == 3 * "(4,) int64, " + "and 2 more"
    assert own_model.described(None) == "a NoneType"
