"""Chrome traces and reports of nsys are read as they are written, or refused in a sentence."""

import gzip
import math
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from helpers import traces

COMPLETE = b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 1}]}'
PACKED = gzip.compress(COMPLETE)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (COMPLETE[:-20], "t.json is cut off, or no JSON .*: let the profiler stop"),
        (PACKED[:30] + b"!!" + PACKED[32:], "t.json is cut off or damaged"),
        (COMPLETE.replace(b'"x"', b'"{"a": 1}"'), "t.json is whole, but not JSON at line 1, near "),
        (b"{}", "t.json holds 0 events, .* a trace of another tool or version"),
        (b'[{"ph": "X", "cat": "GPU", "name": "x", "ts": 1, "dur": 1}]', r"but \['GPU'\]: a trace"),
    ],
    ids=["json", "damaged", "a quote in a name", "empty", "another tool"],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        traces.chrome_trace(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"config.py(0): \x01", "config.py(0): \x01"),
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}"),
        (rb"torch\cuda\__init__.py", r"torch\cuda\__init__.py"),
        (rb"torch\\cuda\"s\_a", r'torch\cuda"s\_a'),
    ],
    ids=["control character", "no UTF-8", "Windows path", "escapes"],
)
def test_a_name_that_is_not_strict_json_is_read(tmp_path: Path, written: bytes, read: str) -> None:
    (tmp_path / "t.json").write_bytes(COMPLETE.replace(b'"x"', b'"%s"' % written))
    assert traces.chrome_trace(tmp_path / "t.json").name.tolist() == [read]


def test_a_lone_nan_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(COMPLETE.replace(b'"x"', b'"x", "args": {"a": nan, "b": 1}'))
    (arguments,) = traces.chrome_trace(tmp_path / "t.json").args
    assert arguments["b"] == 1
    assert math.isnan(arguments["a"])


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


def test_a_command_may_go_on_in_the_next_line() -> None:
    flags, program = traces.nsys_command("nsys profile -t cuda \\\n  -ftrue \\\n  python a.py -f 1")
    assert (flags, program) == (["-t cuda", "-ftrue"], ["python", "a.py", "-f", "1"])


def test_operators_are_fractions_of_their_part() -> None:
    columns = ["ph", "name", "ts", "dur"]
    operators = [["X", "conv", 110, 20], ["X", "inner", 115, 5], ["X", "add", 160, 10]]
    parts = pd.DataFrame({"ts": [100.0], "dur": [50.0]}, index=["forward"])
    rows = traces.operator_lanes(pd.DataFrame(operators, columns=columns), parts)
    assert rows == {"forward": {"operator": [pytest.approx((0.2, 0.4))]}}


def test_the_memory_of_a_profile_rises_and_falls() -> None:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        values = torch.ones(1000)
        doubled = 2 * values
        del values, doubled
    sizes = [size for _, size in traces.memory_curve(prof)]
    assert sizes[0] == sizes[-1] == 0
    assert 8000 <= max(sizes) < 10_000


def test_a_schedule_names_what_happens_to_each_step() -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    rows = traces.schedule_rows(plan, 5, {"file": ["ProfilerStep#2", "ProfilerStep#3", "add"]})
    assert rows == {
        "schedule": ["wait", "warm-up", "active", "active", "wait"],
        "file": ["", "", "kept", "kept", ""],
    }
