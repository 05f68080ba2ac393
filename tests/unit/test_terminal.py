import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from helpers.terminal import run, terminal


def test_a_line_runs_in_its_folder_and_all_that_it_prints_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "it.py").write_text("import os, sys\nprint(sys.argv, os.getcwd() + os.sep, 'é')\nx")
    printed = terminal("python it.py 'two words'", tmp_path, PYTHONUTF8="1")
    assert printed.startswith("['it.py', 'two words']  é\n")
    assert "NameError" in printed  # and it would be an error if python were not found
    assert terminal("python -c 'import sys; print(sys.executable)'", tmp_path) == "python\n"
    assert terminal(f"'{sys.executable}' -c 'print(1)' python", tmp_path) == "1\n"
    path = "import os, shutil; print(shutil.which('python'), os.environ['PATH'].split(':')[1:])"
    assert terminal(f'python -c "{path}"', tmp_path, PATH="/nowhere") == "python ['/nowhere']\n"
    quoted = "import shlex, sys; print(shlex.quote(sys.executable), sys.executable)"
    with monkeypatch.context() as patch:
        spaced = tmp_path / "a course" / "python"
        spaced.parent.mkdir()
        spaced.symlink_to(sys.executable)
        patch.setattr(sys, "executable", str(spaced))
        assert terminal(f'python -c "{quoted}"', Path("/")) == "python python\n"
    with pytest.raises(FileNotFoundError):
        terminal("no-such-program", tmp_path)


def test_colours_are_asked_for_by_the_caller_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "3")
    monkeypatch.setenv("CLICOLOR_FORCE", "3")
    line = "python -c \"import os; print(*map(os.getenv, ['FORCE_COLOR', 'CLICOLOR_FORCE']))\""
    assert terminal(line, tmp_path) == "None None\n"
    assert terminal(line, tmp_path, FORCE_COLOR="1") == "1 None\n"


STARTER = """
import os, pathlib, subprocess, sys, time
below = int(sys.argv[1])
pathlib.Path(f"{below}.pid").write_text(str(os.getpid()))
print("level", below, flush=True)
if below:
    subprocess.Popen([sys.executable, __file__, str(below - 1)])
    while not pathlib.Path("0.pid").exists():
        time.sleep(0.01)
    if "orphans" in sys.argv:
        sys.exit()  # what it started goes on, with our pipe
time.sleep(60)
"""


def is_running(pid: int) -> bool:
    """Whether a process still runs, which after SIGKILL it may do for a moment."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process, deadline = psutil.Process(pid), time.monotonic() + 10
        while process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                return True
            time.sleep(0.05)
    return False


@pytest.mark.everything
@pytest.mark.parametrize(
    ("start", "line"), [(terminal, "python start.py 2"), (run, "python start.py 1 orphans")]
)
def test_what_takes_too_long_ends_with_everything_that_it_started(
    start: Callable, line: str, tmp_path: Path
) -> None:
    (tmp_path / "start.py").write_text(STARTER)
    with pytest.raises(subprocess.TimeoutExpired) as error:
        start(line, tmp_path, timeout=4)
    pids = [int(path.read_text()) for path in tmp_path.glob("*.pid")]
    assert len(pids) == int(line.split()[2]) + 1
    assert not any(map(is_running, pids))
    if os.name == "posix":  # Windows keeps what was printed until then
        assert any("level 0" in note for note in error.value.__notes__)
    children = [child.pid for child in psutil.Process().children()]  # with those not waited for
    assert not set(pids) & set(children)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_an_interrupt_ends_the_program_with_everything_that_it_started(tmp_path: Path) -> None:
    (tmp_path / "start.py").write_text(STARTER)
    ended = threading.Event()

    def interrupt() -> None:
        while not (tmp_path / "0.pid").exists():
            time.sleep(0.01)
        while not ended.is_set():  # again: in the callback of a weak reference Python loses it
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait(20)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup has it ignored
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        terminal("python start.py 1 orphans", tmp_path)
    ended.set()
    signal.signal(signal.SIGINT, before)
    assert not any(is_running(int(path.read_text())) for path in tmp_path.glob("*.pid"))


def test_run_keeps_output_and_errors_apart_and_raises_with_the_last_lines(tmp_path: Path) -> None:
    words = ["python", "-c", "import sys; print('1 2'); print('red', file=sys.stderr)"]
    done = run(words, tmp_path)
    assert (done.stdout, done.stderr) == ("1 2\n", "red\n")
    with pytest.raises(subprocess.CalledProcessError, match="status 3") as error:
        run(["python", "-c", "import sys; print('almost'); sys.stderr.write('no'); sys.exit(3)"])
    assert error.value.__notes__ == ["The last lines of the program:\nalmost\n\nno"]
