"""Each cell runs once, and with ``--everything`` twice in the same kernel, each run compared."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbval.kernel
import pytest
from jupyter_client.connect import LocalPortCache
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import notebooks

COUNT = "with open('runs', 'a') as file:\n    file.write('x')"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the course's test set-up with one good notebook and one fast test."""
    for name in ("conftest.py", "pyproject.toml", "tools/__init__.py", "tools/notebooks.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(notebooks.ROOT / name, tmp_path / name)
    for room in ("unit", "lessons", "tools"):
        (tmp_path / "tests" / room).mkdir(parents=True)
    shutil.copy(notebooks.SANITIZE, tmp_path / "tests" / "lessons")
    (tmp_path / "tests" / "__init__.py").touch()
    (tmp_path / "tests" / "unit" / "test_one.py").write_text("def test_one():\n    assert True\n")
    write_notebook(tmp_path / "notebooks" / "good.ipynb", {"print(1 + 1)": "2\n"})
    return tmp_path


def write_notebook(path: Path, cells: dict[str, str], tags: tuple[str, ...] = ()) -> None:
    """A canonical notebook: a title, and ``cells``, sources to what they printed."""
    made = [new_markdown_cell("# Adding", id="title")]
    for number, (source, printed) in enumerate(cells.items(), 1):
        outputs = [new_output("stream", text=printed)] if printed else []
        cell = new_code_cell(source, id=f"cell-{number}", execution_count=number, outputs=outputs)
        cell.metadata.tags = list(tags)
        made.append(cell)
    text = notebooks.as_text(notebooks.canonical(new_notebook(cells=made)))
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def run_pytest(course: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs pytest in the copy of the course, with the given words."""

    def run(*words: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PYTHONPATH": str(course)}
        line = [sys.executable, "-m", "pytest", "-q", *words]
        return subprocess.run(line, cwd=course, env=environment, capture_output=True, text=True)

    return run


def failed(done: subprocess.CompletedProcess) -> list[str]:
    lines = done.stdout.splitlines()
    return [line.split(" - ")[0].split()[1] for line in lines if line.startswith("FAILED")]


def test_a_plain_run_executes_each_cell_once_and_compares_it(course, run_pytest) -> None:
    path = course / "notebooks" / "count.ipynb"
    write_notebook(path, {COUNT: "", "print(1 + 1)": "3\n"})
    done = run_pytest()
    assert done.returncode == 1
    assert (course / "notebooks" / "runs").read_text() == "x"
    assert failed(done) == ["notebooks/count.ipynb::Cell"], done.stdout


def test_a_kernel_whose_port_was_taken_is_started_again(monkeypatch) -> None:
    find = LocalPortCache.find_available_port
    with socket.create_server(("127.0.0.1", 0)) as other:
        ports = [other.getsockname()[1]]
        monkeypatch.setattr(
            LocalPortCache,
            "find_available_port",
            lambda self, ip: ports.pop() if ports else find(self, ip),
        )
        kernel = nbval.kernel.RunningKernel("python3")
    assert not ports
    assert kernel.is_alive()
    kernel.stop()


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_what_nobody_runs_fails_the_run(workers, course, run_pytest) -> None:
    write_notebook(course / "notebooks" / "empty.ipynb", {})
    (course / "tests" / "unit" / "test_nothing.py").write_text("def check_one():\n    pass\n")
    done = run_pytest(*workers)
    assert done.returncode != 0
    names = "notebooks/empty.ipynb, tests/unit/test_nothing.py"
    assert f"nothing was collected from {names}" in done.stderr + done.stdout


@pytest.mark.everything
def test_everything_runs_a_notebook_twice_and_compares_both_runs(course, run_pytest) -> None:
    folder = course / "notebooks"
    write_notebook(folder / "count.ipynb", {COUNT: ""})
    ask, know = "print('late' in globals())", "late = True"
    write_notebook(folder / "second.ipynb", {ask: "False\n", know: ""})
    clock = {"import time; print(time.time())": "7\n"}
    write_notebook(folder / "ignored.ipynb", clock, ["nbval-ignore-output"])
    marked = "import pytest\n@pytest.mark.everything\ndef test_marked():\n    assert False\n"
    (course / "tests" / "unit" / "test_marked.py").write_text(marked)
    assert run_pytest("tests").returncode == 0
    done = run_pytest("--everything")
    assert (folder / "runs").read_text() == "xx"
    assert sorted(failed(done)) == [
        "notebooks/second.ipynb::Cell",
        "tests/unit/test_marked.py::test_marked",
    ]
