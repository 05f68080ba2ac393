"""What students handed in: the files, when they came, and the answers in them."""

import ast
import csv
import hashlib
import json
import math
import os
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

from tools import exercises, notebooks

LARGEST = 20 * 2**20  # bytes of a notebook
MOST_CELLS, MOST_CHARACTERS = 1000, 400_000  # of a notebook, without its outputs
NOT_A_STUDENT = (".ipynb_checkpoints", ".git", "platform.json")
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
        hours, days = late / 3600, late / 86400
        words = f"late by {hours:.1f} hours" if hours < 48 else f"late by {days:.0f} days"
        penalty = min(1.0, math.ceil(days) * self.percent / 100)
        return f"{words}: {penalty:.0%} less" if penalty else words, penalty


def find_submissions(
    folder: Path,
    sets: dict[Path, list[str]],
    deadline: Deadline,
    shard: tuple[int, int],
    roster: Iterable[str] = (),
) -> list[Submission]:
    """The submissions of every student for every set that at least one student handed in.

    ``sets`` maps a set to the names of others that begin with its name: their files are not meant.
    ``shard`` is (k, n): only about one n-th of the students, chosen by a hash of their names.
    Students of the ``roster`` without a folder have handed in nothing. Raises a ValueError if the
    folder is the course or somebody's copy of it.
    """
    folder = folder.resolve()
    course = folder == notebooks.ROOT or folder.is_relative_to(notebooks.NOTEBOOKS)
    if course or (folder / ".course.json").exists():
        raise ValueError(
            f"{folder} holds the course or a copy of it, not what a class handed in: "
            "expected FOLDER/STUDENT/NN_name.ipynb"
        )
    students = {student: folder / student for student in roster}
    for path in sorted(folder.iterdir()):
        if is_student(path, sets):
            students[printable_id(path.name)] = path
        elif path.name not in NOT_A_STUDENT:
            print(f"{path.name!a} is not a student's folder: it is left out")
    submissions = []
    for source, longer in sets.items():
        files = {student: files_of(path, source.stem, longer) for student, path in students.items()}
        if not any(files.values()):
            continue
        cells = nbformat.reads(exercises.release(source), as_version=4).cells
        released = {cell.id: cell.source for cell in cells}
        submissions += [
            Submission(
                student, source, released, files[student], *deadline.lateness(files[student])
            )
            for student, path in students.items()
            if int(name_hash(path.name), 16) % shard[1] == shard[0] - 1
        ]
    return submissions


def read_roster(path: Path) -> list[str]:
    """The ids in the first column of a CSV file, below its head."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row and row[0].strip()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"--roster: {path} cannot be read as CSV in UTF-8: {error}") from None
    students = [row[0].strip() for row in rows[1:]]
    wrong = [name for name in students if Path(name).name != name or not name.isprintable()]
    if wrong or not students:
        came = f"{wrong[0]!a}" if wrong else "no row"
        raise ValueError(
            f"--roster: {path} must have a head, and below it an id in each row, but got {came}"
        )
    return students


def is_student(path: Path, sets: dict[Path, list[str]]) -> bool:
    """Whether this is a student's folder; one with a dot in front is, if it holds a set."""
    if not path.is_dir() or path.name in NOT_A_STUDENT:
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
            f"such as +01:00, UTC or Europe/Berlin, but got {text!r}"
        ) from None


def handed_in(file: Path, stamped: bool) -> datetime:
    """When a file came: its own time, or what nbgrader or ``make collect`` wrote beside it."""
    stamp = file.with_name("timestamp.txt")
    if stamped and stamp.is_file() and not stamp.is_symlink():
        with stamp.open(encoding="utf-8") as text:
            return moment(text.read(100))
    return datetime.fromtimestamp(file.lstat().st_mtime, UTC)


class Answers:
    """What a student wrote, cell by cell, with notes about cells that are not as they should be."""

    def __init__(self, submission: Submission, reading: Reading) -> None:
        """Raises a ValueError with a sentence for the student if there are no answers to run."""
        self.first = ""  # what the first cell holds besides the id
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
        for name, is_code, source in named(cells(reading), released):
            kind = kinds.get(name)
            if name not in released:
                if is_code:
                    self.added.setdefault(last, []).append(source)
                continue
            if name in seen:
                if kind == "answer":  # JupyterLab copies the metadata of a cell that is split
                    self.by_cell[name] += "\n" + source
                    self.note(name, f"{name} came more than once: all of them ran, in order")
                continue
            seen.add(name)
            last = name
            if kind == "answer":
                self.by_cell[name] = source
            elif kind == "student":
                self.first = source if parses(source) else ""
                written = WRITTEN_ID.findall(source)
                if written and written[-1][1].strip() != submission.student:
                    self.note(
                        name,
                        f"the first cell says {written[-1][1]!r}, but the folder is "
                        f"{submission.student!r}: graded with its numbers",
                    )
            elif kind and differ(source, released[name]) and differ(source, solved[name]):
                self.note(name, f"{name} was altered: the course's own ran")
        answers = [name for name in released if kinds.get(name) == "answer"]
        self.put_together(answers)
        self.replace_missing(list(released), seen, kinds)
        self.bring_forward(answers, released)
        self.changed = {
            name: source for name, source in self.by_cell.items() if differ(source, released[name])
        }

    def put_together(self, answers: list[str]) -> None:
        """Join an answer that was split with the cells after it, if only the whole is Python."""
        for name in answers:
            pieces = [self.by_cell.get(name, ""), *self.added.get(name, [])]
            if len(pieces) > 1 and not all(map(parses, pieces)) and parses("\n".join(pieces)):
                self.by_cell[name] = "\n".join(pieces)
                del self.added[name]

    def replace_missing(self, order: list[str], seen: set[str], kinds: dict[str, str]) -> None:
        """Of an answer's cell that is missing, the cells that were added in its place count."""
        before = ""
        for name in order:
            if name in seen:
                before = name
            elif kinds.get(name) == "answer" and before in self.added:
                self.by_cell[name] = "\n".join(self.added.pop(before))
                self.note(name, f"{name} is missing: the cells in its place ran instead")
            elif kinds.get(name) == "answer":
                self.note(name, f"{name} is missing")
            elif name in kinds and kinds[name] != "student":
                self.note(name, f"{name} was missing: the course's own ran")

    def bring_forward(self, answers: list[str], released: dict[str, str]) -> None:
        """Run what was added below a check before it, if the answer's own cell is as released."""
        for name in answers:
            task = exercises.parts(name)[0]
            if not differ(self.by_cell.get(name, released[name]), released[name]):
                below = [cell for cell in self.added if cell.startswith(f"{task}-check")]
                moved = [source for cell in below for source in self.added.pop(cell)]
                if moved:
                    self.added[name] = self.added.get(name, []) + moved
                    self.note(name, f"{name} was not answered: the cells below its check ran")

    def note(self, cell: str, sentence: str) -> None:
        self.notes.setdefault(exercises.parts(cell)[0], []).append(sentence)


def cells(reading: Reading) -> list[tuple[str, bool, str]]:
    """(grade_id or id, whether it is code, source) of each cell in a notebook's file."""
    content = reading.content
    if reading.problem:
        raise ValueError(reading.problem)
    try:
        too_much = size_problem(json.loads(content.decode("utf-8-sig")).get("cells", []))
    except Exception:  # of any kind, because the file is a student's; nbformat says what is wrong
        too_much = ""
    if too_much:
        raise ValueError(f"{too_much}: shorten it, and hand it in once more")
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


def named(
    found: list[tuple[str, bool, str]], released: dict[str, str]
) -> list[tuple[str, bool, str]]:
    """The same cells; one whose id was lost gets that of the course's cell with its text."""
    known = {name for name, _, _ in found} & released.keys()
    lost = {source.strip(): name for name, source in released.items() if name not in known}
    return [
        (name if name in known else lost.get(source.strip(), name), is_code, source)
        for name, is_code, source in found
    ]


def size_problem(cells: list[dict]) -> str:
    """What is too large in a notebook's cells, as JSON has them, or ""."""
    if len(cells) > MOST_CELLS:
        return f"the notebook has {len(cells):,} cells, and at most {MOST_CELLS:,} are read"
    size = sum(len("".join(cell["source"])) for cell in cells)
    if size > MOST_CHARACTERS:
        return f"its cells hold {size:,} characters, and at most {MOST_CHARACTERS:,} are read"
    return ""


def parses(source: str) -> bool:
    """Whether this is Python, with ``await`` at the top level, as JupyterLab runs it."""
    try:
        compile(source, "answer", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def differ(one: str, other: str) -> bool:
    """Whether two sources differ in more than blanks at the ends of lines."""
    one, other = ([line.rstrip() for line in text.strip().splitlines()] for text in (one, other))
    return one != other
