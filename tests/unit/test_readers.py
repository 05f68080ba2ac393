"""Each reader reads what its tool writes today."""

import cProfile
import doctest
import gzip
import json
import pstats
import sqlite3
import subprocess
import sys
from pathlib import Path

import line_profiler
import pytest
import torch
from line_profiler import LineProfiler

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
    assert left.get(("keep:8",), 0) < 1000 < left["keep:7",]
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


def test_a_trace_of_2021_gets_the_names_of_today(tmp_path: Path) -> None:
    old = ["Operator", "Runtime", "Kernel", "Memcpy", "Memset", "Trace"]
    rows = [{"ph": "X", "cat": cat, "name": "x", "ts": n, "dur": 1} for n, cat in enumerate(old)]
    (tmp_path / "trace").write_text(json.dumps(rows))  # a bare list is a Chrome trace, too
    found = readers.chrome_trace(tmp_path / "trace").cat.tolist()
    assert found == ["cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset", "Trace"]


WHOLE = json.dumps({"traceEvents": EVENTS}).encode()
PACKED = gzip.compress(WHOLE)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (WHOLE[:-20], "t.json is cut off, or no JSON .*: let the profiler stop"),
        (PACKED[:-20], "t.json is cut off, or no JSON .*: let the profiler stop"),
        (PACKED[:30] + b"!!" + PACKED[32:], "t.json is cut off, or no JSON"),
        (PACKED[:-8] + b"12345678", "t.json is cut off, or no JSON"),
        (b"\xff\xfe\xfd", "t.json is cut off, or no JSON"),
        (b"{}", "t.json holds 0 events, .* a trace of another tool or version"),
        (
            b'[{"ph": "X", "cat": "GPU", "name": "x", "ts": 1, "dur": 1}]',
            r"holds 1 events, .* but \['GPU'\]: a trace of another tool or version",
        ),
    ],
    ids=["json", "gz", "damaged", "checksum", "no text", "empty", "another tool"],
)
def test_what_is_no_trace_gets_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        readers.chrome_trace(tmp_path / "t.json")


def test_a_report_without_kernels_gets_a_sentence() -> None:
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE KERNELS (start)")
        db.execute("CREATE TABLE NVTX_EVENTS (start)")
        db.execute("INSERT INTO NVTX_EVENTS VALUES (1)")
        readers.nsys_has(db, "NVTX_EVENTS")
        for missing in ("KERNELS", "COPIES"):  # one empty, one not there
            sentence = f"nothing in {missing}: .* in nsys profile -t .* has KERNELS, NVTX_EVENTS"
            with pytest.raises(ValueError, match=sentence):
                readers.nsys_has(db, "NVTX_EVENTS", missing)


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


def test_only_rows_of_equal_batch_size_are_set_side_by_side(tmp_path: Path) -> None:
    head = "model,img_size,batch_size,samples_per_sec\n"
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    before.write_text(head + "a,224,8,10.0\nb,224,8,20.0\nb,288,8,15.0\nc,224,8,1.0\nd,224,4,2.0\n")
    after.write_text(
        head + "d,224,4,3.0\nc,288,8,9.0\nb,288,8,30.0\nb,224,16,50.0\na,224,16,40.0\n"
    )
    columns = ["model", "img_size", "batch_size", "before", "after"]
    table = readers.same_batch(before, after)
    assert table.columns.tolist() == columns
    assert table.values.tolist() == [["b", 288, 8, 15.0, 30.0], ["d", 224, 4, 2.0, 3.0]]
    assert table.index.tolist() == [0, 1]
    assert readers.same_batch(before, after, "d").values.tolist() == [["d", 224, 4, 2.0, 3.0]]
    assert readers.same_batch(before, after, "b", "d").model.tolist() == ["b", "d"]
    with pytest.raises(ValueError, match=r"a must .*batches of 8 and 16 came"):
        readers.same_batch(before, after, "b", "a")
    with pytest.raises(ValueError, match=r"c must .*, but no such rows came"):
        readers.same_batch(before, after, "c")
