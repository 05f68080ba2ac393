"""Each reader reads what its tool writes today."""

import cProfile
import doctest
import pstats
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from helpers import readers


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(readers).failed == 0


def test_what_stands_behind_the_program_is_the_programs() -> None:
    line = "nsys profile -w true -o 'my report' python a.py --force-overwrite true"
    flags, program = readers.nsys_command(line)
    assert flags == ["-w true", "-o my report"]
    assert program == ["python", "a.py", "--force-overwrite", "true"]
    assert readers.nsys_command("srun nsys profile -f") == (["-f"], [])
    with pytest.raises(ValueError, match="profile"):
        readers.nsys_command("ncu python a.py")


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
    assert ("keep:8",) not in left
    with pytest.raises(ValueError, match="'peak' or 'left', but 'now' came"):
        readers.memray(capture, keeper.name, "now")


def leaf() -> float:
    return sum(range(2000))


def left() -> float:
    return leaf()


def right() -> float:
    return leaf() + leaf()


def twice(n: int) -> float:
    return left() + right() + (twice(n - 1) if n else torch.relu(torch.ones(1)).item())


@pytest.fixture(scope="module")
def stats() -> pstats.Stats:
    profile = cProfile.Profile()
    profile.runcall(twice, 2)
    return pstats.Stats(profile)


def test_profile_rows(stats: pstats.Stats) -> None:
    rows = readers.profile_rows(stats)
    assert tuple(rows.loc["test_readers.twice", ["ncalls", "primitive"]]) == (3, 1)
    assert rows.ncalls["test_readers.leaf"] == 9
    assert rows.ncalls["torch.relu"] == rows.ncalls["item"] == 1
    assert rows.tottime.sum() == pytest.approx(stats.total_tt)
    assert rows.cumtime["test_readers.leaf"] > rows.tottime["test_readers.leaf"]


def test_a_package_is_called_by_its_folder() -> None:
    names = {("/x/autograd/__init__.py", 3, "backward"): (1, 1, 0.0, 0.0, {})}
    stats = pstats.Stats()
    stats.stats = names
    assert list(readers.profile_rows(stats).index) == ["autograd.backward"]


def test_profile_calls(stats: pstats.Stats) -> None:
    pairs = readers.profile_calls(stats).set_index(["callee", "caller"]).ncalls
    assert dict(pairs["test_readers.leaf"]) == {"test_readers.left": 3, "test_readers.right": 6}
    assert dict(pairs["test_readers.twice"]) == {"test_readers.twice": 2}


def test_profile_stacks_divide_a_shared_callee(stats: pstats.Stats) -> None:
    stacks = readers.profile_stacks(stats, "test_readers.right", least=0.0)
    assert sum(stacks.values()) == pytest.approx(
        readers.profile_rows(stats).cumtime["test_readers.right"]
    )
    assert ("test_readers.right", "test_readers.leaf", "builtins.sum") in stacks
    assert set(readers.profile_stacks(stats, "test_readers.right", least=1.1)) == {
        ("test_readers.right",)
    }
    with pytest.raises(ValueError, match="root must name one function, but 'nobody' names 0"):
        readers.profile_stacks(stats, "nobody")


def test_import_times() -> None:
    command = [sys.executable, "-X", "importtime", "-c", "import json"]
    listing = subprocess.run(command, capture_output=True, text=True).stderr
    times = readers.import_times(listing).set_index("module")
    assert (times.depth["json"], times.depth["json.decoder"]) == (0, 1)
    parts = times.own["json"] + times.cumulative[["json.decoder", "json.encoder"]].sum()
    assert times.cumulative["json"] == pytest.approx(parts, abs=1e-4)  # it rounds to µs
    assert 0 < times.cumulative["json"] < 60  # seconds
