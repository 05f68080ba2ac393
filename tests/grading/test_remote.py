"""What pretends to work for a known time stays in the grader's process."""

import time
from pathlib import Path

import pytest

from grading import sandbox
from grading.remote import described
from helpers.simulated import Device, Work
from tests.grading.classroom import MARKS, Class
from tools import exercise_sets, notebooks

pytestmark = MARKS

ANSWERS = """
import os
import time

def times(work, calls):
    found = []
    for _ in range(calls):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return found

def on_the_processor(work):
    start = time.thread_time()
    work()
    return time.thread_time() - start

def finished(device, steps):
    for _ in range(steps):
        device()
    start = time.perf_counter()
    device.synchronize()
    return time.perf_counter() - start

def read(work):
    return object.__getattribute__(work, "seconds")

def read_class(work):
    return [name for name in dir(work) if "second" in name]

def spin():
    if os.fork() == 0:
        os.setsid()
        while True:
            pass

def call_another(work):
    type(work)(work._number + 1, False)()
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """A student's functions by their names, in a kernel."""
    from grading.kernel import StudentFunction, StudentKernel

    kernel = StudentKernel(tmp_path_factory.mktemp("k"), sandbox.Limits(cell=20))
    assert kernel.run(ANSWERS, 60) == ("", "")
    yield lambda name: StudentFunction(kernel, name)
    kernel.end()


def test_calls_take_their_time_and_are_counted(functions) -> None:
    work = Work([0.1, 0.8, 0.005])
    first, second, third = functions("times")(work, 3)
    assert 0.1 <= first < second
    assert 0.005 <= third < 0.8 <= second
    assert work.calls == 3
    device = Device([0.2, 0.2], launch=0.001)
    assert functions("finished")(device, 2) > 0.2
    assert device.calls == 2


def test_a_busy_one_keeps_the_students_processor_at_work(functions) -> None:
    waits, computes = (functions("on_the_processor")(Work([0.3], busy=busy)) for busy in (0, 1))
    assert computes > 2 * waits


def test_no_time_can_be_read_and_no_other_called(functions) -> None:
    with pytest.raises(AttributeError):
        functions("read")(Work([0.1]))
    assert functions("read_class")(Work([0.1])) == []
    with pytest.raises((ValueError, RuntimeError)):
        functions("call_another")(Work([0.1]))


def test_after_a_kernel_has_ended_a_new_one_can_call_them(functions) -> None:
    function, work = functions("times"), Work([0.01])
    function.kernel.end()
    assert len(function(work, 2)) == work.calls == 2


def test_only_what_pretends_stays(tmp_path: Path) -> None:
    objects = []
    assert described([1.0], objects) is described(tmp_path, objects) is None
    assert described(work := Work([1.0], busy=True), objects) == {"remote": 0, "busy": True}
    assert objects == [work]


def test_nothing_that_a_paused_kernel_started_runs(functions) -> None:
    spin = functions("spin")
    spin()

    def computed() -> float:
        time.sleep(0.5)
        spent = [child.cpu_times() for child in spin.kernel.children()]
        return sum(times.user for times in spent)

    with spin.paused():
        before, after = computed(), computed()
    assert before == after
    assert computed() > after + 0.05


def test_a_students_text_runs_where_none_of_their_cells_did(tmp_path: Path) -> None:
    classroom = Class(tmp_path)
    notebook = notebooks.read(classroom.set)
    cells = {cell.id: cell for cell in notebook.cells}
    cells["fast-given"].source += "\n\ndef result(text, values):\n    names = {}\n"
    cells["fast-given"].source += "    exec(text, names)\n    return names['fast'](values)"
    cells["fast-check"].source = 'text = exercises.source("fast", fast)\n'
    cells["fast-check"].source += "(run,) = exercises.apart(result)\n"
    cells["fast-check"].source += 'expect("the sum", run(text, [1, 2]), 3)'
    classroom.set.write_text(notebooks.as_text(notebook), encoding="utf-8")
    classroom.released = exercise_sets.release(classroom.set)
    wrong = "def fast(values):\n    return 0\n"
    classroom.hand_in("honest")
    classroom.hand_in("cheat", fast=f"{wrong}\ndef result(text, values):\n    return 3")
    classroom.hand_in("no-text", fast="exec('def fast(values): return 3')")
    classroom.grade()
    points = {row["student"]: row for row in classroom.table() if row["task"] == "fast"}
    assert float(points["honest"]["points"]) > 0, points["honest"]["reason"]
    assert "expected 3, but got 0" in points["cheat"]["reason"]
    assert "its text was not found" in points["no-text"]["reason"]
