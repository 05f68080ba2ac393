"""Each function reads what its tool writes today."""

import cProfile
import json
import pstats
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from line_profiler import LineStats

from helpers import profiles

MIB = 2**20


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


def test_cprofile_by_function(stats: pstats.Stats) -> None:
    rows = profiles.function_rows(stats)
    assert tuple(rows.loc["test_profiles.twice", ["ncalls", "primitive"]]) == (3, 1)
    assert rows.ncalls["test_profiles.leaf"] == 9
    assert rows.ncalls["torch.relu"] == rows.ncalls["item"] == 1
    assert rows.tottime.sum() == pytest.approx(stats.total_tt)
    assert rows.cumtime["test_profiles.leaf"] > rows.tottime["test_profiles.leaf"]


def test_cprofile_by_caller_and_callee(stats: pstats.Stats) -> None:
    pairs = profiles.call_rows(stats).set_index(["callee", "caller"]).ncalls
    assert dict(pairs["test_profiles.leaf"]) == {"test_profiles.left": 3, "test_profiles.right": 6}
    assert dict(pairs["test_profiles.twice"]) == {"test_profiles.twice": 2}


def test_cprofile_unfolded_divides_a_shared_callee() -> None:
    work, wait, top, half = (("m.py", n, name) for n, name in enumerate("awth", start=1))
    stats = pstats.Stats()
    stats.stats = {  # function: primitive, ncalls, tottime, cumtime, callers
        top: (1, 1, 1.0, 11.0, {}),
        half: (1, 1, 0.0, 4.0, {top: (1, 1, 0.0, 4.0)}),
        work: (2, 2, 2.0, 10.0, {top: (1, 1, 1.2, 6.0), half: (1, 1, 0.8, 4.0)}),
        wait: (2, 2, 8.0, 8.0, {work: (2, 2, 8.0, 8.0)}),
    }
    by_stack = profiles.call_stacks(stats, "m.t", least=0.0)
    assert by_stack == {
        ("m.t",): 1.0,
        ("m.t", "m.a"): pytest.approx(1.2),
        ("m.t", "m.a", "m.w"): pytest.approx(4.8),
        ("m.t", "m.h"): 0.0,
        ("m.t", "m.h", "m.a"): pytest.approx(0.8),
        ("m.t", "m.h", "m.a", "m.w"): pytest.approx(3.2),
    }
    cut = profiles.call_stacks(stats, "m.t", least=0.5)  # half is too small to be unfolded
    assert cut["m.t", "m.h"] == 4.0
    assert sum(cut.values()) == pytest.approx(sum(by_stack.values())) == pytest.approx(11.0)
    with pytest.raises(ValueError, match="root must name one function, but 'x' names 0"):
        profiles.call_stacks(stats, "x")


def test_import_times() -> None:
    command = [sys.executable, "-X", "importtime", "-c", "import json"]
    listing = subprocess.run(command, capture_output=True, text=True).stderr
    times = profiles.import_times(listing).set_index("module")
    assert (times.depth["json"], times.depth["json.decoder"]) == (0, 1)
    parts = times.own["json"] + times.cumulative[["json.decoder", "json.encoder"]].sum()
    assert times.cumulative["json"] == pytest.approx(parts, abs=1e-4)  # it rounds to µs
    assert 0 < times.cumulative["json"] < 60  # seconds


def test_line_profiler_by_line(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("a = 1\n  b = 2\n", "utf-8")
    timings = {("script.py", 1, "f"): [(2, 7, 500)], ("<gone>", 1, "g"): [(9, 1, 2)]}
    rows = profiles.line_rows(LineStats(timings, unit=1e-3), tmp_path)
    assert rows.to_numpy().tolist() == [["f", 2, 7, 0.5, "b = 2"], ["g", 9, 1, 0.002, ""]]


def test_folded_stacks_are_added_up() -> None:
    text = "main;work (a b.py:3) 4\nmain 1\nmain;work (a b.py:3) 2\n"
    assert profiles.folded_stacks(text) == {("main", "work (a b.py:3)"): 6, ("main",): 1}


def test_scalene_by_line_and_by_function(tmp_path: Path) -> None:
    cpu = {"n_cpu_percent_python": 10.0, "n_cpu_percent_c": 2.0, "n_sys_percent": 0.5}
    line = cpu | {"lineno": 3, "line": "  x = 1\n", "n_malloc_mb": 2.0, "n_peak_mb": 1.0}
    files = {"/a/b.py": {"lines": [line], "functions": [cpu | {"line": "work"}]}}
    (tmp_path / "p.json").write_text(json.dumps({"files": files}), encoding="utf-8")
    assert profiles.times_by_function(tmp_path / "p.json") == {"work": 12.5}
    table = profiles.scalene_lines(tmp_path / "p.json", "b.py")
    assert table.loc[3].tolist() == ["x = 1", 0.125, 2 * MIB, MIB]


def test_only_rows_of_equal_batch_size_are_compared(tmp_path: Path) -> None:
    head = "model,img_size,batch_size,samples_per_sec\n"
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    before.write_text(head + "a,224,8,10.0\nb,224,8,20.0\nb,288,8,15.0\nc,224,8,1.0\nd,224,4,2.0\n")
    after.write_text(
        head + "d,224,4,3.0\nc,288,8,9.0\nb,288,8,30.0\nb,224,16,50.0\na,224,16,40.0\n"
    )
    table = profiles.equal_batches(before, after)
    assert table.columns.tolist() == ["model", "img_size", "batch_size", "before", "after"]
    assert table.values.tolist() == [["b", 288, 8, 15.0, 30.0], ["d", 224, 4, 2.0, 3.0]]
    assert profiles.equal_batches(before, after, "d").values.tolist() == [["d", 224, 4, 2.0, 3.0]]
    with pytest.raises(ValueError, match=r"a must .*batches of 8 and 16 came"):
        profiles.equal_batches(before, after, "b", "a")
    with pytest.raises(ValueError, match=r"c must .*, but no such rows came"):
        profiles.equal_batches(before, after, "c")
