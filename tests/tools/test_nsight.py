"""Lesson 11 against the real tools: nsys and Slurm where they are, and what needs neither."""

import ast
import contextlib
import json
import os
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
import psutil
import pytest

from tools import notebooks, nsight, record_nsys, refresh

LESSON = notebooks.NOTEBOOKS / "11_nsight.ipynb"
SCRIPTS = notebooks.NOTEBOOKS / "scripts"
RECORDINGS = notebooks.ROOT / "assets" / "recordings"
TEMPLATES = sorted((notebooks.ROOT / "assets" / "jobs").glob("*/*.*"))
NSYS = notebooks.INSTALLED_NSYS
needs_nsys = pytest.mark.skipif(not NSYS, reason="nsys is neither on the PATH nor in $NSYS")
SLURM = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "sinfo")


def recorded(name: str) -> dict:
    return json.loads((RECORDINGS / f"nsys_{name}.json").read_text(encoding="utf-8"))


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
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.returns = None
            for argument in node.args.args:
                argument.annotation = None
            return ast.unparse(node)
    raise AssertionError(f"no function {name}")


@pytest.mark.parametrize("name", ["mark", "capture"])
def test_the_script_and_the_lesson_mark_alike(name: str) -> None:
    script = (SCRIPTS / "example_torch_profile.py").read_text(encoding="utf-8")
    cells = [cell.source for cell in notebooks.read(LESSON).cells if cell.cell_type == "code"]
    (cell,) = (source for source in cells if f"\ndef {name}(" in source)
    assert source_of(name, script) == source_of(name, cell)


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


def test_the_recording_knows_every_flag_and_command_of_the_recorder() -> None:
    flags = recorded("flags")
    assert list(flags["nsys"]) == record_nsys.NSYS_FLAGS
    assert list(flags["ncu"]["flags"]) == record_nsys.NCU_FLAGS
    assert [command["line"] for command in flags["commands"]] == record_nsys.COMMANDS


def test_every_flag_that_the_lesson_teaches_is_accepted_and_every_dead_one_refused() -> None:
    tried = {flag: seen["accepted"] for flag, seen in recorded("flags")["nsys"].items()}
    refused = {flag for flag, accepted in tried.items() if not accepted}
    assert refused == {
        "--stop-on-range-end=true", "--cudabacktrace-threshold=10000", "-s gpu",
        "--pytorch=autograd-nvtx", "--python-functions-trace=functions.json",
        "--discard-environment=true",
    }  # fmt: skip
    (text,) = (c.source for c in notebooks.read(LESSON).cells if c.id == "clinic-table")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 10
    for row in rows:
        for words in row.split("|")[1].split("`")[1::2]:
            same = words.replace("name", "report") if words.startswith("-o") else words
            same = {"-c cudaProfilerApi": "--capture-range=cudaProfilerApi"}.get(same, same)
            parts = ["-c nvtx", "-p capture"] if same.startswith("-c nvtx") else [same]
            assert all(tried[part] for part in parts), words


GPU_REPORT = """
CREATE TABLE StringIds (id INTEGER, value TEXT);
INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'relu');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId, shortName);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (0, 100000, 7, 1), (20000, 50000, 8, 2), (105000, 200000, 7, 1), (250000, 260000, 7, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, copyKind, bytes);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 10, 1, 64), (10, 40, 2, 64), (40, 45, 1, 8);
"""


def test_the_gpu_queries_count_kernels_copies_and_gaps() -> None:
    (cell,) = (c.source for c in notebooks.read(LESSON).cells if c.id == "read-gpu-queries")
    scope: dict = {}
    exec(cell.split("\nfor ")[0], scope)
    db = sqlite3.connect(":memory:")
    db.executescript(GPU_REPORT)
    kernels, copies, gaps = (db.execute(query).fetchall() for query in scope["gpu"].values())
    assert kernels == [("gemm", 2, 195000), ("relu", 2, 40000)]
    assert copies == [(2, 1, 30), (1, 2, 15)]
    # 5 µs is too short to count, and the overlapping kernel on stream 8 makes no gap.
    assert [row[1:] for row in gaps] == [(1, 50000)]


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
    record_nsys.strip(source, target, {"device": "none"})
    with sqlite3.connect(target) as db:
        assert db.execute("SELECT value FROM StringIds").fetchall() == [("step",), ("read",)]
        assert db.execute("SELECT count(*) FROM NVTX_EVENTS").fetchone() == (1,)
        assert db.execute("SELECT name FROM META_DATA_EXPORT").fetchall() == [
            ("EXPORT_SCHEMA_VERSION",)
        ]
    assert b"ada" not in target.read_bytes()
    assert b"secret" not in target.read_bytes()


# With the real nsys


@needs_nsys
def test_the_real_nsys_still_says_what_was_recorded(real_nsys, tmp_path) -> None:
    (tmp_path / "work").mkdir()
    record_nsys.record_flags(tmp_path, tmp_path / "work")
    fresh, then = json.loads((tmp_path / "nsys_flags.json").read_text()), recorded("flags")
    for part in ("nsys", "alone", "commands"):
        assert fresh[part] == then[part]
    if fresh.get("ncu", {}).get("version") == then["ncu"]["version"]:
        assert fresh["ncu"] == then["ncu"]


@needs_nsys
def test_the_real_nsys_still_captures_as_recorded(real_nsys, tmp_path) -> None:
    fresh = record_nsys.behaviour(tmp_path)
    then = recorded("facts")
    assert {name: then[name] for name in fresh} == fresh


@needs_nsys
def test_the_live_section_records_and_finds_its_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last section with nsys in sight: a real report, and the lesson's own queries."""
    wanted = ("setup", "setup-recordings", "read-open", "read-view", "read-stats")
    cells = [
        cell
        for cell in notebooks.read(LESSON).cells
        if cell.cell_type == "code" and (cell.id in wanted or cell.id.startswith("own-"))
    ]
    cells = [cell for cell in cells if not cell.id.startswith("own-slurm")]
    monkeypatch.setenv("NSYS", NSYS)
    lesson = nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA)
    executed = refresh.execute(lesson, LESSON.parent)
    printed = {cell.id: "".join(o.text for o in cell.outputs) for cell in executed.cells}
    assert printed["own-record"] == "recorded on this computer: mine.sqlite\n"
    assert "every range as often as in the recording: True" in printed["own-query"]


@needs_nsys
def test_nsys_still_leaves_forked_workers_out_unless_told(real_nsys, tmp_path) -> None:
    assert record_nsys.workers(tmp_path) == recorded("traps")["workers"]


@needs_nsys
def test_without_a_threshold_nsys_keeps_short_calls_whatever_its_help_says(
    real_nsys, tmp_path
) -> None:
    fresh = record_nsys.thresholds(tmp_path)
    assert fresh.keys() == recorded("traps")["threshold"].keys()
    shorter = {flag: row["shorter than 1000 ns"] for flag, row in fresh.items()}
    assert shorter[""] > 1000
    assert shorter["--osrt-threshold=1000"] == 0
    said = subprocess.run([NSYS, "profile", "--help"], capture_output=True, text=True).stdout
    assert "Default is 1000 (1 microsecond)" in said


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
    _, _, report = nsight.record(words, [sys.executable, "program.py"], tmp_path, real_nsys)
    with sqlite3.connect(report) as db:
        query = "SELECT count(*) FROM StringIds WHERE value = 'work_of_our_own'"
        assert db.execute(query).fetchone() == (1,)


# On a cluster


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_bash_accepts_the_template(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)


def stub(folder: Path) -> Path:
    """A folder with an nsys that runs the program and writes down what the real one would."""
    path = folder / "bin" / "nsys"
    path.parent.mkdir()
    path.write_text("""#!/bin/bash
[ "$1" = stats ] && { echo "Time (%),Range"; exit; }
shift
while [[ $1 == -* ]]; do
  if [[ $1 == -o ]]; then name=$2; fi
  if [[ $1 == *=* ]]; then shift; else shift 2; fi
done
while [[ $name =~ %q\\{([A-Z_]+)\\} ]]; do
  variable=${BASH_REMATCH[1]}
  name=${name/"%q{$variable}"/"${!variable}"}
done
"$@" && echo "$name" > "$name.nsys-rep"
""")
    path.chmod(0o755)
    return path.parent


def test_pbs_runs_the_program_under_nsys(tmp_path: Path) -> None:
    template = notebooks.ROOT / "assets" / "jobs" / "pbs" / "profile.pbs"
    environment = {
        "PATH": f"{stub(tmp_path)}:{os.environ['PATH']}",
        "PBS_O_WORKDIR": str(tmp_path),
        "PBS_JOBID": "17.cluster",
        "PROGRAM": "echo it ran",
    }
    words = ["bash", template]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "it ran\n"
    assert (tmp_path / "profile-17-rank0.nsys-rep").exists()


@pytest.fixture(scope="module")
def slurm() -> Iterator[tuple[Path, dict[str, str]]]:
    """A real single-node Slurm of our own: (a folder for jobs, the environment of its commands)."""
    search = f"{os.environ['PATH']}:/usr/sbin"
    missing = [name for name in SLURM if not shutil.which(name, path=search)]
    if missing:
        pytest.skip(f"Slurm is not installed here: no {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("slurmd starts jobs for its users, so this needs root")
    with running_slurm(search) as cluster:
        yield cluster


@contextlib.contextmanager
def running_slurm(search: str, patience: float = 30) -> Iterator[tuple[Path, dict[str, str]]]:
    """Slurm's daemons while the block runs; they and their folder are gone however it ends."""
    # Under /tmp and short: munge's socket and its path have limits of their own.
    with (
        tempfile.TemporaryDirectory(prefix="slurm", dir="/tmp") as name,
        contextlib.ExitStack() as daemons,
    ):
        environment = {**os.environ, "PATH": search, "SLURM_CONF": f"{name}/slurm.conf"}
        start_slurm(Path(name), environment, daemons)
        wait_for_node(Path(name), environment, patience)
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
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldPort={sockets[0]}
SlurmdPort={sockets[1]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SelectType=select/cons_res
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
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


def wait_for_node(folder: Path, environment: dict[str, str], patience: float) -> None:
    deadline = time.monotonic() + patience
    while "idle" not in (state := run(["sinfo", "-h", "-o", "%T"], environment)):
        if time.monotonic() > deadline:
            logs = "\n".join(path.read_text() for path in folder.glob("*.log"))
            raise TimeoutError(f"the node is {state!r}, not idle:\n{logs}")
        time.sleep(0.3)


@pytest.mark.parametrize("fails", ["before the node is idle", "in a test"])
def test_no_daemon_and_no_folder_is_left_when_something_failed(fails: str, tmp_path: Path) -> None:
    state = "down" if fails.startswith("before") else "idle"
    note = f'echo $$ $SLURM_CONF >> "{tmp_path}/pids"; exec sleep 300'
    for name, script in {**dict.fromkeys(SLURM[:3], note), "sinfo": f"echo {state}"}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / name).chmod(0o755)
    with (
        contextlib.suppress(TimeoutError if state == "down" else ZeroDivisionError),
        running_slurm(f"{tmp_path}:/usr/bin:/bin", patience=1),
    ):
        raise ZeroDivisionError
    started = [line.split() for line in (tmp_path / "pids").read_text().splitlines()]
    assert len(started) == 3
    for pid, configuration in started:
        assert not psutil.pid_exists(int(pid))
        assert not Path(configuration).parent.exists()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(words: list, environment: dict[str, str], folder: Path | None = None) -> str:
    done = subprocess.run(
        words, env=environment, cwd=folder, capture_output=True, text=True, timeout=120
    )
    return done.stdout + done.stderr


def submit(slurm: tuple[Path, dict[str, str]], template: str, *words: str) -> Path:
    """Run a template to its end in a folder of its own; return the folder."""
    cluster, environment = slurm
    path = notebooks.ROOT / "assets" / "jobs" / "slurm" / template
    for _ in range(3):  # on a busy computer nsys may lose the agent that it has started
        folder = Path(tempfile.mkdtemp(dir=cluster))
        if NSYS:
            tools = folder / "bin"
            tools.mkdir()
            (tools / "nsys").symlink_to(NSYS)
        else:
            tools = stub(folder)
        here = {**environment, "PATH": f"{tools}:{environment['PATH']}", "TRACE": "nvtx"}
        said = run(["sbatch", "--wait", *words[:1], path, *words[1:]], here, folder)
        logs = "\n".join(log.read_text() for log in folder.glob("*.log"))
        if "End of file" not in logs:
            break
    assert "Submitted batch job" in said, said + logs
    assert "error" not in logs.lower(), logs
    return folder


def test_slurm_writes_one_report_for_each_rank(slurm) -> None:
    folder = submit(slurm, "profile.sbatch", "--ntasks=2", sys.executable, "-c", "print('ran')")
    reports = sorted(path.name for path in folder.glob("*.nsys-rep"))
    (job,) = {name.split("-")[1] for name in reports}
    assert reports == [f"profile-{job}-rank0.nsys-rep", f"profile-{job}-rank1.nsys-rep"]
    assert (folder / f"profile-{job}.log").read_text().count("ran\n") == 2


def test_slurm_compares_batch_sizes(slurm) -> None:
    program = "import sys, contextlib\ntry:\n import nvtx\nexcept ImportError: nvtx = None\n"
    program += "mark = nvtx.annotate('step') if nvtx else contextlib.nullcontext()\n"
    program += "with mark: print('batch', sys.argv[-1])"
    folder = submit(slurm, "batch_sizes.sbatch", "--ntasks=1", sys.executable, "-c", program)
    (log,) = folder.glob("*.log")
    assert [line for line in log.read_text().splitlines() if line.startswith("batch")] == [
        "batch 4",
        "batch 512",
    ]
    tables = sorted(folder.glob("*.csv"))
    assert [path.name.split("-")[-1] for path in tables] == ["4.csv", "512.csv"]
    assert all("Range" in path.read_text() for path in tables)
