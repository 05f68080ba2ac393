"""The numbers of lesson 06 are those of another computation, gpu_timeline.toml."""

import json
import math
import os
import re
import tomllib
from functools import cache
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest

from helpers import gpu_traces, recordings
from tools import notebooks

LESSON = notebooks.NOTEBOOKS / "06_gpu_timeline.ipynb"
TABLE = tomllib.loads(Path(__file__).with_name("gpu_timeline.toml").read_text(encoding="utf-8"))


read = cache(notebooks.read)


def rows_of(part: str) -> list[tuple[str, str]]:
    return [(name, row) for name, rows in TABLE[part].items() for row in rows]


@cache
def printed(cell_id: str) -> str:
    """What a cell printed, without the commas between the thousands of its numbers."""
    (cell,) = (cell for cell in read(LESSON).cells if cell.id == cell_id)
    texts = [text for kind, text in notebooks.texts(cell.outputs) if kind != "text/html"]
    return re.sub(r"(?<=\d),(?=\d{3})", "", "\n".join(texts))


@pytest.fixture(scope="module")
def lesson() -> dict:
    """What the cells above "At home" compute; charts are not drawn."""
    names: dict = {}
    folder = Path.cwd()
    os.chdir(LESSON.parent)
    try:
        with mock.patch("helpers.plotting._canvas.show"), mock.patch("helpers.plotting.activity"):
            for cell in read(LESSON).cells:
                if cell.source.startswith("## At home"):
                    break
                is_check = "hide-input" in cell.metadata.get("tags", [])
                if cell.cell_type == "code" and not (is_check or notebooks.is_prediction(cell)):
                    exec(cell.source, names)
    finally:
        os.chdir(folder)
    return names


@pytest.mark.parametrize(("frame", "row"), rows_of("computed"))
def test_a_number_behind_a_chart_is_that_of_the_other_computation(
    frame: str, row: str, lesson: dict
) -> None:
    expected = TABLE["computed"][frame][row]
    assert lesson[frame].loc[row].tolist() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("gpu", ["v100", "a100"])
def test_delays_and_queues_are_those_of_the_other_computation(gpu: str, lesson: dict) -> None:
    pairs = lesson[gpu]
    queue = pd.Series(gpu_traces.waiting(pairs))
    found = [pairs.delay.median(), queue.median(), queue.max(), pairs.dur_call.median()]
    assert found == pytest.approx(TABLE["launches"][gpu], rel=1e-3)


@pytest.mark.parametrize(("cell", "row"), rows_of("printed"))
def test_a_printed_number_is_that_of_the_other_computation(cell: str, row: str) -> None:
    line = next(line for line in printed(cell).splitlines() if row in line).split(row, 1)[1]
    numbers = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", line)
    for number, expected in zip(numbers, TABLE["printed"][cell][row], strict=True):
        half_a_digit = 0.51 * 10 ** -len(number.partition(".")[2])
        if not math.isnan(expected):
            assert float(number) == pytest.approx(expected, abs=half_a_digit)


@pytest.mark.parametrize("name", ["a100_resnet50", "a100_sam", "h100_bert", "v100_workers4"])
def test_the_answer_is_that_of_the_lesson(name: str, lesson: dict) -> None:
    """``busy``, which the lesson explains, and the helper behind ``answer`` find the same."""
    _, device, calls = lesson["traces"][name]
    start, end = device.ts.min(), device.end.max()
    pairs = lesson["pairs_of"](name)
    work, _ = recordings.gpu_work(notebooks.ROOT / f"assets/recordings/gpu/{name}.json.gz")
    row = recordings.by_device(work).loc[0]
    assert row.busy == pytest.approx(lesson["busy"](device, start, end) / (end - start))
    assert row.delay == pytest.approx(pairs.delay.median(), rel=1e-3)
    assert row.operations - row["no launch"] == len(pairs)
    assert len(calls) > 0


def gpu_trace(gpus: int, runtime: str, operation: dict | None = None) -> dict[str, list]:
    """A trace of 20 kernels of 100 µs that ``gpus`` run in turn, each 10 µs after its launch.

    ``operation`` replaces what it names in every kernel.
    """
    events = []
    for number in range(20):
        launch = {"cat": runtime, "name": "launch", "pid": 9, "ts": 100 * number + 10, "dur": 5}
        kernel = {"cat": "kernel", "name": "gemm", "pid": number % gpus, "dur": 100}
        kernel |= {"ts": 100 * number + 20} | (operation or {})
        events += [
            {"ph": "X", "args": {"correlation": number}} | event for event in (launch, kernel)
        ]
    return {"traceEvents": events}


ONE = "GPU 0 busy for 100% of 2.00 ms"
NEVER = f"{ONE}, no launch of its work was recorded"
TWO = "; ".join(f"GPU {n} busy for 53% of 1.90 ms, median delay 10.0 µs" for n in (0, 1))


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        (gpu_trace(1, "cuda_runtime"), f"{ONE}, median delay 10.0 µs"),
        (gpu_trace(1, "xpu_runtime"), f"{ONE}, median delay 10.0 µs"),
        (gpu_trace(1, "privateuse1_driver"), f"{ONE}, median delay 10.0 µs"),
        (gpu_trace(1, "other"), NEVER),
        (gpu_trace(2, "cuda_driver"), TWO),
        (gpu_trace(1, "cuda_runtime", {"args": {}}), NEVER),
        (gpu_trace(1, "cuda_runtime", {"args": None}), NEVER),
        (
            gpu_trace(1, "cuda_runtime", {"args": {"correlation": 3, "device": 5}, "ts": 290}),
            "GPU 5 busy for 100% of 100 µs, median delay -20.0 µs, "
            "20 operations before their launch (two clocks)",
        ),
        (
            {"traceEvents": gpu_trace(1, "cuda_runtime")["traceEvents"][1:]},
            f"{ONE}, median delay 10.0 µs, 1 of 20 launches not recorded",
        ),
        (
            gpu_trace(1, "cuda_runtime", {"dur": None}),
            "no GPU event, so it cannot show who waited; "
            "20 GPU operations without a time were left out",
        ),
        (
            {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "mm", "ts": 1, "dur": 1}]},
            "no GPU event, so it cannot show who waited",
        ),
    ],
    ids=[
        "CUDA",
        "XPU",
        "another",
        "no_call",
        "two_GPUs",
        "no_number",
        "no_args",
        "two_clocks",
        "one_call",
        "no_dur",
        "CPU",
    ],
)
def test_a_trace_of_your_own(tmp_path: Path, trace: dict, expected: str) -> None:
    cells = {cell.id: cell.source for cell in read(LESSON).cells}
    names: dict = {}
    exec(cells["yours-read"].split("answers =")[0], names)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    assert names["answer"](path) == expected


def test_a_number_that_unrelated_calls_share_is_none(tmp_path: Path) -> None:
    """Some profilers write 0 for every call and every kernel."""
    events = [
        event | {"args": {"correlation": 0}} for event in gpu_trace(1, "x_runtime")["traceEvents"]
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    assert recordings.answer(path) == NEVER
