"""What ran when, in loops over data, in ranks and on GPUs."""

import faulthandler
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch

from helpers import loaders


def test_the_last_call_finds_no_batch(clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "time", clock)

    def batches() -> Iterator[int]:
        for seconds in (4.0, 1.0, 2.0, 1.0):
            clock.sleep(seconds)
            yield 1
        clock.sleep(8.0)

    times, whole = loaders.calls(batches())
    assert times == {"first": 4, "median": 1, "last": 8}
    assert whole == 16


def test_an_epoch_is_recorded_by_process() -> None:
    start = time.time()

    def batch(worker: int, began: float) -> dict:
        times = torch.tensor([start + began, start + began + 1], dtype=torch.float64)
        return {"worker": torch.tensor([worker, worker]), "began": times, "ended": times + 1}

    seconds, tracks = loaders.recorded_epoch([batch(-1, 5), batch(1, 7)], lambda batch: None)
    assert seconds >= 0
    assert [name for *_, name, _ in tracks["main process"]] == ["train", "load", "train"]
    ((began, duration, name, depth),) = tracks["worker 1"]
    assert (began, duration) == pytest.approx((7, 2), abs=0.5)
    assert (name, depth) == ("load", 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has posix_fadvise")
def test_pieces_are_the_same_in_one_file_and_in_many(tmp_path: Path) -> None:
    one, many = loaders.write_pieces(tmp_path, count=3, size=10)
    loaders.save_to_disk([one, *many])
    loaders.drop_from_cache([one, *many])
    assert one.read_bytes() == b"".join(path.read_bytes() for path in many)
    assert one.stat().st_size == 30


def test_traces_of_ranks_become_tracks(tmp_path: Path) -> None:
    def event(name: str, ts: float, dur: float, elements: int = 0) -> dict:
        args = {"Input Dims": [[elements]]}
        return {"ph": "X", "cat": "cpu_op", "name": name, "ts": ts, "dur": dur, "args": args}

    for rank in range(2):
        events = [event("step", 100, 10e6), event("gloo:all_reduce", 2e6 + 100, 1e6, 8)]
        events += [event("aten::add", 100, 5), event("step", 20e6, 1)]
        trace = {"traceEvents": events}
        (tmp_path / f"late, rank {rank}.json").write_text(json.dumps(trace))
    trace = loaders.rank_traces(tmp_path, ["late"])
    assert loaders.all_reduces(trace).bytes.tolist() == [32, 32]
    tracks = loaders.rank_tracks(trace, ["step", "gloo:all_reduce"], count=2)
    expected = [(0.0, 10.0, "step", 0), (2.0, 1.0, "gloo:all_reduce", 1)]
    assert tracks == {"rank 0": expected, "rank 1": expected}


def test_a_rank_that_hangs_or_fails_is_named_and_ended() -> None:
    with pytest.raises(RuntimeError, match=r"rank [01] still ran after 0\.1 seconds"):
        loaders.in_ranks(time.sleep, method="spawn", seconds=0.1)
    with pytest.raises(RuntimeError, match="rank 1 failed with exit code 1"):
        loaders.in_ranks(os._exit, method="spawn")  # rank 0 exits with 0
    assert not multiprocessing.active_children()


def test_the_line_in_which_a_rank_waits(tmp_path: Path) -> None:
    with (tmp_path / "stack").open("w") as file:
        faulthandler.dump_traceback(file)
    stack = (tmp_path / "stack").read_text()
    assert loaders.waits_in(stack, __file__) == "faulthandler.dump_traceback(file)"
    with pytest.raises(ValueError, match=r"a line of other\.py"):
        loaders.waits_in(stack, "other.py")


def test_communication_is_exposed_or_overlapped() -> None:
    rows = [("ncclKernel", 10, 50), ("kernel", 0, 20), ("kernel", 15, 30)]
    operations = pd.DataFrame(rows, columns=["name", "start_us", "end_us"])
    lanes = loaders.communication(operations)
    assert lanes == {
        "exposed NCCL": {"NCCL": [pytest.approx((30e-6, 20e-6))]},
        "overlapped NCCL": {"NCCL": [pytest.approx((10e-6, 20e-6))]},
        "other work": {"GPU operation": [pytest.approx((0, 30e-6))]},
    }
    assert loaders.overlapped(lanes) == pytest.approx(0.5)
