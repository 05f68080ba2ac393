"""Lesson 16 without a C++ compiler that works: it reads its recording, and its claims hold."""

import os
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from helpers import units
from tools import notebooks, refresh

RECORDING = notebooks.ROOT / "assets" / "recordings" / "compile_cpu.csv"
LESSON = notebooks.NOTEBOOKS / "16_compiler.ipynb"


@pytest.mark.everything
@pytest.mark.skipif(os.name == "nt", reason="links need a right on Windows")
@pytest.mark.parametrize("compiler", ["none", "one that fails"])
def test_lesson_16_needs_no_compiler(tmp_path: Path, compiler: str) -> None:
    """PATH holds this Python and git: a failing claim would be an error."""
    (tmp_path / "python").symlink_to(sys.executable)
    if git := shutil.which("git"):
        (tmp_path / "git").symlink_to(git)
    if compiler == "one that fails":  # as without Python's headers
        for name in ("g++", "clang++"):
            (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
            (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": str(tmp_path)}
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "nothing compiled yet")
    ran = refresh.execute(notebooks.read(LESSON), notebooks.NOTEBOOKS, env=environment)
    (cell,) = (cell for cell in ran.cells if cell.id == "fused-run")
    recorded = pd.read_csv(RECORDING).query("cache == 'empty' and function == 'chain'")
    (milliseconds,) = recorded.eager_ms
    assert f"chain: eager {units.seconds(milliseconds / 1e3)}" in str(cell.outputs)
