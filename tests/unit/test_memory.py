"""Readers of what tools report on memory."""

import json
from enum import Enum
from pathlib import Path

import pandas as pd
import pytest

from helpers import memory, profiles


def test_a_program_is_started_by_this_process_or_by_another_one() -> None:
    ask = ["-c", "import os, sys; print(os.environ['OPENBLAS_NUM_THREADS'], *sys.argv[1:])", "x"]
    assert memory.python(*ask, VARIABLE="1") == memory.through_python(*ask) == "1 x\n"


def test_a_curve_of_mprof_begins_at_zero_and_is_in_bytes(tmp_path: Path) -> None:
    file = tmp_path / "run.dat"
    file.write_text("CMDLINE python x.py\nMEM 1.0 1700000000.5\nMEM 2.5 1700000000.75\n")
    assert memory.mprof_curve(file) == [(0.0, 2**20), (0.25, 2.5 * 2**20)]


def test_a_curve_of_the_profiler_adds_up_what_the_cpu_allocated(tmp_path: Path) -> None:
    def event(ts: int, size: int, device: int = 0) -> dict:
        return {"name": "[memory]", "ts": ts, "args": {"Device Type": device, "Bytes": size}}

    other = {"name": "aten::add", "ts": 0, "args": {}}
    events = [other, event(30, -100), event(10, 100), event(20, 50), event(15, 999, device=1)]
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": events}))
    curve = memory.profiler_curve(file)
    assert curve == [(0.0, 100), (pytest.approx(1e-5), 150), (pytest.approx(2e-5), 50)]
    assert memory.highest(curve) == 150


def step() -> int:
    small = 1
    large = 2
    return small + large


def test_bytes_are_found_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    first = step.__code__.co_firstlineno
    held = {(f"step:{first + 2}",): 5, (f"step:{first + 2}", "inner:9"): 7}
    monkeypatch.setattr(profiles, "memray", lambda capture, file, when: (99, held))
    assert memory.by_line(Path("any.bin"), step) == {"small = 1": 0, "large = 2": 12}


def test_increments_name_their_lines_and_show_a_fall_as_zero() -> None:
    table = pd.DataFrame({"source": ["  a = 1", "del a"], "Increment": [8.0, -8.0]}, index=[3, 4])
    assert memory.increments(table, range(3, 9)) == {"3: a = 1": 8.0, "4: del a": 0.0}


def test_lines_keep_their_numbers() -> None:
    assert memory.numbered("a\nb\n\nd\ne", first=2, last=4) == "  2  b\n  4  d"


def test_the_parts_of_a_step_add_up_to_its_peak() -> None:
    kinds = {"PARAM": 1, "GRAD": 2, "OPT": 3, "ACT": 4, "BUFFER": 5}
    sizes = {Enum("Kind", name)[name]: size for name, size in kinds.items()} | {"Total": 15}
    assert memory.parts({"cpu": sizes}) == {
        "parameters": 1,
        "gradients": 2,
        "optimiser state": 3,
        "activations": 4,
        "other": 5,
    }


def test_messages_say_whose_memory_would_be_enough(tmp_path: Path) -> None:
    file = tmp_path / "messages.csv"
    file.write_text(
        "page,requested,capacity,free,this process,named others,tensors,unused\n"
        "owner/one/issues/7,2,16,1,10,4,6,0.5\n"
        "owner/two/pull/8,2,16,1,15.5,0,11,1.5\n"
    )
    table = memory.messages(file)
    assert table["outside PyTorch"].tolist() == [3.5, 3.0]
    assert table["other processes"].tolist() == [5, 0]  # not below zero
    assert memory.enough(table).to_dict("list") == {
        "free + others": [True, False],
        "free + unused": [False, True],
        "free + named others": [True, False],
    }
    assert memory.divided_by_requests(table, {"B": 1}) == {
        "one 7": {"free + other processes": 3.0, "free + unused": 0.75},
        "two 8 (B)": {"free + other processes": 0.5, "free + unused": 1.25},
    }
    bars = memory.message_bars(table, {"A": 0})
    assert sum(bars["A: memory of the GPU"].values()) == 16
    assert bars["A: request"] == {"requested": 2}


def test_gigabytes_are_decimal() -> None:
    assert memory.gigabytes(2_749_444_868) == "2.75 GB"


def test_a_part_of_a_budget_has_a_fixed_share_and_one_per_image() -> None:
    budgets = {32: {"parameters": 100, "other": 96}, 64: {"parameters": 100, "other": 160}}
    assert memory.by_batch(budgets) == {"parameters": (100, 0), "other": (32, 2)}
    assert memory.largest_batch({"a": (100, 1), "b": (0, 2)}, 130.5) == 10
