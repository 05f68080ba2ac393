"""A class that hands in a small set of exercises, and the call that grades it."""

import contextlib
import csv
import io
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from grading import sandbox
from tools import exercise_sets, notebooks

HAS_GRADER = find_spec("nbgrader") is not None and sys.platform != "win32"
PROBLEM = sandbox.problem(sandbox.Limits())
MARKS = [
    pytest.mark.everything,
    pytest.mark.skipif(find_spec("nbgrader") is None, reason="nbgrader is not installed"),
    pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM or "there is a sandbox"),
]
LESSON = "90_small"
SET = Path(__file__).with_name(f"{LESSON}.ipynb")
CELLS = {cell.id: cell.source for cell in notebooks.read(SET).cells}


class Class:
    """Submissions in a folder, and the call that grades them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self.sets = (folder / name for name in ("submitted", "out", "sets"))
        self.set = self.add_set(LESSON)
        self.released = exercise_sets.release(self.set)

    def add_set(self, lesson: str) -> Path:
        path = self.sets / lesson / f"{lesson}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(SET.read_bytes())
        return path

    def hand_in(self, student: str, **answers: str) -> Path:
        return self.write(student, self.copy(student, **answers))

    def copy(self, student: str, **answers: str) -> NotebookNode:
        """The released set with right answers, but for the given ones, by task."""
        notebook = nbformat.reads(self.released, as_version=4)
        answers = {f"{task}-answer": source for task, source in answers.items()}
        for cell in notebook.cells:
            if cell.id == "student":
                cell.source = f"student = {student!r}"
            elif cell.id.endswith("-answer"):
                cell.source = answers.get(cell.id, CELLS[cell.id])
        return notebook

    def write(self, student: str, notebook: NotebookNode, name: str = f"{LESSON}.ipynb") -> Path:
        path = self.folder / student / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(nbformat.writes(notebook))
        return path

    def line(self, *options: str, out: Path | None = None) -> list[str]:
        line = [sys.executable, "-m", "grading", str(self.folder), f"--sets={self.sets}"]
        line += ["--cell-seconds=5", "--memory=1", f"--out={out or self.out}"]
        return [*line, *options]

    def grade(self, *options: str, out: Path | None = None) -> str:
        return call(self.line(*options, out=out))

    def grade_here(self, *options: str, out: Path | None = None) -> str:
        jobs = "--jobs=9"  # of fewer, the grader first imports what many answers need
        return call_here([*self.line(*options, out=out)[3:], jobs])

    def table(self, name: str = "grades") -> list[dict]:
        with (self.out / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def page(self, student: str) -> str:
        return (self.out / "feedback" / student / f"{LESSON}.html").read_text()


def call_here(words: list[str]) -> str:
    """What ``python -m grading`` with these words prints, in this process, which is quicker.

    It is only for calls that have no answer to run: an answer must not run in a process that this
    one forks, because torch may have computed something here.
    """
    from grading import __main__ as grading

    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert grading.main(words) == 0
    return output.getvalue()


def call(line: list[str]) -> str:
    """What a command printed, which must succeed."""
    done = subprocess.run(line, cwd=notebooks.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def grade(everyone: Class, *options: str) -> None:
    """Grade a class whose answers are not run, and show what is printed."""
    from grading import __main__ as grading

    words = [str(everyone.folder), f"--sets={everyone.sets}", f"--out={everyone.out}"]
    assert grading.main([*words, "--no-sandbox", "--jobs=20", *options]) == 0


def reasons(everyone: Class, task: str = "why") -> dict[str, str]:
    return {row["student"]: row["reason"] for row in everyone.table() if row["task"] == task}


def points(everyone: Class, task: str = "say") -> dict[str, float]:
    return {row["student"]: float(row["points"]) for row in everyone.table() if row["task"] == task}


def lines(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))
