"""What students handed in: the files, and whose they are."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbgrader import utils

from grading import ids, spreadsheets
from grading.answers import LARGEST, NOTHING, Answers, Issued, digest
from grading.deadlines import Deadline
from tools import exercise_sets, notebooks

DEEPEST, MOST_FILES = 3, 100  # of a student's folder: levels and files that are looked at
NamedFile = tuple[str, Path]  # the name that the course gave it, and where it is


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
        answers.notes.setdefault("", []).extend(self.notes)
        return answers

    def digests_unread(self, reading: Reading) -> dict[str, str]:
        """The digest of each answer in what was handed in, but could not be read or graded."""
        content = hashlib.sha256(reading.content).hexdigest()
        return {"": digest([reading.problem, content]) if self.file else NOTHING}


def students_in(
    folder: Path,
    lessons: Iterable[str],
    roster: Iterable[str] = (),
    names: dict[str, str] | None = None,
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
        files = files_in(path, lessons)
        if not is_student(path, files, lessons):
            if path.name not in ids.NOT_A_STUDENT:
                print(f"{path.name!a} is not a student's folder: it is left out")
            continue
        student = (names or {}).get(ids.normal(path.name)) or ids.printable(path.name)
        if student in folders:
            print(f"{folders[student]!a} and {path.name!a} are folders of one student")
        folders.setdefault(student, path.name)
        students.setdefault(student, []).extend(files)
    return students


def files_in(student: Path, lessons: Iterable[str]) -> list[NamedFile]:
    """The files of a student by their paths in the student's folder.

    What is of a set, and in a folder with this set's name, has its own name.
    """
    files = listed(student)
    if student.is_symlink():
        return files
    inner = [path for lesson in lessons for _, path in listed(student / lesson)]
    named = [path for path in inner if path.name.startswith(path.parent.name)]
    deeper = [path for path in below(student) if path.parent != student and path not in named]
    files += [(path.name, path) for path in named]
    return files + [(str(path.relative_to(student)), path) for path in deeper]


def below(folder: Path) -> list[Path]:
    """Some of the files in a folder and in those in it, which may be deep or many."""

    def walk() -> Iterator[Path]:
        for place, inner, names in os.walk(folder):
            if len(Path(place).relative_to(folder).parts) == DEEPEST:
                inner.clear()
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            yield from (Path(place, name) for name in sorted(names))

    return list(islice(walk(), MOST_FILES))


def listed(folder: Path) -> list[NamedFile]:
    """What is in a folder; one that cannot be read, or is none, counts as an empty one."""
    with suppress(OSError):
        return [(path.name, path) for path in folder.iterdir()]
    return []


def is_student(path: Path, files: list[NamedFile], lessons: Iterable[str]) -> bool:
    """Whether this is a student's folder; one with a dot in front is, if it holds a set."""
    if not path.is_dir() or path.name in ids.NOT_A_STUDENT:
        return False
    return not path.name.startswith(".") or any(
        is_of(lesson, name) for lesson in lessons for name, _ in files
    )


def is_of(lesson: str, name: str, longer: Iterable[str] = ()) -> bool:
    """Whether a file is meant for this set, and not for one of those with a ``longer`` name.

    Upper and lower case are the same, as they are for Windows.
    """
    name, lesson = name.lower(), lesson.lower()
    others = tuple(other.lower() for other in longer)
    return name.startswith(lesson) and name.endswith(".ipynb") and not name.startswith(others)


def find_submissions(
    students: dict[str, list[NamedFile]],
    sets: dict[Path, list[str]],
    deadline: Deadline,
    shard: tuple[int, int] = (1, 1),
) -> list[Submission]:
    """The submissions of every student for every set that at least one student handed in.

    ``sets`` maps a set to the names of others that begin with its name: their files are not meant.
    ``shard`` is (k, n): only about one n-th of the students, chosen by a hash of their names.
    """
    submissions = []
    for source, longer in sets.items():
        files = {
            student: sorted(path for name, path in own if is_of(source.stem, name, longer))
            for student, own in students.items()
        }
        if not any(files.values()):
            continue
        released = nbformat.reads(exercise_sets.release(source), as_version=4)
        issued = Issued.of(released, notebooks.read(source))
        newest = {student: newest_of(own) for student, own in files.items()}
        written = {student: id_in(path) if path else "" for student, path in newest.items()}
        for student, own in students.items():
            if int(ids.hash_of(student), 16) % shard[1] != shard[0] - 1:
                continue
            path, notes = newest[student], []
            if len({content_of(other) for other in files[student]}) > 1:
                listed = ", ".join(other.name for other in files[student])
                notes.append(f"of {listed}, {path.name} is the newest: it was graded")
            drawn_for = written[student]
            others = [*written.values(), *students]
            if drawn_for == student or ids.problem(drawn_for) or others.count(drawn_for) > 1:
                drawn_for = ""
            else:
                notes.append(
                    f"the first cell says {ids.shown(drawn_for)}, and nobody else's does: graded "
                    f"with its numbers, and not with those of {ids.shown(student)}"
                )
            instead = () if path else other_files(own, sets)
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
            if instead:
                print(f"{ids.shown(student)}: {submission.nothing}")
            submissions.append(submission)
    return submissions


def newest_of(files: list[Path]) -> Path | None:
    """The last of several attempts; of equally old ones that with the highest number, as in (2)."""

    def order(path: Path) -> tuple:
        number = re.search(r"\d+(?=\)?\.ipynb$)", path.name)
        return path.lstat().st_mtime, int(number[0]) if number else 0, path.name

    return max(files, key=order, default=None)


def content_of(path: Path) -> bytes | str:
    """What tells two attempts apart."""
    try:
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST:
            return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        pass
    return path.name


def other_files(own: list[NamedFile], sets: dict[Path, list[str]]) -> tuple[str, ...]:
    """What a student handed in that is of no set."""
    return tuple(
        sorted(
            name
            for name, path in own
            if not path.is_dir()
            and not path.name.startswith(".")
            and path.name != "timestamp.txt"
            and not any(is_of(source.stem, name) for source in sets)
        )
    )


def id_in(path: Path) -> str:
    """The id in the first code cell of a notebook, or ""."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
            return ""
        cells = json.loads(path.read_bytes().decode("utf-8-sig"))["cells"]
        source = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        return ids.written_in(source)
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
