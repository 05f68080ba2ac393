"""Nothing that a student hands in and nothing that a person enters is lost, whatever happens.

These tests start no kernel, and most write no real pages, so that they are quick: each answer that
could be read counts as right.
"""

import csv
import os
import re
import signal
import subprocess
import tempfile
import unicodedata
from pathlib import Path

import pytest

from grading import answers
from helpers import exercises
from tests.grading.classroom import HAS_GRADER, LESSON, Class, grade, lines, points, reasons
from tools import notebooks

pytestmark = pytest.mark.skipif(not HAS_GRADER, reason="the grader needs nbgrader and Linux")
if HAS_GRADER:
    from grading import __main__ as grading
    from grading import by_hand, feedback, kernel, results

    PAGE = feedback.page
COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "zoë") for form in ("NFC", "NFD"))


def test_a_folder_or_a_row_of_the_roster_with_any_name_has_its_row(everyone) -> None:
    folders = ("grades.csv", "y" * 255, "new\nline")
    for name in folders:
        everyone.hand_in(name)
    roster = everyone.folder.parent / "roster.csv"
    roster.write_text("id\n..\na/b\n" + "z" * 100 + "\n")
    grade(everyone, f"--roster={roster}")
    found = points(everyone, "macs")
    handed_in = {name: mark for name, mark in found.items() if mark == 4}
    assert [*map(len, handed_in)].count(255) == 1
    assert len(handed_in) == len(folders)
    assert {name for name, mark in found.items() if mark == 0} == {"..", "a/b", "z" * 100}


def test_an_id_is_the_same_however_its_accents_are_stored(everyone, capsys) -> None:
    assert COMPOSED != DECOMPOSED
    copy = everyone.copy(DECOMPOSED)  # as typed
    everyone.write(DECOMPOSED, copy)
    everyone.write(unicodedata.normalize("NFD", "édouard"), everyone.copy("édouard"))
    (everyone.folder / COMPOSED).mkdir()  # as a second download made it
    roster = everyone.folder.parent / "roster.csv"
    roster.write_text(f"id\n{COMPOSED}\n", encoding="utf-8")
    grade(everyone, f"--roster={roster}")
    assert "are folders of one student" in capsys.readouterr().out
    assert reasons(everyone) == {COMPOSED: "", "édouard": ""}
    path = everyone.out / "manual.csv"
    path.write_text(f"{path.read_text()}{DECOMPOSED},{LESSON},say,2,\n", encoding="utf-8")
    grade(everyone)
    assert points(everyone) == {COMPOSED: 2.0, "édouard": 0.0}
    one, other = (exercises.draw(name, "90").random() for name in (COMPOSED, DECOMPOSED))
    assert one == other


def test_columns_that_a_person_added_stay(everyone) -> None:
    everyone.hand_in("ada", say="It is.")
    everyone.hand_in("grace", say="Because.")
    grade(everyone)
    path = everyone.out / "manual.csv"
    head, ada, grace = lines(path)
    own = ["my notes", "seen by", ""]
    rows = [
        [*head, *own[:2]],
        [*ada[:3], "1.5", "Nearly", *ada[5:], "=ask, Bob", "-0.5", "no title"],
        grace,
        ["", "", "", "", "", "", "to do: the rest"],
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    expected = [[*row, *[""] * (9 - len(row))] for row in rows]
    for _ in range(2):
        grade(everyone)
        assert lines(path) == expected
    old = [row[:5] + row[6:] for row in expected]  # the columns of earlier versions
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(old)
    grade(everyone)
    assert lines(path) == expected
    assert points(everyone) == {"ada": 1.5, "grace": 0.0}
    path.write_text(f"{path.read_text()}grace,{LESSON},macs,,\n")  # to be filled in later
    grade(everyone)
    assert lines(path)[-1][:5] == ["grace", LESSON, "macs", "", ""]


def enter(everyone: Class, student: str, mark: str) -> None:
    """Enter points into the row of a student that has none."""
    path = everyone.out / "manual.csv"
    old, new = f"{student},{LESSON},say,,", f"{student},{LESSON},say,{mark},"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.everything
def test_a_mark_counts_for_the_answer_that_it_was_given_for(everyone, monkeypatch, capsys) -> None:
    monkeypatch.setattr(feedback, "page", PAGE)
    outdated = "a mark of 1.5 by hand was given for another answer, and does not count"
    everyone.hand_in("ada", say="It is.")
    grade(everyone)
    enter(everyone, "ada", "1.5")
    grade(everyone)
    assert points(everyone) == {"ada": 1.5}
    capsys.readouterr()
    everyone.hand_in("ada", say="It is, because it is.")
    for _ in range(2):
        grade(everyone)
        assert points(everyone) == {"ada": 0.0}
        reason = reasons(everyone, "say")["ada"]
        assert reason == f"to be marked by hand, in manual.csv; {outdated}"
        assert f"manual.csv: ada, {LESSON}, say: {outdated}" in capsys.readouterr().out
        assert outdated in re.sub(r"\\|<[^>]*>", "", everyone.page("ada"))
        _, old, new = lines(everyone.out / "manual.csv")
        assert old[3] == "1.5"
        assert old[5].endswith(" (out of date)")
        assert new[:5] == ["ada", LESSON, "say", "", ""]
    enter(everyone, "ada", "2")
    for answer, mark in (("It is, because it is.", 2.0), ("It is.  \n", 1.5), ("No.", 0.0)):
        everyone.hand_in("ada", say=answer)
        grade(everyone)
        assert points(everyone) == {"ada": mark}
    assert [row[3] for row in lines(everyone.out / "manual.csv")[1:]] == ["1.5", "2", ""]


def test_a_mark_without_a_digest_is_for_the_answer_that_the_last_call_graded(everyone) -> None:
    everyone.hand_in("ada", say="It is.")
    everyone.hand_in("grace", say="Because.")
    (everyone.folder / "alan").mkdir(parents=True)
    grade(everyone)
    path = everyone.out / "manual.csv"
    rows = [[student, LESSON, "say", "1", ""] for student in ("ada", "grace", "alan")]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([by_hand.BY_HAND, *rows])
    everyone.hand_in("ada", say="It is, because it is.")  # after it was marked
    grade(everyone)
    assert points(everyone) == {"ada": 0.0, "alan": 1.0, "grace": 1.0}
    everyone.hand_in("alan", say="No.")  # the mark was for something else, such as a talk
    grade(everyone)
    assert points(everyone) == {"ada": 0.0, "alan": 0.0, "grace": 1.0}
    text = path.read_text()
    path.write_text(re.sub(r"sha256-\w+ \(out of date\)|nothing \(out of date\)", "", text))
    grade(everyone)  # emptied by the person who has now seen the new answers
    assert points(everyone) == {"ada": 1.0, "alan": 1.0, "grace": 1.0}
    assert len(lines(path)) == 4


def test_a_mark_for_code_is_also_for_the_cells_that_were_added(everyone) -> None:
    from nbformat.v4 import new_code_cell

    path = everyone.out / "manual.csv"
    for number, expected in ((1, 3.5), (1, 3.5), (2, 4.0)):
        copy = everyone.copy("ada", say="It is.")
        place = [cell.id for cell in copy.cells].index("macs-answer")
        copy.cells.insert(place, new_code_cell(f"factor = {number}"))
        everyone.write("ada", copy)
        grade(everyone)
        if not any(row[2] == "macs" for row in lines(path)):
            path.write_text(f"{path.read_text()}ada,{LESSON},macs,3.5,\n")
            grade(everyone)
        assert points(everyone, "macs") == {"ada": expected}  # without the mark, all of them


def test_marks_and_columns_survive_a_merge(everyone) -> None:
    everyone.hand_in("ada", say="It is.")
    everyone.hand_in("grace", say="Because.")
    parts = [everyone.out / f"part-{k}" for k in (1, 2)]
    for k, part in enumerate(parts, 1):
        grade(everyone, f"--shard={k}/2", f"--out={part}")
        path = part / "manual.csv"
        text = path.read_text().replace(",say,,,", f",say,{k},,").replace("\n", f",{k}\n")
        path.write_text(text.replace(f"answer,{k}", f"answer,notes {k}"))
    merge = ["--merge", *map(str, parts), f"--out={everyone.out}", f"--sets={everyone.sets}"]
    expected = None
    for _ in range(2):
        assert grading.main(merge) == 0
        head, *rows = lines(everyone.out / "manual.csv")
        assert expected in (None, rows)
        expected = rows
    marked = {row[0]: float(row[3]) for row in rows}
    assert points(everyone) == marked
    assert set(marked) == {"ada", "grace"}
    for row in rows:
        own = dict(zip(head[6:], row[6:], strict=True))
        assert own[f"notes {row[3]}"] == row[3]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "grading it failed: OSError: .* No space left"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"), "grading it failed: UnicodeEncodeErr"),
        (MemoryError(), "grading it took more than 16 GB of memory"),
        (signal.SIGKILL, "grading it was killed, as Linux does"),
        (signal.SIGXCPU, "grading it took too much CPU time"),
    ],
)
def test_what_stops_a_worker_is_said_and_the_others_go_on(
    error, reason, everyone, monkeypatch, capsys
) -> None:
    def fails(grader: results.Grader, submission: object, whole=results.Grader.grade) -> None:
        if submission.student == "ada" and isinstance(error, BaseException):
            raise error
        if submission.student == "ada":
            os.kill(os.getpid(), error)
        whole(grader, submission)

    everyone.hand_in("ada")
    everyone.hand_in("grace")
    monkeypatch.setattr(results.Grader, "grade", fails)
    grade(everyone)
    found = reasons(everyone)
    assert re.match(reason, found["ada"])
    assert "too large or too slow" not in found["ada"]
    assert found["grace"] == ""
    assert re.search(rf"ada .*{reason}", capsys.readouterr().out)
    monkeypatch.undo()


def test_a_full_disk_leaves_the_tables_as_they_were(everyone, monkeypatch, capsys) -> None:
    everyone.hand_in("ada", say="It is.")
    grade(everyone)
    enter(everyone, "ada", "1.5")
    before = {path: path.read_bytes() for path in everyone.out.glob("*.csv")}
    everyone.hand_in("grace")

    def full(path: Path, content: bytes) -> None:
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    words = [str(everyone.folder), f"--sets={everyone.sets}", f"--out={everyone.out}"]
    assert grading.main([*words, "--no-sandbox"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in everyone.out.glob("*.csv")} == before


def test_kernels_have_a_short_path_also_if_the_folder_for_them_has_a_long_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    for length, moved in ((76, False), (77, True), (200, True)):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            long = Path(folder, "x" * (length - len(folder) - 1))
            long.mkdir()
            monkeypatch.setattr(tempfile, "tempdir", str(long))
            with kernel.scratch_folder() as scratch:
                path = tempfile.mkdtemp(dir=scratch) + "/s-5"
                assert len(path) <= 107
                assert Path(scratch).parent == (Path("/tmp") if moved else long)
            said = "TMPDIR has more than 76 bytes, too many for a socket: /tmp is used instead\n"
            assert capsys.readouterr().out == (said if moved else "")


@pytest.mark.everything
def test_a_class_is_graded_with_a_long_path_for_temporary_files(tmp_path: Path) -> None:
    everyone = Class(tmp_path)
    everyone.hand_in("ada")
    long = tmp_path / ("x" * 137)
    long.mkdir()
    line = everyone.line("--no-sandbox", "--jobs=1")
    done = subprocess.run(line, env=os.environ | {"TMPDIR": str(long)}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert everyone.table("platform")[0][LESSON] == "10.0"


def test_a_notebook_of_another_release_gets_one_note_and_is_not_begun_by_its_id() -> None:
    name = "03_macs_and_flops"
    released = notebooks.read(notebooks.NOTEBOOKS / "exercises" / name / f"{name}.ipynb")
    solved = notebooks.read(notebooks.NOTEBOOKS / "solutions" / name / f"{name}.ipynb")
    issued = answers.Issued.of(released, solved)
    handed_in = notebooks.read(notebooks.NOTEBOOKS / "exercises" / name / f"{name}.ipynb")
    for cell in handed_in.cells:
        if "-check-" in cell.id:
            cell.source += "\n# as it was in another release"
        elif cell.source.endswith('student = ""'):
            cell.source = 'student = "ada"\n...'
    read = answers.Answers(notebooks.as_text(handed_in).encode(), issued, "ada")
    assert (read.written_id, read.begun) == ("ada", False)
    ((note,),) = read.notes.values()
    pattern = r"table-check-1 and \d+ more were altered, or come from another release: the course's"
    assert re.match(pattern, note)
