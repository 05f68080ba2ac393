"""A small set of exercises, and a class whose students hand it in."""

import csv
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from grading import sandbox
from tools import exercises, notebooks

PROBLEM = sandbox.problem(sandbox.Limits())
MARKS = [
    pytest.mark.everything,
    pytest.mark.skipif(find_spec("nbgrader") is None, reason="nbgrader is not installed"),
    pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM or "there is a sandbox"),
]
LESSON = "90_small"
CELLS = {  # of the set: id to source, and for a check its points
    "title": "# Exercises 90 · Small",
    "student": 'student = ""\n### BEGIN SOLUTION\nstudent = "ada"\n### END SOLUTION',
    "setup": "import random\nimport time\n\nimport torch\n\nfrom helpers import exercises\n"
    "from helpers.exercises import expect, one_of",
    "macs-given": 'rng = exercises.draw(student, "90, macs")\n'
    "n_in, n_out = rng.randint(2, 9), rng.randint(10, 99)",
    "macs-answer": '''def macs(n, inputs, outputs):
    """The MACs of a linear layer on n rows."""
    ### BEGIN SOLUTION
    return n * inputs * outputs
    ### END SOLUTION


full = ...  # n_in times n_out, as a tensor of n_in numbers
### BEGIN SOLUTION
full = torch.ones(n_in) * n_out
### END SOLUTION''',
    "macs-check-1": (
        3,
        """expect("macs(1)", macs(1, n_in, n_out), n_in * n_out)
### BEGIN HIDDEN TESTS
for _ in range(3):
    sizes = [random.randint(2, 99) for _ in range(3)]
    expect("macs of other sizes", macs(*sizes), torch.empty(*sizes).numel())
### END HIDDEN TESTS""",
    ),
    "macs-check-2": (1, 'expect("full", full, torch.full((n_in,), float(n_out)))'),
    "macs-wrong-1": "# wrong: a factor of two\n# fails: macs-check-1\n"
    "def macs(n, inputs, outputs):\n    return 2 * n * inputs * outputs\n\n\n"
    "full = torch.ones(n_in) * n_out",
    "why-answer": 'why = ...  # one of "a", "b", "c"\n### BEGIN SOLUTION\nwhy = "b"\n'
    "### END SOLUTION",
    "why-check": (
        3,
        'one_of("why", why, "abc")\n### BEGIN HIDDEN TESTS\nexpect("why", why, "b")\n'
        "### END HIDDEN TESTS",
    ),
    "fast-given": "def slow(values):\n    time.sleep(0.25)\n    return sum(values)",
    "fast-answer": '''def fast(values):
    """The sum of values, faster than slow."""
    ### BEGIN SOLUTION
    return sum(values)
    ### END SOLUTION''',
    "fast-check": (
        3,
        'expect("fast([1, 2])", fast([1, 2]), 3)\n### BEGIN HIDDEN TESTS\n'
        "inputs = [([random.randint(1, 99) for _ in range(9)],) for _ in range(4)]\n"
        'exercises.faster("fast", fast, slow, inputs)\n### END HIDDEN TESTS',
    ),
    "say-answer": "*Your answer*",
}
GOOD = {
    "macs-answer": "def macs(n, inputs, outputs):\n    return n * inputs * outputs\n\n\n"
    "full = torch.ones(n_in) * n_out",
    "why-answer": 'why = "b"',
    "fast-answer": "def fast(values):\n    return sum(values)",
}


def write_set(folder: Path, lesson: str = LESSON) -> Path:
    cells = []
    for name, source in CELLS.items():
        kind = "" if name == "title" else exercises.parts(name)[1]
        points, source = source if isinstance(source, tuple) else (0, source)
        about = {"grade_id": name, "schema_version": 3, "task": False, "locked": kind != "answer"}
        about |= {"grade": kind == "check", "solution": kind in ("answer", "student")}
        about |= {"points": float(points)} if points else {}
        if kind == "wrong":
            cell = new_raw_cell(source, metadata={"tags": ["wrong"]})
        elif name in ("title", "say-answer"):
            by_hand = {"grade": True, "points": 2.0} if name != "title" else {}
            about |= {"cell_type": "markdown", **by_hand}
            cell = new_markdown_cell(source, metadata={"nbgrader": about})
        else:
            about |= {"cell_type": "code", "locked": kind not in ("answer", "student")}
            cell = new_code_cell(source, metadata={"nbgrader": about})
        cells.append(cell | {"id": name})
    path = folder / lesson / f"{lesson}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(notebooks.as_text(notebooks.canonical(new_notebook(cells=cells))))
    return path


class Class:
    """Submissions in a folder, and the call that grades them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder / "submitted", folder / "out"
        self.sets = folder / "sets"
        self.set = write_set(self.sets)
        self.released = exercises.release(self.set)

    def hand_in(self, student: str, **answers: str) -> Path:
        return self.write(student, self.copy(student, **answers))

    def copy(self, student: str, **answers: str) -> NotebookNode:
        """The released set with good answers, but for the given ones, by task."""
        notebook = nbformat.reads(self.released, as_version=4)
        content = {f"{task}-answer": text for task, text in answers.items()}
        for cell in notebook.cells:
            cell.source = {**GOOD, **content}.get(cell.id, cell.source)
            if cell.id == "student":
                cell.source = f"student = {student!r}"
        return notebook

    def write(self, student: str, notebook: NotebookNode, name: str = f"{LESSON}.ipynb") -> Path:
        path = self.folder / student / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(nbformat.writes(notebook))
        return path

    def line(self, *options: str, out: Path | None = None) -> list[str]:
        line = [sys.executable, "-m", "grading", str(self.folder), f"--sets={self.sets}"]
        line += ["--cell-seconds=8", "--seconds=300", "--memory=1", f"--out={out or self.out}"]
        return [*line, *options]

    def grade(self, *options: str, out: Path | None = None) -> str:
        return call(self.line(*options, out=out))

    def table(self, name: str = "grades") -> list[dict]:
        with (self.out / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def page(self, student: str) -> str:
        return (self.out / "feedback" / student / f"{LESSON}.html").read_text()


def call(line: list[str]) -> str:
    """What a command printed, which must succeed."""
    done = subprocess.run(line, cwd=notebooks.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
