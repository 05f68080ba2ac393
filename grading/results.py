"""What is stored of each submission: its result, its graded notebook and its page."""

import hashlib
import json
import re
import secrets
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from nbformat import NotebookNode

from grading import feedback, ids, score
from grading.by_hand import Marks, split
from grading.sandbox import Limits
from grading.submissions import Reading, Submission
from tools import notebooks

FOLDERS = ("autograded", "feedback", "results")
COURSE = ("grading", "tools", "helpers", "assets", "notebooks/scripts", "nbgrader_config.py")


@dataclass(frozen=True)
class Grader:
    """What every submission of a call is graded with."""

    out: Path
    limits: Limits
    marks: Marks
    scratch: Path
    closed: bool = False  # whether pages may show the right letters
    again: bool = False  # whether also what is up to date is graded
    secret: str = ""  # what the numbers of hidden checks are drawn with

    def state(self, submission: Submission, fingerprint: str, digests: dict[str, str]) -> dict:
        """What a stored result is compared with: what its points and its page depend on."""
        marks = self.marks.get((submission.student, submission.lesson), {})
        about = {"late": submission.late, "penalty": submission.penalty, "closed": self.closed}
        return {"fingerprint": fingerprint, **split(marks, digests), **about}

    def result(self, submission: Submission) -> dict | None:
        return load(place(self.out, "results", submission.student) / f"{submission.lesson}.json")

    def is_up_to_date(self, submission: Submission) -> bool:
        result = self.result(submission)
        fingerprint = fingerprint_of(submission, submission.read(), self.limits)
        if result is None or result.get("fingerprint") != fingerprint:
            return False
        return result == (result | self.state(submission, fingerprint, result["digests"]))

    def grade(self, submission: Submission) -> None:
        """Score what was read, unless only the page is out of date, and store the result."""
        reading, result = submission.read(), self.result(submission)
        fingerprint = fingerprint_of(submission, reading, self.limits)
        if result and result.get("fingerprint") == fingerprint and not self.again:
            notebook = notebooks.read(graded_notebook(self.out, result))
        else:
            result, notebook = score.score(
                submission, reading, self.limits, self.scratch, self.secret
            )
        state = self.state(submission, fingerprint, result["digests"])
        store(self.out, result | state, notebook)

    def fail(self, submission: Submission, reason: str) -> None:
        """Store that there are no points, for this reason; the next call grades it again."""
        result, notebook = score.no_points(submission, reason, submission.read())
        store(self.out, result | self.state(submission, "", result["digests"]), notebook)


def fingerprint_of(submission: Submission, reading: Reading, limits: Limits) -> str:
    """A hash of all that a result depends on; ``reading`` is what was read and is graded."""
    limits = replace(limits, hide=())  # where the folders are changes no points
    about = submission.student, submission.id, submission.notes, reading.problem, limits
    total = hashlib.sha256(repr(about).encode())
    total.update(reading.content)
    total.update(submission.source.read_bytes())
    total.update(course_fingerprint())
    return total.hexdigest()


@cache
def course_fingerprint() -> bytes:
    """A hash of the grader, of all that answers and checks use, and of the course's packages.

    What else is installed changes no points.
    """
    locked = (notebooks.ROOT / "constraints.txt").read_text(encoding="utf-8")
    course = {name.lower() for name in re.findall(r"^[\w.-]+(?===)", locked, re.M)}
    installed = sorted((package.name.lower(), package.version) for package in distributions())
    packages = [package for package in installed if package[0].replace("_", "-") in course]
    total = hashlib.sha256(repr((sys.version, packages)).encode())
    for name in COURSE:
        path = notebooks.ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(str(file.relative_to(notebooks.ROOT)).encode())
                total.update(file.read_bytes())
    return total.digest()


def secret_of(out: Path) -> str:
    """A secret that is the same for each call with this folder."""
    path = out / ".secret"
    if not path.exists():
        write(path, secrets.token_hex())
    return path.read_text()


def graded_notebook(out: Path, result: dict) -> Path:
    lesson = result["lesson"]
    return place(out, "autograded", result["student"]) / lesson / f"{lesson}.ipynb"


def place(out: Path, kind: str, student: str) -> Path:
    """The folder of a student's results, pages or graded notebooks."""
    return out / kind / ids.safe_name(student)


def store(out: Path, result: dict, notebook: NotebookNode) -> None:
    """Write the graded notebook, the page, and then the result, which says that all are there."""
    student, lesson = result["student"], result["lesson"]
    write(graded_notebook(out, result), notebooks.as_text(notebook))
    write(place(out, "feedback", student) / f"{lesson}.html", feedback.page(notebook, result))
    write(place(out, "results", student) / f"{lesson}.json", json.dumps(result, indent=1))


def write(path: Path, text: str) -> None:
    """Write a whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    notebooks.write(path, text.encode(errors="backslashreplace"))


def load(path: Path) -> dict | None:
    """A stored result; None if there is none, or it is damaged: the submission is graded again."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def load_all(out: Path) -> list[dict]:
    return [*filter(None, map(load, sorted((out / "results").glob("*/*.json"))))]


def merge(parts: Iterable[Path], out: Path) -> None:
    """Copy the files of shards into one folder."""
    for part in parts:
        for name in FOLDERS:
            if part.resolve() != out and (part / name).is_dir():
                shutil.copytree(part / name, out / name, dirs_exist_ok=True)
