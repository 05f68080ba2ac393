"""Chrome traces and reports of nsys are read as they are written, or refused in a sentence."""

import gzip
import math
import sqlite3
from pathlib import Path

import pytest

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
