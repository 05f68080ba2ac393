"""What students handed in: the files, when they came, and whose they are."""

import csv
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import nbformat
from nbgrader import utils

from grading import ids
from grading.answers import LARGEST, NOTHING, Answers, Issued, digest
from tools import exercises, notebooks

MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))? ?(\S+)?")


class Reading(NamedTuple):
    """The bytes of a submission, or the problem that kept them from being read."""

    content: bytes = b""
    problem: str = ""


@dataclass(frozen=True)
class Submission:
    """What one student handed in for one set of exercises: one file, if all is well."""

    student: str
    source: Path  # the set, as it was written
    issued: Issued  # the set, as students received it
    files: tuple[Path, ...]
    late: str = ""  # how late it is, in words
    penalty: float = 0.0  # the fraction of its points that this costs

    @property
    def lesson(self) -> str:
        return self.source.stem

    def read(self) -> Reading:
        """Read one plain file that is not too large and not a link to another student's."""
        if not self.files:
            return Reading(problem="nothing was handed in")
        if len(self.files) > 1:
            listed = " and ".join(path.name for path in self.files)
            return Reading(problem=f"{len(self.files)} files for one lesson, {listed}: hand in one")
        (path,) = self.files
        if path.parent.is_symlink() or path.is_symlink():
            return Reading(problem="got a symbolic link; hand in the file itself")
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

    def answers(self, reading: Reading) -> Answers:
        """Raises a ValueError with a sentence for the student if there are no answers to run."""
        if reading.problem:
            raise ValueError(reading.problem)
        return Answers(reading.content, self.issued, self.student)

    def digests_unread(self, reading: Reading) -> dict[str, str]:
        """The digest of each answer in what was handed in, but could not be read or graded."""
        content = hashlib.sha256(reading.content).hexdigest()
        return {"": digest([reading.problem, content]) if self.files else NOTHING}


@dataclass(frozen=True)
class Deadline:
    """When work was due, and what each day that begins after it costs, in percent of the points."""

    due: datetime | None = None
    percent: float = 0.0
    stamped: bool = False  # whether a timestamp.txt beside a notebook is the grader's own

    def lateness(self, files: tuple[Path, ...]) -> tuple[str, float]:
        """How late a submission is, in words or "", and the fraction of its points it costs."""
        if self.due is None or len(files) != 1:
            return "", 0.0
        try:
            late = (handed_in(files[0], self.stamped) - self.due).total_seconds()
        except (OSError, ValueError, OverflowError) as error:
            return f"late? its time cannot be read: {error}", 0.0
        if late <= 0:
            return "", 0.0
        late, days = math.ceil(late), math.ceil(late / 86400)
        words = f"late by {duration(late)}"
        penalty = min(1.0, days * self.percent / 100)
        if not penalty:
            return words, 0.0
        counts = f"which counts as {days} day{'s' if days > 1 else ''}"
        return f"{words}, {counts}: {100 * penalty:.4g}% less", penalty


def duration(seconds: int) -> str:
    """A time in words that leave nothing out, such as "2 days 12 h" or "1 min 30 s"."""
    parts = []
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, seconds = divmod(seconds, size)
        if number:
            parts.append("1 day" if (number, unit) == (1, "days") else f"{number} {unit}")
    return " ".join(parts)


def find_submissions(
    folder: Path,
    sets: dict[Path, list[str]],
    deadline: Deadline,
    shard: tuple[int, int],
    roster: Iterable[str] = (),
    ids_of: dict[str, str] | None = None,
) -> list[Submission]:
    """The submissions of every student for every set that at least one student handed in.

    ``sets`` maps a set to the names of others that begin with its name: their files are not meant.
    ``shard`` is (k, n): only about one n-th of the students, chosen by a hash of their names.
    Students of the ``roster`` without a folder have handed in nothing. ``ids_of`` maps folders'
    names to the students' ids, if it is known that these are all the folders of students. Raises a
    ValueError if the folder is the course or somebody's copy of it.
    """
    folder = folder.resolve()
    course = folder == notebooks.ROOT or folder.is_relative_to(notebooks.NOTEBOOKS)
    if course or (folder / ".course.json").exists():
        raise ValueError(
            f"{folder} holds the course or a copy of it, not what a class handed in: "
            "expected FOLDER/STUDENT/NN_name.ipynb"
        )
    if ids_of is None:
        ids_of = ids_in(folder, sets)
    students: dict[str, list[Path]] = {student: [] for student in roster}
    for name, student in ids_of.items():
        if folders := students.setdefault(student, []):
            print(f"{folders[0].name!a} and {name!a} are folders of one student")
        folders.append(folder / name)
    submissions = []
    for source, longer in sets.items():
        files = {
            student: tuple(file for path in paths for file in files_of(path, source.stem, longer))
            for student, paths in students.items()
        }
        if not any(files.values()):
            continue
        released = nbformat.reads(exercises.release(source), as_version=4)
        issued = Issued.of(released, notebooks.read(source))
        submissions += [
            Submission(student, source, issued, files[student], *deadline.lateness(files[student]))
            for student in students
            if int(ids.hash_of(student), 16) % shard[1] == shard[0] - 1
        ]
    return submissions


def ids_in(folder: Path, sets: dict[Path, list[str]]) -> dict[str, str]:
    """The name of each student's folder to the student's id."""
    found = {}
    for path in sorted(folder.iterdir()):
        if is_student(path, sets):
            found[path.name] = ids.printable(path.name)
        elif path.name not in ids.NOT_A_STUDENT:
            print(f"{path.name!a} is not a student's folder: it is left out")
    return found


def read_roster(path: Path) -> list[str]:
    """The ids in the first column of a CSV file, below its head."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row and row[0].strip()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"--roster: {path} cannot be read as CSV in UTF-8: {error}") from None
    students = [ids.normal(row[0]) for row in rows[1:]]
    wrong = list(filter(None, map(ids.problem, students)))
    if wrong or not students:
        came = wrong[0] if wrong else "no row"
        raise ValueError(
            f"--roster: {path} must have a head, and below it an id in each row, but got {came}"
        )
    return students


def is_student(path: Path, sets: dict[Path, list[str]]) -> bool:
    """Whether this is a student's folder; one with a dot in front is, if it holds a set."""
    if not path.is_dir() or path.name in ids.NOT_A_STUDENT:
        return False
    found = (files_of(path, source.stem, longer) for source, longer in sets.items())
    return not path.name.startswith(".") or any(found)


def most_points(submissions: list[Submission]) -> dict[tuple[str, str], float]:
    """(name of a set, task) to its points."""
    points: Counter = Counter()
    for source in {submission.source for submission in submissions}:
        for cell in filter(utils.is_grade, notebooks.read(source).cells):
            points[source.stem, exercises.parts(cell.id)[0]] += cell.metadata.nbgrader.points
    return points


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
            f"such as +01:00, UTC or Europe/Berlin, but got {text!r}"
        ) from None


def handed_in(file: Path, stamped: bool) -> datetime:
    """When a file came: its own time, or what nbgrader or ``make collect`` wrote beside it."""
    stamp = file.with_name("timestamp.txt")
    if stamped and stamp.is_file() and not stamp.is_symlink():
        with stamp.open(encoding="utf-8") as text:
            return moment(text.read(100))
    return datetime.fromtimestamp(file.lstat().st_mtime, UTC)
