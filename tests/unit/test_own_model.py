"""A model of the reader's own is called right, taken apart right, or refused in a sentence."""

import itertools
import re
import sys
from collections import UserDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pandas as pd
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.profiler import profile, record_function

from helpers import machine, own_model

LINE, X = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.rand(2, 3)


def refusal(call) -> str:
    """The one sentence in which ``call`` refuses: what was expected, what came, what to do."""
    with pytest.raises(own_model.Refused) as error:
        call()
    sentence = str(error.value)
    assert re.fullmatch(r"[^\n]+ must [^\n]+, but [^\n]+: [^\n]{20,}", sentence)
    return sentence


def test_a_function_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(build=lambda: (LINE, X), number=3, asks=lambda size: size)
    module.alone, module.broken = lambda: LINE, lambda: {}["x"]
    module.ends = lambda: sys.exit(2)
    monkeypatch.setitem(sys.modules, "mine", module)
    (tmp_path / "unfinished.py").write_text("build = (")
    monkeypatch.syspath_prepend(tmp_path)
    assert own_model.load("mine:build") == (LINE, X)
    for name, came in {
        "": "MODEL must be package.module:function, but got nothing",
        "mine:build()": "MODEL must be package.module:function, but got 'mine:build()'",
        "nowhere:build": "but got ModuleNotFoundError (No module named 'nowhere')",
        "mine:built": "but got AttributeError",
        "mine:number": "but got TypeError",
        "mine:asks": "mine:asks must be a function that can be called without arguments, but got",
        "mine:broken": "but got KeyError ('x')",
        "mine:ends": "but got SystemExit (2)",
        "unfinished:build": "but got SyntaxError ('(' was never closed (unfinished.py, line 1)): "
        "call it alone, which shows the line; unfinished must be in",
        "mine:alone": "mine:alone must return a model and an example, but got a Sequential",
    }.items():
        assert came in refusal(lambda name=name: own_model.load(name))
    assert f"must be in {Path.cwd()} or" in refusal(lambda: own_model.load("nowhere:build"))


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


class Encoding(UserDict):
    """What a tokenizer returns: a mapping, but no dict."""


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


@dataclass
class Batch:
    images: torch.Tensor


class Same(nn.Module):
    def forward(self, value: object, other: object = None) -> tuple[object, object]:
        return value, other


def test_an_argument_is_what_people_pass() -> None:
    by_name = Encoding(value=X, other=X)
    assert own_model.arguments(Same(), by_name) == ((), dict(by_name))
    packed = nn.utils.rnn.pack_sequence([torch.rand(6, 16), torch.rand(4, 16)])
    for single in (Pair(X, X), packed, Batch(X), [X, X], X.to(torch.complex64)):
        args, kwargs = own_model.arguments(Same(), single)
        assert args[0] is single
        assert (len(args), kwargs) == (1, {})
    assert own_model.described(Pair(X, X)) == own_model.described(Batch([X, X]))


class Memory:
    """A cache of keys, to which each call adds one."""

    def __init__(self) -> None:
        self.keys = torch.zeros(2, 3)


class Grows(nn.Module):
    """Its work grows with the cache in the example, with its own, or with one of fixed size."""

    def __init__(self, own: bool = False) -> None:
        super().__init__()
        self.memory = Memory() if own else None
        self.places, self.length = torch.zeros(100, 3), 1

    def forward(self, x: torch.Tensor, memory: Memory | None = None) -> torch.Tensor:
        memory = memory or self.memory
        if memory:
            memory.keys = torch.cat([memory.keys, x[:1]])
            return x @ memory.keys.T
        self.length += 1
        return x @ self.places[: self.length].T


class Changes(nn.Module):
    def __init__(self, change) -> None:
        super().__init__()
        self.change = change

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.change(x)


@pytest.mark.parametrize(
    ("model", "example", "changed"),
    [
        (Grows(), (X, Memory()), "changed the example: "),
        (Grows(own=True), X, "changed the model's tensors: "),
        (Changes(lambda x: x.div_(255)), X.clone(), "changed the example: "),
    ],
)
def test_a_call_that_cannot_be_repeated_is_refused(model, example, changed: str) -> None:
    assert changed in refusal(lambda: own_model.arguments(model, example))


def test_what_only_the_first_call_changes_is_taken() -> None:
    for change in (lambda x: x.clamp_(0, 0.5), lambda x: x.fill_(torch.nan), torch.sin):
        own_model.arguments(Changes(change), X.clone())


def test_growing_work_is_seen_in_the_counts_of_two_calls() -> None:
    model = Grows()
    own_model.arguments(model, X)  # which no tensor shows
    macs = [own_model.work(model, (X,), {})[1].macs for _ in range(2)]
    assert macs == [2 * 3 * 4, 2 * 3 * 5]


META = nn.Linear(3, 4, device="meta")
WRITTEN = nn.Sequential(torch.jit.ScriptModule())
SPARSE = nn.Sequential(nn.Linear(3, 4))
SPARSE.register_buffer("mask", torch.eye(3).to_sparse())


class Yields(nn.Module):
    def forward(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        yield x


class Prints(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("shape", tuple(x.shape))
        return x


class Packed(nn.Module):
    """As a quantised layer has its weights; such layers themselves warn that they will go."""

    def __init__(self) -> None:
        super().__init__()
        weight = torch.quantize_per_tensor(torch.ones(4, 3), 0.1, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(weight, None)


@pytest.mark.parametrize(
    ("model", "example", "sentence"),
    [
        (LINE, X.double(), "model must take the example, but got (2, 3) float64, and RuntimeEr"),
        (nn.Linear, X, "model must be an nn.Module, but got the class Linear"),
        (WRITTEN, X, "model must be one that can be watched inside, but got a ScriptModule"),
        (
            META,
            X,
            "model and example must be on the CPU or on a CUDA GPU, but got a tensor on meta",
        ),
        (SPARSE, X, "must hold dense tensors, but got one of kind sparse_coo"),
        (
            Packed(),
            X,
            "model must hold its weights as tensors, but got a Packed with packed weights",
        ),
        (LINE, X[:0], "example must hold one sample or more, but got (0, 3) float32"),
        (Yields(), X, "model must return when its work is done, but got a generator"),
        (Prints(), X, "forward must not print, because the time of printing would be measured to"),
    ],
)
def test_what_does_not_fit_is_refused(model: object, example: object, sentence: str) -> None:
    assert sentence in refusal(lambda: own_model.arguments(model, example))


def test_a_compiled_model_is_refused() -> None:
    in_place = nn.Sequential(nn.Linear(3, 4))
    in_place.compile()
    for model in (torch.compile(LINE), in_place):
        sentence = refusal(lambda model=model: own_model.arguments(model, X))
        assert "model must be one that can be watched inside, but got a compiled one" in sentence


def test_a_lazy_layer_gets_its_shape_and_tensors_of_inference_mode_are_taken() -> None:
    lazy = nn.Sequential(nn.LazyLinear(4))
    with torch.inference_mode():
        example = torch.rand(2, 3)
    assert own_model.arguments(lazy, example) == ((example,), {})
    assert lazy[0].weight.shape == (4, 3)


def test_each_call_of_a_module_has_a_row_with_its_own_part() -> None:
    clock = iter([0, 10, 13, 14, 20, 25, 28, 100])  # Adds, twice first and its hook, Adds
    pair, model = (torch.ones(2), torch.ones(2)), Adds().eval()
    with torch.no_grad():
        rows = own_model.by_module(model, pair, {"twice": True}, lambda: next(clock))
    assert list(rows.index) == ["first", "first (2)", "the model"]
    assert list(rows.own) == [3, 5, 100 - (14 - 10) - (28 - 20)]
    assert list(rows.kind) == ["Linear", "Linear", "the model itself"]
    assert list(rows.leaf) == [True, True, False]
    assert list(rows.output) == 3 * ["(2,) float32"]


class Survives(nn.Module):
    """It goes on after its first child has failed."""

    def __init__(self) -> None:
        super().__init__()
        self.fails, self.works = nn.Linear(3, 3), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with suppress(RuntimeError):
            self.fails(x)
        return self.works(x)


def test_a_module_that_failed_leaves_the_times_of_the_others_right() -> None:
    clock = itertools.count()
    with torch.no_grad():
        rows = own_model.by_module(Survives(), (torch.rand(1, 4),), {}, lambda: next(clock))
    assert rows.own.to_dict() == {"fails": 1, "works": 1, "the model": 3}


def test_parameters_of_a_module_that_is_not_called_belong_to_the_one_around_it() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    with torch.no_grad():
        rows = own_model.by_module(encoder.eval(), (torch.rand(1, 2, 8),), {}, lambda: 0)
    counts = own_model.parameters_by_kind(encoder, rows)
    assert counts["MultiheadAttention"] == 2 * (4 * 8 * 8 + 4 * 8)
    assert counts.sum() == sum(parameter.numel() for parameter in encoder.parameters())


class Unwatched(nn.Linear):
    """As it is if a library refuses to run while its operators are watched."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.utils._python_dispatch._get_current_dispatch_mode():
            raise RuntimeError("no modes here.")
        return super().forward(x)


def test_a_call_that_cannot_be_watched_has_rows_and_a_reason() -> None:
    rows, operators = own_model.work(nn.Sequential(Unwatched(8, 6)), (torch.rand(4, 8),), {})
    assert list(rows.index) == ["0", "the model"]
    assert operators.macs == rows["MACs"].sum() == 0
    assert list(operators.not_counted) == ["any operator, because of RuntimeError (no modes here),"]


class Functional(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu(super().forward(x))


def test_functions_in_forward_move_as_much_as_modules_and_belong_to_their_block() -> None:
    x = torch.rand(4, 8)
    modules, functions = nn.Sequential(nn.Linear(8, 6), nn.ReLU()), nn.Sequential(Functional(8, 6))
    rows = {model: own_model.work(model, (x,), {})[0]["bytes"] for model in (modules, functions)}
    linear, relu = 4 * (4 * 8 + 8 * 6 + 6 + 4 * 6), 2 * 4 * 4 * 6
    assert rows[modules].to_dict() == {"0": linear, "1": relu, "the model": 0}
    assert rows[functions].to_dict() == {"0": linear + relu, "the model": 0}


def test_a_padded_batch_in_an_encoder_has_rows() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder, padding = nn.TransformerEncoder(layer, 2), torch.tensor([[False, True]])
    with torch.no_grad():
        rows = own_model.by_module(
            encoder.eval(), (torch.rand(1, 2, 8),), {"src_key_padding_mask": padding}, lambda: 0
        )
    assert "layers.1.linear2" in rows.index


def test_calls_are_counted_in_ranges_and_not_in_operators() -> None:
    layer = nn.Linear(3, 4)
    with torch.no_grad(), profile() as prof, record_function("one call"):
        with record_function("inside"):
            layer(X)
        layer(X).relu()
    (event,) = [event for event in prof.events() if event.name == "one call"]
    calls, rest = own_model.operators_called(event)
    assert calls == 3
    assert event.self_cpu_time_total < rest < event.cpu_time_total


def test_an_operator_that_is_many_counts_as_its_calls() -> None:
    encoder = nn.TransformerEncoderLayer(4, 2, batch_first=True)
    for module, shape, least in ((nn.GRU(4, 4), (30, 1, 4), 30), (encoder, (1, 2, 4), 10)):
        with torch.no_grad(), profile() as prof, record_function("one call"):
            module.eval()(torch.ones(shape))
        (event,) = [event for event in prof.events() if event.name == "one call"]
        assert own_model.operators_called(event)[0] > least


def test_the_home_of_a_model_without_parameters_is_that_of_its_buffers_or_example() -> None:
    assert own_model.home(nn.ReLU(), X.double()) == ("cpu", torch.float64)
    norm = nn.BatchNorm1d(3, affine=False).half()
    assert own_model.home(norm, X) == ("cpu", torch.float16)
    assert own_model.home(nn.Linear(3, 4, device="meta"), X) == ("meta", torch.float32)


def test_a_model_on_the_second_gpu_is_told_from_one_on_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeTensorMode():  # as if there were GPUs
        weight, example = torch.empty(2, 4, 3, device="cuda:1")
    model = nn.Linear(3, 4, bias=False)
    model.weight = nn.Parameter(weight)
    assert own_model.home(model, example) == ("cuda:1", torch.float32)
    monkeypatch.setattr(machine, "gpu_problem", lambda: "it is too old: take another")
    sentence = refusal(lambda: own_model.arguments(model, example))
    assert "got a tensor on cuda:1, and it is too old: take another" in sentence


def test_no_hook_stays_even_after_an_error() -> None:
    model = Adds()
    with pytest.raises(ValueError, match="not for training"):
        own_model.by_module(model, (X, X), {}, lambda: 0)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_the_kind_that_is_named_is_never_the_model_itself() -> None:
    columns = {"kind": own_model.ITSELF, "leaf": True, "MACs": 0, "not counted": 0, "time": 3.0}
    alone = pd.DataFrame([columns])
    assert own_model.slowest_without_macs(alone) == ("none", 0.0)
    block = columns | {"kind": "Block", "leaf": False, "time": 9.0}
    work = columns | {"kind": "Linear", "MACs": 5, "time": 7.0}
    leaf = columns | {"kind": "ReLU", "time": 0.5}
    experts = work | {"kind": "Experts", "MACs": 0, "not counted": 1}
    rows = pd.DataFrame([columns, block, work, leaf, leaf])
    with_experts = pd.DataFrame([columns, work, leaf, experts])
    assert own_model.slowest_without_macs(with_experts)[0] == "ReLU"
    assert own_model.slowest_without_macs(rows) == ("ReLU", 1.0 / 20.0)


QUIET = dict.fromkeys(own_model.QUESTIONS, 0.0)


@pytest.mark.parametrize(
    ("values", "sentence", "chart"),
    [
        (
            QUIET | {"spread": 2.0},
            ">Which operator is far below its roof?</a></b> No measurement is above its limit "
            "(lesson 05, The torch profiler).",
            "roof-draw",
        ),
        (
            QUIET | {"spread": 3.1, "slowest leaf without MACs": 0.5},
            ">Why is a layer without MACs slow?</a></b> The slowest kind of layer without MACs, "
            "ReLU, takes ~50.0 % of the time, and the limit is 33 % (lesson 05, The torch "
            "profiler).",
            "layers-kinds",
        ),
        (
            QUIET | {"spread": 12.0, "peak FLOP/s": 0.9},
            ">Why do equal calls take different times?</a></b> The p95 latency is ~12.0× that of "
            "the fastest call, and the limit is 3× (lesson 01, Timing).",
            "whole-time-chart",
        ),
    ],
)
def test_the_next_question_is_the_one_farthest_above_its_limit(
    values: dict, sentence: str, chart: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {}
    monkeypatch.setattr(
        own_model, "display", lambda html, metadata: shown.update(html=html.data, **metadata)
    )
    own_model.next_question(values, "ReLU")
    assert shown["html"].strip("\u2060").endswith(sentence)
    assert shown["chart"] == chart


def test_the_shares_name_each_call_and_add_up() -> None:
    kinds = ["Linear", "Linear", own_model.ITSELF]
    names = ["linear", "linear (2)", "the model"]
    columns = {"kind": kinds, "time": [1.0, 2.0, 1.0], "MACs": [4, 0, 0]}
    rows = pd.DataFrame(columns, index=names)
    shares = own_model.shares(rows, at_most=12)
    assert list(shares["share of time"].items()) == [
        ("linear, Linear", 0.25),
        ("linear (2), Linear", 0.5),
        ("the model itself", 0.25),
    ]
    assert own_model.shares(rows, at_most=1)["share of MACs"].tolist() == [0.0]
