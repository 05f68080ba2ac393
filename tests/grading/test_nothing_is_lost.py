"""Nothing that a student hands in and nothing that a person enters is lost, whatever happens.

These tests start no kernel, and most write no real pages, so that they are quick: each answer that
could be read counts as right.
"""

import csv
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pytest
from nbformat.v4 import new_code_cell

from grading import answers
from helpers import exercises
from tests.grading.classroom import HAS_GRADER, LESSON, Class, grade, lines, points, reasons
from tools import notebooks

pytestmark = pytest.mark.skipif(not HAS_GRADER, reason="the grader needs nbgrader and Linux")
if HAS_GRADER:
    from grading import __main__ as grading
    from grading import by_hand, feedback, kernel, results, score

    PAGE = feedback.page
COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "zoë") for form in ("NFC", "NFD"))


def test_a_folder_or_a_row_of_the_roster_with_any_name_has_its_row(everyone) -> None:
    folders = ("grades.csv", "y" * 255, "new\nline")
    for name in folders:
        everyone.hand_in(name)
    roster = everyone.folder.parent / "roster.csv"
    semicolons = "id;name\n..;A\na/b;B\n" + "z" * 100 + ";C\n"  # as some spreadsheets write
    roster.write_text(semicolons, encoding="utf-8-sig")
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
    parts = [everyone.out / f"part-{k}" for k in (1, 2, 3)]  # one of them has no student
    for k, part in enumerate(parts, 1):
        grade(everyone, f"--shard={k}/3", f"--out={part}")
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


def test_what_is_handed_in_under_another_name_is_taken_or_named(everyone, capsys) -> None:
    everyone.add_set("91_other")
    everyone.write("ada", everyone.copy("ada"), f"{LESSON.upper()}.ipynb")
    everyone.write("grace", everyone.copy("grace"), "Hopper.ipynb.txt")
    everyone.write("edsger", everyone.copy("edsger"), f"work/mine/{LESSON}.ipynb")
    (everyone.folder / "barbara").mkdir()
    everyone.write("barbara", everyone.copy("barbara"), ".hidden/other.ipynb")
    for student in ("john", "niklaus"):  # a folder of two students
        everyone.write("section", everyone.copy(student), f"{student}/{LESSON}.ipynb")
    everyone.write("__MACOSX", everyone.copy("ada"))
    everyone.write("ada", everyone.copy("ada"), "91_other.ipynb")
    grade(everyone)
    rows = [row for row in everyone.table() if row["lesson"] == LESSON and row["task"] == "macs"]
    found = {row["student"]: (float(row["points"]), row["reason"]) for row in rows}
    why = f"nothing was handed in as {LESSON}.ipynb; the student's folder has"
    section = f"'john/{LESSON}.ipynb, niklaus/{LESSON}.ipynb'"
    assert found == {
        "ada": (4.0, ""),
        "barbara": (0.0, "nothing was handed in"),
        "edsger": (4.0, ""),
        "grace": (0.0, f"{why} 'Hopper.ipynb.txt'"),
        "section": (0.0, f"{why} {section}"),
    }
    printed = capsys.readouterr().out
    assert printed.count("'grace' handed in 'Hopper.ipynb.txt': not graded\n") == 1  # of two sets
    assert f"'section' handed in {section}: not graded\n" in printed
    assert "Hopper" not in (everyone.out / "class.md").read_text()
    for student in ("ada", "edsger"):
        shutil.rmtree(everyone.folder / student)
    words = [str(everyone.folder), f"--sets={everyone.sets}", f"--out={everyone.out}"]
    assert grading.main([*words, "--no-sandbox"]) == 2
    error = capsys.readouterr().err
    assert f"but found __MACOSX/{LESSON}.ipynb, grace/Hopper.ipynb.txt, section/john/" in error


def test_of_several_files_the_newest_that_was_worked_on_is_graded(everyone) -> None:
    lesson = notebooks.read(notebooks.NOTEBOOKS / "02_cprofile.ipynb")
    again = f"{LESSON} (1).ipynb"
    below = everyone.copy("tries")
    below.cells.insert(0, new_code_cell("%pip list"))  # above the cell of the id
    for seconds, student, copy, name in (
        (1, "same", everyone.copy("same"), f"{LESSON}.ipynb"),
        (2, "same", everyone.copy("same"), again),
        (1, "tries", everyone.copy("tries", say="No."), f"{LESSON}.ipynb"),
        (2, "tries", below, again),
        (1, "typing", everyone.copy("typnig"), f"{LESSON}.ipynb"),
        (2, "typing", everyone.copy("typing"), again),
        (1, "fetches", everyone.copy("fetches"), f"{LESSON}.ipynb"),
        (2, "fetches", everyone.copy(""), again),
        (1, "all", everyone.copy("all"), f"exercises/{LESSON}/{LESSON}.ipynb"),
        (2, "all", lesson, f"{LESSON}.ipynb"),
        (1, "lesson", lesson, f"{LESSON}.ipynb"),
    ):
        path = everyone.write(student, copy, name)
        os.utime(path, (seconds, seconds))
    grade(everyone)
    found = reasons(everyone)
    assert found == {
        "same": "",
        "tries": f"of {again}, {LESSON}.ipynb, {again} was graded: the newest with an id",
        "typing": f"of {again}, {LESSON}.ipynb, {again} was graded: the newest with an id",
        "fetches": f"of {again}, {LESSON}.ipynb, {LESSON}.ipynb was graded: the newest with an id",
        "all": f"of {LESSON}.ipynb, exercises/{LESSON}/{LESSON}.ipynb, "
        f"exercises/{LESSON}/{LESSON}.ipynb was graded: the newest with an id",
        "lesson": "none of the exercises' cells is there: it may be the lesson, of the same name",
    }


def test_numbers_are_those_of_the_id_in_the_first_cell_if_nobody_else_has_it(everyone) -> None:
    everyone.write("Ada Lovelace", everyone.copy("ada"))
    everyone.write("Grace Hopper", everyone.copy("grace"))
    everyone.write("A Friend", everyone.copy("grace"))
    everyone.write("edsger", everyone.copy("alan"))  # who is in the class, but handed in nothing
    roster = everyone.folder.parent / "roster.csv"
    roster.write_text("id\nalan\n")
    grade(everyone, f"--roster={roster}")
    found = reasons(everyone)
    assert found["Ada Lovelace"].startswith("the first cell says 'ada', and nobody else's does:")
    for name in ("Grace Hopper", "A Friend", "edsger"):
        assert f"but the folder is {name!r}: graded with its numbers" in found[name]
    graded = everyone.out / "autograded"
    for name, student in {"Ada Lovelace": "ada", "A Friend": "A Friend"}.items():
        cells = notebooks.read(graded / name / LESSON / f"{LESSON}.ipynb").cells
        assert f"student = {student!r}" in [cell.source for cell in cells]
    names = everyone.folder.parent / "names.csv"
    names.write_text("folder,id\nAda Lovelace,ada\n")
    grade(everyone, f"--names={names}", f"--out={everyone.out / 'named'}")
    rows = lines(everyone.out / "named" / "grades.csv")
    assert {row[0] for row in rows[1:]} == {"ada", "Grace Hopper", "A Friend", "edsger"}


def test_one_student_is_graded_again_and_what_changed_is_listed(
    everyone, monkeypatch, capsys
) -> None:
    for student in ("ada", "grace"):
        everyone.hand_in(student, say="It is.")
    grade(everyone)
    assert lines(everyone.out / "changes.csv")[1:] == []
    times = {path: path.stat().st_mtime_ns for path in everyone.out.glob("results/*/*")}
    grade(everyone, "--student=ada")
    again = {path.parent.name for path in times if path.stat().st_mtime_ns != times[path]}
    assert again == {"ada"}
    assert len(points(everyone)) == 2  # the tables have everybody
    enter(everyone, "grace", "1.5")
    capsys.readouterr()
    grade(everyone)
    printed = capsys.readouterr().out
    assert f"grace, {LESSON}, say: 0 → 1.5 points" in printed
    assert re.search(r"grace +90_small +11\.5 of 12", printed)  # the mark by hand counts
    assert [row[:5] for row in lines(everyone.out / "changes.csv")[1:]] == [
        ["grace", LESSON, "say", "0.0", "1.5"]
    ]
    words = [str(everyone.folder), f"--sets={everyone.sets}", f"--out={everyone.out}"]
    assert grading.main([*words, "--no-sandbox", "--student=alan"]) == 2
    assert "--student must be one who handed in, but got alan" in capsys.readouterr().err


def test_two_marks_for_one_answer_are_said(everyone, capsys) -> None:
    everyone.hand_in("ada", say="It is.")
    parts = [everyone.out / "one", everyone.out / "other"]
    for part, mark in zip(parts, ("1", "2"), strict=True):
        grade(everyone, f"--out={part}")
        path = part / "manual.csv"
        path.write_text(path.read_text().replace(",say,,", f",say,{mark},"))
    capsys.readouterr()
    merge = ["--merge", *map(str, parts), f"--out={everyone.out}", f"--sets={everyone.sets}"]
    assert grading.main(merge) == 0
    assert f"ada, {LESSON}, say: the same answer has 1 and 2: 1 counts" in capsys.readouterr().out
    assert points(everyone) == {"ada": 1.0}


def test_only_the_courses_packages_make_a_grade_stale(monkeypatch) -> None:
    def fingerprint(**versions: str) -> bytes:
        packages = [SimpleNamespace(name=name, version=text) for name, text in versions.items()]
        monkeypatch.setattr(results, "distributions", lambda: packages)
        return results.course_fingerprint.__wrapped__()

    assert fingerprint(torch="1") == fingerprint(torch="1", cowsay="6")
    assert fingerprint(torch="1") != fingerprint(torch="2")


def test_a_folder_that_cannot_be_written_to_is_said_at_once(everyone, monkeypatch, capsys) -> None:
    def refuse(**_: object) -> None:
        raise OSError(30, "Read-only file system")

    everyone.hand_in("ada")
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    words = [str(everyone.folder), f"--sets={everyone.sets}", f"--out={everyone.out}"]
    assert grading.main([*words, "--no-sandbox"]) == 2
    came = capsys.readouterr()
    assert came.err == (
        f"--out: {everyone.out} cannot be written to (Read-only file system): name another folder\n"
    )
    assert came.out == ""


def is_held(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_who_measures_is_next(tmp_path: Path) -> None:
    """Others who come later wait, although they could run beside the one who is there."""
    order, inside, leave = [], threading.Event(), threading.Event()

    def first() -> None:
        with score.Turns(tmp_path).take(alone=False):
            inside.set()
            leave.wait(20)

    def later(name: str, alone: bool) -> None:
        with score.Turns(tmp_path).take(alone):
            order.append(name)

    threads = [threading.Thread(target=first)]
    threads[0].start()
    inside.wait(20)
    for name, alone in (("measures", True), ("second", False), ("third", False)):
        threads.append(threading.Thread(target=later, args=(name, alone)))
        threads[-1].start()
        while not is_held(tmp_path / "door"):
            time.sleep(0.01)
    assert order == []
    leave.set()
    for thread in threads:
        thread.join(20)
    assert order[0] == "measures"
    assert sorted(order[1:]) == ["second", "third"]


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
    error = capsys.readouterr().err
    assert error == "stopped: [Errno 28] No space left on device; the next call goes on from here\n"
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


def test_ctrl_c_during_the_imports_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join([str(tmp_path), str(notebooks.ROOT)])
    line = [sys.executable, "-m", "grading", "."]
    done = subprocess.run(line, env={"PYTHONPATH": path}, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


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
