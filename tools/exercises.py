"""The exercise sets: what their cells are, how they are released, how a set grades an answer.

    python -m tools.exercises try SET [TASK ...]     the solution, the blank and each wrong answer
    python -m tools.exercises release [SET ...]      notebooks/solutions to notebooks/exercises

A set is written once, in notebooks/solutions/NN_name/NN_name.ipynb, in nbgrader's source format.
Every cell has a grade_id, TASK-WHAT; what it is follows from its nbgrader metadata and its name:

    student          the student's id                             (solution, not graded)
    setup, …-given   imports, inputs drawn for this student       (locked)
    …-answer         what the student writes                      (solution)
    …-check          the checks, graded; may use what set-up and its own task's givens define,
                     and the names that the answer binds
    …-wrong-1, …     raw cells, tagged "wrong": another content for the answer's last cell; first
                     "# wrong: why", then perhaps "# fails: CHECK", if not all of the task's do
"""

import ast
import contextlib
import dis
import io
import linecache
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from unittest.mock import patch

import nbformat
from nbformat import NotebookNode

from grading.values import pack, unpack
from helpers import exercises
from tools import notebooks

SOLUTIONS = notebooks.NOTEBOOKS / "solutions"
EXERCISES = notebooks.NOTEBOOKS / "exercises"
STUDENTS = ("ada", "grace", "Zoë-7")  # for whom every solution must score full
WRONG_TYPES = ("None", "'text'", "3", "[]", "{}", "...")
STUB = "...  # your answer"


class Set:
    """One notebook of exercises, its cells by what they are."""

    def __init__(self, path: Path) -> None:
        self.path, self.notebook = path, notebooks.read(path)
        self.code = [cell for cell in self.notebook.cells if cell.cell_type == "code"]
        self.wrong = [
            cell for cell in self.notebook.cells if "wrong" in cell.metadata.get("tags", [])
        ]

    def of(self, task: str = "", what: str = "") -> list[NotebookNode]:
        """The code cells of a task, in order; those of one kind, such as "check"."""
        kinds = [(cell, *parts(cell.id)) for cell in self.code]
        return [cell for cell, name, kind in kinds if name == task and what in ("", kind)]

    @property
    def tasks(self) -> list[str]:
        names_and_kinds = dict.fromkeys(parts(cell.id) for cell in self.code)
        return [task for task, kind in names_and_kinds if kind == "check"]

    def points(self) -> dict[str, float]:
        """The points of each check."""
        checks = [cell for task in self.tasks for cell in self.of(task, "check")]
        return {cell.id: cell.metadata.nbgrader.points for cell in checks}


def parts(name: str) -> tuple[str, str]:
    """A cell's id as (task, what): "count-check-2" is ("count", "check")."""
    if name == "student" or re.fullmatch(r"setup(-\d+)?", name):
        return "", name.partition("-")[0]
    for what in ("given", "answer", "check", "wrong", "text"):
        task, dash, rest = name.rpartition(f"-{what}")
        if dash and (not rest or rest[1:].isdigit()):
            return task, what
    raise ValueError(f"a cell is called {name!r}; expected TASK-given, -answer, -check or -wrong-1")


def names(cells: list[NotebookNode]) -> set[str]:
    """What ``cells`` bind at their top level."""
    steps = chain.from_iterable(
        dis.get_instructions(compile(cell.source, cell.id, "exec")) for cell in cells
    )
    return {step.argval for step in steps if step.opname == "STORE_NAME"}


def blank(cell: NotebookNode) -> str:
    """The answer's cell as a student finds it."""
    lines, inside = [], False
    for line in cell.source.splitlines():
        if "BEGIN SOLUTION" in line:
            lines.append(line[: len(line) - len(line.lstrip())] + STUB)
        inside = inside or "BEGIN SOLUTION" in line
        if not inside:
            lines.append(line)
        inside = inside and "END SOLUTION" not in line
    return "\n".join(lines)


def grade(
    which: Set, task: str, student: str, answers: dict[str, str] | None = None
) -> dict[str, str]:
    """Each check of ``task`` to "" where it passed, else to its error.

    ``answers`` gives other sources for answer cells. The student's cells run in one namespace, the
    checks in another, which sees the student's names as data, or as functions that take and give
    data: what the grader does between two processes.
    """
    answers_space, checks_space = ({"__name__": "__main__", "student": student} for _ in range(2))
    given = [*which.of("", "setup"), *which.of(task, "given")]
    answer = which.of(task, "answer")
    results = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in given:
            run_cell(cell.source, answers_space)
            run_cell(cell.source, checks_space)
        notes = ""
        for cell in answer:
            try:
                run_cell((answers or {}).get(cell.id, cell.source), answers_space)
            except Exception as error:  # the checks say what is missing
                notes = f" (its cell failed: {type(error).__name__}: {error})"
        for name in names(answer) & answers_space.keys():
            value = answers_space[name]
            try:
                checks_space[name] = through_data(value) if callable(value) else unpack(pack(value))
            except ValueError as error:
                notes += f" ({name} is not data: {error})"
        for cell in which.of(task, "check"):
            try:
                run_cell(cell.source, checks_space)
                results[cell.id] = ""
            except Exception as error:
                results[cell.id] = f"{type(error).__name__}: {error}{notes}"
    return results


def through_data(function: Callable) -> Callable:
    """``function`` as a grader sees it: what goes in and out is data."""

    def call(*arguments: object) -> object:
        copies = [unpack(pack(argument)) for argument in arguments]
        return unpack(pack(function(*copies)))

    return call


_NUMBERS = count(1)


def run_cell(source: str, namespace: dict) -> None:
    """Run a cell; a traceback shows its lines."""
    name = f"<cell {next(_NUMBERS)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace)


def trials(
    which: Set, tasks: list[str]
) -> Iterator[tuple[str, str, str, dict[str, str], set[str]]]:
    """(task, what was tried, student, the error of each check, the checks that must fail)."""
    for task in tasks or which.tasks:
        checks = {cell.id for cell in which.of(task, "check")}
        for student in STUDENTS:
            yield task, "the solution", student, grade(which, task, student), set()
        answer = which.of(task, "answer")
        empty = {cell.id: blank(cell) for cell in answer}
        with one_go():
            yield task, "the blank", STUDENTS[0], grade(which, task, STUDENTS[0], empty), checks
        for cell in which.wrong:
            if parts(cell.id)[0] != task:
                continue
            listed = re.findall(r"^# fails:(.*)", cell.source, flags=re.M)
            with one_go():
                results = grade(which, task, STUDENTS[1], {answer[-1].id: cell.source})
            yield task, cell.id, STUDENTS[1], results, set(*map(str.split, listed)) or checks


def unclear_errors(which: Set, task: str) -> Iterator[str]:
    """What a check says of an answer of a wrong type, where that is not a sentence."""
    checks, last = which.of(task, "check"), which.of(task, "answer")[-1]
    for name in sorted(names(which.of(task, "answer"))):
        asked = [
            cell.id
            for cell in checks
            if any(getattr(node, "id", "") == name for node in ast.walk(ast.parse(cell.source)))
        ]
        for value in WRONG_TYPES if asked else ():
            for wrong in (f"{name} = {value}", f"def {name}(*_): return {value}"):
                answers = {last.id: f"{last.source}\n\n{wrong}"}
                with one_go():
                    results = grade(which, task, STUDENTS[0], answers)
                for check in asked:
                    if results[check] and not results[check].startswith("AssertionError"):
                        yield f"{check}, after {wrong}: {results[check]}"


@contextlib.contextmanager
def one_go() -> Iterator[None]:
    """What is known to be wrong need not fail a check of something timed three times."""
    with patch.object(exercises, "most_goes", 1):
        yield


def release(source: Path) -> str:
    """The exercises' file that nbgrader makes of the solutions' at ``source``."""
    from nbgrader.preprocessors import SaveCells  # only makers and graders have it
    from traitlets.config import Config

    config = Config()
    text = (notebooks.ROOT / "nbgrader_config.py").read_text(encoding="utf-8")
    exec(compile(text, "nbgrader_config.py", "exec"), {"get_config": lambda: config})
    made, resources = notebooks.canonical(notebooks.read(source)), {}
    for step in config.GenerateAssignment.preprocessors:
        if step is not SaveCells:  # that one needs a database, and changes nothing
            made, resources = step(config=config, parent=None)(made, resources)
    made.metadata = nbformat.from_dict(notebooks.METADATA)
    return notebooks.as_text(made)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["release", *words]:
            if not find_spec("nbgrader"):
                print(
                    "The exercises were not released: nbgrader is missing. `make grade` brings it, "
                    "where it has a version for this Python."
                )
                return 0
            for source in [solution(word) for word in words] or all_sets():
                target, text = EXERCISES / source.parent.name / source.name, release(source)
                if not target.exists() or target.read_text(encoding="utf-8") != text:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text, encoding="utf-8", newline="\n")
                    print(f"{target.relative_to(notebooks.ROOT)} released")
            return 0
        case ["try", word, *tasks]:
            which, bad = Set(solution(word)), 0
            for task in tasks or which.tasks:
                for error in unclear_errors(which, task):
                    bad += 1
                    print("BAD", error)
            for task, tried, student, results, expected in trials(which, tasks):
                failed = {check for check, error in results.items() if error}
                bad += failed != expected
                print("ok " if failed == expected else "BAD", task, tried, student)
                for check, error in results.items():
                    print(f"      {check}: {error or 'passed'}")
            return 1 if bad else 0
    print(__doc__)
    return 2


def solution(word: str) -> Path:
    """The set that ``word`` names: a path, or 03, or 03_macs_and_flops."""
    paths = [path for path in all_sets() if f"{path.stem}_".startswith(f"{word}_")]
    return paths[0] if paths else Path(word)


def all_sets() -> list[Path]:
    return sorted(path for path in SOLUTIONS.glob("*/*.ipynb") if path.stem == path.parent.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
