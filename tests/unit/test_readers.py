"""What a tool's file says arrives in the data, nothing more and nothing less."""

import gzip
import json
from pathlib import Path

import pytest

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
