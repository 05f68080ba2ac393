"""Downloads of Moodle and Canvas are graded as they are, and come back as what these import."""

import csv
import os
import zipfile
from pathlib import Path

import pytest

from tests.grading.classroom import LESSON, MARKS, Class

pytestmark = MARKS
WRONG = {"why": 'why = "a"'}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """Ada and Grace came by Moodle, and two by Canvas; two others' ids are not clear."""
    everyone = Class(tmp_path_factory.mktemp("platforms"))
    folder = everyone.folder
    for name, number, student in (
        ("Ada Lovelace", 11, "ada"),
        ("Grace Hopper", 12, "grace"),
        ("A Copy", 13, "ada"),  # says that it is Ada's
        ("No Id", 14, ""),
    ):
        place = f"{name}_{number}_assignsubmission_file_"
        everyone.write(place, everyone.copy(student or "x", **({} if student else WRONG)))
        if not student:
            path = folder / place / f"{LESSON}.ipynb"
            path.write_text(path.read_text().replace("student = 'x'", "student = ''"))
    notebooks = {student: everyone.copy(student) for student in ("edsger", "barbara")}
    everyone.write("", notebooks["edsger"], f"dijkstraedsger_21_901_{LESSON}.ipynb")
    everyone.write("", notebooks["barbara"], f"liskovbarbara_LATE_22_902_{LESSON}-1.ipynb")
    (folder / "Link_15_assignsubmission_file_").mkdir()
    link = folder / "Link_15_assignsubmission_file_" / f"{LESSON}.ipynb"
    link.symlink_to(folder / "Ada Lovelace_11_assignsubmission_file_" / f"{LESSON}.ipynb")
    (folder.parent / "names.csv").write_text("name,id\nNo Id,noether\n")
    os.utime(folder / f"dijkstraedsger_21_901_{LESSON}.ipynb", (1e9, 1e9))
    output = everyone.grade(f"--names={folder.parent / 'names.csv'}", "--due=2001-09-08T00:00:00Z")
    for name in ("Ada Lovelace", "A Copy"):
        assert f"'{name}' has the id 'ada', as others have: graded as '{name} 1" in output
    assert "'Link' has no clear id: graded as 'Link 15'" in output
    return everyone


def table(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_the_id_in_a_notebook_or_in_the_map_decides(graded: Class) -> None:
    sums = {row["student"]: row[LESSON] for row in graded.table("platform")}
    full = ("grace", "edsger", "barbara", "Ada Lovelace 11", "A Copy 13")
    assert sums == dict.fromkeys(full, "10.0") | {"noether": "7.0", "Link 15": "0.0"}
    reasons = {row["student"]: row["reason"] for row in graded.table()}
    assert "symbolic link" in reasons["Link 15"]
    assert reasons["edsger"].endswith("late by 1 day 1 h 46 min 40 s")


def test_each_platform_gets_what_it_imports(graded: Class) -> None:
    head, *rows = table(graded.out / f"moodle_{LESSON}.csv")
    assert head[:4] == ["Identifier", "Full name", "Grade", "Maximum Grade"]
    assert ["Participant 12", "Grace Hopper", "10.0", "12.0"] in [row[:4] for row in rows]
    head, possible, *rows = table(graded.out / f"canvas_{LESSON}.csv")
    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", LESSON]
    assert [possible[0], possible[5]] == ["    Points Possible", "12.0"]
    assert sorted(row[1] for row in rows) == ["21", "22"]
    with zipfile.ZipFile(graded.out / "feedback.zip") as pages:
        names = set(pages.namelist())
    assert f"Grace Hopper_12_assignsubmission_file_/{LESSON}.html" in names
    assert f"liskovbarbara_LATE_22_902_{LESSON}-1.html" in names
