"""Readers of what tools report on memory."""

import json
import pickle
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


LIBRARY = {"filename": "/venv/lib/python3.12/site-packages/torch/nn/f.py", "name": "g", "line": 9}
IN_C = {"filename": "CUDACachingAllocator.cpp", "name": "malloc", "line": 0}


def frames(*lines: tuple[str, str, int]) -> list[dict]:
    """A stack as PyTorch records it, innermost first, with the lines of C++ and of a library."""
    own = [dict(zip(("filename", "name", "line"), line, strict=True)) for line in lines]
    return [IN_C, LIBRARY, *own]


def entry(action: str, address: int, size: int, stack: list[dict] | None = None) -> dict:
    return {"action": action, "addr": address, "size": size, "frames": stack or []}


def block(address: int, size: int, state: str = "active_allocated") -> dict:
    return {"address": address, "size": 512, "requested_size": size, "state": state}


FORWARD = frames(("/home/ada/net.py", "forward", 3), (r"C:\ada\train.py", "<module>", 8))
CELL = frames(("/tmp/ipykernel_1/2.py", "<module>", 1))
TRACE = [
    entry("segment_alloc", 0, 2 << 20),
    entry("alloc", 512, 1000, FORWARD),
    entry("free_requested", 1024, 7),
    entry("free_completed", 1024, 7),  # was allocated before the recording
    entry("alloc", 1024, 30, CELL),  # the peak
    entry("free_completed", 512, 1000),
    entry("alloc", 512, 900),
]
SEGMENTS = [
    {"device": 0, "blocks": [block(512, 900), block(1024, 30), block(2048, 400)]},
    {"device": 0, "blocks": [block(4096, 99, "inactive")]},
    {"device": 1, "blocks": [block(512, 5)]},
]


def written(folder: Path, snapshot: object, protocol: int = 4) -> Path:
    file = folder / "snapshot.pickle"
    file.write_bytes(pickle.dumps(snapshot, protocol))
    return file


@pytest.mark.parametrize("protocol", [4, 5])
def test_a_snapshot_has_a_row_for_each_block(tmp_path: Path, protocol: int) -> None:
    file = written(tmp_path, {"segments": SEGMENTS, "device_traces": [TRACE, []]}, protocol)
    blocks = memory.allocations(file)
    assert blocks.to_numpy().tolist() == [
        [7, -1, 1, ""],
        [400, -1, 5, ""],
        [1000, 0, 3, "train.<module>:8;net.forward:3"],
        [30, 2, 5, "cell.<module>:1"],
        [900, 4, 5, ""],
    ]
    at_peak = memory.by_stack(memory.alive_at_peak(blocks))
    assert at_peak == {
        ("train.<module>:8", "net.forward:3"): 1000,
        ("existed before",): 400,
        ("cell.<module>:1",): 30,
    }
    assert list(at_peak.values()) == [1000, 400, 30]
    csv = tmp_path / "blocks.csv"
    blocks.to_csv(csv, index=False)  # as the recording is stored
    assert memory.by_stack(pd.read_csv(csv)).keys() == memory.by_stack(blocks).keys()
    assert memory.allocations(file, device=1).to_numpy().tolist() == [[5, -1, 0, ""]]


@pytest.mark.parametrize("trace", [[], [entry("free_completed", 512, 8)]])
def test_a_peak_can_be_before_the_first_event(tmp_path: Path, trace: list[dict]) -> None:
    segments = [{"device": 0, "blocks": [block(1024, 2)]}]
    blocks = memory.allocations(written(tmp_path, {"segments": segments, "device_traces": [trace]}))
    existed = 2 + sum(event["size"] for event in trace)
    assert memory.by_stack(memory.alive_at_peak(blocks)) == {("existed before",): existed}


class Harmful:
    def __reduce__(self) -> tuple:
        return print, ("this ran",)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (Harmful(), "it would import builtins.print"),
        ([1, 2], "no snapshot of CUDA memory"),
        ({"segments": []}, "no snapshot of CUDA memory"),
        ({"segments": [], "device_traces": []}, "0 devices, and device 0 is not one"),
    ],
)
def test_another_file_is_refused_and_runs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture, content: object, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        memory.allocations(written(tmp_path, content))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no pickle", b"\x80\x04]\x94(K"])
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"snapshot\.pickle is no snapshot of CUDA memory"):
        memory.allocations(file)


def test_a_snapshot_without_a_block_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, {"segments": [], "device_traces": [[]]})
    with pytest.raises(ValueError, match=r"no block.*_record_memory_history"):
        memory.allocations(file)
