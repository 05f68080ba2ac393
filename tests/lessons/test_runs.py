"""Each cell runs once, and with ``--everything`` twice in the same kernel, each run compared."""

import socket
from subprocess import CompletedProcess

import nbval.kernel
import pytest
from jupyter_client.connect import LocalPortCache

from tests.conftest import write_notebook

COUNT = "with open('runs', 'a') as file:\n    file.write('x')"


def failed(done: CompletedProcess) -> list[str]:
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
