"""Lesson 11 against the real tools: nsys and Slurm where they are, and what needs neither."""

import ast
import contextlib
import importlib
import json
import os
import queue
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import torch

from helpers import readers
from tools import notebooks, nsight, record_nsys, refresh
from tools.record_nsys import JOBS, TEMPLATES, recorded, script

LESSON = notebooks.NOTEBOOKS / "11_nsight.ipynb"
SCRIPTS = notebooks.NOTEBOOKS / "scripts"
NSYS = notebooks.INSTALLED_NSYS
needs_nsys = pytest.mark.skipif(not NSYS, reason="nsys is neither on the PATH nor in $NSYS")
SLURM_JOBS = notebooks.ROOT / "assets" / "jobs" / "slurm"
SLURM = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "sinfo")


@pytest.fixture
def real_nsys(monkeypatch: pytest.MonkeyPatch) -> str:
    """nsys as the recorder finds it, of the version that was recorded."""
    monkeypatch.setenv("NSYS", NSYS)
    here, then = record_nsys.version(NSYS), recorded("flags")["provenance"]["nsys"]
    if here != then:
        pytest.skip(f"nsys {then} was recorded, but nsys {here} is here")
    return NSYS


def source_of(name: str, text: str) -> str:
    """The function ``name`` in a Python source, without its spacing, comments and annotations."""
    (node,) = (f for f in ast.parse(text).body if getattr(f, "name", "") == name)
    return re.sub(r": str| -> [^:]+", "", ast.unparse(node))


@pytest.mark.parametrize("name", ["nvtx_range", "mark"])
def test_the_script_and_the_lesson_mark_alike(name: str) -> None:
    script = (SCRIPTS / "example_torch_profile.py").read_text(encoding="utf-8")
    cells = [cell.source for cell in notebooks.read(LESSON).cells if cell.cell_type == "code"]
    (cell,) = (source for source in cells if f"\ndef {name}(" in source)
    assert source_of(name, script) == source_of(name, cell)


@pytest.mark.everything
def test_the_script_runs_without_any_tool(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    words = [sys.executable, SCRIPTS / "example_torch_profile.py", "--steps", "2", "--json", out]
    words += ["--warm-up", "1", "--batch-size", "2", "--kineto"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2 steps, median ~")
    seen = json.loads(out.read_text())
    names = [name for name, _ in seen["kineto"] if "#" not in name]
    step = ["step", "input", "forward", "backward", "optimiser"]
    resize = ["bilinear forward", "bilinear backward"]
    assert names == ["warm-up", *step, *resize, "capture", *step, *step, *resize]
    assert len(seen["steps"]) == 2


def test_nvtx_alone_would_cut_a_compiled_graph() -> None:
    nvtx = pytest.importorskip("nvtx")

    def double(x: torch.Tensor) -> torch.Tensor:
        with nvtx.annotate("double"):
            return 2 * x

    assert torch._dynamo.explain(double)(torch.ones(3)).graph_count == 0


def test_a_step_ends_when_the_gpu_is_done_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    script = importlib.import_module("example_torch_profile")
    happened: list[str] = []

    @contextlib.contextmanager
    def mark(name: str) -> Iterator[None]:
        yield
        happened.append(name)

    monkeypatch.setattr(script, "cuda", True)
    monkeypatch.setattr(script, "device", "cpu")
    monkeypatch.setattr(script, "mark", mark)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: happened.append("synchronize"))
    shelf: queue.Queue = queue.Queue()
    shelf.put((torch.rand(2, 3, 32, 32), torch.tensor([0, 1])))
    model = script.workloads.SmallCNN()
    script.train_step(model, torch.optim.SGD(model.parameters(), lr=0.01), shelf)
    assert happened == ["input", "forward", "backward", "optimiser", "synchronize", "step"]


def test_every_flag_that_the_lesson_teaches_is_accepted_and_every_dead_one_refused() -> None:
    tried = {flag: seen["accepted"] for flag, seen in recorded("flags")["nsys"].items()}
    refused = {flag for flag, accepted in tried.items() if not accepted}
    assert refused == {
        "--stop-on-range-end=true", "--cudabacktrace-threshold=10000", "-s gpu",
        "--pytorch=autograd-nvtx", "--python-functions-trace=functions.json",
        "--discard-environment=true", "--gpu-metrics-devices=all",
    }  # fmt: skip
    (text,) = (c.source for c in notebooks.read(LESSON).cells if c.id == "flags-table")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 10
    for row in rows:
        for words in row.split("|")[1].split("`")[1::2]:
            same = words.replace("name", "report") if words.startswith("-o") else words
            same = {"-c cudaProfilerApi": "--capture-range=cudaProfilerApi"}.get(same, same)
            parts = ["-c nvtx", "-p capture"] if same.startswith("-c nvtx") else [same]
            assert all(tried[part] for part in parts), words


def test_the_commands_that_the_lesson_prints_are_accepted() -> None:
    text = "\n".join(cell.source for cell in notebooks.read(LESSON).cells)
    (ours,) = re.findall(r"^nsys profile -t .*myapp.py$", text, re.M)
    flags, program = readers.nsys_command(ours)
    templates = recorded("flags")["templates"]
    assert program == ["python", "myapp.py"]
    kept = {word for flag in flags for word in flag.split()} - {"name"}
    assert kept <= set(templates["profile.sbatch"]["words"])
    (ours,) = re.findall(r"^ncu -k .*myapp.py$", text, re.M)
    words = [word for word in templates["ncu.sbatch"]["words"][:-2] if word != "-f"]
    assert shlex.split(ours)[:-3] == words
    assert templates["profile.sbatch"]["accepted"]
    assert templates["ncu.sbatch"]["accepted"]
    assert all(recorded("flags")["nsys"][flag]["accepted"] for flag in capture_in_seconds().split())


def capture_in_seconds() -> str:
    """The flags for a program without capture(): the lesson's are the template's."""
    seconds = re.compile(r'CAPTURE="(--delay.+?)"')
    (ours,) = seconds.findall("\n".join(cell.source for cell in notebooks.read(LESSON).cells))
    assert [ours] == seconds.findall((SLURM_JOBS / "profile.sbatch").read_text())
    return ours


GPU_REPORT = """
CREATE TABLE kinds (kind, start, end);
INSERT INTO kinds VALUES ('backward', 0, 100), ('copy', 100, 200);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 11, 1, 1), (20, 21, 2, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, correlationId);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (12, 90, 1), (90, 250, 2);
"""


def test_a_range_gets_the_kernels_that_another_thread_launched_in_it() -> None:
    (cell,) = (c.source for c in notebooks.read(LESSON).cells if c.id == "t4-kernels")
    scope: dict = {}
    exec(cell.split("\nboth = ")[0], scope)
    db = sqlite3.connect(":memory:")
    db.executescript(GPU_REPORT)
    launched, running = (
        dict(db.execute(scope[name]).fetchall()) for name in ("launched", "running")
    )
    assert {kind: round(ms * 1e6) for kind, ms in launched.items()} == {"backward": 78 + 160}
    assert {kind: round(ms * 1e6) for kind, ms in running.items()} == {"backward": 88, "copy": 100}


def test_stripping_keeps_ranges_calls_and_their_names_only(tmp_path: Path) -> None:
    source, target = tmp_path / "full.sqlite", tmp_path / "stripped.sqlite"
    with sqlite3.connect(source) as db:
        db.executescript("""
            CREATE TABLE NVTX_EVENTS (start, end, eventType, textId, text);
            INSERT INTO NVTX_EVENTS VALUES (5, 9, 59, 1, NULL), (0, 0, 75, 2, 'domain');
            CREATE TABLE OSRT_API (start, end, nameId);
            INSERT INTO OSRT_API VALUES (6, 7, 3);
            CREATE TABLE StringIds (id, value);
            INSERT INTO StringIds VALUES (1, 'step'), (2, 'secret'), (3, 'read'), (4, '/home/ada');
            CREATE TABLE META_DATA_EXPORT (name, value);
            INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_HOST', 'ada'),
                                                ('EXPORT_SCHEMA_VERSION', '3.7.2');
            CREATE TABLE PROCESSES (name);
            INSERT INTO PROCESSES VALUES ('ada');""")
    nsight.strip(source, target, {"device": "none"})
    with sqlite3.connect(target) as db:
        assert db.execute("SELECT value FROM StringIds").fetchall() == [("step",), ("read",)]
        assert db.execute("SELECT count(*) FROM NVTX_EVENTS").fetchone() == (1,)
        assert db.execute("SELECT name FROM META_DATA_EXPORT").fetchall() == [
            ("EXPORT_SCHEMA_VERSION",)
        ]
    assert b"ada" not in target.read_bytes()
    assert b"secret" not in target.read_bytes()


# With the real nsys


@pytest.mark.everything
@needs_nsys
def test_the_real_nsys_still_says_what_was_recorded(real_nsys, tmp_path) -> None:
    fresh, then = record_nsys.record_flags(tmp_path, {}), recorded("flags")
    if fresh.get("ncu", {}).get("version") != then["ncu"]["version"]:
        del then["ncu"], then["templates"]["ncu.sbatch"], fresh["templates"]["ncu.sbatch"]
    assert all(said["accepted"] for said in fresh["templates"].values())
    assert {part: then[part] for part in then if part != "provenance"} == fresh


@pytest.mark.everything
@needs_nsys
@pytest.mark.parametrize(
    ("part", "renew"), [("facts", record_nsys.behaviour), ("traps", record_nsys.record_traps)]
)
def test_the_real_nsys_still_does_what_was_recorded(part, renew, real_nsys, tmp_path) -> None:
    fresh, then = renew(tmp_path, {}), recorded(part)
    assert {name: then[name] for name in fresh} == fresh


@pytest.mark.everything
@needs_nsys
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


@pytest.mark.everything
@needs_nsys
def test_every_rank_of_the_template_leaves_a_report(real_nsys, tmp_path) -> None:
    seconds = re.sub(r"\d+", "1", capture_in_seconds())
    (tmp_path / "nsys").symlink_to(NSYS)
    run_template(tmp_path, 4, "sleep", "10", CAPTURE=seconds, TRACE="nvtx")
    assert len(list(tmp_path.glob("profile-17-rank?.nsys-rep"))) == 4


@pytest.mark.everything
@needs_nsys
def test_python_sampling_names_functions_of_python(real_nsys, tmp_path) -> None:
    program = """
import time
def work_of_our_own():
    end = time.monotonic() + 1
    while time.monotonic() < end:
        pass
work_of_our_own()
"""
    (tmp_path / "program.py").write_text(program)
    words = [*nsight.QUIET, "--python-sampling=true"]
    _, _, report = nsight.record(words, [sys.executable, "program.py"], tmp_path)
    with sqlite3.connect(report) as db:
        query = "SELECT count(*) FROM StringIds WHERE value = 'work_of_our_own'"
        assert db.execute(query).fetchone() == (1,)


# On a cluster


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_bash_accepts_the_template(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)


# It runs the program and writes down what the real nsys would.
STUB = r"""
if [ "$1" = stats ]; then  # nsys stats -q -r REPORTS -f csv -o NAME FILE
  for report in ${4//,/ }; do echo "Time (%),Range" > "$8_$report.csv"; done
  exit
fi
shift
while [[ $1 == -* ]]; do
  if [[ $1 == -o ]]; then name=$2; fi
  if [[ $1 == *=* ]]; then shift; else shift 2; fi
done
while [[ $name =~ %q\{([A-Z_]+)\} ]]; do
  variable=${BASH_REMATCH[1]}
  name=${name/"%q{$variable}"/"${!variable}"}
done
"$@" && echo "$name" > "$name.nsys-rep"
"""


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_the_template_hands_over_what_was_recorded(path: Path, tmp_path: Path) -> None:
    words = record_nsys.template(path, tmp_path)["words"]
    assert words == recorded("flags")["templates"][path.name]["words"]


RANKS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
ranks = torch.ones(1)
dist.all_reduce(ranks)
print(f"{ranks.item():.0f} ranks\\n", end="", flush=True)
dist.destroy_process_group()
"""


def run_template(folder: Path, ranks: int, *words: str, **variables: str) -> str:
    """profile.sbatch with a real torchrun and the nsys in ``folder``; only srun is played."""
    script(folder / "srun", 'exec "$@"')
    here = {"SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "2", "SLURM_GPUS_ON_NODE": str(ranks)}
    here["PATH"] = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    line = ["bash", SLURM_JOBS / "profile.sbatch", *words]
    return run(line, {**os.environ, **here, **variables}, folder)


@pytest.mark.everything
def test_the_template_starts_ranks_that_know_of_each_other(tmp_path: Path) -> None:
    script(tmp_path / "nsys", STUB)
    (tmp_path / "ranks.py").write_text(RANKS)
    said = run_template(tmp_path, 2, sys.executable, "ranks.py")
    assert said.count("2 ranks\n") == 2, said
    reports = sorted(path.name for path in tmp_path.glob("*.nsys-rep"))
    assert reports == ["profile-17-rank0.nsys-rep", "profile-17-rank1.nsys-rep"]


@pytest.mark.everything
def test_two_nodes_find_each_other(tmp_path: Path) -> None:
    """train_ddp.sbatch with a real torchrun on each of two nodes, both of them here."""
    script(tmp_path / "srun", '"$@" & "$@"; wait')
    script(tmp_path / "scontrol", "echo localhost; echo another")
    (tmp_path / "ranks.py").write_text(RANKS)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    job = {"SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "2", "SLURM_GPUS_ON_NODE": "1"}
    job |= {"SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "any[1-2]", "PORT": str(port)}
    job["PATH"] = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["bash", SLURM_JOBS / "train_ddp.sbatch", "ranks.py"]
    said = run(words, {**os.environ, **job}, tmp_path)
    assert said.count("2 ranks\n") == 2, said


def test_a_template_says_that_there_is_no_report(tmp_path: Path) -> None:
    script(tmp_path / "nsys", "")
    said = run_template(tmp_path, 1, "true")
    assert "no report: did the program call torch.cuda.profiler.start()" in said


@pytest.fixture(scope="module")
def slurm() -> Iterator[tuple[Path, dict[str, str]]]:
    """A real single-node Slurm of our own: (a folder for jobs, the environment of its commands)."""
    search = f"{os.environ['PATH']}:/usr/sbin"
    missing = [name for name in SLURM if not shutil.which(name, path=search)]
    if missing:
        pytest.skip(f"Slurm is not installed here: no {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("slurmd starts jobs for its users, so this needs root")
    # Under /tmp and short: munge's socket and its path have limits of their own.
    with (
        tempfile.TemporaryDirectory(prefix="slurm", dir="/tmp") as name,
        contextlib.ExitStack() as daemons,
    ):
        environment = {**os.environ, "PATH": search, "SLURM_CONF": f"{name}/slurm.conf"}
        start_slurm(Path(name), environment, daemons)
        deadline = time.monotonic() + 30
        while "idle" not in (state := run(["sinfo", "-h", "-o", "%T"], environment)):
            logs = "\n".join(path.read_text() for path in Path(name).glob("*.log"))
            assert time.monotonic() < deadline, f"the node is {state!r}, not idle:\n{logs}"
            time.sleep(0.3)
        yield Path(name), environment


def stop(daemon: subprocess.Popen) -> None:
    daemon.terminate()
    try:
        daemon.wait(timeout=20)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def start_slurm(folder: Path, environment: dict[str, str], daemons: contextlib.ExitStack) -> None:
    """munged, slurmctld and slurmd in the foreground, each below ``folder``."""
    host = socket.gethostname().split(".")[0]
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir()
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    folder.chmod(0o755)
    sockets = [free_port(), free_port()]
    (folder / "slurm.conf").write_text(f"""ClusterName=course
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
ProctrackType=proctrack/linuxproc
ReturnToService=2
SlurmctldPort={sockets[0]}
SlurmdPort={sockets[1]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SelectType=select/cons_res
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=60 State=UP
""")
    munge = folder / "munge"
    commands = [
        ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}/socket",
         f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"],
        ["slurmctld", "-D", "-c"],
        ["slurmd", "-D"],
    ]  # fmt: skip
    for words in commands:
        with (folder / f"{words[0]}.log").open("w") as log:
            line = [shutil.which(words[0], path=environment["PATH"]), *words[1:]]
            daemon = subprocess.Popen(line, env=environment, stdout=log, stderr=log)
            daemons.callback(stop, daemon)
        time.sleep(0.5)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(words: list, environment: dict[str, str], folder: Path | None = None) -> str:
    done = subprocess.run(
        words, env=environment, cwd=folder, capture_output=True, text=True, timeout=120
    )
    return done.stdout + done.stderr


def submit(slurm: tuple[Path, dict], template: str, options: tuple, *words: str) -> Path:
    """Run a template to its end in a folder of its own; return the folder."""
    cluster, environment = slurm
    path = SLURM_JOBS / template
    for _ in range(3):  # on a busy computer nsys may lose the agent that it has started
        folder = Path(tempfile.mkdtemp(dir=cluster))
        if NSYS:
            (folder / "nsys").symlink_to(NSYS)
        else:
            script(folder / "nsys", STUB)
        search = f"{folder}:{Path(sys.executable).parent}:{environment['PATH']}"
        here = {**environment, "PATH": search, "TRACE": "nvtx", "CAPTURE": ""}
        said = run(["sbatch", "--wait", *options, path, *words], here, folder)
        logs = "\n".join(log.read_text() for log in folder.glob("*.log"))
        if "End of file" not in logs:
            break
    assert "Submitted batch job" in said, said + logs
    assert "error" not in logs.lower(), logs
    return folder


@pytest.mark.everything
def test_slurm_writes_a_report_for_the_rank(slurm) -> None:
    options = ("--cpus-per-task=2", "--account=mine", "--partition=debug")
    folder = submit(slurm, "profile.sbatch", options, sys.executable, "-c", "print('ran')")
    (report,) = folder.glob("*.nsys-rep")
    job = report.name.split("-")[1]
    assert report.name == f"profile-{job}-rank0.nsys-rep"
    assert (folder / f"profile-{job}.log").read_text().count("ran\n") == 1


@pytest.mark.everything
def test_slurm_compares_batch_sizes(slurm) -> None:
    program = "import sys, contextlib\ntry:\n import nvtx\nexcept ImportError: nvtx = None\n"
    program += "mark = nvtx.annotate('step') if nvtx else contextlib.nullcontext()\n"
    program += "with mark: print('batch', sys.argv[-1])"
    options = ("--cpus-per-task=2",)
    folder = submit(slurm, "batch_sizes.sbatch", options, sys.executable, "-c", program)
    (log,) = folder.glob("*.log")
    assert [line for line in log.read_text().splitlines() if line.startswith("batch")] == [
        "batch 4",
        "batch 512",
    ]
    tables = {path.name.split("-", 2)[2] for path in folder.glob("*.csv")}
    names = ("nvtx_sum", "nvtx_gpu_proj_sum", "cuda_gpu_kern_sum")
    assert tables == {f"{size}_{name}.csv" for size in (4, 512) for name in names}
    assert all("Range" in path.read_text() for path in folder.glob("*_nvtx_sum.csv"))
