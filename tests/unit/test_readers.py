"""Each reader reads what its tool writes today."""

import subprocess
import sys
from pathlib import Path

import pytest

from helpers import readers

KEEPER = """
import numpy as np
profile = globals().get("profile") or getattr(__builtins__, "profile", lambda f: f)

@profile
def keep():
    kept = np.ones(2_000_000)
    gone = np.ones(1_000_000)
    del gone
    return kept

big = keep()
"""


@pytest.fixture
def keeper(tmp_path: Path) -> Path:
    path = tmp_path / "keeper.py"
    path.write_text(KEEPER)
    return path


def test_memory_profiler_table_by_line(keeper: Path) -> None:
    command = [sys.executable, "-m", "memory_profiler", str(keeper)]
    table = readers.memory_profiler(subprocess.check_output(command, text=True))
    assert list(table.index) == [5, 7, 8, 9, 10]
    assert table["source"][7].strip() == "kept = np.ones(2_000_000)"
    assert table["Increment"][7] == pytest.approx(16e6, rel=0.1)
    assert table["Mem usage"][7] > table["Mem usage"][5]
    assert (table["Occurrences"] == 1).all()


def test_memory_profiler_wants_a_table() -> None:
    with pytest.raises(ValueError, match="a table of memory_profiler, but 'no table' came"):
        readers.memory_profiler("no table")


def test_memray_at_the_peak_and_at_the_end(keeper: Path, tmp_path: Path) -> None:
    pytest.importorskip("memray")
    capture = tmp_path / "keeper.bin"
    command = [sys.executable, "-m", "memray", "run", "-q", "-o", str(capture), str(keeper)]
    subprocess.check_output(command)
    whole, peak = readers.memray(capture, keeper.name)
    assert peak["keep:7",] == pytest.approx(16e6, rel=1e-3)
    assert peak["keep:8",] == pytest.approx(8e6, rel=1e-3)
    assert whole > 24_000_000
    _, left = readers.memray(capture, keeper.name, "left")
    assert left.get(("keep:8",), 0) < 1000 < left["keep:7",]
    with pytest.raises(ValueError, match="'peak' or 'left', but 'now' came"):
        readers.memray(capture, keeper.name, "now")
