"""Lesson 11 and the jobs against the real tools: nsys and Slurm where they are installed."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from helpers import terminal
from tools import notebooks, refresh

LESSON = notebooks.NOTEBOOKS / "11_nsight.ipynb"
JOBS = notebooks.ROOT / "assets" / "jobs"
NSYS = notebooks.INSTALLED_NSYS


@pytest.mark.everything
@pytest.mark.skipif(not NSYS, reason="nsys is neither on the PATH nor in $NSYS")
def test_the_live_section_records_and_finds_its_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last section with nsys in sight: a real report, and the lesson's own queries."""
    wanted = ["setup", "setup-recordings", "read-open", "read-stats", "home-imports"]
    wanted += ["own-record", "own-query"]
    cells = [cell for cell in notebooks.read(LESSON).cells if cell.id in wanted]
    monkeypatch.setenv("NSYS", NSYS)
    lesson = nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA)
    executed = refresh.execute(lesson, LESSON.parent)
    printed = {cell.id: "".join(o.get("text", "") for o in cell.outputs) for cell in executed.cells}
    assert printed["own-record"] == "recorded on this computer: mine.sqlite\n"
    assert printed["own-query"] == "as often as recorded: True\n"


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


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("path", sorted(JOBS.glob("*/*")), ids=lambda path: path.name)
def test_bash_accepts_the_template(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)


@pytest.mark.everything
def test_two_nodes_find_each_other(tmp_path: Path) -> None:
    """train_ddp.sbatch with a real torchrun on each of two nodes, both of them here."""
    script(tmp_path / "srun", '"$@" & "$@"; wait')
    script(tmp_path / "scontrol", "echo localhost; echo another")
    (tmp_path / "ranks.py").write_text(RANKS)
    job = {"SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "2", "SLURM_GPUS_ON_NODE": "1"}
    job |= {"SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "any[1-2]", "PORT": str(free_port())}
    job |= {"PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = ["bash", JOBS / "slurm" / "train_ddp.sbatch", "ranks.py"]
    text = terminal.terminal(words, tmp_path, **job)
    assert text.count("2 ranks\n") == 2, text


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for the jobs of a real Slurm with one node."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    if not all(map(shutil.which, ("slurmctld", "slurmd", "sbatch"))) or os.geteuid():
        pytest.skip("Slurm is not installed here, or this is not root, who alone can start jobs")
    host, folder = socket.gethostname().split(".")[0], tmp_path / "slurm"
    folder.mkdir()
    (folder / "slurm.conf").write_text(f"""ClusterName=course
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
ReturnToService=2
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}
SlurmdSpoolDir={folder}
SelectType=select/cons_res
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=60 State=UP
""")
    monkeypatch.setenv("SLURM_CONF", f"{folder}/slurm.conf")
    with terminal.started("slurmctld -D -c", folder), terminal.started("slurmd -D", folder):
        deadline = time.monotonic() + 30
        while "idle" not in (state := terminal.terminal("sinfo -h -o %T", folder)):
            assert time.monotonic() < deadline, f"the node is {state!r}, not idle"
            time.sleep(0.3)
        yield tmp_path


@pytest.mark.everything
def test_a_real_slurm_compares_batch_sizes_and_leaves_tables(slurm: Path) -> None:
    program = "import sys, nvtx\nwith nvtx.annotate('step'): print('batch', sys.argv[-1])"
    script(slurm / "nsys", f'exec {NSYS} "$@"' if NSYS else STUB)
    words = ["sbatch", "--wait", "--cpus-per-task=2", "--account=any", "--partition=debug"]
    words += [JOBS / "slurm" / "batch_sizes.sbatch", sys.executable, "-c", program]
    path = f"{slurm}:{os.environ['PATH']}"
    for _ in range(3):  # on a busy computer nsys may lose the agent that it has started
        text = terminal.terminal(words, slurm, PATH=path, TRACE="nvtx", CAPTURE="")
        log = max(slurm.glob("*.log"), key=lambda log: log.stat().st_mtime_ns).read_text()
        if "End of file" not in log:
            break
    assert "Submitted batch job" in text, text
    assert "error" not in log.lower(), log
    batches = [line for line in log.splitlines() if line.startswith("batch ")]
    assert batches == ["batch 4", "batch 512"]
    tables = {path.name.split("-", 2)[2] for path in slurm.glob("*.csv")}
    names = ("nvtx_sum", "nvtx_gpu_proj_sum", "cuda_gpu_kern_sum")
    assert tables == {f"{size}_{name}.csv" for size in (4, 512) for name in names}
    assert all("Range" in path.read_text() for path in slurm.glob("*_nvtx_sum.csv"))
