"""Chrome traces and reports of nsys are read as they are written, or refused in a sentence."""

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from helpers import traces

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 5000.0, "args": {"name": "x"}},
    {"ph": "X", "cat": "cpu_op", "name": "inner", "pid": 7, "tid": 1, "ts": 1010.0, "dur": 5.0},
    {"ph": "X", "cat": "cpu_op", "name": "next", "pid": 7, "tid": 1, "ts": 1030.0, "dur": 2.0},
    {"ph": "X", "cat": "cpu_op", "name": "outer", "pid": 7, "tid": 1, "ts": 1010.0, "dur": 20.0},
]
COMPLETE = json.dumps({"traceEvents": EVENTS}).encode()
PACKED = gzip.compress(COMPLETE)


@pytest.mark.parametrize("content", [COMPLETE, PACKED], ids=["json", "gz"])
def test_a_chrome_trace_is_in_order_of_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "trace").write_bytes(content)
    trace = traces.chrome_trace(tmp_path / "trace")
    assert trace.columns.tolist() == ["ph", "cat", "name", "ts", "dur", "pid", "tid", "args"]
    assert trace.name.tolist() == ["inner", "outer", "next", "process_name"]
    assert trace.ts.tolist() == [0, 0, 20, 3990]
    assert traces.spans(trace) == [
        (0, 2e-5, "outer", 0),
        (0, 5e-6, "inner", 1),
        (2e-5, 2e-6, "next", 0),
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (COMPLETE[:-20], "t.json is cut off, or no JSON .*: let the profiler stop"),
        (PACKED[:30] + b"!!" + PACKED[32:], "t.json is cut off, or no JSON"),
        (b"{}", "t.json holds 0 events, .* a trace of another tool or version"),
        (b'[{"ph": "X", "cat": "GPU", "name": "x", "ts": 1, "dur": 1}]', r"but \['GPU'\]: a trace"),
    ],
    ids=["json", "damaged", "empty", "another tool"],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        traces.chrome_trace(tmp_path / "t.json")


def test_a_report_without_kernels_is_refused() -> None:
    with sqlite3.connect(":memory:") as report:
        report.execute("CREATE TABLE KERNELS (start)")
        report.execute("CREATE TABLE NVTX_EVENTS (start)")
        report.execute("INSERT INTO NVTX_EVENTS VALUES (1)")
        traces.require_tables(report, "NVTX_EVENTS")
        for missing in ("KERNELS", "COPIES"):  # one empty, one not there
            sentence = f"nothing in {missing}: .* in nsys profile -t .* has KERNELS, NVTX_EVENTS"
            with pytest.raises(ValueError, match=sentence):
                traces.require_tables(report, "NVTX_EVENTS", missing)
