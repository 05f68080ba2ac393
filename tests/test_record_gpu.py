"""record_gpu.py on a pretended GPU: every part, resuming, and what it says when it cannot."""

import csv
import io
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import record_gpu
import torch
from recording import common, gpu, memory, nsight, profiles, tools

from tests import notebooks

SCRIPT = notebooks.NOTEBOOKS / "scripts" / "record_gpu.py"
PRETENDED = notebooks.ROOT / "tests" / "pretended_gpu"
# The parts of ViT are those of ResNet-50 with another model, and slow on a CPU.
PARTS = [
    "ceilings", "timing", "small_cnn", "lines", "memory", "nsys", "ncu", "roofline", "copies",
    "resnet50", "loader", "sweep_resnet50_training", "compiled",
]  # fmt: skip


def record(*words: object, pretended: bool = True, **environment: str) -> tuple[int, str]:
    """Status and output of record_gpu.py; the tools of lesson 07 are hidden from it."""
    # One thread: two would wait for each other on a busy computer, as lesson 01 shows.
    there = {"PYTHONPATH": str(PRETENDED), "OMP_NUM_THREADS": "1"} if pretended else {}
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, words)],
        env={**os.environ, "NSYS": "no-nsys", "NCU": "no-ncu", **there, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    status, said = record(folder, *PARTS, "--rehearse", "--minutes", 30)
    assert status == 0, said
    return folder


def content(folder: Path, part: str) -> dict:
    return common.load(folder / f"{part}.json")


# What a rehearsal records


def test_it_records_every_part_but_those_whose_tool_is_missing(rehearsal: Path) -> None:
    index = content(rehearsal, "index")
    assert set(index["recorded"]) == set(PARTS) - {"nsys", "ncu"}
    assert {name: row["verdict"] for name, row in index["not recorded"].items()} == {
        "nsys": "missing",
        "ncu": "missing",
    }
    assert index["not recorded"]["ncu"]["reason"] == "ncu is neither on the PATH nor in $NCU"


def test_nothing_of_the_machine_is_in_any_file(rehearsal: Path) -> None:
    files = [path for path in rehearsal.iterdir() if path.is_file()]
    assert len(files) > len(PARTS)
    assert [
        (path.name, leak)
        for path in files
        for text in common.texts(path)
        for leak in common.leaks(text)
    ] == []
    assert not (rehearsal / "held_back").exists()
    assert list(rehearsal.glob(".part-*")) == []


def test_every_file_says_where_it_comes_from(rehearsal: Path) -> None:
    for path in rehearsal.glob("*.json"):
        about = common.load(path)["provenance"]
        assert about["device"] == "Pretended GPU"
        assert about["torch"] == torch.__version__
        assert all(about.values())
    assert content(rehearsal, "index")["provenance"]["rehearsal"] == "true"


def test_the_ceilings_and_the_roofline_hold_samples_of_everything(rehearsal: Path) -> None:
    found = content(rehearsal, "ceilings")
    assert list(found["matrix product"]) == ["float32", "tf32", "bf16"]
    series = [*found["copy"].values(), *found["launch"].values()]
    series += [s for by_size in found["matrix product"].values() for s in by_size.values()]
    assert all(len(samples) >= 3 and min(samples) > 0 for samples in series)

    operators = content(rehearsal, "roofline")["the lesson's"]["operators"]
    assert operators["matrix product"]["flop"] == 2 * 512**3
    assert operators["matrix product"]["bytes"] == 3 * 4 * 512**2
    # 4 images of 64 × 56 × 56, in and out, and the weights
    pixels = 4 * 64 * 56**2
    assert operators["depthwise"]["flop"] == 2 * 9 * pixels
    assert operators["depthwise"]["bytes"] == 4 * (2 * pixels + 64 * 9)
    assert operators["add"] | {"seconds": 0} == {"flop": pixels, "bytes": 12 * pixels, "seconds": 0}


def test_the_stopwatch_has_every_way_of_timing_as_often(rehearsal: Path) -> None:
    found = content(rehearsal, "timing")
    del found["provenance"]
    for row in found.values():
        counts = {name: len(samples) for name, samples in row.items()}
        assert counts == {
            "no warm-up": 10, "no synchronize": 10, "synchronize": 10, "events": 10,
            "events, one of 100": 1, "events, one of 100, queued": 1,
            "on the CPU, all threads": 1,
        }  # fmt: skip


def test_a_trace_keeps_launches_kernels_and_marks_and_no_path(rehearsal: Path) -> None:
    found = content(rehearsal, "small_cnn")
    trace = common.load(rehearsal / found["trace"])
    events = trace["traceEvents"]
    assert "traceName" not in trace
    kernels = [event for event in events if event.get("cat") == "kernel"]
    launches = {e["args"]["correlation"] for e in events if e.get("cat") == "cuda_runtime"}
    assert len(kernels) == found["on the GPU"] > 100
    assert {kernel["args"]["correlation"] for kernel in kernels} <= launches
    marks = [e["name"] for e in events if e.get("cat") == "user_annotation"]
    # not the two steps in which the profiler only warms up
    assert [mark for mark in marks if mark.startswith("step")] == ["step 0", "step 1", "step 2"]
    assert found["launches without a kernel"] == 0
    assert len(found["seconds without the profiler"]) == 5
    assert min(event["ts"] for event in events) == 0
    rows = {row["name"]: row["count"] for row in found["operators"]}
    assert rows["aten::convolution_backward"] == 3 * 2


def test_both_batches_of_both_modes_are_traced(rehearsal: Path) -> None:
    runs = content(rehearsal, "resnet50")["runs"]
    assert [(run["mode"], run["batch"], run["format"]) for run in runs] == [
        ("forward", 1, "default"), ("forward", 2, "default"),
        ("training", 1, "default"), ("training", 2, "default"),
    ]  # fmt: skip
    # Lesson 03: 4.089184 billion multiply-adds
    assert content(rehearsal, "resnet50")["FLOP, one image, forward"] == 2 * 4_089_184_256
    for run in runs:
        rows = {row["name"]: row["count"] for row in run["operators"]}
        assert rows["aten::convolution"] == 53
        assert (rehearsal / run["trace"]).exists()


def test_the_lines_are_those_of_the_script(rehearsal: Path) -> None:
    found = content(rehearsal, "lines")
    assert list(found["rows"]) == ["as it is", "CUDA_LAUNCH_BLOCKING=1"]
    for rows in found["rows"].values():
        hits = {found["source"][line - 1].strip(): count for line, count, _ in rows}
        assert hits["images = F.conv2d(images, weights, padding=1)"] == 50
        assert hits["return total.item()"] == 5
    for rows in found["functions"].values():
        assert {name: calls for name, calls, _ in rows}["convolve_and_sum"] == 5


def test_memory_is_counted_and_the_snapshot_names_no_folder(rehearsal: Path) -> None:
    found = content(rehearsal, "memory")
    assert found["SmallCNN"]["parameters"] == 102_696
    assert found["ResNet-50"]["parameters"] == 4 * 25_557_032
    # Lesson 06 counts them by hand; here there are labels and logits in it, too.
    assert 17e6 < found["SmallCNN"]["saved for backward"] < 19e6
    snapshot = common.load(rehearsal / found["SmallCNN"]["snapshot"])
    (event,) = snapshot["device_traces"][0]
    assert event["frames"][0]["filename"] == "torch/nn/f.py"


def test_copies_go_both_ways_from_both_kinds_of_memory(rehearsal: Path) -> None:
    rows = content(rehearsal, "copies")["copies"]
    kinds = {(row["bytes"], row["memory"], row["direction"]) for row in rows}
    assert len(kinds) == len(rows) == 2 * 2 * 2


def test_the_loader_shows_when_the_gpu_had_work(rehearsal: Path) -> None:
    runs = content(rehearsal, "loader")["runs"]
    assert [run["workers"] for run in runs] == [0, 4]
    for run in runs:
        names = [name for name, _, _ in run["marks"] if name in ("data", "train")]
        assert names == ["data", "train"] * 3
        starts = [start for _, start, _ in run["on the GPU"]]
        assert starts == sorted(starts)
        assert starts[0] >= 0
        assert len(starts) > 100


def test_a_sweep_has_each_format_with_its_samples_and_peak(rehearsal: Path) -> None:
    found = content(rehearsal, "sweep_resnet50_training")
    formats = [title for title in profiles.FORMATS if title != "default"]
    assert [point["format"] for point in found["points"]] == formats
    assert found["no time for"] == []
    for point in found["points"]:
        assert point["fits"]
        assert min(point["seconds"]) > 0
        assert point["allocated at most"] >= 4 * 25_557_032


def test_compiled_code_is_compared_with_eager_code(rehearsal: Path) -> None:
    ways = content(rehearsal, "compiled")["ways"]
    assert list(ways) == ["eager", "compiled", "compiled, reduce-overhead"]
    assert {len(way["seconds"]) for way in ways.values()} == {3}
    assert all((rehearsal / way["trace"]).exists() for way in ways.values())


def test_a_page_tells_what_was_recorded(rehearsal: Path, tmp_path: Path) -> None:
    status, said = record(rehearsal, "--show", pretended=False)
    assert status == 0, said
    for part in set(PARTS) - {"nsys", "ncu"}:
        (after,) = said.split(f"\n{part}: ")[1:]
        assert after.split("\n")[1].startswith("  "), part
    status, said = record(tmp_path, "--show")
    assert (status, said) == (1, f"{tmp_path} holds no recordings: it has no index.json.\n")


# Going on, and stopping


def test_the_same_call_again_records_nothing_twice(rehearsal: Path) -> None:
    before = (rehearsal / "ceilings.json").stat().st_mtime_ns
    status, said = record(rehearsal, "ceilings", "copies", "--rehearse")
    assert (status, said.count("already there")) == (0, 2)
    assert (rehearsal / "ceilings.json").stat().st_mtime_ns == before


def test_another_machines_folder_is_left_alone(rehearsal: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    index = content(rehearsal, "index")
    index["provenance"]["device"] = "NVIDIA Other"
    common.save(folder / "index.json", index)
    status, said = record(folder, "copies", "--rehearse")
    assert status == 1
    assert said == (
        f"{folder} holds recordings with device NVIDIA Other, but this would be Pretended GPU: "
        "choose another folder.\n"
    )
    assert [path.name for path in folder.iterdir()] == ["index.json"]


def test_a_rehearsal_and_the_real_thing_do_not_mix(rehearsal: Path) -> None:
    status, said = record(rehearsal, "copies")
    assert status == 1
    assert "holds recordings with rehearsal true, but this would be false" in said


def test_without_time_it_says_so_and_goes_on_later(tmp_path: Path) -> None:
    status, said = record(tmp_path, "copies", "--rehearse", "--minutes", 0.1)
    assert status == 1
    assert "no time was left: the same call goes on" in said
    status, said = record(tmp_path, "copies", "--rehearse")
    assert status == 0
    assert content(tmp_path, "index")["not recorded"] == {}


def test_a_part_that_takes_too_long_is_ended_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PRETENDED))
    verdict = record_gpu.attempt("resnet50", tmp_path, rehearse=True, limit=1)
    assert verdict == ("failed", "it took longer than 1 s")
    assert list(tmp_path.iterdir()) == []


def test_a_tool_that_hangs_ends_with_its_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nsys, started = tmp_path / "nsys", tmp_path / "started"
    nsys.write_text(f"#!/bin/sh\necho $$ > {started}\nexec sleep 600\n")
    nsys.chmod(0o755)
    monkeypatch.setenv("NSYS", str(nsys))
    monkeypatch.setenv("PYTHONPATH", str(PRETENDED))
    out = tmp_path / "out"
    out.mkdir()
    verdict = record_gpu.attempt("nsys", out, rehearse=True, limit=30)
    assert verdict == ("failed", "it took longer than 30 s")
    assert not Path(f"/proc/{started.read_text().strip()}").exists()


def test_a_file_with_a_leak_is_held_back_not_lost(tmp_path: Path) -> None:
    secret = '"direction": "to the GPU"'  # the value of a variable is in the file
    status, said = record(tmp_path, "copies", "--rehearse", MY_TOKEN=secret)
    assert status == 1
    assert "copies.json holds the value of MY_TOKEN" in said
    assert not (tmp_path / "copies.json").exists()
    assert (tmp_path / "held_back" / "copies" / "copies.json").exists()


def test_without_a_gpu_it_ends_in_one_sentence(tmp_path: Path) -> None:
    status, said = record(tmp_path / "out", pretended=False)
    assert status == 1
    assert said.startswith("record_gpu.py needs an NVIDIA GPU that PyTorch can use, but torch")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_unknown_part_is_named(tmp_path: Path) -> None:
    status, said = record(tmp_path, "copys")
    assert status == 2
    assert "but copys came" in said


def test_the_help_lists_every_part() -> None:
    _, said = record("--help")
    assert all(part in said for part in record_gpu.PARTS)


def test_every_part_has_its_function() -> None:
    assert all(callable(record_gpu.function(part)) for part in record_gpu.PARTS)


# Its pieces


def test_tf32_is_switched_so_that_everybody_can_read_the_switch() -> None:
    products, layers = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, layers.allow_tf32
    with gpu.tf32(True):
        assert (products.allow_tf32, layers.allow_tf32) == (True, True)
        assert torch.get_float32_matmul_precision() == "high"
    with gpu.tf32(False):
        assert (products.allow_tf32, layers.allow_tf32) == (False, False)
    assert (products.allow_tf32, layers.allow_tf32) == before


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 "
            "GiB of which 1.00 GiB is free. Process 4242 has 7.00 GiB memory in use.",
            "CUDA out of memory. Tried to allocate 2.00 GiB.",
        ),
        ("CUDA error: out of memory\nSearch for it", "CUDA error: out of memory"),
        ("GET was unable to find an engine to execute this computation",) * 2,
        ("cuBLAS error: CUBLAS_STATUS_ALLOC_FAILED when calling",) * 2,
    ],
)
def test_what_does_not_fit_is_kept_without_the_list_of_processes(said: str, kept: str) -> None:
    assert gpu.does_not_fit(torch.OutOfMemoryError(said)) == {"fits": False, "message": kept}
    assert gpu.does_not_fit(RuntimeError(said)) == {"fits": False, "message": kept}


def test_another_error_is_not_taken_for_a_lack_of_memory() -> None:
    with pytest.raises(RuntimeError, match="illegal"):
        gpu.does_not_fit(RuntimeError("CUDA error: an illegal memory access was encountered"))


def test_a_tool_is_started_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nsys"
    tool.touch(0o755)
    tool.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NSYS", "./nsys")
    assert common.tools("nsys") == [str(tool)]
    monkeypatch.setenv("NSYS", "no-nsys")
    assert common.tools("nsys") == []


def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    program = "sleep 60 & echo $! > child; sleep 60"
    with pytest.raises(subprocess.TimeoutExpired):
        common.run(["/bin/bash", "-c", program], tmp_path, timeout=1)
    started = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{started}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_launches_that_wait_would_spoil_every_time(tmp_path: Path) -> None:
    status, said = record(tmp_path / "out", CUDA_LAUNCH_BLOCKING="1")
    assert status == 1
    assert "CUDA_LAUNCH_BLOCKING is set" in said


def test_what_the_tools_wrote_can_be_kept(tmp_path: Path) -> None:
    keep = tmp_path / "kept"
    status, _ = record(tmp_path / "out", "small_cnn", "--rehearse", "--keep", keep)
    assert status == 0
    whole = common.load(keep / "small_cnn" / "raw" / "small_cnn.trace.json.gz")
    assert len(whole["traceEvents"]) > 100
    assert (keep / "small_cnn" / "log.txt").read_text().startswith("0\n")
    assert not (tmp_path / "out" / "raw").exists()


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/home/ada/lib/site-packages/torch/nn/modules/conv.py", "torch/nn/modules/conv.py"),
        ("/home/ada/torch/course/helpers/workloads.py", "helpers/workloads.py"),
        ("/usr/lib/python3.12/threading.py", "threading.py"),
        ("<string>", "<string>"),
        ("", ""),
    ],
)
def test_of_a_source_file_only_its_place_in_a_package_is_kept(path: str, place: str) -> None:
    assert memory.place(path) == place


NCU = """==PROF== Connected to process 4242 (/usr/bin/python3.12)
"ID","Process ID","Process Name","Host Name","Kernel Name","Section Name","Metric Name",\
"Metric Unit","Metric Value","Rule Name","Rule Description"
"0","4242","python3.12","10.1.2.3","gemm(float *, int)","Speed Of Light","Duration","ns",\
"1,024","",""
"0","4242","python3.12","10.1.2.3","gemm(float *, int)","Speed Of Light","","","","Hint","Do more."
"""


def test_ncus_details_lose_the_machine_and_the_advice_and_keep_the_rest(tmp_path: Path) -> None:
    rows = tools.table(NCU)
    tools.write_table(tmp_path / "ncu.csv", [row for row in rows if row["Metric Name"]])
    text = (tmp_path / "ncu.csv").read_text()
    assert list(csv.DictReader(io.StringIO(text))) == [
        {
            "ID": "0",
            "Kernel Name": "gemm(float *, int)",
            "Section Name": "Speed Of Light",
            "Metric Name": "Duration",
            "Metric Unit": "ns",
            "Metric Value": "1,024",
        }
    ]
    assert list(common.leaks(text)) == []


def test_ncus_raw_page_gives_each_metric_with_its_unit() -> None:
    raw = [
        {"ID": "", "Kernel Name": "", "gpu__time_duration.sum": "ns", "sm__warps": ""},
        {"ID": "0", "Kernel Name": "gemm", "gpu__time_duration.sum": "1024", "sm__warps": ""},
    ]
    assert tools.counters(raw) == [
        {"kernel": "gemm", "metrics": {"ID": ["0", ""], "gpu__time_duration.sum": ["1024", "ns"]}}
    ]


def test_of_a_tools_output_the_error_is_told() -> None:
    assert tools.last("a\n==ERROR== ERR_NVGPUCTRPERM - no permission\nb\n").endswith("permission")
    assert tools.last("first\nlast\n") == "last"
    assert tools.last("") == "it printed nothing"


def test_the_program_for_ncu_launches_every_kernel_that_is_measured() -> None:
    program = (
        "import launch_kernels as program\n"
        "program.SIZE = 64\n"
        "for name, prepare in program.KERNELS.items():\n"
        "    print(name, tuple(prepare()().shape))\n"
    )
    folders = os.pathsep.join([str(PRETENDED), str(SCRIPT.parent)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert [line.split(" (")[0] for line in lines] == tools.KERNELS
    assert lines[3:] == [
        "resize (10, 16, 128, 128)",
        "relu (64000000,)",
        "linear 4 (4, 1000)",
        "linear 512 (512, 1000)",
    ]


def test_the_program_for_ncu_says_that_it_needs_a_gpu() -> None:
    words = [sys.executable, SCRIPT.with_name("launch_kernels.py"), "relu"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert "this needs an NVIDIA GPU that PyTorch can use; there is none" in done.stderr


@pytest.mark.skipif(not notebooks.INSTALLED_NSYS, reason="nsys is neither on the PATH nor in $NSYS")
def test_an_nsys_that_finds_no_importer_gets_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As inside Nsight Compute: the importer is in the same tree, but not where nsys looks."""
    tree = Path(notebooks.INSTALLED_NSYS).resolve()
    while not (tree / "nsight-systems").exists() and tree != tree.parent:
        tree = tree.parent
    link = tree / "nsight-systems" / "host-linux-x64"
    if not link.is_symlink():
        pytest.skip("this nsys is not laid out as Debian's")
    copy = tmp_path / "lib"
    shutil.copytree(tree.parent, copy, copy_function=os.link, symlinks=True)
    (copy / link.relative_to(tree.parent)).unlink()
    nsys = copy / Path(notebooks.INSTALLED_NSYS).resolve().relative_to(tree.parent)
    monkeypatch.setenv("NSYS", str(nsys))
    program = "import time\ntime.sleep(0.1)"
    flags = ["-t", "osrt", *nsight.QUIET]
    status, said, database = nsight.record(flags, [sys.executable, "-c", program], tmp_path)
    assert (tmp_path / "r.qdstrm").exists()
    assert status == 0
    assert database is not None, said
    assert nsight.rows_of(database)["OSRT_API"] > 0


def test_a_kernel_keeps_its_names_in_a_stripped_report(tmp_path: Path) -> None:
    source, target = tmp_path / "full.sqlite", tmp_path / "stripped.sqlite"
    with sqlite3.connect(source) as db:
        db.executescript("""
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL
              (start, end, demangledName, shortName, mangledName);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 1, 2, NULL), (1, 3, 1, 2, NULL);
            CREATE TABLE StringIds (id, value);
            INSERT INTO StringIds VALUES (1, 'gemm<float>'), (2, 'gemm'), (3, '/home/ada');
            CREATE TABLE META_DATA_EXPORT (name, value);""")
    nsight.strip(source, target, {"device": "none"})
    with sqlite3.connect(target) as db:
        starts = db.execute("SELECT start FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
        names = db.execute("SELECT value FROM StringIds").fetchall()
    assert starts == [(1,), (5,)]
    assert names == [("gemm<float>",), ("gemm",)]
