"""What is stored of each submission: its result, its graded notebook and its page."""

import hashlib
import json
import shutil
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from nbformat import NotebookNode

from grading import feedback
from grading.sandbox import Limits
from grading.submissions import Reading, Submission
from tools import notebooks

FOLDERS = ("autograded", "feedback", "results")
COURSE = ("grading", "tools", "helpers", "assets", "notebooks/scripts", "nbgrader_config.py")


def fingerprint(submission: Submission, reading: Reading, limits: Limits) -> str:
    """A hash of all that a result depends on; ``reading`` is what was read and is graded."""
    total = hashlib.sha256(repr((submission.student, reading.problem, limits)).encode())
    total.update(reading.content)
    total.update(submission.assignment.source.read_bytes())
    total.update(course_fingerprint())
    return total.hexdigest()


@cache
def course_fingerprint() -> bytes:
    """A hash of the grader, of all that answers and checks use, and of the installed packages."""
    packages = sorted((package.name.lower(), package.version) for package in distributions())
    total = hashlib.sha256(repr((sys.version, packages)).encode())
    for name in COURSE:
        path = notebooks.ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(str(file.relative_to(notebooks.ROOT)).encode())
                total.update(file.read_bytes())
    return total.digest()


def graded_notebook(out: Path, result: dict) -> Path:
    return out / "autograded" / result["student"] / result["lesson"] / f"{result['lesson']}.ipynb"


def load(out: Path, student: str, lesson: str) -> dict | None:
    path = out / "results" / student / f"{lesson}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def load_all(out: Path) -> list[dict]:
    paths = sorted((out / "results").glob("*/*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def store(out: Path, result: dict, notebook: NotebookNode) -> None:
    """Write the graded notebook, the page, and then the result, which says that all are there."""
    student, lesson = result["student"], result["lesson"]
    replace(graded_notebook(out, result), notebooks.as_text(notebook))
    replace(out / "feedback" / student / f"{lesson}.html", feedback.page(notebook, result))
    replace(out / "results" / student / f"{lesson}.json", json.dumps(result, indent=1))


def replace(path: Path, text: str) -> None:
    """Write a whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def merge(parts: Iterable[Path], out: Path) -> None:
    """Copy the files of shards into one folder."""
    for part in parts:
        for name in FOLDERS:
            if part.resolve() != out and (part / name).is_dir():
                shutil.copytree(part / name, out / name, dirs_exist_ok=True)
