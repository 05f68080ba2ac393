"""Chrome traces are read as they are written, or refused in a sentence."""

import gzip
import json
import math
import sys
from pathlib import Path

import pandas as pd
import pytest
from torch.profiler import schedule

from helpers import recordings, terminal, traces

COMPLETE = b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "x", "ts": 1, "dur": 1}]}'
PACKED = gzip.compress(COMPLETE)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (COMPLETE[:-20], "t.json is cut off, or no JSON .*: let the profiler stop"),
        (PACKED[:30] + b"!!" + PACKED[32:], "t.json is cut off or damaged"),
        (COMPLETE.replace(b'"x"', b'"{"a": 1}"'), "t.json is whole, but not JSON at line 1, near "),
        (COMPLETE + b"{}", "t.json is whole, but not JSON at line 1, near "),
        (b"", "t.json is no trace: give the .json or .json.gz of torch.profiler"),
        (b"{}", "t.json holds 0 events: it is no trace"),
        (b'[{"ph": "X", "cat": "GPU", "name": "x", "ts": 1, "dur": 1}]', r"but \['GPU'\]: a trace"),
    ],
    ids=["json", "damaged", "a quote in a name", "two", "empty", "no event", "another tool"],
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
    lone = b'"x", "args": {"a": nan, "b": 1, "c": -inf}'
    (tmp_path / "t.json").write_bytes(COMPLETE.replace(b'"x"', lone))
    (arguments,) = traces.chrome_trace(tmp_path / "t.json").args
    assert arguments["b"] == 1
    assert math.isnan(arguments["a"])
    assert arguments["c"] == -math.inf


def test_a_trace_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a piece ends, also within a number, an escape or a name that must be repaired."""
    names = [rb"a\\b\"c", rb"torch\cuda\__init__", b"caf\xc3\xa9", rb"\u00e9", b"x\x01"]
    events = [
        b'{"ph": "X", "cat": "cpu_op", "name": "%s", "ts": %d, "dur": 12, "args": {"x": nan}}'
        % (name, 1000 + number)
        for number, name in enumerate(names)
    ]
    content = b'{"schemaVersion": 12, "traceEvents": [\n%s\n], "end": 34}\n' % b",\n".join(events)
    (tmp_path / "t.json").write_bytes(content)
    whole = traces.chrome_trace(tmp_path / "t.json")
    assert whole.name.tolist() == [r'a\b"c', r"torch\cuda\__init__", "caf\u00e9", "\u00e9", "x\x01"]
    for size in (*range(1, 40), 97, 256):
        monkeypatch.setattr(recordings, "_PIECE", size)
        monkeypatch.setattr(recordings, "_MARGIN", 150)
        about: dict = {}
        found = [*recordings.read_events(tmp_path / "t.json", about)]
        assert [event["name"] for event in found] == whole.name.tolist()
        assert about == {"schemaVersion": 12, "end": 34}


def test_an_error_far_from_the_end_is_named_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "_PIECE", 50)
    monkeypatch.setattr(recordings, "_MARGIN", 20)
    event = COMPLETE[17:-2]
    content = b",\n".join([*[event] * 3, event.replace(b'"x"', b'"{"a": 1}"'), *[event] * 9])
    (tmp_path / "t.json").write_bytes(b"[" + content + b"]")
    with pytest.raises(ValueError, match=r"is whole, but not JSON at line 4, near .*a"):
        traces.chrome_trace(tmp_path / "t.json")
    (tmp_path / "t.json").write_bytes(b"[" + content.replace(b'{"a": 1}', b"")[:-20])
    with pytest.raises(ValueError, match=r"is cut off, or no JSON .* line 13\)"):
        traces.chrome_trace(tmp_path / "t.json")


@pytest.mark.everything
@pytest.mark.skipif(sys.platform == "win32", reason="resource is not on Windows")
def test_a_large_trace_takes_little_memory(tmp_path: Path) -> None:
    """150 MB of it, of which a summary needs little, in a process of its own."""
    arguments = {"Python id": 1, "names": ["x" * 1000]}
    event = {"ph": "X", "cat": "cpu_op", "name": "f", "ts": 1, "dur": 1, "args": arguments}
    line = json.dumps(event) + ",\n"
    with (tmp_path / "t.json").open("w") as file:
        file.write("[\n")
        file.writelines(line for _ in range(150_000_000 // len(line)))
        file.write(json.dumps(event) + "\n]\n")
    code = (
        "import resource; from helpers import recordings\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak(); recordings.answer('t.json'); print(peak() - before)"
    )
    unit = 1 if sys.platform == "darwin" else 1024
    grown = int(terminal.run(["python", "-c", code], tmp_path).stdout) * unit
    assert grown < (tmp_path / "t.json").stat().st_size / 2


def test_a_command_may_go_on_in_the_next_line() -> None:
    flags, program = traces.nsys_command("nsys profile -t cuda \\\n  -ftrue \\\n  python a.py -f 1")
    assert (flags, program) == (["-t cuda", "-ftrue"], ["python", "a.py", "-f", "1"])


def test_operators_are_fractions_of_their_part() -> None:
    columns = ["ph", "name", "ts", "dur"]
    operators = [["X", "conv", 110, 20], ["X", "inner", 115, 5], ["X", "add", 160, 10]]
    parts = pd.DataFrame({"ts": [100.0], "dur": [50.0]}, index=["forward"])
    rows = traces.operator_lanes(pd.DataFrame(operators, columns=columns), parts)
    assert rows == {"forward": {"operator": [pytest.approx((0.2, 0.4))]}}


def test_a_schedule_names_what_happens_to_each_step() -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    rows = traces.schedule_rows(plan, 5, {"file": ["ProfilerStep#2", "ProfilerStep#3", "add"]})
    assert rows == {
        "schedule": ["wait", "warm-up", "active", "active", "wait"],
        "file": ["", "", "kept", "kept", ""],
    }
