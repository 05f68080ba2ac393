"""Downloads of Moodle and Canvas: into the grader's layout, and back into what they import.

Moodle gives a folder for each student, ``Ada Lovelace_123_assignsubmission_file_``, and Canvas one
flat folder of files, ``lovelaceada_123_456_03_macs_and_flops.ipynb``. Neither has the ids that the
tasks are drawn from, so the id in a notebook's first cell decides.
"""

import csv
import json
import re
import shutil
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from grading import answers, ids, tables

MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_\w+")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<number>\d+)_\d+_(?P<file>.+\.ipynb)")
ABOUT = "platform.json"  # beside the folders of the students


@dataclass
class HandedIn:
    """What one person handed in on a platform."""

    platform: str
    name: str
    number: str  # the platform's own
    files: dict[str, Path] = field(default_factory=dict)  # name in the course to the file


def recognised(folder: Path) -> list[HandedIn]:
    """What is in a platform's download; nothing if this is none."""
    people: dict[tuple, HandedIn] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir() and (found := MOODLE.fullmatch(path.name)):
            # A person who also wrote a text on Moodle has two folders.
            key = "moodle", found["name"], found["number"]
            files = {each.name: each for each in sorted(path.glob("*.ipynb"))}
            people.setdefault(key, HandedIn(*key)).files.update(files)
        elif found := CANVAS.fullmatch(path.name):
            key = "canvas", found["name"], found["number"]
            people.setdefault(key, HandedIn(*key)).files[found["file"]] = path
    return list(people.values())


def unpack(folder: Path, into: Path, names: dict[str, str]) -> list[str]:
    """Copy a download to ``into``, and return the ids of the students.

    Each student has a folder with the safe name of the id. ``names`` maps the name on the platform
    to the id, and wins over what a notebook says. Prints a sentence for each person whose id is not
    clear: this person is graded as the name and the number on the platform.
    """
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    people = recognised(folder)
    claimed = [names.get(ids.normal(person.name)) or claimed_id(person) for person in people]
    own = [ids.printable(f"{person.name} {person.number}") for person in people]
    about: dict[str, dict] = {}
    for person, student, instead in zip(people, claimed, own, strict=True):
        why = ids.problem(student)
        if not why and (claimed.count(student) > 1 or student in own):
            why = f"the id {student!a}, as others have"
        if why:
            student = instead
            print(f"{person.name!a} has {why}: graded as {student!a}; put the id into --names")
        place = into / ids.safe_name(student)
        place.mkdir(exist_ok=True)
        for name, path in person.files.items():
            if path.is_file() or path.is_symlink():
                shutil.copy2(path, place / name, follow_symlinks=False)
        about[student] = asdict(person) | {"files": {n: p.name for n, p in person.files.items()}}
        about[student]["folder"] = next((p.parent.name for p in person.files.values()), "")
    (into / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
    return list(about)


def claimed_id(person: HandedIn) -> str:
    """The id in all notebooks of a person that have one, or ""."""
    written = {found for path in person.files.values() if (found := id_in(path))}
    return written.pop() if len(written) == 1 else ""


def id_in(path: Path) -> str:
    """The id in the first code cell of a notebook, or ""."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > answers.LARGEST:
            return ""
        cells = json.loads(path.read_bytes().decode("utf-8-sig"))["cells"]
        source = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        return ids.written_in(source)
    except Exception:  # of any kind, because the file is a student's; the grader says what is wrong
        return ""


def read_names(path: Path) -> dict[str, str]:
    """The first two columns of a CSV file below its head: the platform's name, and the id."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"--names: {path} cannot be read as CSV in UTF-8: {error}") from None
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


def write(out: Path, graded: list[dict], about: dict[str, dict]) -> None:
    """Write what a platform imports: points for each set, and the pages as one zip."""
    for lesson in sorted({result["lesson"] for result in graded}):
        rows = {r["student"]: r for r in graded if r["lesson"] == lesson and r["student"] in about}
        sums = {student: points(result) for student, result in rows.items()}
        most = max((of for _, of in sums.values()), default=0)
        moodle = [student for student in rows if about[student]["platform"] == "moodle"]
        if moodle:
            head = ["Identifier", "Full name", "Grade", "Maximum Grade"]
            head += ["Last modified (grade)", "Feedback comments"]
            lines = []
            for student in moodle:
                person = f"Participant {about[student]['number']}", about[student]["name"]
                lines.append([*person, sums[student][0], most, "-", rows[student]["late"]])
            tables.write_csv(out / f"moodle_{lesson}.csv", head, lines)
        canvas = [student for student in rows if about[student]["platform"] == "canvas"]
        if canvas:
            head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", lesson]
            lines = [["    Points Possible", "", "", "", "", most]]
            for student in canvas:
                person = about[student]["name"], about[student]["number"]
                lines.append([*person, "", student, "", sums[student][0]])
            tables.write_csv(out / f"canvas_{lesson}.csv", head, lines)
    pages = sorted((out / "feedback").glob("*/*.html"))
    by_folder = {ids.safe_name(student): person for student, person in about.items()}
    with zipfile.ZipFile(out / "feedback.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for page in pages:
            archive.write(page, name_of(page, by_folder.get(page.parent.name)))


def points(result: dict) -> tuple[float, float]:
    """The points of a result after marks by hand and what is taken off, and the most."""
    rows = list(tables.grade_rows([result]))
    return round(sum(row[3] for row in rows), 2), sum(row[4] for row in rows)


def name_of(page: Path, about: dict | None) -> str:
    """Where a platform looks for a page: beside or instead of the file that was handed in."""
    if not about:
        return f"{page.parent.name}/{page.name}"
    if about["platform"] == "moodle":
        return f"{about['folder']}/{page.name}"
    for plain, name in about["files"].items():
        if plain.startswith(page.stem):
            return f"{Path(name).stem}.html"
    return f"{about['name']}_{about['number']}_{page.name}"
