"""Downloads of Moodle and Canvas are graded as they are, and come back as what these import."""

import os
import unicodedata
import zipfile

import pytest

from grading import ids
from tests.grading.classroom import HAS_GRADER, LESSON, Class, grade, lines, points, reasons

pytestmark = pytest.mark.skipif(not HAS_GRADER, reason="the grader needs nbgrader and Linux")


@pytest.fixture
def graded(everyone: Class, capsys: pytest.CaptureFixture) -> Class:
    """Ada and Grace came by Moodle, and two by Canvas; two others' ids are not clear."""
    folder = everyone.folder
    for name, number, student in (
        ("Ada Lovelace", 11, "ada"),
        ("Grace Hopper", 12, "grace"),
        ("A Copy", 13, "ada"),  # says that it is Ada's
        ("No Id", 14, ""),
    ):
        place = f"{name}_{number}_assignsubmission_file_"
        below = "work/" if student == "grace" else ""
        everyone.write(place, everyone.copy(student or "x"), f"{below}{LESSON}.ipynb")
        if not student:
            path = folder / place / f"{LESSON}.ipynb"
            path.write_text(path.read_text().replace("student = 'x'", "student = ''"))
    notebooks = {student: everyone.copy(student) for student in ("edsger", "barbara")}
    everyone.write("", notebooks["edsger"], f"dijkstraedsger_21_901_{LESSON}.ipynb")
    everyone.write("", everyone.copy("edsger", say="No."), f"dijkstraedsger_21_900_{LESSON}.ipynb")
    everyone.write("", notebooks["barbara"], f"liskovbarbara_LATE_22_902_{LESSON}-1.ipynb")
    (folder / "perlisalan_23_903_answers.py").touch()
    (folder / "readme.txt").touch()
    (folder / "Link_15_assignsubmission_file_").mkdir()
    link = folder / "Link_15_assignsubmission_file_" / f"{LESSON}.ipynb"
    link.symlink_to(folder / "Ada Lovelace_11_assignsubmission_file_" / f"{LESSON}.ipynb")
    (folder / "Grace Hopper_12_assignsubmission_file_" / "timestamp.txt").write_text(
        "1970-01-01 00:00:00 UTC"  # the student's own
    )
    names = folder.parent / "names.csv"
    names.write_text("name,id\nNo Id,noether\n")
    for number in (900, 901):
        time = 1e9 + number - 901
        os.utime(folder / f"dijkstraedsger_21_{number}_{LESSON}.ipynb", (time, time))
    grade(everyone, f"--names={names}", "--timestamps", "--due=2001-09-08T00:00:00Z")
    output = capsys.readouterr().out
    for name in ("Ada Lovelace", "A Copy"):
        assert f"'{name}' has the id 'ada', as others have: graded as '{name} 1" in output
    assert "'Link' has no clear id: graded as 'Link 15'" in output
    assert "'readme.txt' is not a student's: it is left out" in output
    return everyone


def test_the_id_in_a_notebook_or_in_the_map_decides(graded: Class) -> None:
    students = {"grace", "edsger", "barbara", "Ada Lovelace 11", "A Copy 13", "noether"}
    assert points(graded, "macs") == dict.fromkeys(students, 4.0) | {
        "Link 15": 0.0,
        "perlisalan 23": 0.0,
    }
    found = reasons(graded)
    assert "symbolic link" in found["Link 15"]
    assert found["perlisalan 23"].endswith("the student's folder has 'answers.py'")
    assert "'x', but the folder is" not in found["grace"]
    assert "the folder is 'Ada Lovelace 11': graded with its numbers" in found["Ada Lovelace 11"]
    assert found["edsger"].endswith("late by 1 day 1 h 46 min 40 s")
    assert "; late by " in f"; {found['grace']}"
    grade(graded)
    assert reasons(graded)["barbara"] == "late, says Canvas: how late is not known"


def test_each_platform_gets_what_it_imports(graded: Class) -> None:
    head, *rows = lines(graded.out / f"moodle_{LESSON}.csv")
    assert head[:4] == ["Identifier", "Full name", "Grade", "Maximum Grade"]
    assert ["Participant 12", "Grace Hopper", "10.0", "12.0"] in [row[:4] for row in rows]
    assert {row[4] for row in rows} == {"-"}
    head, possible, *rows = lines(graded.out / f"canvas_{LESSON}.csv")
    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", LESSON]
    assert [possible[0], possible[5]] == ["    Points Possible", "12.0"]
    assert sorted(row[1] for row in rows) == ["21", "22", "23"]
    with zipfile.ZipFile(graded.out / "feedback.zip") as pages:
        names = set(pages.namelist())
    assert f"Grace Hopper_12_assignsubmission_file_/{LESSON}.html" in names
    assert f"dijkstraedsger_21_901_{LESSON}.html" in names  # the attempt that was graded
    assert f"liskovbarbara_LATE_22_902_{LESSON}-1.html" in names


HOSTILE = {  # the name on Moodle to the id in the notebook
    "A Table": "grades.csv",
    "Above": "..",
    "Hidden": ".git",
    "Slash": "2026/CS/101",
    "Pretender": ids.safe_name("2026/CS/101"),
    "Taker": "Plain 40",
    "Long": "x" * 300,
    "Escape": "a\x1b[31mb",
    "Plain": "",
}


def test_no_id_of_a_download_stops_the_run_or_costs_another_student(everyone, capsys) -> None:
    for number, (name, student) in enumerate(HOSTILE.items(), 32):
        copy = everyone.copy("x")
        copy.cells[1].source = f'student = "{student}"'
        everyone.write(f"{name}_{number}_assignsubmission_file_", copy)
    (everyone.folder / "Slash_35_assignsubmission_onlinetext_").mkdir()  # of the same person
    grade(everyone)
    kept = {"grades.csv", "..", ".git", "2026/CS/101", HOSTILE["Pretender"]}
    instead = {"Taker 37", "Long 38", "Escape 39", "Plain 40"}
    assert set(reasons(everyone)) == kept | instead
    assert set(points(everyone, "macs").values()) == {4.0}
    for student in kept:
        assert reasons(everyone)[student] == ""
    long = f"the first cell says '{'x' * 40}…', but the folder is 'Long 38'"
    assert reasons(everyone)["Long 38"].startswith(long)
    assert "but the folder is 'Escape 39': graded with" in reasons(everyone)["Escape 39"]
    output = capsys.readouterr().out
    assert "'Long' has an id of 300 characters, of at most 100: graded as 'Long 38'" in output
    assert "'Taker' has the id 'Plain 40', as others have: graded as 'Taker 37'" in output
    written = {path for path in everyone.out.parent.rglob("*") if path.is_file()}
    pages = [path for path in written if path.suffix == ".html"]
    assert {path.parent.parent for path in pages} == {everyone.out / "feedback"}
    assert len(pages) == len(HOSTILE)
    rows = lines(everyone.out / f"moodle_{LESSON}.csv")[1:]
    assert {row[1] for row in rows} == set(HOSTILE)


def test_the_map_of_names_knows_a_person_however_accents_are_stored(everyone) -> None:
    folder = unicodedata.normalize("NFD", "Zoë Müller_7_assignsubmission_file_")
    everyone.write(folder, everyone.copy("x"))
    decomposed = unicodedata.normalize("NFD", "zoë")
    names = everyone.folder.parent / "names.csv"
    names.write_text(f"name,id\nZoë Müller,{decomposed}\n", encoding="utf-8")
    grade(everyone, f"--names={names}")
    assert list(reasons(everyone)) == [unicodedata.normalize("NFC", decomposed)]
