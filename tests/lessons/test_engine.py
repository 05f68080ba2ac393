"""Each cell runs once, and with ``--everything`` three times, each run compared."""

import re

import pytest

from tests.conftest import write_notebook

COUNT = "with open('runs', 'a') as file:\n    file.write('x')"
VACUOUS = """def claim(text, holds, **measured):
    assert holds
times = [1.0, 2.0]
if len(times) > 5:
    claim("a branch that was not taken", True)
claim("no list is shorter than nothing", max(times) < 5 and len(times) >= 0, times=times)"""


def test_a_plain_run_executes_each_cell_once_and_compares_it(course, run_pytest) -> None:
    slow = "import time\ntime.sleep(1)"  # files that take less are not listed
    changed = "print(1 + 1)"
    path = course / "notebooks" / "count.ipynb"
    write_notebook(path, {COUNT: "", slow: "", changed: "3\n"})
    done = run_pytest()
    assert done.returncode == 1
    assert (course / "notebooks" / "runs").read_text() == "x"
    assert re.search(r"\d s  notebooks/count.ipynb", done.stdout)
    failed = [line.split(" - ")[0] for line in done.stdout.splitlines() if line[:6] == "FAILED"]
    assert failed == ["FAILED notebooks/count.ipynb::Cell 2"], done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_what_nobody_runs_fails_the_run(workers, course, run_pytest) -> None:
    write_notebook(course / "notebooks" / "empty.ipynb", {})
    (course / "tests" / "unit" / "test_nothing.py").write_text("def check_one():\n    pass\n")
    done = run_pytest(*workers)
    assert done.returncode != 0
    names = "notebooks/empty.ipynb, tests/unit/test_nothing.py"
    assert f"nothing was collected from {names}" in done.stderr + done.stdout


@pytest.mark.everything
def test_everything_compares_three_runs_and_examines_the_claims(course, run_pytest) -> None:
    folder = course / "notebooks"
    write_notebook(folder / "count.ipynb", {COUNT: ""})
    write_notebook(folder / "second.ipynb", {"things = [1, 2]": "", "print(things.pop())": "2\n"})
    ask, set_ = "print('late' in globals())", "late = True"
    write_notebook(folder / "third.ipynb", {ask: "False\n", set_: ""})
    write_notebook(
        folder / "ignored.ipynb",
        {"import time; print(time.time())": "7\n"},
        ["nbval-ignore-output"],
    )
    write_notebook(folder / "vacuous.ipynb", {VACUOUS: ""})
    marked = "import pytest\n@pytest.mark.everything\ndef test_dear():\n    assert False\n"
    (course / "tests" / "unit" / "test_dear.py").write_text(marked)
    assert run_pytest("tests").returncode == 0
    done = run_pytest("--everything")
    assert (folder / "runs").read_text() == "xxx"
    failed = [line.split(" - ")[0] for line in done.stdout.splitlines() if line[:6] == "FAILED"]
    assert failed == [
        "FAILED tests/unit/test_dear.py::test_dear",
        "FAILED notebooks/second.ipynb::Cell 1 (cell-2), second run",
        "FAILED notebooks/third.ipynb::Cell 0 (cell-1), third run",
        "FAILED notebooks/vacuous.ipynb::Cell 0 (cell-1), claims",
    ]
    assert "claim 'no list is shorter than nothing': len(times) >= 0: no change of times" in (
        done.stdout
    )
