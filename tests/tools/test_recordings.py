"""Every file in assets/recordings: provenance, size, and nothing of the machine it came from."""

import gzip
import json
import os
import re
import sqlite3
import sys
from pathlib import Path

import pandas as pd
import pytest

from helpers import readers
from tools import notebooks, nsight, recording, reduce_recordings
from tools.reduce_recordings import DEVICE_ROWS

RECORDINGS = notebooks.ROOT / "assets" / "recordings"
FILES = sorted(path for path in RECORDINGS.rglob("*") if path.is_file())
DATA = [path for path in FILES if path.parent.name != "licences"]
# The tables that a stripped nsys report may keep: nothing with an environment or a process list.
TABLES = re.compile(
    r"NVTX_EVENTS|OSRT_API|StringIds|META_DATA_EXPORT|PROVENANCE|CUPTI_ACTIVITY_KIND_\w+|ENUM_\w+"
)
TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"


def provenance(path: Path) -> dict[str, str]:
    """Where a file comes from, by its own word or by that of the .json beside it."""
    if path.suffix == ".sqlite":
        with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as db:
            return dict(db.execute("SELECT name, value FROM PROVENANCE"))
    beside = path.with_name(path.name.split(".")[0] + ".json")
    return json.loads(beside.read_text(encoding="utf-8"))["provenance"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_holds_nothing_of_the_machine(path: Path) -> None:
    assert [leak for text in recording.texts(path) for leak in recording.leaks(text)] == []


def test_they_are_small_enough_to_ship() -> None:
    sizes = [path.stat().st_size for path in FILES]
    assert max(sizes) < 1_000_000
    assert sum(sizes) < 12_000_000


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.name)
def test_it_says_where_it_comes_from(path: Path) -> None:
    about = provenance(path)
    assert all(about.values())
    assert {"device", "recorder"} <= set(about)
    assert (notebooks.ROOT / about["recorder"]).exists()
    if "source" in about:  # somebody else's
        assert re.fullmatch(r"https://github.com/[\w-]+/[\w-]+ @ [0-9a-f]{40}", about["source"])
        assert (path.parent / about["licence text"]).stat().st_size > 1000
        assert {"licence", "source file", "versions", "workload"} <= set(about)
    else:
        assert {"date", "command"} <= set(about)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d|", about.get("date", ""))


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix == ".sqlite"], ids=lambda path: path.name
)
def test_a_report_keeps_only_the_tables_that_are_read(path: Path) -> None:
    with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as db:
        tables = [name for (name,) in db.execute(TABLE_NAMES)]
        used = [f"SELECT {column} FROM {t}" for t in tables for column in nsight.TABLES.get(t, [])]
        unused = db.execute(" EXCEPT ".join(["SELECT id FROM StringIds", *used])).fetchall()
        freelist = db.execute("PRAGMA freelist_count").fetchone()[0]
    strange = [name for name in tables if not TABLES.fullmatch(name)]
    assert strange == []
    assert freelist == 0
    assert unused == []


def test_the_numbers_that_lessons_take_from_public_recordings_are_in_them() -> None:
    gpu = RECORDINGS / "gpu"
    steps = pd.read_csv(gpu / "v100_resnet50_steps.csv")
    read = (steps.cpu_end_ms - steps.cpu_start_ms).round().tolist()
    assert read == [35, 72, 96, 96, 96]
    assert steps.gpu_end_ms.diff()[1:].between(95, 96).all()
    changes = pd.read_csv(gpu / "v100_resnet50_memory.csv.gz")
    rise = changes.groupby("step").change_bytes.agg(lambda change: change.cumsum().max())
    assert rise.to_dict() == dict.fromkeys(range(16, 22), 2_791_636_480)
    memory = pd.read_csv(gpu / "v100_mlp_memory.csv.gz")
    assert memory.allocated_bytes.max() - memory.allocated_bytes.iloc[-1] == 2_532_893_696
    assert memory.reserved_bytes.unique().tolist() == [12_782_141_440]
    timing = pd.read_csv(gpu / "rtx5070_timing.csv").groupby(["kernel", "problem_size"])
    assert 560 < timing.get_group(("saxpy", 2**26)).achieved_gbps.median() < 570
    assert timing.get_group(("saxpy", 2**22)).achieved_gbps.min() > 1500
    assert "timestamp" not in timing.obj.columns
    layouts = readers.same_batch(
        gpu / "rtx3090_train_amp_nchw.csv", gpu / "rtx3090_train_amp_nhwc.csv"
    )
    compiled = [gpu / f"rtx4090_infer_amp_{way}.csv" for way in ("eager", "dynamo")]
    assert [len(layouts), len(readers.same_batch(*compiled))] == [796, 72]
    with pytest.raises(ValueError, match="1024 and 256"):
        readers.same_batch(*compiled, "resnet50")
    batches = pd.read_csv(gpu / "a100_sam_batches.csv", index_col=["technique", "batch_size"])
    assert batches.loc["compile", "img_s(avg)"].round(1).to_dict() == {1: 51.3, 8: 54.7, 32: 50.1}
    sam = pd.read_csv(gpu / "a100_sam_ladder.csv").set_index(["model", "batch", "technique"])
    bought = sam.images_per_s["vit_h", 8].round(1)
    assert (bought["fp32"], bought["bf16"], bought["sparse"]) == (2.8, 14.9, 24.9)
    assert sam.miou["vit_h", 8].round(2).iloc[[0, -2, -1]].tolist() == [0.58, 0.58, 0.53]
    waits = pd.read_csv(gpu / "a100_sam_waits.csv.gz").groupby("what").duration_us
    assert waits.count()[["aten::item", "aten::nonzero"]].tolist() == [77, 113]
    assert waits.sum()[["aten::item", "aten::nonzero"]].tolist() == [1838, 365677]
    a100, v100 = (pd.read_csv(gpu / f"{name}x2_allreduce.csv.gz") for name in ("a100", "v100"))
    reduces = a100[a100.name.str.contains("AllReduce")].groupby("step")
    assert reduces.elements.agg(["size", "sum"]).values.tolist() == 3 * [[5, 25_557_032]]
    assert v100.name.str.contains("AllReduce").sum() == 404
    for trace in (a100, v100):
        assert (trace.launched_us >= 0).all()
        assert (trace.start_us < trace.end_us).all()
    assert (a100.end_us - a100.start_us).groupby(a100.name).sum().round().to_dict() == {
        "gpu_memcpy": 2263,
        "gpu_memset": 391,
        "kernel": 115_656,
        "ncclKernel_AllReduce_RING_LL_Sum_float": 46_762,
        "ncclKernel_Broadcast_RING_LL_Sum_int8_t": 114,
    }


def test_a_thinned_trace_keeps_every_row_of_the_device_and_the_call_that_asked_for_it() -> None:
    for name in reduce_recordings.TRACES:
        file = json.loads(gzip.decompress((RECORDINGS / "gpu" / f"{name}.json.gz").read_bytes()))
        assert set(file) == {"schemaVersion", "deviceProperties", "traceEvents"}
        rows = file["traceEvents"]
        device = {r["args"]["correlation"] for r in rows if r["cat"] in DEVICE_ROWS}
        calls = {r["args"].get("correlation") for r in rows if r["cat"] not in DEVICE_ROWS}
        assert device
        assert device <= calls
        assert min(row["ts"] for row in rows) == 0
        assert {key for row in rows for key in row["args"]} <= set(reduce_recordings.SAID)


@pytest.mark.everything
@pytest.mark.skipif("GPU_RECORDINGS" not in os.environ, reason="needs $GPU_RECORDINGS, originals")
def test_the_originals_give_the_same_content_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduce_recordings, "TARGET", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reduce_recordings", os.environ["GPU_RECORDINGS"]])
    reduce_recordings.main()
    shipped = [path for path in FILES if path.is_relative_to(RECORDINGS / "gpu")]
    assert len(shipped) == sum(path.is_file() for path in tmp_path.rglob("*"))
    for path in shipped:
        again = tmp_path / path.relative_to(RECORDINGS / "gpu")
        assert list(recording.texts(again))[1:] == list(recording.texts(path))[1:]
        if path.suffix != ".sqlite":  # its bytes depend on the version of SQLite
            assert list(recording.texts(again)) == list(recording.texts(path))


@pytest.mark.parametrize(
    "text",
    [
        "/root/.bashrc",
        "opened /home/ada/run.py",
        r"C:\Users\ada",
        "HOME=/",
        "MY_SECRET = hunter2",
        "kthreadd",
        "ada@example.org",
        "10.1.2.3",
        "lib/python3.11/site-packages/torch",
        f"{notebooks.ROOT}/x",
    ],
)
def test_a_leak_is_noticed(text: str) -> None:
    assert list(recording.leaks(text))


@pytest.mark.parametrize(
    "text",
    ["notebooks/scripts/record_nsys.py", "nsys 2023.4.4.54", "and/or", "~12.3 ms", "-e NAME=value"],
)
def test_an_innocent_text_is_left_alone(text: str) -> None:
    assert list(recording.leaks(text)) == []


def test_a_deleted_row_of_a_database_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("CREATE TABLE StringIds (id, value)")
        db.execute("INSERT INTO StringIds VALUES (1, '/home/ada/run.py')")
        db.commit()
        db.execute("DELETE FROM StringIds")
    assert any(leak for text in recording.texts(path) for leak in recording.leaks(text))


def test_a_leak_in_a_packed_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceName": "/home/ada/trace.json"}'))
    assert any(leak for text in recording.texts(path) for leak in recording.leaks(text))
