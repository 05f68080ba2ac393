"""What the charts of work and its time say in their alt texts, and what they refuse."""

import re

import pandas as pd
import pytest

from helpers import plotting
from helpers.machine import Ceilings

STEPS = pd.DataFrame(
    {"cpu_start_ms": [0.0, 35.0], "cpu_end_ms": [35.0, 100.0], "gpu_end_ms": [90.0, 185.5]},
    index=[101, 102],
)
ONE, EVERY = Ceilings(50e9, 80e9, 16e9), Ceilings(90e9, 150e9, 20e9)

PICTURES = {  # the arguments of a picture, and its alt text
    "limits_of_computer": [
        ([ONE, EVERY], {}),
        "4 rows of 2 bars. Title: T. matrix multiplication: one thread ~50.0 GFLOP/s, all threads "
        "~90.0 GFLOP/s; convolution: one thread ~80.0 GFLOP/s, all threads ~150 GFLOP/s; copy "
        "(bandwidth): one thread ~16.0 GB/s, all threads ~20.0 GB/s; FLOP per copied value: one "
        "thread ~40.0, all threads ~60.0.",
    ],
    "speed_by_batch": [
        ([{1: 1e-3, 64: 32e-3}, 1e6], {"peak": 10e9}),
        "4 rows of 2 bars. Title: T. latency: batch of 1 ~1.00 ms, batch of 64 ~32.0 ms; "
        "throughput: batch of 1 ~1,000 images/s, batch of 64 ~2,000 images/s; achieved FLOP/s: "
        "batch of 1 ~1.00 GFLOP/s, batch of 64 ~2.00 GFLOP/s; utilisation: batch of 1 ~10.0 %, "
        "batch of 64 ~20.0 %.",
    ],
    "history": [
        ([{"one": [1.0, 1.05], "all": [1.0, 1.2]}], {"limit": 1.1, "lines": {"the step": 1}}),
        "Histories. Title: T. x axis: commit. one: 2 commits, first ~1.00×, lowest ~1.00×, highest "
        "~1.05×, last ~1.05×; all: 2 commits, first ~1.00×, lowest ~1.00×, highest ~1.20×, last "
        "~1.20×; a dashed line in the first panel at ~1.10×; a vertical line, the step, at commit "
        "1.",
    ],
    "training_steps": [
        ([STEPS], {}),
        "Timeline. Title: T. x axis: time. 2 tracks over 185.5 ms. step on the CPU: 2 spans, "
        "nested 1 deep; outermost: 101 from 0 ms for 35 ms, 102 from 35 ms for 65 ms; step on the "
        "GPU: 1 span, nested 1 deep; outermost: 102 from 90 ms for 95.5 ms.",
    ],
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_what_it_shows(name: str, shown: list[dict]) -> None:
    (arguments, options), text = PICTURES[name]
    getattr(plotting, name)(*arguments, title="T", **options)
    assert [data["text/plain"] for data in shown] == [text]


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("speed_by_batch", [{1: 0.0}, 1e6], {"peak": 1e9}, "latency[1] must be the time of a"),
        ("speed_by_batch", [{1: 1.0}, 1e6], {"peak": 0}, "peak must be a rate in FLOP/s, finite"),
        ("history", [{"one": [1.0, 0.0]}], {}, "panels['one'][1] must be a ratio, finite and posi"),
        ("training_steps", [STEPS[:0]], {}, "steps must hold at least one step, but got none"),
    ],
)
def test_wrong_input_is_refused_by_name(
    name: str, arguments: list, options: dict, message: str, shown: list[dict]
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(plotting, name)(*arguments, title="T", **options)
    assert shown == []
