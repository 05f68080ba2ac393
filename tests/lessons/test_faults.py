"""Every fault, put back alone into the fast program of lesson 14, is shown by its own measure, and
is among the first three rows of the tool that the catalogue names."""

import cProfile
import io
import itertools
import pstats
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
import torch
from line_profiler import LineProfiler
from torch.profiler import profile

from helpers import faults, profiles
from tools import notebooks

LESSON = notebooks.NOTEBOOKS / "14_make_it_fast.ipynb"


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


COUNTS = {  # fault: what the lesson counts without it, and with it
    "pixels": (4, 4 * 1024),
    "again": (1, 2),
    "copy": (2 * 3 * (3072 + 2), 2 * 3 * (3 * 3072 + 2)),
    "float64": (4, 8),
    "layout": (1, 1024),
    "graph": (0, 2),
    "gradients": (0, 1),
    "thread": (0, 1),
    "log": (2 * 11, 2 * 25_675),
}


@pytest.mark.parametrize("name", faults.FAULTS)
def test_a_fault_alone_raises_its_own_count(name: str, lesson: dict, tmp_path: Path) -> None:
    fast, worse = (
        lesson["counts"](faults.load(names, tmp_path / "worse.py")) for names in ([], [name])
    )
    assert (fast[name], worse[name]) == COUNTS[name]


def train(program: ModuleType, files: list[bytes], labels: torch.Tensor) -> None:
    program.train(files, labels, log=io.StringIO())


def lines(program: ModuleType, files: list[bytes], *_: Any) -> list[str]:
    profiler = LineProfiler(program.normalise)
    profiler.runcall(program.read, files[:4])
    rows = profiles.line_rows(profiler.get_stats())
    return rows.sort_values("seconds", ascending=False).code.tolist()


def python_calls(program: ModuleType, files: list[bytes], labels: torch.Tensor) -> Any:
    train(program, files, labels)  # the first optimiser imports
    with cProfile.Profile() as profiler:
        train(program, files, labels)
    calls = profiles.call_rows(pstats.Stats(profiler))
    return calls.sort_values("cumtime", ascending=False)


def called_by_train(program: ModuleType, files: list, labels: torch.Tensor, _: dict) -> list[str]:
    calls = python_calls(program, files, labels)
    return calls[calls.caller == "worse.train"].callee.tolist()


def called_outside(program: ModuleType, files: list, labels: torch.Tensor, _: dict) -> list[str]:
    calls = python_calls(program, files, labels)
    leaves = calls.caller.str.startswith("worse.") & ~calls.callee.str.startswith("worse.")
    return calls[leaves].callee.tolist()


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
    rows = [line.strip() for line in torch.__config__.parallel_info().splitlines()]
    torch.set_num_threads(1)
    return rows


TOOLS = {  # fault: the row that shows it, the rows, and the catalogue's word for their tool
    "pixels": ("image[:, y, x] = (pixel - mean) / deviation", lines, "line_profiler"),
    "again": ("worse.read", called_by_train, "cProfile"),
    "copy": ("aten::index", by_memory, "torch.profiler"),
    "float64": ("double", types, "torch.profiler"),
    "layout": ("aten::max_pool2d_with_indices", by_time, "torch.profiler"),
    "graph": ("step", kept, "saved_tensors_hooks"),
    "gradients": ("evaluate", saved, "saved_tensors_hooks"),
    "thread": ("at::get_num_threads() : 1", threads, "parallel_info"),
    "log": ("builtins.print", called_outside, "cProfile"),
}


@pytest.mark.parametrize("name", faults.FAULTS)
def test_its_tool_has_it_among_the_first_three_rows(
    name: str, lesson: dict, tmp_path: Path
) -> None:
    row, rows_of, tool = TOOLS[name]
    assert faults.FAULTS[name].tool == tool
    worse = faults.load([name], tmp_path / "worse.py")
    worse.BATCH = 24  # the more pictures, the less the rest counts
    files, labels = worse.pictures(32)
    rows = rows_of(worse, files, labels, lesson)
    assert row in rows[:3], rows[:6]


def test_any_faults_make_a_program_that_computes_the_same(lesson: dict, tmp_path: Path) -> None:
    assert faults.source(faults.FAULTS) == faults.SLOW.read_text(encoding="utf-8")
    pairs = itertools.combinations(faults.FAULTS, 2)
    texts = [faults.source(names) for names in [(), *zip(faults.FAULTS), *pairs]]
    assert len(set(texts)) == 1 + 9 + 36
    for text in texts:
        compile(text, "program", "exec")
    losses = [
        lesson["run"](faults.load(names, tmp_path / "any.py"))[2].item()
        for names in ([], ["copy", "float64"], ["layout", "pixels"], faults.FAULTS)
    ]
    assert max(losses) - min(losses) < 1e-3


def test_an_unknown_fault_and_a_changed_program_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="names must be of pixels, again"):
        faults.source(["pixels", "item"])
    text = faults.SLOW.read_text(encoding="utf-8").replace("retain_graph=True", "")
    (tmp_path / "train_slow.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(faults, "SLOW", tmp_path / "train_slow.py")
    with pytest.raises(ValueError, match=r"train_slow.py must hold the fault 'graph' once"):
        faults.source([])
