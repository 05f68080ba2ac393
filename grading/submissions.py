"""What students handed in: the files, and whose they are."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbgrader import utils

from grading import ids, spreadsheets
from grading.answers import LARGEST, NOTHING, Answers, Issued, cells, digest, named
from grading.deadlines import Deadline
from helpers.predictions import NAME
from tools import exercise_sets, notebooks

DEEPEST, MOST_FILES = 3, 1000  # of a student's folder: levels and files that are looked at
ANOTHER = "none of the exercises' cells is there: it may be the lesson, of the same name"
NamedFile = tuple[str, Path]  # its path in the student's folder, or its name, and where it is


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
    file: Path | None  # None if there is none
    late: str = ""  # how late it is, in words
    penalty: float = 0.0  # the fraction of its points that this costs
    drawn_for: str = ""  # the id that the numbers are drawn for, if it is not the student's
    notes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  # what was handed in instead, if there is no file

    @property
    def lesson(self) -> str:
        return self.source.stem

    @property
    def id(self) -> str:
        """The id that the numbers are drawn for."""
        return self.drawn_for or self.student

    @property
    def nothing(self) -> str:
        """What is said of a student without a file for this set."""
        if not self.others:
            return "nothing was handed in"
        found = ids.shown(", ".join(self.others))
        return f"nothing was handed in as {self.lesson}.ipynb; the student's folder has {found}"

    def read(self) -> Reading:
        """Read one plain file that is not too large and not a link to another student's."""
        if self.file is None:
            return Reading(problem=self.nothing)
        path = self.file
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
        answers = Answers(reading.content, self.issued, self.id)
        there = {name for name, *_ in named(cells(reading.content), self.issued.sources)}
        if not any(self.issued.kinds.get(name) in ("answer", "check") for name in there):
            answers.notes = {"": [ANOTHER]}
        answers.notes.setdefault("", []).extend(self.notes)
        return answers

    def digests_unread(self, reading: Reading) -> dict[str, str]:
        """The digest of each answer in what was handed in, but could not be read or graded."""
        content = hashlib.sha256(reading.content).hexdigest()
        return {"": digest([reading.problem, content]) if self.file else NOTHING}


def students_in(
    folder: Path, roster: Iterable[str] = (), names: dict[str, str] | None = None
) -> dict[str, list[NamedFile]]:
    """The students' ids, in FOLDER/STUDENT, to their files; those of the ``roster`` may have none.

    ``names`` maps the name of a folder to the student's id, where they are not the same.

    Raises a ValueError if the folder is the course or somebody's copy of it.
    """
    folder = folder.resolve()
    course = folder == notebooks.ROOT or folder.is_relative_to(notebooks.NOTEBOOKS)
    if course or (folder / ".course.json").exists():
        raise ValueError(
            f"{folder} holds the course or a copy of it, not what a class handed in: "
            "expected FOLDER/STUDENT/NN_name.ipynb"
        )
    students: dict[str, list[NamedFile]] = {student: [] for student in roster}
    folders: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        files = files_in(path)
        if not is_student(path, files):
            say_left_out(path)
            continue
        student = (names or {}).get(ids.normal(path.name)) or ids.printable(path.name)
        if student in folders:
            print(f"{folders[student]!a} and {path.name!a} are folders of one student")
        folders.setdefault(student, path.name)
        students.setdefault(student, []).extend(files)
    return students


def files_in(folder: Path) -> list[NamedFile]:
    """The files in a student's folder and in those in it, which may be deep or many.

    A link, and a folder that is called like a notebook, count as files, which cannot be read.
    """

    def walk() -> Iterator[Path]:
        for place, inner, names in os.walk(folder):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            odd = [name for name in inner if is_odd(Path(place, name))]
            yield from (Path(place, name) for name in sorted([*names, *odd]))
            if folder.is_symlink() or len(Path(place).relative_to(folder).parts) == DEEPEST:
                inner.clear()

    return [(path.relative_to(folder).as_posix(), path) for path in islice(walk(), MOST_FILES)]


def is_odd(folder: Path) -> bool:
    return folder.is_symlink() or folder.suffix == ".ipynb"


def is_student(path: Path, files: list[NamedFile]) -> bool:
    """Whether this is a student's folder; one with a dot in front is, if it holds a notebook."""
    if not path.is_dir() or path.name in ids.NOT_A_STUDENT:
        return False
    return not path.name.startswith(".") or any(name.endswith(".ipynb") for name, _ in files)


def say_left_out(path: Path) -> None:
    if path.name not in ids.NOT_A_STUDENT:
        print(f"{path.name!a} is not a student's: it is left out")


def is_of(lesson: str, name: str, longer: Iterable[str] = ()) -> bool:
    """Whether a file is meant for this set, and not for one of those with a ``longer`` name.

    Upper and lower case are the same, as they are for Windows.
    """
    name, lesson = name.rpartition("/")[2].lower(), lesson.lower()
    others = tuple(other.lower() for other in longer)
    return name.startswith(lesson) and name.endswith(".ipynb") and not name.startswith(others)


def find_submissions(
    students: dict[str, list[NamedFile]],
    sets: dict[Path, list[str]],
    deadline: Deadline,
) -> list[Submission]:
    """The submissions of every student for every set that at least one student handed in.

    ``sets`` maps a set to the names of others that begin with its name: their files are not meant.
    """
    submissions = []
    for source, longer in sets.items():
        files = {
            student: sorted(file for file in own if is_of(source.stem, file[0], longer))
            for student, own in students.items()
        }
        chosen = {student: newest_of(own, source.stem) for student, own in files.items()}
        if not any(path for _, path in chosen.values()):
            continue
        released = nbformat.reads(exercise_sets.release(source), as_version=4)
        issued = Issued.of(released, notebooks.read(source))
        written = {student: id_in(path) if path else "" for student, (_, path) in chosen.items()}
        for student, own in students.items():
            (name, path), notes, drawn_for = chosen[student], [], written[student]
            if len({content_of(other) or other for _, other in files[student]}) > 1:
                listed = ", ".join(other for other, _ in files[student])
                newest = "the newest with an id" if drawn_for else "the newest"
                notes.append(f"of {listed}, {name} was graded: {newest}")
            others = [*written.values(), *students]
            if drawn_for == student or ids.problem(drawn_for) or others.count(drawn_for) > 1:
                drawn_for = ""
            else:
                notes.append(
                    f"the first cell says {ids.shown(drawn_for)}, and nobody else's does: graded "
                    f"with its numbers, and not with those of {ids.shown(student)}"
                )
            instead = () if path else other_files(own, sets, files[student])
            submission = Submission(
                student,
                source,
                issued,
                path,
                *deadline.lateness(path),
                drawn_for,
                tuple(notes),
                instead,
            )
            submissions.append(submission)
    for student, instead in dict.fromkeys((each.student, each.others) for each in submissions):
        if instead:
            print(f"{ids.shown(student)} handed in {ids.shown(', '.join(instead))}: not graded")
    return submissions


def newest_of(files: list[NamedFile], lesson: str) -> tuple[str, Path | None]:
    """The last of several attempts; of equally old ones that with the highest number, as in (2).

    One without an id is none: it is the lesson, which has the name of its set, or has no answers.
    Deep in the folder, files with several ids are those of several students.
    """
    if len({id_in(path) for _, path in files} - {""}) > 1:
        files = [file for file in files if file[0].rpartition("/")[0] in ("", lesson)]

    def order(file: NamedFile) -> tuple:
        number = re.search(r"\d+(?=\)?\.ipynb$)", file[0])
        time = file[1].lstat().st_mtime
        return bool(id_in(file[1])), time, int(number[0]) if number else 0, file[0]

    return max(files, key=order, default=("", None))


def content_of(path: Path) -> bytes:
    """What is in a plain file that is not too large, or b""."""
    try:
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST:
            return path.read_bytes()
    except OSError:
        pass
    return b""


def other_files(
    own: list[NamedFile], sets: dict[Path, list[str]], of_several: list[NamedFile]
) -> tuple[str, ...]:
    """What a student handed in that is of no set, or perhaps of several students."""
    return tuple(
        sorted(
            name
            for name, path in own
            if not path.name.startswith(".")
            and path.name not in ("timestamp.txt", NAME)
            and ((name, path) in of_several or not any(is_of(each.stem, name) for each in sets))
        )
    )


def id_in(path: Path) -> str:
    """The id in the first code cell of a notebook that gives one, or ""."""
    try:
        found = json.loads(content_of(path).decode("utf-8-sig"))["cells"]
        sources = ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]
        return next(filter(None, map(ids.written_in, sources)), "")
    except Exception:  # of any kind, because the file is a student's; the grader says what is wrong
        return ""


def read_roster(path: Path) -> list[str]:
    """The ids in the first column of a CSV file, below its head."""
    students = [ids.normal(row[0]) for row in spreadsheets.read("--roster", path)[1:]]
    wrong = list(filter(None, map(ids.problem, students)))
    if wrong or not students:
        came = wrong[0] if wrong else "no row"
        raise ValueError(
            f"--roster: {path} must have a head, and below it an id in each row, but got {came}"
        )
    return students


def most_points(submissions: list[Submission]) -> dict[tuple[str, str], float]:
    """(name of a set, task) to its points."""
    points: Counter = Counter()
    for source in {submission.source for submission in submissions}:
        for cell in filter(utils.is_grade, notebooks.read(source).cells):
            points[source.stem, exercise_sets.split_id(cell.id)[0]] += cell.metadata.nbgrader.points
    return points
