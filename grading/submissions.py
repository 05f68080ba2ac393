"""What students handed in: the files, and whose they are."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbgrader import utils

from grading import ids, spreadsheets
from grading.answers import LARGEST, NOTHING, Answers, Issued, digest
from grading.deadlines import Deadline
from tools import exercise_sets, notebooks

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


def students_in(
    folder: Path, lessons: Iterable[str], roster: Iterable[str] = ()
) -> dict[str, list[NamedFile]]:
    """The students' ids, in FOLDER/STUDENT, to their files; those of the ``roster`` may have none.

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
    names: dict[str, str] = {}  # of the students' folders
    for path in sorted(folder.iterdir()):
        files = files_in(path, lessons)
        if not is_student(path, files, lessons):
            if path.name not in ids.NOT_A_STUDENT:
                print(f"{path.name!a} is not a student's folder: it is left out")
            continue
        student = ids.printable(path.name)
        if student in names:
            print(f"{names[student]!a} and {path.name!a} are folders of one student")
        names.setdefault(student, path.name)
        students.setdefault(student, []).extend(files)
    return students


def files_in(student: Path, lessons: Iterable[str]) -> list[NamedFile]:
    """What is in a student's folder, and what of a set is in a folder in it with the set's name."""
    files = listed(student)
    if not student.is_symlink():
        for lesson in lessons:
            inner = listed(student / lesson)
            files += [(name, path) for name, path in inner if name.startswith(lesson)]
    return files


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
    """Whether a file is meant for this set, and not for one of those with a ``longer`` name."""
    return (
        name.startswith(lesson) and name.endswith(".ipynb") and not name.startswith(tuple(longer))
    )


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
            student: tuple(sorted(path for name, path in own if is_of(source.stem, name, longer)))
            for student, own in students.items()
        }
        if not any(files.values()):
            continue
        released = nbformat.reads(exercise_sets.release(source), as_version=4)
        issued = Issued.of(released, notebooks.read(source))
        submissions += [
            Submission(student, source, issued, files[student], *deadline.lateness(files[student]))
            for student in students
            if int(ids.hash_of(student), 16) % shard[1] == shard[0] - 1
        ]
    return submissions


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
