"""Every fault, put back alone into the fast program of lesson 14, is shown by its own measure, and
stands among the first three rows of the tool that the catalogue names."""

import cProfile
import io
import itertools
import pstats
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
import torch
from line_profiler import LineProfiler
from torch.profiler import profile

from helpers import faults, readers
from tools import notebooks

LESSON = notebooks.NOTEBOOKS / "14_make_it_fast.ipynb"
TOOLS = {  # fault: which row it is, of which rows
    "pixels": ("image[:, y, x] = (pixel - mean) / deviation", "lines"),
    "again": ("worse.read", "called_by_train"),
    "copy": ("aten::index", "by_memory"),
    "float64": ("double", "types"),
    "layout": ("aten::max_pool2d_with_indices", "by_time"),
    "graph": ("step", "kept"),
    "gradients": ("evaluate", "saved"),
    "thread": ("at::get_num_threads() : 1", "threads"),
    "log": ("builtins.print", "called"),
}
TOOL_OF = {  # rows: the catalogue's word for what gives them
    **dict.fromkeys(["called_by_train", "called"], "cProfile"),
    **dict.fromkeys(["by_memory", "by_time", "types"], "torch.profiler"),
    **dict.fromkeys(["kept", "saved"], "saved_tensors_hooks"),
    **{"lines": "line_profiler", "threads": "parallel_info"},
}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def lesson() -> dict[str, Any]:
    """What the lesson's own cells define: its measures are those that are tested."""
    scope: dict[str, Any] = {}
    sources = {cell.id: cell.source for cell in notebooks.read(LESSON).cells}
    with mock.patch("concurrent.futures.ProcessPoolExecutor"):  # a child is for its profiles
        for name in ("setup", "look-faults", "look-run", "memory-define", "keep-counts"):
            exec(sources[name], scope)
    return scope


@pytest.mark.parametrize("name", faults.FAULTS)
def test_a_fault_alone_raises_its_own_count(name: str, lesson: dict, tmp_path: Path) -> None:
    fast, worse = (
        lesson["counts"](faults.load(names, tmp_path / "worse.py")) for names in ([], [name])
    )
    exact = {"pixels": (4, 4 * 1024), "again": (1, 2), "graph": (0, 2), "gradients": (0, 1)}
    exact |= {"copy": (2 * 3 * (3072 + 2), 2 * 3 * (3 * 3072 + 2)), "float64": (4, 8)}
    exact |= {"layout": (1, 1024), "thread": (0, 1), "log": (2 * 11, 2 * 25_675)}
    assert (fast[name], worse[name]) == exact[name]


@pytest.mark.parametrize("name", faults.FAULTS)
def test_its_tool_has_it_among_the_first_three_rows(
    name: str, lesson: dict, tmp_path: Path
) -> None:
    row, rows = TOOLS[name]
    assert faults.FAULTS[name].tool == TOOL_OF[rows]
    worse = faults.load([name], tmp_path / "worse.py")
    worse.BATCH = 24  # the more pictures, the less the rest counts
    files, labels = worse.pictures(32)
    found = globals()[rows](worse, files, labels, lesson)
    assert row in found[:3], found[:6]


def lines(program: ModuleType, files: list[bytes], *_: Any) -> list[str]:
    profiler = LineProfiler(program.normalise)
    profiler.runcall(program.read, files[:4])
    rows = readers.line_rows(profiler.get_stats())
    return rows.sort_values("seconds", ascending=False).code.tolist()


def python_calls(program: ModuleType, files: list[bytes], labels: torch.Tensor) -> Any:
    train(program, files, labels)  # the first optimiser imports
    with cProfile.Profile() as profiler:
        train(program, files, labels)
    calls = readers.profile_calls(pstats.Stats(profiler))
    return calls.sort_values("cumtime", ascending=False)


def called_by_train(program: ModuleType, *given: Any) -> list[str]:
    calls = python_calls(program, *given[:2])
    return calls[calls.caller == "worse.train"].callee.tolist()


def called(program: ModuleType, *given: Any) -> list[str]:
    calls = python_calls(program, *given[:2])
    mine = calls.caller.str.startswith("worse.") & ~calls.callee.str.startswith("worse.")
    return calls[mine].callee.tolist()


def train(program: ModuleType, files: list[bytes], labels: torch.Tensor) -> None:
    program.train(files, labels, log=io.StringIO())


def operators(program: ModuleType, *given: Any, **options: bool) -> profile:
    train(program, *given[:2])  # the first calls
    with profile(**options) as prof:
        train(program, *given[:2])
    return prof


def by_time(program: ModuleType, *given: Any) -> list[str]:
    rows = operators(program, *given).key_averages()
    return [row.key for row in sorted(rows, key=lambda row: -row.self_cpu_time_total)]


def by_memory(program: ModuleType, *given: Any) -> list[str]:
    rows = operators(program, *given, profile_memory=True).key_averages()
    return [row.key for row in sorted(rows, key=lambda row: -row.self_cpu_memory_usage)]


def types(program: ModuleType, *given: Any) -> list[str]:
    events = operators(program, *given, record_shapes=True).events()
    rows = sorted(events, key=lambda event: -event.self_cpu_time_total)
    return [next((kind for kind in row.input_dtypes if kind), "") for row in rows]


def saved(program: ModuleType, files: list, labels: torch.Tensor, lesson: dict) -> list[str]:
    table = lesson["saved"](program)
    return table.index[table.saved > 0].tolist()


def kept(program: ModuleType, files: list, labels: torch.Tensor, lesson: dict) -> list[str]:
    table = lesson["saved"](program)
    return table.index[table.kept > 0].tolist()


def threads(program: ModuleType, files: list[bytes], labels: torch.Tensor, _: dict) -> list[str]:
    torch.set_num_threads(2)  # so that a 1 is the program's
    train(program, files[:4], labels)
    return [line.strip() for line in torch.__config__.parallel_info().splitlines()]


def test_the_fast_program_has_none_of_these_rows(lesson: dict, tmp_path: Path) -> None:
    fast = faults.load([], tmp_path / "worse.py")
    files, labels = fast.pictures(32)
    table = lesson["saved"](fast)
    assert table.kept.sum() == 0
    assert list(table.index) == ["step"]
    assert "double" not in types(fast, files, labels)
    assert "at::get_num_threads() : 2" in threads(fast, files, labels, {})[:3]
    torch.set_num_threads(1)


def test_any_faults_make_a_program() -> None:
    assert faults.source(faults.FAULTS) == faults.SLOW.read_text(encoding="utf-8")
    pairs = itertools.combinations(faults.FAULTS, 2)
    texts = [faults.source(names) for names in [(), *zip(faults.FAULTS), *pairs]]
    assert len(set(texts)) == 1 + 9 + 36
    for text in texts:
        compile(text, "program", "exec")


def test_of_two_programs_of_one_size_none_is_taken_for_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "any.py"
    layouts = [faults.load([name], path).LAYOUT for name in ("again", "layout")]
    assert layouts == [torch.channels_last, torch.contiguous_format]


def test_all_compute_the_same(lesson: dict, tmp_path: Path) -> None:
    finals = [
        lesson["run"](faults.load(names, tmp_path / "any.py"))[2].item()
        for names in ([], ["copy", "float64"], ["layout", "pixels"], faults.FAULTS)
    ]
    assert max(finals) - min(finals) < 1e-3


@pytest.mark.parametrize("names", [["pixel"], ["pixels", "item"]])
def test_an_unknown_fault_is_refused(names: list[str]) -> None:
    with pytest.raises(ValueError, match="names must be of pixels, again"):
        faults.source(names)


def test_a_changed_program_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = faults.SLOW.read_text(encoding="utf-8").replace("retain_graph=True", "")
    (tmp_path / "train_slow.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(faults, "SLOW", tmp_path / "train_slow.py")
    with pytest.raises(ValueError, match=r"train_slow.py must hold the fault 'graph' once"):
        faults.source([])
