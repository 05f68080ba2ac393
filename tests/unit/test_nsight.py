"""Readers of what nsys and ncu report."""

import random
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from helpers import nsight, recordings


def test_each_flag_is_accepted_refused_or_passed_on() -> None:
    answers = {
        "-o report": {"accepted": True},
        "-f true": {"accepted": True},
        "--old=1": {"accepted": False},
        "--stats=true": {"accepted": True},
    }
    lines = ["nsys profile python a.py", "nsys profile -o x --old=1 python a.py --stats true"]
    assert nsight.flag_outcomes(lines, answers) == {
        "(no flag)": {"command 1": "accepted"},
        "-o x": {"command 2": "accepted"},
        "--old=1": {"command 2": "refused"},
        "--stats": {"command 2": "passed on"},
    }


def test_steps_after_the_end_of_a_program_are_not_run() -> None:
    def run(ranges: list[int] | None, finished: bool) -> dict:
        names = None if ranges is None else {f"step {step}": 1 for step in ranges}
        return {"ranges": names, "program finished": finished, "status": 0 if finished else 143}

    runs = {"all": run([0, 1, 2], True), "ended": run([1], False), "none": run(None, True)}
    rows = nsight.recorded_steps(runs, steps=3)
    assert [list(row.values()) for row in rows.values()] == [
        ["recorded", "recorded", "recorded"],
        ["only run", "recorded", "not run"],
        ["only run", "only run", "only run"],
    ]
    assert list(rows)[1] == "ended (status 143)"
    assert list(rows["all (status 0)"]) == ["step 0", "step 1", "step 2"]


PROCESS = 7 << 24
COLUMNS = {
    "StringIds": "id, value",
    "NVTX_EVENTS": "start, end, eventType, text, textId, globalTid",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, correlationId, globalTid",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, correlationId, globalPid, demangledName",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start, end, deviceId, correlationId, globalPid",
}


def written(file: Path, tables: dict[str, list[tuple]], **columns: str) -> Path:
    """A report with these rows; ``columns`` are those of tables that differ from today's."""
    db = sqlite3.connect(file)
    for table, rows in tables.items():
        db.execute(f"CREATE TABLE {table} ({columns.get(table, COLUMNS[table])})")
        for row in rows:
            db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    db.commit()
    db.close()
    return file


REPORT = {
    "StringIds": [(5, "Copy 1"), (6, "gemm")],
    "NVTX_EVENTS": [
        (0, 1_000_000, 59, "Compute 1", None, PROCESS + 1),
        (1_000_000, 9_000_000, 59, None, 5, PROCESS + 1),
        (0, 0, 34, "mark", None, 0),
    ],
    "CUPTI_ACTIVITY_KIND_RUNTIME": [(500_000, 600_000, 3, PROCESS + 1)],
    "CUPTI_ACTIVITY_KIND_KERNEL": [
        (2_000_000, 8_000_000, 0, 3, PROCESS, 6),
        (2_000_000, 8_000_000, 1, 3, 8 << 24, 6),
    ],
}


@pytest.fixture
def report(tmp_path: Path) -> sqlite3.Connection:
    """A report in which the range "Compute 1" launches the kernel that runs during "Copy 1"."""
    with recordings.open_report(written(tmp_path / "report.sqlite", REPORT)) as opened:
        return opened


def test_a_report_has_named_ranges_of_kinds(report: sqlite3.Connection) -> None:
    rows = report.execute("SELECT name, kind, duration FROM ranges ORDER BY start").fetchall()
    assert rows == [("Compute 1", "Compute", 1_000_000), ("Copy 1", "Copy", 8_000_000)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        report.execute("DELETE FROM StringIds")


def test_a_kernel_belongs_to_the_range_that_launched_it(report: sqlite3.Connection) -> None:
    rows = report.execute("SELECT * FROM work ORDER BY kind, deviceId").fetchall()
    assert rows == [
        ("Compute", 0, 6_000_000, 0),
        ("Compute", 1, 0, 0),  # process 8 launched that kernel, and none of its calls is here
        ("Copy", 0, 0, 6_000_000),
        ("Copy", 1, 0, 6_000_000),
    ]


def test_a_report_gets_the_same_answer_as_a_trace(tmp_path: Path) -> None:
    graph = {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [(9_000_000, 12_000_000, 0, 4, PROCESS)]}
    answer = recordings.answer(written(tmp_path / "report.sqlite", REPORT | graph))
    assert answer.split("; ") == [
        "GPU 0 busy for 90% of 10.0 ms, median delay 1.50 ms, 1 of 2 launches not recorded",
        "GPU 1 busy for 100% of 6.00 ms, no launch of its work was recorded",
    ]


def test_all_calls_of_an_operator_have_one_name(tmp_path: Path) -> None:
    """emit_nvtx adds a number to each name; an export of an older nsys has no textId."""
    names = ["mm, op_id = 7", "mm, seq = 3, op_id = 8", "mm, op_id = 9, sizes = [[2, 2]]", "mm"]
    rows = [(n, n + 1, 59, name, 1) for n, name in enumerate(names)]
    file = written(
        tmp_path / "old.sqlite",
        {"NVTX_EVENTS": rows},
        NVTX_EVENTS="start, end, eventType, text, globalTid",
    )
    with recordings.open_report(file) as report:
        assert report.execute("SELECT name, count(*) FROM ranges GROUP BY name").fetchall() == [
            ("mm", 4)
        ]


def test_a_program_without_nvtx_has_no_range(tmp_path: Path) -> None:
    tables = {name: rows for name, rows in REPORT.items() if name != "NVTX_EVENTS"}
    with recordings.open_report(written(tmp_path / "report.sqlite", tables)) as report:
        assert report.execute("SELECT name, kind, duration FROM ranges").fetchall() == []
        with pytest.raises(ValueError, match="the report holds nothing in NVTX_EVENTS: no such"):
            recordings.require_tables(report, "NVTX_EVENTS", "StringIds")


def test_work_is_what_a_comparison_of_all_rows_finds(tmp_path: Path) -> None:
    """Overlapping kernels of two GPUs, nested ranges, against each moment of a short time."""
    rng = random.Random(1)
    moments, thread = range(400), PROCESS + 1
    ranges = [sorted(rng.sample(moments, 2)) for _ in range(40)]
    calls = [rng.choice(moments) for _ in range(60)]
    kernels = [(call + rng.randrange(30), rng.randrange(1, 25), rng.randrange(2)) for call in calls]
    tables = {
        "NVTX_EVENTS": [
            (start, end, 59, f"{'ab'[number % 2]} {number}", None, thread)
            for number, (start, end) in enumerate(ranges)
        ],
        "StringIds": [],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [(t, t + 1, n, thread) for n, t in enumerate(calls)],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            (start, start + length, device, number, PROCESS, None)
            for number, (start, length, device) in enumerate(kernels)
        ],
    }
    with recordings.open_report(written(tmp_path / "report.sqlite", tables)) as report:
        found = report.execute("SELECT * FROM work ORDER BY kind, deviceId").fetchall()
        plan = report.execute(
            "EXPLAIN QUERY PLAN SELECT kind, max(running) FROM work GROUP BY kind"
        )
        assert not [row for row in plan if "ranges" in row[3] or "CUPTI" in row[3]]
    expected = []
    for kind, device in (("a", 0), ("a", 1), ("b", 0), ("b", 1)):
        own = [kernel for kernel in zip(calls, kernels, strict=True) if kernel[1][2] == device]
        busy = {t for _, (start, length, _) in own for t in range(start, start + length)}
        inside = ranges["ab".index(kind) :: 2]
        launched = sum(k[1] for s, e in inside for call, k in own if s <= call <= e)
        running = sum(len(busy & set(range(s, e))) for s, e in inside)
        expected.append((kind, device, launched, running))
    assert found == expected


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"nsys", r"r.sqlite is no database: type nsys export -t sqlite r.nsys-rep"),
        (None, r"r.sqlite is a database, but no report of nsys: its tables are \['StringIds'\]"),
        (b"SQLite format 3\0" + bytes(100), "r.sqlite is cut off or damaged .*: export it again"),
    ],
    ids=["another file", "another database", "damaged"],
)
def test_a_file_that_is_no_report_is_refused(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    file = written(tmp_path / "r.sqlite", {"StringIds": []})
    if content:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        recordings.open_report(file)


def test_a_report_without_kernels_is_refused() -> None:
    with sqlite3.connect(":memory:") as report:
        report.execute("CREATE TABLE KERNELS (start)")
        report.execute("CREATE TABLE NVTX_EVENTS (start)")
        report.execute("INSERT INTO NVTX_EVENTS VALUES (1)")
        recordings.require_tables(report, "NVTX_EVENTS")
        for missing in ("KERNELS", "COPIES"):  # one empty, one not there
            sentence = f"nothing in {missing}: .* in nsys profile -t .* has KERNELS, NVTX_EVENTS"
            with pytest.raises(ValueError, match=sentence):
                recordings.require_tables(report, "NVTX_EVENTS", missing)


def test_spans_are_those_of_ranges_and_kernels(report: sqlite3.Connection) -> None:
    spans = nsight.spans(report)
    assert spans["name"].tolist() == ["Compute", "Copy", "kernels", "kernels"]
    assert spans["duration"].tolist() == [0.001, 0.008, 0.006, 0.006]


def test_tracks_join_spans_that_follow_each_other() -> None:
    rows = [
        ("kernels", 1.0, 0.5),
        ("kernels", 1.500_01, 0.5),
        ("Copy", 1.6, 0.1),
        ("kernels", 2.1, 0.1),
        ("kernels", 9.0, 0.1),
        ("other", 1.0, 0.1),
    ]
    ranges = pd.DataFrame(rows, columns=["name", "start", "duration"])
    tracks = nsight.tracks(ranges, {"Copy": "CPU", "kernels": "GPU"}, between=(0.5, 5))
    assert tracks == {
        "CPU": [(1.6, 0.1, "Copy", 0)],
        "GPU": [(1.0, pytest.approx(1.000_01), "kernels", 0), (2.1, 0.1, "kernels", 0)],
    }


def test_tracks_become_spans_in_milliseconds() -> None:
    assert nsight.in_milliseconds({"CPU": [(1.5, 0.25, "Copy", 0)], "GPU": []}) == [
        ("CPU", 1500, 1750, "Copy")
    ]


def test_a_row_is_busy_for_the_sum_of_its_spans() -> None:
    assert nsight.busy({"CPU": [(1, 0.5, "a", 0), (2, 0.25, "b", 0)]}) == {"CPU": 0.75}


def test_counters_of_ncu_have_a_row_per_kernel(tmp_path: Path) -> None:
    file = tmp_path / "ncu.csv"
    file.write_text(
        'Kernel Name,Metric Name,Metric Value\n"gemm_naive_kernel(x)",time,"9,000"\n'
        '"gemm_fast_kernel(x)",time,"2,000"\n"gemm_fast_kernel(x)",other,1\n'
    )
    table = nsight.ncu_counters(file, {"time, µs": ("time", 1000)}, name=r"gemm_(\w+)_kernel")
    assert table["time, µs"].to_dict() == {"naive": 9.0, "fast": 2.0}
