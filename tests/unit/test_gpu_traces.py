"""What a GPU and its CPU did is read from a trace, and cut to the window of a chart."""

import json
from pathlib import Path

import pandas as pd
import pytest

from helpers import gpu_traces

# Three launches of 2 µs, 10 µs apart; kernels of 20 µs, which therefore wait for one another.
PAIRS = pd.DataFrame(
    {
        "ts": [105.0, 125.0, 145.0],
        "dur": 20.0,
        "end": [125.0, 145.0, 165.0],
        "name": ["gemm", "ncclKernel", "gemm"],
        "ts_call": [100.0, 110.0, 120.0],
        "dur_call": 2.0,
        "name_call": "cudaLaunchKernel",
    }
)


def test_a_step_counts_once(tmp_path: Path) -> None:
    """A reader's own trace has each mark a second time, as long as the GPU's work on it."""
    mark = {"ph": "X", "name": "ProfilerStep#1", "ts": 0, "dur": 9, "args": {"correlation": 1}}
    kinds = ["user_annotation", "gpu_user_annotation", "kernel", "cuda_runtime"]
    events = [mark | {"cat": kind} for kind in kinds]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    rows, device, calls = gpu_traces.read(tmp_path / "trace.json")
    assert sorted(rows.cat) == ["cuda_runtime", "kernel", "user_annotation"]
    assert device.correlation.tolist() == calls.correlation.tolist() == [1]
    assert device.end.tolist() == [9]


def test_the_queue_holds_what_was_launched_and_has_not_begun() -> None:
    assert gpu_traces.waiting(PAIRS) == [0, 0, 1]


def test_a_window_begins_at_its_start() -> None:
    launches, work, queue = gpu_traces.launch_window(PAIRS, start=110.0, length=20.0)
    assert launches == pytest.approx([0.0, 10e-6])
    assert work == [pytest.approx((15e-6, 20e-6))]
    assert queue == [0, 1]


def test_every_second_launch_is_joined_to_its_kernel() -> None:
    chart = gpu_traces.launch_lanes({"A": PAIRS}, every=2, busy={"A": 0.92})
    assert chart["links"] == [
        (("A: launches", 0.0), ("A: GPU", pytest.approx(5e-6))),
        (("A: launches", pytest.approx(20e-6)), ("A: GPU", pytest.approx(45e-6))),
    ]
    assert chart["notes"] == {"A: launches": "median delay\n15.0 µs", "A: GPU": "GPU busy\n92%"}


def test_what_lies_outside_of_the_window_is_not_drawn() -> None:
    chart = gpu_traces.launch_lanes({"A": PAIRS}, every=1, length=15.0)
    assert len(chart["rows"]["A: launches"]["launch"]) == 2
    assert chart["rows"]["A: GPU"]["GPU operation"] == [pytest.approx((5e-6, 10e-6))]
    assert len(chart["links"]) == 1


MARKS = pd.DataFrame({"name": ["ProfilerStep#7"], "ts": [99.0], "end": [115.0]})


def test_a_step_on_the_gpu_goes_from_its_first_to_its_last_operation() -> None:
    steps = gpu_traces.steps(MARKS, PAIRS)
    assert steps.loc["7"].tolist() == [99.0, 115.0, 105.0, 145.0]
    chart = gpu_traces.step_tracks(steps)
    assert chart["tracks"]["GPU"] == [(pytest.approx(105e-6), pytest.approx(40e-6), "7", 0)]
    assert chart["links"] == [(("CPU", pytest.approx(99e-6)), ("GPU", pytest.approx(105e-6)))]


def test_an_exchange_between_gpus_is_a_kind_of_its_own() -> None:
    lanes = gpu_traces.step_lanes({"A": (PAIRS, gpu_traces.steps(MARKS, PAIRS))}, length=50.0)
    assert lanes["A"]["GPU operation"] == [
        (0.0, pytest.approx(20e-6)),
        pytest.approx((40e-6, 1e-5)),
    ]
    assert lanes["A"]["NCCL"] == [pytest.approx((20e-6, 20e-6))]
    assert lanes["A"]["end of a step"] == [(pytest.approx(40e-6), 0.0)]


def test_steps_with_their_loading_and_their_copies() -> None:
    names = [f"ProfilerStep#{n}" for n in range(6)] + ["enumerate(DataLoader)#next"] * 6
    rows = pd.DataFrame({"name": names, "ts": [100.0 * n for n in range(6)] * 2})
    rows["dur"] = [100.0] * 6 + [30.0] * 6
    rows["end"] = rows.ts + rows.dur
    copies = pd.DataFrame({"name_call": "cudaMemcpyAsync", "dur_call": [2000.0] * 6 + [5.0]})
    copies["ts_call"] = [100.0 * n + 30 for n in range(6)] + [0.0]
    steps, loading, middle_copies = gpu_traces.middle_steps(rows, copies)
    assert steps.ts.tolist() == loading.ts.tolist() == [100, 200, 300, 400]
    assert middle_copies.ts_call.tolist() == [130, 230, 330, 430]
    assert gpu_traces.loading_parts(steps, loading)["notes"]["step 1"] == "30% loading"
    programs = {"none": (PAIRS, steps, loading, middle_copies)}
    lanes = gpu_traces.loading_lanes(programs, length=100.0)
    assert lanes["none: CPU"]["loading"] == [(0.0, pytest.approx(30e-6))]
    assert lanes["none: CPU"]["copy call"] == [pytest.approx((30e-6, 70e-6))]
    assert lanes["none: GPU"]["end of a step"] == [(pytest.approx(100e-6), 0.0)]


def test_a_call_that_waits_stands_below_the_operators_around_it() -> None:
    rows = PAIRS.assign(cat="kernel")
    operator = {"cat": "cpu_op", "name": "aten::nonzero", "ts": 100.0, "dur": 61.0, "end": 161.0}
    rows = pd.concat([rows, pd.DataFrame([operator, operator | {"name": "aten::add", "end": 120}])])
    pair = pd.Series(
        {"name_call": "copy", "ts_call": 100.0, "dur_call": 60.0, "ts": 158.0, "dur": 1}
    )
    chart = gpu_traces.waiting_call_lanes(rows, pair)
    assert list(chart["rows"]) == ["CPU: nonzero", "CPU: copy", "GPU: the copy", "GPU: kernels"]
    assert chart["links"] == [
        (("CPU: copy", pytest.approx(10e-6)), ("GPU: the copy", pytest.approx(68e-6)))
    ]


def test_short_and_long_kernels_add_up_to_everything() -> None:
    short = pd.DataFrame({"kernels": [0.556], "time": [0.006]}, index=["sam"])
    chart = gpu_traces.short_and_long(short)
    assert chart["notes"] == {"sam: number": "55.6% short", "sam: time": "0.6% short"}
    for parts in chart["rows"].values():
        assert sum(duration for ((_, duration),) in parts.values()) == pytest.approx(1)
