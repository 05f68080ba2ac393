"""Every set: its shape, each check tried both ways, and what is released of it."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tools import exercise_sets, notebooks, rules
from tools.exercise_sets import EXERCISES, Set, split_id

SETS = exercise_sets.all_sets()
as_written = cache(Set)  # a test that changes a cell makes a Set of its own
ASSIGNMENTS = {"count_and_predict", "find_and_fix", "fool_and_repair"}  # of three hours each


def by_name(test):
    return pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)(test)


@by_name
def test_every_cell_of_a_set_is_what_its_name_says_and_its_points_add_up(path: Path) -> None:
    which = as_written(path)
    kinds = {"check": (True, False), "student": (False, True), "answer": (False, True)}
    for cell in which.code:
        grader = cell.metadata.nbgrader
        expected = kinds.get(split_id(cell.id)[1], (False, False))
        assert (grader.grade_id, grader.schema_version) == (cell.id, 3)
        assert (grader.grade, grader.solution, grader.locked) == (*expected, not expected[1])
    checks = [cell for task in which.tasks for cell in which.of(task, "check")]
    points = 20 if path.stem in ASSIGNMENTS else 10
    assert sum(cell.metadata.nbgrader.points for cell in checks) == points


@by_name
def test_no_task_changes_a_name_that_the_cells_of_another_share(path: Path) -> None:
    """A cell that runs a second time finds the names of its own task as they were."""
    which = as_written(path)
    bound = {task: exercise_sets.names(which.of(task)) for task in which.tasks}
    for task in which.tasks:
        read = exercise_sets.names(which.of(""))
        for cell in which.of(task):
            outside = exercise_sets.names_read(cell)
            read |= outside - exercise_sets.names([cell] if split_id(cell.id)[1] == "check" else [])
        for other in set(which.tasks) - {task}:
            assert read & bound[other] == set(), (task, other)


HIDDEN = re.compile(r"^ *### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS\n?", flags=re.M | re.S)


@by_name
def test_a_check_finds_its_names_as_they_were_when_it_is_run_again(path: Path) -> None:
    """A later one may bind an answer again, to what ``exercises.answer`` or ``function`` returns.

    Cells of other tasks bind none of its names: the test above.
    """
    which = Set(path)
    for task in which.tasks:
        checks = which.of(task, "check")
        for cell in checks:
            cell.source = HIDDEN.sub("", cell.source)
        for check, *later in (checks[place:] for place in range(len(checks))):
            read = exercise_sets.names_read(check)
            again = read & exercise_sets.names(later)
            assert again <= exercise_sets.names(which.of(task, "answer")), check.id


@by_name
def test_a_student_is_told_once_in_a_task_that_hidden_checks_follow(path: Path) -> None:
    which = as_written(path)
    for task in which.tasks:
        checks = [cell for cell in which.of(task, "check") if HIDDEN.search(cell.source)]
        told = [cell for cell in checks if "exercises.hidden_checks_follow()" in cell.source]
        assert len(told) == 1, task
        assert "exercises.hidden_checks_follow()" in HIDDEN.sub("", told[0].source)
        below = checks[checks.index(told[0]) + 1 :]
        assert all(HIDDEN.sub("", cell.source).startswith("one_of(") for cell in below), task


@by_name
def test_no_check_that_a_student_sees_expects_only_true(path: Path) -> None:
    """It would say that False came, and not show the student's value: ``exercises.fits`` does."""
    which = as_written(path)
    for cell in (cell for task in which.tasks for cell in which.of(task, "check")):
        assert not re.search(r", True\)|^ *True,?$", HIDDEN.sub("", cell.source), re.M), cell.id


@by_name
def test_the_cell_of_the_id_has_one_place_to_fill_in(path: Path) -> None:
    released = notebooks.read(EXERCISES / path.parent.name / path.name)
    (source,) = [cell.source for cell in released.cells if cell.id == "student"]
    assert [line for line in source.splitlines() if not line.startswith("#")] == ['student = ""']


@by_name
def test_instructors_are_told_how_long_a_set_takes(path: Path) -> None:
    released = notebooks.read(EXERCISES / path.parent.name / path.name)
    title = re.match(r"# (?:Exercises )?(.+)", released.cells[0].source)[1].replace(" · ", " ")
    stated = re.search(r"about (?:(\d+) minutes|three hours)", released.cells[0].source)[1] or 180
    tasks = len(as_written(path).tasks)
    row = f"| {title} | {tasks} | {rules.minutes(released)[0]:.0f} | {stated} |"
    page = notebooks.ROOT / "docs" / "instructors.md"
    assert row in page.read_text(encoding="utf-8").splitlines()


class Trials:
    @pytest.mark.parametrize("what", ["try", "draw"])
    def test_the_solution_scores_full_and_every_wrong_answer_ends_in_a_sentence(
        self, path: Path, what: str
    ) -> None:
        words = [sys.executable, "-m", "tools.exercise_sets", what, str(path)]
        done = subprocess.run(words, cwd=notebooks.ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def of(*names: str):
    """Trials of these sets, the first of which takes the longest."""
    sets = [path for name in names for path in SETS if f"{path.stem}_".startswith(f"{name}_")]
    return pytest.mark.parametrize("path", sets, ids=[path.stem for path in sets])


# Each class goes to whichever worker is free. The first one has the longest set and the quickest.
@pytest.mark.everything
@of("fool_and_repair", "07", "08", "09", "11", "14")
class TestFoolAndRepairAndTheQuickest(Trials):
    pass


@pytest.mark.everything
@of("find_and_fix", "01", "04", "10", "13", "17")
class TestFindAndFixAndOthers(Trials):
    pass


@pytest.mark.everything
@of("16", "06", "05", "03", "02", "12", "count_and_predict")
class TestTheRest(Trials):
    pass


def test_every_set_is_tried_once() -> None:
    marks = [mark for it in Trials.__subclasses__() for mark in it.pytestmark]
    tried = [path for mark in marks if mark.name == "parametrize" for path in mark.args[1]]
    assert sorted(tried) == SETS


@pytest.mark.everything
@by_name
def test_what_is_released_is_what_nbgrader_makes_of_it(path: Path) -> None:
    pytest.importorskip("nbgrader", reason="nbgrader is missing: make grade brings it")
    released = EXERCISES / path.parent.name / path.name
    assert released.read_text(encoding="utf-8") == exercise_sets.release(path), "make refresh"


@pytest.mark.skipif(not SETS, reason="a student's copy of the course: no solutions")
def test_nothing_is_released_but_sets_and_no_answer_with_them() -> None:
    released = [EXERCISES / path.relative_to(exercise_sets.SOLUTIONS) for path in SETS]
    assert sorted(EXERCISES.rglob("*.ipynb")) == released
    for path in released:
        text = path.read_text(encoding="utf-8")
        assert not re.search("SOLUTION|HIDDEN|# wrong:", text), path


@pytest.mark.skipif(not SETS, reason="a student's copy of the course: no solutions")
def test_each_of_eighty_students_gets_another_program_to_fix() -> None:
    cells = Set(exercise_sets.SOLUTIONS / "find_and_fix" / "find_and_fix.ipynb").code
    shared = {"student": "s", "__name__": "find_and_fix"}
    for cell in (cell for cell in cells if cell.id in ("setup", "setup-3")):
        exec(cell.source, shared)
    draws = [shared["exercises"].draw(f"student {n}", "find and fix") for n in range(80)]
    assert len({shared["written"](*shared["drawn"](rng)) for rng in draws}) == 80
