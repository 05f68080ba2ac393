"""The exercise sets: what their cells are, how they are released, how a set grades an answer.

    python -m tools.exercise_sets try SET [TASK ...]    the solution, the blank, each wrong answer
    python -m tools.exercise_sets draw SET [TASK ...]   the same for up to a thousand students
    python -m tools.exercise_sets release               notebooks/solutions to notebooks/exercises

A set is written once, in notebooks/solutions/NN_name/NN_name.ipynb, in nbgrader's source format.
Every cell has a grade_id, TASK-WHAT; what it is follows from its nbgrader metadata and its name:

    student          the student's id                             (solution, not graded)
    setup, …-given   imports, inputs drawn for this student       (locked)
    …-answer         what the student writes                      (solution)
    …-check          the checks, graded; may use what set-up and its own task's givens define,
                     and the names that the answer binds
                     (once per task, ``hidden_checks_follow`` comes after the last that is seen)
    …-text           prose; a code cell of this name draws a picture, and no check needs it
    …-wrong-1, …     raw cells, tagged "wrong": another content for the answer's last cell; first
                     "# wrong: why", then perhaps "# fails: CHECK", if not all of the task's do
"""

import contextlib
import dis
import hashlib
import inspect
import io
import linecache
import random
import re
import sys
import time
from collections.abc import Collection, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import chain, count, product
from pathlib import Path
from types import CodeType
from unittest.mock import patch

import nbformat
import numpy as np
import torch
from nbformat import NotebookNode

from helpers import exercises
from helpers.simulated import Device, Work
from tools import notebooks
from tools.values import give_back, pack, unpack

SOLUTIONS = notebooks.NOTEBOOKS / "solutions"
EXERCISES = notebooks.NOTEBOOKS / "exercises"
STUDENTS = ("ada", "grace", "Zoë-7")  # for whom every solution must score full
WRONG_TYPES = ("None", "'text'", "3", "[]", "{}", "...")
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION.*?### END SOLUTION", flags=re.M | re.S)


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
        kinds = [(cell, *split_id(cell.id)) for cell in self.code]
        return [cell for cell, name, kind in kinds if name == task and what in ("", kind)]

    @property
    def tasks(self) -> list[str]:
        names_and_kinds = dict.fromkeys(split_id(cell.id) for cell in self.code)
        return [task for task, kind in names_and_kinds if kind == "check"]


def split_id(name: str) -> tuple[str, str]:
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
    codes = [compile(cell.source, cell.id, "exec") for cell in cells]
    steps = chain.from_iterable(map(dis.get_instructions, codes))
    return {step.argval for step in steps if step.opname == "STORE_NAME"}


def names_read(cell: NotebookNode) -> set[str]:
    """The names that ``cell`` reads before it binds them, those in its functions included."""
    return _read_in(compile(cell.source, cell.id, "exec"))


def _read_in(code: CodeType) -> set[str]:
    bound, read = set(), set()
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":
            bound.add(step.argval)
        elif step.opname in ("LOAD_NAME", "LOAD_GLOBAL") and step.argval not in bound:
            read.add(step.argval)
    for part in (constant for constant in code.co_consts if isinstance(constant, CodeType)):
        at_once = part.co_name.endswith("comp>") or part.co_name == "<genexpr>"
        read |= _read_in(part) - (bound if at_once else set())
    return read


def that_need(checks: list[NotebookNode], name: str) -> list[NotebookNode]:
    """The checks that read ``name``, and those before them that bind what these read."""
    found, needed = [], {name}
    for cell in reversed(checks):
        read = names_read(cell)
        if name in read or names([cell]) & needed:
            found.insert(0, cell)
            needed |= read
    return found


def blank(cell: NotebookNode) -> str:
    """The answer's cell as a student finds it."""
    return SOLUTION.sub(r"\1...  # your answer", cell.source)


def grade(
    which: Set,
    task: str,
    student: str,
    answers: dict[str, str],
    fails: Collection[str] = (),
    checks: Collection[NotebookNode] = (),
) -> dict[str, str]:
    """Each check of ``task``, or only some ``checks``, to "" where it passed, else to its error.

    ``answers`` gives other sources for answer cells, and ``fails`` names the checks that they are
    to fail: such a check runs once, where another one of something timed runs again if it fails.
    The student's cells run in one namespace, the checks in another, which sees the student's names
    as data, or as functions that take and give data: what the grader does between two processes.
    """
    answers_space, checks_space = ({"__name__": "__main__", "student": student} for _ in range(2))
    results, answer, failure = {}, which.of(task, "answer"), ""
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in [*which.of("", "setup"), *which.of(task, "given")]:
            run_cell(cell.source, answers_space)
            run_cell(cell.source, checks_space)
        for cell in answer:
            try:
                run_cell(answers.get(cell.id, cell.source), answers_space)
            except Exception as error:  # the checks say what is missing
                failure = f" (its cell failed: {type(error).__name__}: {error})"
        for name in names(answer) & answers_space.keys():
            with contextlib.suppress(ValueError):  # not data
                checks_space[name] = as_data(answers_space[name])
        for cell in checks or which.of(task, "check"):
            seed(f"{student}, {cell.id}")  # what is unseen by a student is the same in each trial
            goes = 1 if cell.id in fails else exercises.most_goes
            as_the_grader = {"most_goes": goes, "elsewhere": lambda which: [*map(as_data, which)]}
            try:
                with patch.multiple(exercises, **as_the_grader):
                    run_cell(cell.source, checks_space)
                results[cell.id] = ""
            except Exception as error:
                results[cell.id] = f"{type(error).__name__}: {error}{failure}"
    return results


def seed(text: str) -> None:
    """Start the random numbers of a check anew."""
    exercises.seed_of_unseen = text
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    for start in (random.seed, np.random.seed, torch.manual_seed):
        start(number)


def as_data(value: object) -> object:
    """``value`` as a grader sees it; of a function, what goes in and out is data."""
    if not callable(value):
        return unpack(pack(value))

    def called(*arguments: object) -> object:
        # What only pretends to work stays in the grader's process, where a check can ask it.
        given = [a if isinstance(a, Work | Device) else unpack(pack(a)) for a in arguments]
        result = unpack(pack(value(*given)))
        if called.in_place:  # helpers.exercises.function sets it
            give_back(given, arguments)
        return result

    called.in_place = False
    called.__name__ = getattr(value, "__name__", "")
    called.source = partial(inspect.getsource, value)
    return called


_NUMBERS = count(1)


def run_cell(source: str, namespace: dict) -> None:
    """Run a cell; a traceback shows its lines."""
    name = f"<cell {next(_NUMBERS)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace)


def trials(which: Set, task: str) -> Iterator[tuple[str, dict[str, str], set[str]]]:
    """(what was tried, the error of each check, the checks that must fail) for a task."""
    for student in STUDENTS:
        yield f"the solution, {student}", grade(which, task, student, {}), set()
    checks = {cell.id for cell in which.of(task, "check")}
    answer = which.of(task, "answer")
    empty = {cell.id: blank(cell) for cell in answer}
    yield "the blank", grade(which, task, STUDENTS[0], empty, checks), checks
    for cell in which.wrong:
        if split_id(cell.id)[0] == task:
            listed = re.search(r"^# fails:(.*)", cell.source, flags=re.M)
            fails = set(listed[1].split()) if listed else checks
            results = grade(which, task, STUDENTS[1], {answer[-1].id: cell.source}, fails)
            yield cell.id, results, fails


def lucky(which: Set, task: str, students: int, seconds: float) -> Iterator[str]:
    """Students whose numbers let a wrong answer pass every check, or the solution fail.

    Each student has one wrong answer, in turns; as many are tried as ``seconds`` allow. An answer
    that always chooses the same letter is left out, because for some students it is right.
    """
    last, end = which.of(task, "answer")[-1], time.perf_counter() + seconds
    checks = {cell.id for cell in which.of(task, "check")}
    wrong = [cell for cell in which.wrong if split_id(cell.id)[0] == task]
    wrong = [cell for cell in wrong if not re.search(r'^\w+ = "[a-z]"$', cell.source, re.M)]
    for number in range(students if wrong else 0):
        student, cell = f"student {number}", wrong[number % len(wrong)]
        if not any(grade(which, task, student, {last.id: cell.source}, checks).values()):
            yield f"{cell.id} passes for {student}"
        if number % 10 == 0 and any(grade(which, task, student, {}).values()):
            yield f"the solution of {task} fails for {student}"
        if time.perf_counter() > end:
            return


def unclear_errors(which: Set, task: str) -> Iterator[str]:
    """What a check says of an answer of a wrong type, where that is not a sentence."""
    last, checks = which.of(task, "answer")[-1], which.of(task, "check")
    by_name = {name: that_need(checks, name) for name in sorted(names(which.of(task, "answer")))}
    for (name, needed), value in product(by_name.items(), WRONG_TYPES):
        for wrong in (f"{name} = {value}", f"def {name}(*_): return {value}") if needed else ():
            answers = {last.id: f"{last.source}\n\n{wrong}"}
            ids = {cell.id for cell in needed if name in names_read(cell)}
            for check, error in grade(which, task, STUDENTS[0], answers, ids, needed).items():
                if check in ids and error and not error.startswith("WrongAnswer"):
                    yield f"{check}, after {wrong}: {error}"


def release(source: Path) -> str:
    """The exercises' file that nbgrader makes of the solutions' at ``source``."""
    from nbgrader.preprocessors import SaveCells  # only makers and graders have it
    from traitlets.config import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", path=str(notebooks.ROOT)).load_config()
    made, resources = notebooks.canonical(notebooks.read(source)), {}
    for step in config.GenerateAssignment.preprocessors:
        if step is not SaveCells:  # that one needs a database, and changes nothing
            made, resources = step(config=config, parent=None)(made, resources)
    made.metadata = nbformat.from_dict(notebooks.METADATA)
    return notebooks.as_text(made)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["release"]:
            if not find_spec("nbgrader"):
                print("No exercises were released: nbgrader is missing; `make grade` brings it.")
                return 0
            for source in all_sets():
                target, text = EXERCISES / source.parent.name / source.name, release(source)
                if not target.exists() or target.read_text(encoding="utf-8") != text:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text, encoding="utf-8", newline="\n")
                    print(f"{target.relative_to(notebooks.ROOT)} released")
            return 0
        case ["draw", word, *tasks]:
            which, bad = Set(solution(word)), 0
            for task in tasks or which.tasks:
                say(f"... {task}: up to a thousand students, in about two seconds")
                for found in lucky(which, task, 1000, 2):
                    bad += 1
                    say(found)
            return 1 if bad else 0
        case ["try", word, *tasks]:
            which, bad = Set(solution(word)), 0
            for task in tasks or which.tasks:
                say(f"... {task}: what the checks say of answers of wrong types")
                for error in unclear_errors(which, task):
                    bad += 1
                    say("BAD", error)
                say(f"... {task}: the solution, the blank and each wrong answer")
                for tried, results, expected in trials(which, task):
                    failed = {check for check, error in results.items() if error}
                    bad += failed != expected
                    say("ok " if failed == expected else "BAD", task, tried)
                    for check, error in results.items():
                        say(f"      {check}: {error or 'passed'}")
            return 1 if bad else 0
    print(__doc__)
    return 2


def say(*words: str) -> None:
    """Print at once, also into a file or a pipe, because a set takes minutes."""
    print(*words, flush=True)


def solution(word: str) -> Path:
    """The set that ``word`` names: a path, or 03, or 03_macs_and_flops."""
    paths = [path for path in all_sets() if f"{path.stem}_".startswith(f"{word}_")]
    return paths[0] if paths else Path(word)


def all_sets() -> list[Path]:
    return sorted(path for path in SOLUTIONS.glob("*/*.ipynb") if path.stem == path.parent.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
