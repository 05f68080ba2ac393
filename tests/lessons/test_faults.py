"""Every fault, put back alone into the fast program of lesson 14, is shown by its own measure."""

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from helpers import faults
from tools import notebooks

LESSON = notebooks.NOTEBOOKS / "14_make_it_fast.ipynb"


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


def test_any_faults_make_a_program_that_computes_the_same(lesson: dict, tmp_path: Path) -> None:
    assert faults.source(faults.FAULTS) == faults.SLOW.read_text(encoding="utf-8")
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
