"""Every set: its shape, each check tried both ways, and what is released of it."""

import dis
import re
import subprocess
import sys
from pathlib import Path
from types import CodeType

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.lessons import rules
from tools import exercises, notebooks
from tools.exercises import EXERCISES, Set, parts

SETS = exercises.all_sets()
ASSIGNMENTS = {"count_and_predict", "find_and_fix"}  # three hours, after 04 and 14


def by_name(test):
    return pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)(test)


def test_every_notebook_among_the_solutions_is_a_set() -> None:
    assert sorted(exercises.SOLUTIONS.rglob("*.ipynb")) == SETS
    lessons = {path.stem for path in notebooks.NOTEBOOKS.glob("[0-9]*.ipynb")}
    assert {path.stem for path in SETS} <= lessons | ASSIGNMENTS


@by_name
def test_a_set_has_its_shape(path: Path) -> None:
    which = Set(path)
    kinds = {
        (False, False): ("setup", "given"),
        (False, True): ("student", "answer"),
        (True, False): ("check",),
    }
    for cell in which.notebook.cells:
        grader = cell.metadata.get("nbgrader")
        if cell.cell_type == "raw":
            assert cell.metadata.tags == ["wrong"]
            assert parts(cell.id)[1] == "wrong"
            continue
        assert (grader.grade_id, grader.schema_version) == (cell.id, 3)
        if cell.cell_type == "markdown":
            assert cell.id == "title" or parts(cell.id)[1] == "text"
            assert grader.locked
        else:
            assert parts(cell.id)[1] in kinds[grader.grade, grader.solution], cell.id
            assert ("BEGIN SOLUTION" in cell.source) == grader.solution
            assert grader.locked != grader.solution
    assert [cell.id for cell in which.code[:2]] == ["student", "setup"]
    assignment = path.stem in ASSIGNMENTS
    assert (3 <= len(which.tasks) <= 4) or (assignment and 4 <= len(which.tasks) <= 7)
    assert sum(which.points().values()) == (20 if assignment else 10)
    for task in which.tasks:
        kinds_there = [parts(cell.id)[1] for cell in which.of(task)]
        assert "answer" in kinds_there


def parts_of(code: CodeType) -> list[CodeType]:
    """The functions, classes and comprehensions of ``code``."""
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def globals_of(code: CodeType) -> set[str]:
    """What a function reads from outside, and what those within it read."""
    steps = dis.get_instructions(code)
    own = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*map(globals_of, parts_of(code)))


def names_of(source: str) -> tuple[set[str], set[str], set[str]]:
    """What a cell assigns, what it reads from other cells, and what its functions read."""
    code = compile(source, "cell", "exec")
    assigned, read, later = set(), set(), set()
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":
            assigned.add(step.argval)
        elif step.opname == "LOAD_NAME" and step.argval not in assigned:
            read.add(step.argval)
    for part in parts_of(code):
        at_once = part.co_name.startswith("<") and part.co_name != "<lambda>"
        (read if at_once else later).update(globals_of(part) - (assigned if at_once else set()))
    return assigned, read | later - assigned, later


@by_name
def test_no_task_changes_a_name_that_the_cells_of_another_share(path: Path) -> None:
    """A cell that runs a second time finds the names of its own task as they were."""
    which = Set(path)
    cells = {cell.id: (*parts(cell.id), *names_of(cell.source)) for cell in which.code}
    shared = {}  # each name to the task whose cells hand it on
    for own, (task, kind, assigned, _, later) in cells.items():
        others = [row[3] for name, row in cells.items() if row[0] == task and name != own]
        handed_on = assigned & set().union(*others, later if kind != "check" else ())
        for name in handed_on | (assigned if not task else set()):
            shared.setdefault(name, set()).add(task)
    clashes = {
        f"{cell}: {name}"
        for cell, (task, _, assigned, *_) in cells.items()
        for name in assigned & shared.keys()
        if shared[name] - {task}
    }
    assert clashes == set()


@by_name
def test_every_task_has_its_wrong_answers(path: Path) -> None:
    which = Set(path)
    for task in which.tasks:
        wrong = [cell for cell in which.wrong if parts(cell.id)[0] == task]
        choice = any("one_of(" in cell.source for cell in which.of(task, "check"))
        assert len(wrong) >= (3 if choice else 6), task
        assert len({cell.source for cell in wrong}) == len(wrong)
        assert all(re.match(r"# wrong: \S", cell.source) for cell in wrong)


@by_name
def test_instructors_are_told_how_long_a_set_takes(path: Path) -> None:
    released = notebooks.read(EXERCISES / path.parent.name / path.name)
    title = re.match(r"# (?:Exercises )?(.+)", released.cells[0].source)[1].replace(" · ", " ")
    stated = re.search(r"about (?:(\d+) minutes|three hours)", released.cells[0].source)[1] or 180
    row = f"| {title} | {len(Set(path).tasks)} | {rules.minutes(released)[0]:.0f} | {stated} |"
    page = notebooks.ROOT / "docs" / "instructors.md"
    assert row in page.read_text(encoding="utf-8").splitlines()
    assert path.stem in ASSIGNMENTS or 30 <= int(stated) <= 40


@pytest.mark.everything
@by_name
def test_the_solution_scores_full_and_every_wrong_answer_ends_in_a_sentence(
    path: Path,
) -> None:
    words = [sys.executable, "-m", "tools.exercises", "try", str(path)]
    done = subprocess.run(words, cwd=notebooks.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.everything
@by_name
def test_what_is_released_is_what_nbgrader_makes_of_it(path: Path) -> None:
    pytest.importorskip("nbgrader", reason="nbgrader is missing: make grade brings it")
    released = EXERCISES / path.parent.name / path.name
    assert released.read_text(encoding="utf-8") == exercises.release(path), "make refresh"


@pytest.mark.skipif(not SETS, reason="a student's copy of the course: no solutions")
def test_nothing_is_released_but_sets_and_no_answer_with_them() -> None:
    names = {path.relative_to(exercises.SOLUTIONS) for path in SETS}
    assert {path.relative_to(EXERCISES) for path in EXERCISES.rglob("*.ipynb")} == names
    for name in names:
        released = notebooks.read(EXERCISES / name)
        assert not any("wrong" in cell.metadata.get("tags", []) for cell in released.cells)
        answers = {cell.id: cell for cell in Set(exercises.SOLUTIONS / name).code}
        for cell in (cell for cell in released.cells if cell.cell_type == "code"):
            assert cell.outputs == []
            assert "SOLUTION" not in cell.source
            assert "HIDDEN" not in cell.source
            if parts(cell.id)[1] in ("student", "answer"):
                assert cell.source == exercises.blank(answers[cell.id])


@pytest.fixture
def little(tmp_path: Path) -> Set:
    """A set of one task, to see that a trial notices what is wrong with a set."""
    shared = {"grade": False, "solution": False, "locked": True, "schema_version": 3}
    cells = [
        ("student", 'student = ""\n### BEGIN SOLUTION\nstudent = "ada"\n### END SOLUTION', {}),
        ("setup", "from helpers.exercises import draw, expect", {}),
        ("twice-given", 'n = draw(student, "twice").randint(3, 99)', {}),
        (
            "twice-answer",
            "def twice(n):\n    ### BEGIN SOLUTION\n    return 2 * n\n    ### END SOLUTION",
            {"solution": True, "locked": False},
        ),
        ("twice-check", 'expect("twice", twice(n), n + n)', {"grade": True, "points": 10.0}),
    ]
    made = [
        new_code_cell(source, id=name, metadata={"nbgrader": {**shared, "grade_id": name, **more}})
        for name, source, more in cells
    ]
    path = tmp_path / "little.ipynb"
    path.write_text(notebooks.as_text(new_notebook(cells=made)))
    return Set(path)


def test_a_trial_sees_what_is_wrong_and_what_is_right(little: Set) -> None:
    def said(answer: str) -> str:
        return exercises.grade(little, "twice", "grace", {"twice-answer": answer})["twice-check"]

    assert exercises.grade(little, "twice", "ada") == {"twice-check": ""}
    assert said("twice = lambda n: n + n") == ""
    assert re.fullmatch(
        r"AssertionError: twice: expected \d+, but None came",
        said(exercises.blank(little.of("twice", "answer")[0])),
    )
    assert "came" in said("def twice(n):\n    return n * n")
    assert said("x = 1").startswith("NameError: name 'twice' is not defined")
    assert said("1 / 0").endswith("(its cell failed: ZeroDivisionError: division by zero)")
    assert said("def twice(n):\n    return print").startswith("ValueError: a builtin_function")
    assert "(twice is not data: a object came; expected" in said("twice = object()")
    assert said("def expect(*_): pass\ndef twice(n): return 0").startswith("AssertionError")


def test_names_are_what_the_top_level_binds(little: Set) -> None:
    cell = new_code_cell(
        "import torch.nn as nn, os.path\na, (b, *c) = 1, [2, 3]\n"
        "def f(x):\n    inside = 1\nclass K:\n    field = 2\n"
        "for i in range(3):\n    j = [k for k in c]"
    )
    assert exercises.names([cell]) == {"nn", "os", "a", "b", "c", "f", "K", "i", "j"}
    assert exercises.names(little.of("twice", "answer")) == {"twice"}


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("count-check-2", ("count", "check")),
        ("setup", ("", "setup")),
        ("a-b-given", ("a-b", "given")),
    ],
)
def test_a_cell_is_what_its_name_says(name: str, means: tuple[str, str]) -> None:
    assert parts(name) == means
    with pytest.raises(ValueError, match="expected TASK-given"):
        parts("count")
