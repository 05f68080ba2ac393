"""Moodle's and Canvas's downloads of what students handed in, and the files that these import.

Moodle gives a folder for each student, ``Ada Lovelace_123_assignsubmission_file_``, and Canvas one
flat folder of files, ``lovelaceada_123_456_03_macs_and_flops.ipynb``. Neither has the ids that the
tasks are drawn from, so the id in a notebook's first cell decides. nbgrader's ``zip_collect`` would
take the id from the file's name and the time of its own copy, and follow links to others' work.
"""

import io
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from grading import ids, spreadsheets, tables
from grading.submissions import NamedFile, files_in, id_in, is_of, newest_of, say_left_out
from tools import notebooks

MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_\w+")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<number>\d+)_\d+_(?P<file>.+)")


@dataclass
class Person:
    """Somebody who handed in on a platform."""

    platform: str
    name: str
    number: str  # the platform's own
    place: str  # the name of the folder, or of the file
    files: list[NamedFile] = field(default_factory=list)


def people_in(folder: Path) -> list[Person]:
    """Who handed in what, in an unpacked download; nobody if this is none."""
    people: dict[tuple[str, str, str], Person] = {}
    others = []
    for path in sorted(folder.resolve().iterdir()):
        if path.is_dir() and (found := MOODLE.fullmatch(path.name)):
            # A person who also wrote a text on Moodle has two folders.
            key = "moodle", found["name"], found["number"]
            files = files_in(path)
        elif not path.is_dir() and (found := CANVAS.fullmatch(path.name)):
            key = "canvas", found["name"], found["number"]
            files = [(found["file"], path)]
        else:
            others.append(path)
            continue
        people.setdefault(key, Person(*key, path.name)).files.extend(files)
    if not any(name.endswith(".ipynb") for person in people.values() for name, _ in person.files):
        return []
    for path in others:
        say_left_out(path)
    return list(people.values())


def by_id(people: list[Person], names: dict[str, str]) -> dict[str, Person]:
    """The people by their ids.

    ``names`` maps the name on the platform to the id, and wins over what a notebook says. Prints a
    sentence for each person whose id is not clear: this person is graded as the name and the number
    on the platform.
    """
    claimed = [names.get(ids.normal(person.name)) or claimed_id(person) for person in people]
    own = [ids.printable(f"{person.name} {person.number}") for person in people]
    found = {}
    for person, student, instead in zip(people, claimed, own, strict=True):
        why = ids.problem(student)
        if not why and (claimed.count(student) > 1 or student in own):
            why = f"the id {student!a}, as others have"
        if why:
            student = instead
            print(f"{person.name!a} has {why}: graded as {student!a}; put the id into --names")
        found[student] = person
    return found


def claimed_id(person: Person) -> str:
    """The id in all notebooks of a person that have one, or ""."""
    written = {found for _, path in person.files if (found := id_in(path))}
    return written.pop() if len(written) == 1 else ""


def read_names(path: Path) -> dict[str, str]:
    """The first two columns of a CSV file below its head: the platform's name, and the id."""
    rows = spreadsheets.read("--names", path)
    if wrong := [row for row in rows if len(row) < 2]:
        raise ValueError(
            f"--names: {path} must have the name on the platform and the id in each row, "
            f"but got {','.join(wrong[0])}"
        )
    names = {ids.normal(row[0]): ids.normal(row[1]) for row in rows[1:]}
    for name, student in names.items():
        if student and (why := ids.problem(student)):
            raise ValueError(f"--names: {path} gives {name!a} {why}")
    return names


def write(out: Path, graded: list[dict], people: dict[str, Person]) -> None:
    """Write what a platform imports: points for each set, and the pages as one zip."""
    for lesson in sorted({result["lesson"] for result in graded}):
        results = [result for result in graded if result["lesson"] == lesson]
        for platform, write_points in (("moodle", for_moodle), ("canvas", for_canvas)):
            rows = [
                (people[result["student"]], result)
                for result in results
                if result["student"] in people and people[result["student"]].platform == platform
            ]
            if rows:
                write_points(out / f"{platform}_{lesson}.csv", lesson, rows)
    by_folder = {ids.safe_name(student): person for student, person in people.items()}
    pages = io.BytesIO()
    with zipfile.ZipFile(pages, "w", zipfile.ZIP_DEFLATED) as archive:
        for page in sorted((out / "feedback").glob("*/*.html")):
            archive.write(page, name_of(page, by_folder.get(page.parent.name)))
    notebooks.write(out / "feedback.zip", pages.getvalue())


def for_moodle(path: Path, lesson: str, rows: list[tuple[Person, dict]]) -> None:
    """The grading worksheet of an assignment."""
    most = max(tables.points(result)[1] for _, result in rows)
    head = ["Identifier", "Full name", "Grade", "Maximum Grade"]
    head += ["Last modified (grade)", "Feedback comments"]
    lines = []
    for person, result in rows:
        about = f"Participant {person.number}", person.name
        lines.append([*about, tables.points(result)[0], most, "-", result["late"]])
    spreadsheets.write(path, head, lines)


def for_canvas(path: Path, lesson: str, rows: list[tuple[Person, dict]]) -> None:
    """A column of the gradebook."""
    most = max(tables.points(result)[1] for _, result in rows)
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", lesson]
    lines = [["    Points Possible", "", "", "", "", most]]
    for person, result in rows:
        lines.append(
            [person.name, person.number, "", result["student"], "", tables.points(result)[0]]
        )
    spreadsheets.write(path, head, lines)


def name_of(page: Path, person: Person | None) -> str:
    """Where a platform looks for a page: beside or instead of the file that was handed in."""
    if person is None:
        return f"{page.parent.name}/{page.name}"
    if person.platform == "moodle":
        return f"{person.place}/{page.name}"
    files = [file for file in person.files if is_of(page.stem, file[0])]
    _, graded = newest_of(files, page.stem)
    return f"{graded.stem}.html" if graded else f"{person.name}_{person.number}_{page.name}"
