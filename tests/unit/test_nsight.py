"""Readers of what nsys and ncu report."""

import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from helpers import nsight


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


@pytest.fixture
def report(tmp_path: Path) -> sqlite3.Connection:
    """A report in which the range "Compute 1" launches the kernel that runs during "Copy 1"."""
    file = tmp_path / "report.sqlite"
    db = sqlite3.connect(file)
    process = 7 << 24
    db.executescript(f"""
        CREATE TABLE StringIds (id, value);
        INSERT INTO StringIds VALUES (5, 'Copy 1');
        CREATE TABLE NVTX_EVENTS (start, end, eventType, text, textId, globalTid);
        INSERT INTO NVTX_EVENTS VALUES (0, 1000000, 59, 'Compute 1', NULL, {process + 1}),
            (1000000, 9000000, 59, NULL, 5, {process + 1}), (0, 0, 34, 'mark', NULL, 0);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, correlationId, globalTid);
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500000, 600000, 3, {process + 1});
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, correlationId, globalPid);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
            (2000000, 8000000, 3, {process}), (2000000, 8000000, 3, {8 << 24});
    """)
    db.commit()
    db.close()
    with nsight.open_report(file) as opened:
        return opened


def test_a_report_has_named_ranges_of_kinds(report: sqlite3.Connection) -> None:
    rows = report.execute("SELECT name, kind, duration FROM ranges ORDER BY start").fetchall()
    assert rows == [("Compute 1", "Compute", 1_000_000), ("Copy 1", "Copy", 8_000_000)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        report.execute("DELETE FROM StringIds")


def test_a_kernel_belongs_to_the_range_that_launched_it(report: sqlite3.Connection) -> None:
    assert nsight.launched(report).to_dict() == {"Compute": 6.0}  # not that of process 8


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


def test_recorded_times_are_printed_in_milliseconds() -> None:
    assert nsight.milliseconds(0.0412) == "41 ms"


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
