"""The numbers that lesson 06 prints are those of another computation, gpu_timeline.toml."""

import json
import math
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from helpers.traces import chrome_trace
from tools import notebooks

LESSON = notebooks.NOTEBOOKS / "06_gpu_timeline.ipynb"
TABLE = tomllib.loads(Path(__file__).with_name("gpu_timeline.toml").read_text(encoding="utf-8"))
ROWS = [(cell, row) for cell, rows in TABLE.items() for row in rows]


@cache
def printed(cell_id: str) -> str:
    """What a cell printed, without the commas between the thousands of its numbers."""
    (cell,) = (cell for cell in notebooks.read(LESSON).cells if cell.id == cell_id)
    texts = [text for kind, text in notebooks.texts(cell.outputs) if kind != "text/html"]
    return re.sub(r"(?<=\d),(?=\d{3})", "", "\n".join(texts))


@pytest.mark.parametrize(("cell", "row"), ROWS)
def test_a_number_is_that_of_the_other_computation(cell: str, row: str) -> None:
    line = next(line for line in printed(cell).splitlines() if row in line).split(row, 1)[1]
    numbers = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", line)
    for number, expected in zip(numbers, TABLE[cell][row], strict=True):
        half_a_digit = 0.51 * 10 ** -len(number.partition(".")[2])
        if not math.isnan(expected):
            assert float(number) == pytest.approx(expected, abs=half_a_digit)


def test_a_step_counts_once(tmp_path: Path) -> None:
    """A reader's own trace has each mark a second time, as long as the GPU's work on it."""
    mark = {"ph": "X", "name": "ProfilerStep#1", "ts": 0, "dur": 9, "args": {"correlation": 1}}
    events = [mark | {"cat": cat} for cat in ("user_annotation", "gpu_user_annotation", "kernel")]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    (cell,) = [cell for cell in notebooks.read(LESSON).cells if cell.id == "setup-read"]
    lesson = {"chrome_trace": chrome_trace}
    exec(cell.source.split("names =")[0], lesson)
    rows, *_ = lesson["read"](tmp_path / "trace.json")
    assert sorted(rows.cat) == ["kernel", "user_annotation"]


def gpu_trace(gpus: int, runtime: str) -> dict[str, list]:
    """A trace of 20 kernels of 100 µs that ``gpus`` run in turn, each 10 µs after its launch."""
    events = []
    for number in range(20):
        launch = {"cat": runtime, "name": "launch", "pid": 9, "ts": 100 * number + 10, "dur": 5}
        kernel = {"cat": "kernel", "name": "gemm", "pid": number % gpus, "dur": 100}
        kernel["ts"] = 100 * number + 20
        events += [
            event | {"ph": "X", "args": {"correlation": number}} for event in (launch, kernel)
        ]
    return {"traceEvents": events}


@pytest.mark.parametrize(
    ("gpus", "runtime", "expected"),
    [
        (1, "cuda_runtime", "GPU 0 busy for 100%, median delay 10 µs"),
        (1, "xpu_runtime", "GPU 0 busy for 100%, median delay 10 µs"),
        (1, "other", "GPU 0 busy for 100%, no launch of its work was recorded"),
        (2, "cuda_driver", "; ".join(f"GPU {n} busy for 53%, median delay 10 µs" for n in (0, 1))),
    ],
)
def test_a_trace_of_your_own(tmp_path: Path, gpus: int, runtime: str, expected: str) -> None:
    cells = {cell.id: cell.source for cell in notebooks.read(LESSON).cells}
    lesson = {"chrome_trace": chrome_trace}
    exec(cells["setup-read"].split("names =")[0], lesson)
    exec(cells["busy-function"], lesson)
    exec(cells["yours-read"].split("answers =")[0], lesson)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(gpu_trace(gpus, runtime)))
    assert lesson["answer"](path) == expected
