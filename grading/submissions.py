"""Finding what students handed in, reading it, and telling when it was handed in."""

import hashlib
import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import nbformat
from nbgrader import utils

from tools import exercises

LARGEST = 20 * 2**20  # bytes of a notebook
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))? ?(\S+)?")


@dataclass(frozen=True)
class Assignment:
    """A set of exercises that at least one student handed in."""

    source: Path
    released: dict[str, str]  # a cell's id to its source, as students received it

    @property
    def name(self) -> str:
        return self.source.stem

    @property
    def points(self) -> dict[tuple[str, str], float]:
        """(name of the set, task) to the most points."""
        points: Counter = Counter()
        for cell in filter(utils.is_grade, exercises.Set(self.source).notebook.cells):
            points[self.name, exercises.parts(cell.id)[0]] += cell.metadata.nbgrader.points
        return points


class Reading(NamedTuple):
    """The bytes of a submission, or the problem that kept them from being read."""

    content: bytes = b""
    problem: str = ""


@dataclass(frozen=True)
class Submission:
    """What one student handed in for one assignment: one file, if all is well."""

    student: str
    assignment: Assignment
    files: tuple[Path, ...]
    late: str  # how late it is, in words, or ""

    @property
    def lesson(self) -> str:
        return self.assignment.name

    def read(self) -> Reading:
        """Read one plain file that is not too large and not a link to another student's."""
        if not self.files:
            return Reading(problem="nothing was handed in")
        if len(self.files) > 1:
            listed = " and ".join(path.name for path in self.files)
            return Reading(problem=f"{len(self.files)} files for one lesson, {listed}: hand in one")
        (path,) = self.files
        if path.parent.is_symlink() or path.is_symlink():
            return Reading(problem="a symbolic link came; hand in the file itself")
        if not path.is_file():
            return Reading(problem=f"{path.name} is not a file")
        if (size := path.stat().st_size) > LARGEST:
            return Reading(
                problem=f"the notebook has {size / 2**20:.0f} MB, at most "
                f"{LARGEST / 2**20:.0f} can be read: clear its outputs"
            )
        try:
            return Reading(path.read_bytes())
        except OSError as error:
            return Reading(problem=f"the file cannot be read: {error.strerror}")


def find_submissions(
    folder: Path, sets: dict[Path, list[str]], due: datetime | None, shard: tuple[int, int]
) -> list[Submission]:
    """The submissions of every student for every set that at least one student handed in.

    ``sets`` maps a set to the names of others that begin with its name: their files are not meant.
    ``shard`` is (k, n): only about one n-th of the students, chosen by a hash of their names.
    """
    students: dict[str, Path] = {}
    for path in sorted(folder.resolve().iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            students[printable_id(path.name)] = path
        else:
            print(f"{path.name!a} is not a student's folder: it is left out")
    submissions = []
    for source, longer in sets.items():
        files = {student: files_of(path, source.stem, longer) for student, path in students.items()}
        if not any(files.values()):
            continue
        cells = nbformat.reads(exercises.release(source), as_version=4).cells
        assignment = Assignment(source, {cell.id: cell.source for cell in cells})
        submissions += [
            Submission(student, assignment, files[student], lateness(files[student], due))
            for student, path in students.items()
            if int(name_hash(path.name), 16) % shard[1] == shard[0] - 1
        ]
    return submissions


def printable_id(name: str) -> str:
    """The name of a student's folder; one that cannot be printed is escaped and made unique."""
    if name.isprintable():
        return name
    return f"{ascii(name)[1:-1][:100]}~{name_hash(name)[:8]}"


def name_hash(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()


def files_of(student: Path, lesson: str, longer: list[str]) -> tuple[Path, ...]:
    """The files in a student's folder that may be meant for this lesson."""
    folders = [student] if student.is_symlink() else [student, student / lesson]
    with suppress(OSError):  # a folder that cannot be read counts as an empty one
        paths = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
        return tuple(
            path
            for path in sorted(paths)
            if path.match(f"{lesson}*.ipynb") and not path.name.startswith(tuple(longer))
        )
    return ()


def moment(text: str) -> datetime:
    """The moment that a text such as ``2026-12-01 23:59 Europe/Berlin`` names.

    A day without a time means its last second. A moment without a zone is in this computer's zone.
    A zone is an offset such as +01:00, Z, or a name of the zone database. An abbreviation that the
    database does not have, such as CEST, raises a ValueError, because its offset is ambiguous.
    """
    try:
        day, time, zone = MOMENT.fullmatch(text.strip()).groups()
        is_offset = zone and (zone == "Z" or zone[0] in "+-")
        when = datetime.fromisoformat(f"{day}T{time or '23:59:59'}{zone if is_offset else ''}")
        if is_offset:
            return when
        return when.replace(tzinfo=ZoneInfo(zone)) if zone else when.astimezone()
    except (AttributeError, KeyError, ValueError, OSError):
        raise ValueError(
            f"expected a day or a time, such as 2026-12-01 or 2026-12-01T23:59, and perhaps a zone "
            f"such as +01:00, UTC or Europe/Berlin, but {text!r} came"
        ) from None


def lateness(files: tuple[Path, ...], due: datetime | None) -> str:
    """How late a submission is, by nbgrader's timestamp.txt or else the file's time, or ""."""
    if due is None or len(files) != 1:
        return ""
    try:
        handed_in = datetime.fromtimestamp(files[0].lstat().st_mtime, UTC)
        stamp = files[0].with_name("timestamp.txt")
        if stamp.is_file() and not stamp.is_symlink():
            with stamp.open(encoding="utf-8") as file:
                handed_in = moment(file.read(100))
        hours = (handed_in - due).total_seconds() / 3600
    except (OSError, ValueError, OverflowError) as error:
        return f"late? its time cannot be read: {error}"
    if hours <= 0:
        return ""
    return f"late by {hours:.1f} hours" if hours < 48 else f"late by {hours / 24:.0f} days"
