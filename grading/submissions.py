"""Finding what students handed in, reading it, and telling when it was handed in."""

import hashlib
import os
import re
import stat
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
        points: dict[tuple[str, str], float] = {}
        for cell in filter(utils.is_grade, exercises.Set(self.source).notebook.cells):
            key = self.name, exercises.parts(cell.id)[0]
            points[key] = points.get(key, 0.0) + cell.metadata.nbgrader.points
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
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    return Reading(problem=f"{path.name} is not a file")
                if status.st_size > LARGEST:
                    return Reading(
                        problem=f"the notebook has {status.st_size / 2**20:.0f} MB, at most "
                        f"{LARGEST / 2**20:.0f} can be read: clear its outputs"
                    )
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    return Reading(file.read(LARGEST))
            finally:
                os.close(descriptor)
        except OSError as error:
            return Reading(problem=f"the file cannot be read: {error.strerror}")


def find_submissions(
    folder: Path, sets: list[Path], lessons: list[str], due: datetime | None, shard: tuple[int, int]
) -> list[Submission]:
    """The submissions of every student for every set that at least one student handed in.

    ``shard`` is (k, n): only about one n-th of the students, chosen by a hash of their names.
    """
    students: dict[str, Path] = {}
    for path in sorted(folder.resolve().iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            students[printable_id(path.name)] = path
        else:
            print(f"{path.name!a} is not a student's folder: it is left out")
    submissions = []
    for source in sets:
        if lessons and not is_named(source, lessons):
            continue
        longer = [other.stem for other in sets if other.stem.startswith(source.stem)]
        longer.remove(source.stem)
        files = {student: files_of(path, source.stem, longer) for student, path in students.items()}
        if not any(files.values()):
            continue
        cells = nbformat.reads(exercises.release(source), as_version=4).cells
        assignment = Assignment(source, {cell.id: cell.source for cell in cells})
        submissions += [
            Submission(student, assignment, files[student], lateness(files[student], due))
            for student, path in students.items()
            if in_shard(path.name, shard)
        ]
    return submissions


def printable_id(name: str) -> str:
    """The name of a student's folder; one that cannot be printed is escaped and made unique."""
    if name.isprintable():
        return name
    return f"{ascii(name)[1:-1][:100]}~{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"


def is_named(source: Path, names: list[str]) -> bool:
    """Whether one of the names is the set's, such as 03_macs_and_flops, or its number."""
    return source.stem in names or source.stem.partition("_")[0] in names


def files_of(student: Path, lesson: str, longer: list[str]) -> tuple[Path, ...]:
    """The files in a student's folder that may be meant for this lesson.

    ``longer`` names the sets whose names begin with this lesson's: their files are not meant.
    """
    folders = [student] if student.is_symlink() else [student, student / lesson]
    with suppress(OSError):  # a folder that cannot be read counts as an empty one
        paths = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
        return tuple(
            path
            for path in sorted(paths)
            if path.match(f"{lesson}*.ipynb") and not path.name.startswith(tuple(longer))
        )
    return ()


def in_shard(student: str, shard: tuple[int, int]) -> bool:
    number, shards = shard
    return int(hashlib.sha256(os.fsencode(student)).hexdigest(), 16) % shards == number - 1


def moment(text: str) -> datetime:
    """The moment that a text such as ``2026-12-01 23:59 Europe/Berlin`` names.

    A day without a time means its last second. A moment without a zone is in this computer's zone.
    A zone is an offset such as +01:00, Z, or a name of the zone database. An abbreviation that the
    database does not have, such as CEST, raises a ValueError, because its offset is ambiguous.
    """
    match = MOMENT.fullmatch(text.strip())
    if not match:
        raise ValueError(f"expected a day, or a day and a time such as 2026-12-01T23:59, "
                         f"but {text!r} came")  # fmt: skip
    day, time, zone = match.groups()
    time = time or "23:59:59"
    if zone is None:
        return datetime.fromisoformat(f"{day}T{time}").astimezone()
    if zone == "Z" or zone[0] in "+-":
        return datetime.fromisoformat(f"{day}T{time}{zone}")
    try:
        return datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=ZoneInfo(zone))
    except (KeyError, ValueError, OSError):
        raise ValueError(f"expected a zone such as +01:00, UTC or Europe/Berlin, but {zone!r} "
                         f"came in {text!r}") from None  # fmt: skip


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
