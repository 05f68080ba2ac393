import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from helpers.terminal import terminal


def test_a_line_runs_in_its_folder_and_all_that_it_prints_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "it.py").write_text("import os, sys\nprint(sys.argv, os.getcwd() + os.sep, 'é')\nx")
    printed = terminal("python it.py 'two words'", tmp_path, PYTHONUTF8="1")
    assert printed.startswith("['it.py', 'two words']  é\n")
    assert "NameError" in printed  # and it would be an error if python were not found
    assert terminal("python -c 'import sys; print(sys.executable)'", tmp_path) == "python\n"
    assert terminal(f"'{sys.executable}' -c 'print(1)' python", tmp_path) == "1\n"
    which = "import shutil; print(shutil.which('python'))"
    assert terminal(f'python -c "{which}"', tmp_path, PATH="/nowhere") == "python\n"
    rest = "import os; print(os.environ['PATH'].split(os.pathsep)[1:])"
    assert terminal(f'python -c "{rest}"', tmp_path, PATH="/nowhere") == "['/nowhere']\n"
    quoted = "import shlex, sys; print(shlex.quote(sys.executable), sys.executable)"
    with monkeypatch.context() as patch:
        spaced = tmp_path / "a course" / "python"
        spaced.parent.mkdir()
        spaced.symlink_to(sys.executable)
        patch.setattr(sys, "executable", str(spaced))
        assert terminal(f'python -c "{quoted}"', Path("/")) == "python python\n"
    with pytest.raises(FileNotFoundError):
        terminal("no-such-program", tmp_path)


@pytest.mark.parametrize(("given", "shown"), [({}, "None"), ({"FORCE_COLOR": "1"}, "1")])
def test_colours_are_asked_for_by_the_caller_only(
    given: dict, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "3")
    monkeypatch.setenv("CLICOLOR_FORCE", "3")
    monkeypatch.setenv("KEPT", "yes")
    get = "import os; print(*map(os.environ.get, ['FORCE_COLOR', 'CLICOLOR_FORCE', 'KEPT']))"
    assert terminal(f'python -c "{get}"', tmp_path, **given) == f"{shown} None yes\n"


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    (tmp_path / "start.py").write_text(
        "import os, pathlib, subprocess, sys, time\n"
        "below = int(sys.argv[1])\n"
        "pathlib.Path(f'{below}.pid').write_text(str(os.getpid()))\n"
        "if below:\n    subprocess.run([sys.executable, __file__, str(below - 1)])\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        terminal("python start.py 2", tmp_path, timeout=4)
    pids = [int((tmp_path / f"{below}.pid").read_text()) for below in range(3)]
    for pid in pids:
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"
    mine = [child.pid for child in psutil.Process().children()]  # a zombie is one, too
    assert pids[2] not in mine, raised  # which keeps what was started from being collected
