"""What students handed in: the files, when they came, and the answers in them."""

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

from tools import exercises, notebooks

LARGEST = 20 * 2**20  # bytes of a notebook
WRITTEN_ID = re.compile(r"""^student *= *(["'])(.*?)\1""", re.M)
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
    released: dict[str, str]  # a cell's id to its source, as students received it
    files: tuple[Path, ...]
    late: str  # how late it is, in words, or ""

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
        released = {cell.id: cell.source for cell in cells}
        submissions += [
            Submission(student, source, released, files[student], lateness(files[student], due))
            for student, path in students.items()
            if int(name_hash(path.name), 16) % shard[1] == shard[0] - 1
        ]
    return submissions


def most_points(submissions: list[Submission]) -> dict[tuple[str, str], float]:
    """(name of a set, task) to its points."""
    points: Counter = Counter()
    for source in {submission.source for submission in submissions}:
        for cell in filter(utils.is_grade, notebooks.read(source).cells):
            points[source.stem, exercises.parts(cell.id)[0]] += cell.metadata.nbgrader.points
    return points


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


class Answers:
    """What a student wrote, cell by cell, with notes about cells that are not as they should be."""

    def __init__(self, submission: Submission, reading: Reading) -> None:
        """Raises a ValueError with a sentence for the student if there are no answers to run."""
        self.by_cell: dict[str, str] = {}
        self.added: dict[str, list[str]] = {}  # by the cell that they follow
        self.notes: dict[str, list[str]] = {}  # by task
        released = submission.released
        course = notebooks.read(submission.source).cells
        kinds = {
            cell.id: exercises.parts(cell.id)[1]
            for cell in course
            if cell.cell_type == "code" or utils.is_solution(cell)
        }
        solved = {cell.id: cell.source for cell in course}  # an instructor's copy is not altered
        seen, last = set(), ""
        for name, is_code, source in cells(reading):
            kind = kinds.get(name)
            if name not in released:
                if is_code:
                    self.added.setdefault(last, []).append(source)
                continue
            if name in seen:
                if kind == "answer":
                    self.note(name, f"{name} came twice: the first one counts")
                continue
            seen.add(name)
            last = name
            if kind == "answer":
                self.by_cell[name] = source
            elif kind == "student":
                written = WRITTEN_ID.findall(source)
                if written and written[-1][1].strip() != submission.student:
                    self.note(
                        name,
                        f"the first cell says {written[-1][1]!r}, but the folder is "
                        f"{submission.student!r}: graded with its numbers",
                    )
            elif kind and differ(source, released[name]) and differ(source, solved[name]):
                self.note(name, f"{name} was altered: the course's own ran")
        for name in kinds.keys() - seen - {"student"}:
            fate = "is missing" if kinds[name] == "answer" else "was missing: the course's own ran"
            self.note(name, f"{name} {fate}")
        self.changed = {
            name: source for name, source in self.by_cell.items() if differ(source, released[name])
        }

    def note(self, cell: str, sentence: str) -> None:
        self.notes.setdefault(exercises.parts(cell)[0], []).append(sentence)


def cells(reading: Reading) -> list[tuple[str, bool, str]]:
    """(grade_id or id, whether it is code, source) of each cell in a notebook's file."""
    content = reading.content
    if reading.problem:
        raise ValueError(reading.problem)
    try:
        return [
            (
                str(cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "")),
                cell.cell_type == "code",
                cell.source.encode(errors="replace").decode(),
            )
            for cell in nbformat.reads(content.decode("utf-8-sig"), as_version=4).cells
        ]
    except Exception as error:  # of any kind, because the file is a student's
        why = "it is empty" if not content.strip() else type(error).__name__
        raise ValueError(
            f"the file is not a whole notebook ({why}): save it again, and hand it in once more"
        ) from None


def differ(one: str, other: str) -> bool:
    """Whether two sources differ in more than blanks at the ends of lines."""
    one, other = ([line.rstrip() for line in text.strip().splitlines()] for text in (one, other))
    return one != other
