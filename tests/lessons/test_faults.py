"""Faults put back into the fast program of lesson 15, which itself counts what each one costs."""

import io
from pathlib import Path

import pytest
import torch

from helpers import faults


@pytest.mark.everything
def test_any_faults_make_a_program_that_computes_the_same(tmp_path: Path) -> None:
    assert faults.source(faults.FAULTS) == faults.SLOW.read_text(encoding="utf-8")
    threads, losses = torch.get_num_threads(), []
    every = [*faults.FAULTS, *faults.MORE]
    for names in ([], ["copy", "float64"], ["layout", "pixels"], faults.FAULTS, faults.MORE, every):
        program = faults.load(names, tmp_path / "any.py")
        _, final = program.train(*program.png_files(12), epochs=2, log=io.StringIO(), seed=0)
        losses.append(final.item())
    torch.set_num_threads(threads)  # which a fault changes
    assert max(losses) - min(losses) < 1e-3


@pytest.mark.everything
def test_each_change_is_made_once_and_computes_the_same(tmp_path: Path) -> None:
    losses = []
    for name in (None, *faults.CHANGES):
        program = faults.load([name] if name else [], tmp_path / "any.py")
        _, final = program.train(*program.png_files(12), epochs=2, log=io.StringIO(), seed=0)
        losses.append(final.item())
    assert max(losses) - min(losses) < 1e-4
    with pytest.raises(ValueError, match=r"must have one place for the change 'stack'"):
        faults.source(["copy", "stack"])


def test_an_unknown_fault_and_a_changed_program_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="names must be of pixels, again"):
        faults.source(["pixels", "no_such"])
    text = faults.SLOW.read_text(encoding="utf-8").replace("retain_graph=True", "")
    (tmp_path / "train_slow.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(faults, "SLOW", tmp_path / "train_slow.py")
    with pytest.raises(ValueError, match=r"train_slow.py must hold the fault 'graph' once"):
        faults.source([])
