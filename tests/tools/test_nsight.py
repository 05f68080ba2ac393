"""Lesson 11 and the jobs against the real tools: nsys and Slurm where they are installed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from helpers import terminal
from tests.tools import cluster
from tools import notebooks, refresh

LESSON = notebooks.NOTEBOOKS / "11_nsight.ipynb"
JOBS = notebooks.ROOT / "assets" / "jobs"
NSYS = notebooks.INSTALLED_NSYS


def lost_a_part(printed: str) -> bool:
    """Whether nsys lost its agent or its importer, as it did now and then beside other tests."""
    sentences = ("End of file", "Importer error status: An unknown error occurred.")
    return any(sentence in printed for sentence in sentences)


@pytest.mark.everything
@pytest.mark.skipif(not NSYS, reason="nsys is neither on the PATH nor in $NSYS")
def test_the_live_section_records_and_finds_its_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last section with nsys in sight: a real report, and the lesson's own queries."""
    wanted = ["setup", "setup-recordings", "opening-open", "read-open", "read-stats"]
    wanted += ["home-imports", "own-record", "own-query"]
    cells = [cell for cell in notebooks.read(LESSON).cells if cell.id in wanted]
    monkeypatch.setenv("NSYS", NSYS)
    lesson = nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA)
    for more in (2, 1, 0):
        try:
            executed = refresh.execute(lesson, LESSON.parent)
            break
        except CellExecutionError as error:
            if not more or not lost_a_part(str(error)):
                raise
    printed = {cell.id: "".join(o.get("text", "") for o in cell.outputs) for cell in executed.cells}
    assert printed["own-record"] == "recorded on this computer: mine.sqlite\n"
    assert printed["own-query"].endswith(": True\n")


# The jobs of a cluster

RANKS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
ranks = torch.ones(1)
dist.all_reduce(ranks)
print(f"{ranks.item():.0f} ranks\\n", end="", flush=True)
dist.destroy_process_group()
"""
# It starts the program and leaves files of the names that the real nsys would give them.
STUB = r"""
if [ "$1" = profile ]; then  # -t TRACE -s none --cpuctxsw=none -f true -o NAME PROGRAM...
  "${@:11}" && touch "${10}.nsys-rep"
else  # stats -q -r REPORTS -f csv -o NAME FILE
  for report in ${4//,/ }; do echo "Time (%),Range" > "$8_$report.csv"; done
fi
"""
# It trains for some seconds, then writes a checkpoint, and ends with the status that it was given.
TRAINING = """
import os, pathlib, sys, time
time.sleep(5)
pathlib.Path("checkpoint-" + os.environ.get("RANK", "0")).touch()
sys.exit(int(sys.argv[1]))
"""
SECONDS = "--delay=1 --duration=1 --kill=none"


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


SCRIPTS = sorted(path for path in JOBS.glob("*/*") if path.suffix != ".yml")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_bash_accepts_the_template(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)


@pytest.mark.everything
def test_two_nodes_find_each_other(tmp_path: Path) -> None:
    """train_ddp.sbatch with a real torchrun on each of two nodes, both of them here."""
    script(tmp_path / "srun", '"$@" & "$@"; wait')
    script(tmp_path / "scontrol", "echo localhost; echo another")
    (tmp_path / "ranks.py").write_text(RANKS)
    job = {"SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "2", "SLURM_GPUS_ON_NODE": "1"}
    job |= {"SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "any[1-2]"}
    job |= {"PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = ["bash", JOBS / "slurm" / "train_ddp.sbatch", "ranks.py"]
    text = terminal.terminal(words, tmp_path, **job)
    assert text.count("2 ranks\n") == 2, text


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for the jobs of a real Slurm with one node."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    if not cluster.is_installed():
        pytest.skip("Slurm is not installed here, or this is not root, who alone can start jobs")
    with cluster.running(tmp_path) as configuration:
        monkeypatch.setenv("SLURM_CONF", str(configuration))
        yield tmp_path


def submit(folder: Path, template: str, *words: str | Path, **variables: str) -> tuple[bool, str]:
    """Whether a job succeeded, and its log; it is tried again if nsys lost a part of itself."""
    options = ["--cpus-per-task=2", "--account=any", "--partition=debug"]
    for _ in range(3):
        job = ["sbatch", "--wait", *options, JOBS / "slurm" / template, *words]
        path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        with terminal.started(job, folder, PATH=path, **variables) as child:
            text = "".join(child.communicate(timeout=120))
        assert "Submitted batch job" in text, text
        log = max(folder.glob("*.log"), key=lambda log: log.stat().st_mtime_ns).read_text()
        if not lost_a_part(log):
            break
    return child.returncode == 0, log


@pytest.mark.everything
def test_a_real_slurm_compares_batch_sizes_and_leaves_tables(slurm: Path) -> None:
    program = "import sys, nvtx\nwith nvtx.annotate('step'): print('batch', sys.argv[-1])"
    script(slurm / "nsys", f'exec {NSYS} "$@"' if NSYS else STUB)
    words = ["batch_sizes.sbatch", sys.executable, "-c", program]
    succeeded, log = submit(slurm, *words, TRACE="nvtx", CAPTURE="")
    assert succeeded, log
    assert "error" not in log.lower(), log
    batches = [line for line in log.splitlines() if line.startswith("batch ")]
    assert batches == ["batch 4", "batch 512"]
    tables = {path.name.split("-", 2)[2] for path in slurm.glob("*.csv")}
    names = ("nvtx_sum", "nvtx_gpu_proj_sum", "cuda_gpu_kern_sum")
    assert tables == {f"{size}_{name}.csv" for size in (4, 512) for name in names}
    assert all("Range" in path.read_text() for path in slurm.glob("*_nvtx_sum.csv"))


@pytest.mark.everything
@pytest.mark.skipif(not NSYS, reason="nsys is neither on the PATH nor in $NSYS")
@pytest.mark.parametrize(
    ("template", "capture", "status", "said"),
    [
        ("profile.sbatch", SECONDS, 0, ""),  # nsys leaves before the program has ended
        ("profile.sbatch", SECONDS, 3, "failed with status"),
        ("profile.sbatch", "-c cudaProfilerApi --capture-range-end=stop", 0, "no report"),
        ("batch_sizes.sbatch", SECONDS, 3, "failed with status 3"),
        ("batch_sizes.sbatch", "-c cudaProfilerApi --capture-range-end=stop", 0, "no report"),
    ],
)
def test_a_job_waits_for_the_checkpoint_and_says_what_failed(
    slurm: Path, template: str, capture: str, status: int, said: str
) -> None:
    script(slurm / "nsys", f'exec {NSYS} "$@"')
    words = [template, sys.executable, "-c", TRAINING, str(status)]
    succeeded, log = submit(slurm, *words, TRACE="nvtx", CAPTURE=capture, BATCHES="4")
    assert (slurm / "checkpoint-0").exists(), log
    assert succeeded == (not said), log
    assert said in log, log
    assert bool([*slurm.glob("*.nsys-rep")]) == (said != "no report"), log


@pytest.mark.everything
@pytest.mark.skipif(not NSYS, reason="nsys is neither on the PATH nor in $NSYS")
@pytest.mark.parametrize(("status", "said"), [(0, ""), (3, "failed with status")])
def test_under_pbs_two_ranks_write_their_checkpoints(
    tmp_path: Path, status: int, said: str
) -> None:
    """No PBS, but its script and variables: with a real torchrun and nsys."""
    script(tmp_path / "nsys", f'exec {NSYS} "$@"')
    (tmp_path / "train.py").write_text(TRAINING)
    job = {"PBS_O_WORKDIR": str(tmp_path), "PBS_JOBID": "17.host", "RANKS": "2"}
    job |= {"TRACE": "nvtx,osrt", "CAPTURE": SECONDS, "PROGRAM": f"python train.py {status}"}
    job |= {"PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = ["bash", JOBS / "pbs" / "profile.pbs"]
    for _ in range(3):  # as in submit()
        with terminal.started(words, tmp_path, stderr=subprocess.STDOUT, **job) as child:
            log = child.communicate(timeout=120)[0]
        if not lost_a_part(log):
            break
    assert (child.returncode == 0) == (not said), log
    assert said in log, log
    if not said:  # else torchrun ends the other rank with the first one that fails
        assert len([*tmp_path.glob("checkpoint-?")]) == 2, log
        assert len([*tmp_path.glob("profile-17-rank?.nsys-rep")]) == 2, log


# It runs the program, or ends it, and leaves a report if a kernel matches.
NCU = r"""
echo "$@" > words
[[ "$*" == *"regex:gemm|nvjet"* ]] && touch "kernel-$SLURM_JOB_ID.ncu-rep"
exit "${NCU_STATUS:-0}"
"""


@pytest.mark.everything
@pytest.mark.parametrize(
    ("kernel", "said"), [("", ""), ("nothing", "no report: did more than 10 launches")]
)
def test_a_job_of_ncu_says_that_no_kernel_matched(slurm: Path, kernel: str, said: str) -> None:
    script(slurm / "ncu", NCU)
    succeeded, log = submit(slurm, "ncu.sbatch", "any", KERNEL=kernel)
    assert succeeded == (not said), log
    assert said in log, log
    assert "--kernel-name-base demangled -k regex:" in (slurm / "words").read_text()


@pytest.mark.everything
@pytest.mark.parametrize("status", [0, 3])
def test_a_training_job_keeps_its_checkpoint_and_its_status(slurm: Path, status: int) -> None:
    (slurm / "train.py").write_text(TRAINING)
    succeeded, log = submit(slurm, "train_ddp.sbatch", "train.py", str(status))
    assert (slurm / "checkpoint-0").exists(), log
    assert succeeded == (status == 0), log
