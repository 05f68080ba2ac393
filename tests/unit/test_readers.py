"""What a tool's file says arrives in the data, nothing more and nothing less."""

import cProfile
import gzip
import json
from pathlib import Path

import pytest
from line_profiler import LineProfiler

from helpers import readers

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 5000.0, "args": {"name": "x"}},
    {"ph": "X", "cat": "cpu_op", "name": "inner", "pid": 7, "tid": 1, "ts": 1010.0, "dur": 5.0},
    {"ph": "X", "cat": "cpu_op", "name": "next", "pid": 7, "tid": 1, "ts": 1030.0, "dur": 2.0},
    {"ph": "X", "cat": "cpu_op", "name": "outer", "pid": 7, "tid": 1, "ts": 1010.0, "dur": 20.0},
]


@pytest.mark.parametrize("packed", [False, True], ids=["json", "gz"])
def test_a_chrome_trace_is_in_order_of_start(tmp_path: Path, packed: bool) -> None:
    raw = json.dumps({"traceEvents": EVENTS}).encode()
    (tmp_path / "trace").write_bytes(gzip.compress(raw) if packed else raw)
    trace = readers.chrome_trace(tmp_path / "trace")
    assert trace.columns.tolist() == ["ph", "cat", "name", "ts", "dur", "pid", "tid", "args"]
    assert trace.name.tolist() == ["inner", "outer", "next", "process_name"]
    assert trace.ts.tolist() == [0, 0, 20, 3990]
    assert readers.spans(trace) == [
        (0, 2e-5, "outer", 0),
        (0, 5e-6, "inner", 1),
        (2e-5, 2e-6, "next", 0),
    ]


def test_folded_stacks_are_added_up() -> None:
    text = "main;work (a b.py:3) 4\nmain 1\nmain;work (a b.py:3) 2\n"
    assert readers.stacks(text) == {("main", "work (a b.py:3)"): 6, ("main",): 1}


def test_scalene_is_read_by_line_and_by_function(tmp_path: Path) -> None:
    cpu = {"n_cpu_percent_python": 10.0, "n_cpu_percent_c": 2.0, "n_sys_percent": 0.5}
    line = cpu | {"lineno": 3, "line": "  x = 1\n", "n_malloc_mb": 2.0, "n_peak_mb": 1.0}
    files = {"/a/b.py": {"lines": [line], "functions": [cpu | {"line": "work"}]}}
    (tmp_path / "p.json").write_text(json.dumps({"files": files}), encoding="utf-8")
    assert readers.times_by_function(tmp_path / "p.json") == {"work": 12.5}
    table = readers.scalene_lines(tmp_path / "p.json", "b.py")
    assert table.loc[3].tolist() == ["x = 1", 0.125, 2 * 2**20, 2**20]


def test_times_by_function_of_the_other_tools(tmp_path: Path) -> None:
    def outer() -> None:
        inner()

    def inner() -> None:
        sum(range(100_000))

    profiler = cProfile.Profile()
    profiler.runcall(outer)
    profiler.dump_stats(tmp_path / "p.prof")
    times = readers.times_by_function(tmp_path / "p.prof")
    assert times["outer"] >= times["inner"] > 0

    by_line = LineProfiler(inner)
    by_line.runcall(inner)
    by_line.dump_stats(tmp_path / "p.lprof")
    (name,) = readers.times_by_function(tmp_path / "p.lprof")
    assert name.endswith("inner")

    leaf = {"function": "leaf", "time": 2.0, "children": []}
    root = {"function": "main", "time": 3.0, "children": [leaf, leaf]}
    (tmp_path / "p.tree").write_text(json.dumps({"root_frame": root}), encoding="utf-8")
    assert readers.times_by_function(tmp_path / "p.tree") == {"main": 3, "leaf": 4}

    sampled = "main (a.py:1);f (a.py:2);f (a.py:2) 3\nmain (a.py:4) 1\n"
    (tmp_path / "p.raw").write_text(sampled, encoding="utf-8")
    assert readers.times_by_function(tmp_path / "p.raw") == {"main": 4, "f": 3}
