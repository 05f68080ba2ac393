"""The readers give what their tools wrote: names, counts and sums by hand."""

import cProfile
import pstats
import subprocess
import sys
from pathlib import Path

import line_profiler
import pytest
import torch

from helpers import readers


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


def test_line_rows(tmp_path: Path) -> None:
    profiler = line_profiler.LineProfiler()
    profiler(left)()
    rows = readers.line_rows(profiler.get_stats())
    assert rows[["function", "hits", "code"]].to_numpy().tolist() == [["left", 1, "return leaf()"]]
    assert 0 < rows.seconds[0] < 60

    (tmp_path / "script.py").write_text("a = 1\n  b = 2\n", "utf-8")
    timings = {("script.py", 1, "f"): [(2, 7, 500)], ("<gone>", 1, "g"): [(9, 1, 2)]}
    rows = readers.line_rows(line_profiler.LineStats(timings, unit=1e-3), tmp_path)
    assert rows.to_numpy().tolist() == [["f", 2, 7, 0.5, "b = 2"], ["g", 9, 1, 0.002, ""]]
