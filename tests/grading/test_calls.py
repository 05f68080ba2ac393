"""Calls that are stopped, repeated, shared between machines, or wrong."""

import csv
import html
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import psutil
import pytest

from grading import by_hand, deadlines, sandbox
from grading.deadlines import Deadline
from tests.grading.classroom import CELLS, LESSON, MARKS, Class, call_here
from tools import notebooks

pytestmark = MARKS
LONGER = f"{LESSON}_two"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """Three students and two sets whose names begin alike, graded in one go."""
    small = Class(tmp_path_factory.mktemp("small"))
    small.add_set(LONGER)
    small.hand_in("ada")
    small.hand_in("grace", macs=CELLS["macs-wrong-1"])
    small.hand_in("edsger", why='why = "c"', fast="def fast(values):\n    return 0")
    small.write("ada", small.copy("ada"), f"{LONGER}.ipynb").write_bytes(b"")
    small.grade()
    return small


def copy_results(out: Path, target: Path) -> None:
    """Copy what was graded, so that a call with ``target`` has to run no answer again."""
    for folder in ("autograded", "feedback", "results"):
        shutil.copytree(out / folder, target / folder)


def written(out: Path) -> dict[str, str]:
    names = ("feedback.zip", ".secret")
    files = [path for path in out.iterdir() if path.is_file() and path.name not in names]
    return {path.name: path.read_text() for path in files}


def test_what_was_stopped_or_killed_goes_on_and_ends_alike(small: Class, tmp_path: Path) -> None:
    line = small.line("--jobs=1", out=tmp_path)
    with subprocess.Popen(line, cwd=notebooks.ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert "[  1/6] ada" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(120) == 130
    assert len(list(tmp_path.glob("results/*/*.json"))) == 1
    line = small.line("--jobs=2", out=tmp_path)
    with subprocess.Popen(line, cwd=notebooks.ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert "1 are graded already" in running.stdout.readline()
        while len(workers := psutil.Process(running.pid).children(recursive=True)) < 4:
            assert running.poll() is None
            time.sleep(0.05)
        running.kill()
    left = psutil.wait_procs(workers, timeout=60)[1]
    # In a container, ended processes may stay as zombies.
    assert [process for process in left if process.status() != psutil.STATUS_ZOMBIE] == []
    assert "1 are graded already" in small.grade(out=tmp_path)
    assert written(tmp_path) == written(small.out)


def test_shards_add_up(small: Class, tmp_path: Path) -> None:
    parts, out = [tmp_path / f"part-{k}" for k in (1, 2)], tmp_path / "all"
    students = []
    for k, part in enumerate(parts, 1):
        copy_results(small.out, part)
        output = small.grade_here(f"--shard={k}/2", out=part)
        assert "are graded already" in output  # in whatever folder the results are
        with (part / "platform.csv").open() as file:
            students.append({row["student"] for row in csv.DictReader(file)})
        for path in part.glob("*/*"):
            if path.name not in students[-1]:
                shutil.rmtree(path)
    assert students[0] | students[1] == {"ada", "edsger", "grace"}
    assert students[0] & students[1] == set()
    merge = ["--merge", *map(str, parts), f"--out={out}"]
    call_here(merge)
    assert written(out) == written(small.out)
    assert {path.name for path in (out / "feedback").iterdir()} == {"ada", "edsger", "grace"}
    by_hand = out / "manual.csv"
    by_hand.write_text(f"{by_hand.read_text()}grace,{LESSON},macs,2.5,half\nnobody,1,say,1,\n")
    assert "nobody, 1, say was not graded: no mark was given" in call_here(merge)
    assert re.search(r"grace,\w+,macs,2.5,4.0,\W?half", (out / "grades.csv").read_text())
    assert "Score: 8.5 / 12.0" in (out / "feedback" / "grace" / f"{LESSON}.html").read_text()


def test_sets_whose_names_begin_alike_are_told_apart(small: Class) -> None:
    reasons = {
        (row["student"], row["lesson"]): row["reason"]
        for row in small.table()
        if row["task"] == "why"
    }
    assert reasons["ada", LESSON] == ""
    assert reasons["ada", LONGER].startswith("the file is not a whole notebook (it is empty)")
    assert reasons["grace", LONGER] == "nothing was handed in"


def test_stock_nbgrader_agrees_on_honest_work(small: Class, tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    shutil.copytree(small.sets, tmp_path / "notebooks" / "solutions")
    shutil.copy(notebooks.ROOT / "nbgrader_config.py", tmp_path)
    for name in ("grace", "edsger"):
        shutil.copytree(small.folder / name, tmp_path / "submitted" / name / LESSON)
    programs = Path(sys.executable).parent
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    environment["PYTHONPATH"] = str(notebooks.ROOT)
    for words in (["generate_assignment", LESSON], ["autograde", LESSON, "--force"]):
        subprocess.run([programs / "nbgrader", *words], cwd=tmp_path, env=environment, check=True)
    ours = {row["student"]: float(row[LESSON]) for row in small.table("platform")}
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        stock = {name: book.find_submission(LESSON, name).score for name in ("grace", "edsger")}
    assert ours == {"ada": 10, **stock} == {"ada": 10, "grace": 7, "edsger": 4}


@pytest.fixture
def submission(tmp_path: Path) -> tuple:
    """Something that was handed in, and what grades it."""
    from grading import results, submissions

    everyone = Class(tmp_path)
    everyone.hand_in("ada")
    students = submissions.students_in(everyone.folder)
    (submission,) = submissions.find_submissions(students, {everyone.set: []}, Deadline())
    return submission, results.Grader(everyone.out, sandbox.Limits(), {}, tmp_path)


def test_a_file_that_is_replaced_while_it_is_graded_is_graded_again(
    submission: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grading import score

    submission, grader = submission

    def replaced_meanwhile(*arguments: object) -> tuple:
        submission.file.write_text("a better one")
        return score.no_points(submission, "a bad one", arguments[1])

    monkeypatch.setattr(score, "score", replaced_meanwhile)
    grader.grade(submission)
    assert not grader.is_up_to_date(submission)
    grader.grade(submission)
    assert grader.is_up_to_date(submission)


def test_a_grade_is_stale_when_anything_that_it_depends_on_changes(
    submission: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grading import results

    submission, grader = submission
    monkeypatch.setattr(notebooks, "ROOT", tmp_path / "course")
    notebooks.ROOT.mkdir()
    (notebooks.ROOT / "constraints.txt").write_text("torch==2.13.0\n")
    files = [notebooks.ROOT / folder / "file" for folder in results.COURSE[:-1]]
    files.append(notebooks.ROOT / results.COURSE[-1])
    uncached = results.course_fingerprint.__wrapped__
    monkeypatch.setattr(results, "course_fingerprint", uncached)

    def fingerprint() -> str:
        return results.fingerprint_of(submission, submission.read(), grader.limits)

    seen = [fingerprint()]
    assert fingerprint() == seen[0]
    for content, file in product("12", files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        seen.append(fingerprint())
    assert len(set(seen)) == len(seen)


MISUSE = [  # (search path, arguments, part of the message)
    ("", ["."], "apt-get install bubblewrap"),
    ("/usr/bin", ["."], "expected FOLDER/STUDENT/NN_name.ipynb"),
    ("/usr/bin", ["there-is-none"], "expected a folder of submissions"),
    ("/usr/bin", [""], "but got nothing"),
    ("/usr/bin", [".", "--shard=3/2"], "--shard: expected k/n, such as 1/4, but got 3/2"),
    ("/usr/bin", [".", "--lesson=1"], "a set or its number, such as 03, but"),
    ("/usr/bin", [".", "--roster=none.csv"], "none.csv cannot be read as CSV in UTF-8"),
    ("/usr/bin", [".", "--roster=empty.csv"], "an id in each row, but"),
    ("/usr/bin", [".", "--late-penalty=10"], "--late-penalty needs --due"),
    ("/usr/bin", [".", "--late-penalty=110", "--due=2026-12-01"], "expected 0 to 100, but got 110"),
    ("/usr/bin", [str(notebooks.ROOT)], "holds the course or a copy of it"),
    ("/usr/bin", [str(notebooks.NOTEBOOKS / "exercises")], "holds the course or a copy of it"),
    ("/usr/bin", ["copy"], "holds the course or a copy of it"),
    ("/usr/bin", [".", "--due=1.12.2026"], "or Europe/Berlin, but got '1.12.2026'"),
    ("/usr/bin", ["--merge", "there-is-none"], "or of a shard, but got there-is-none"),
    ("/usr/bin", ["--merge", "copy"], "no results of make grade are in copy"),
    ("old", ["."], "is too old to make a sandbox: version 0.5 or newer is needed"),
]


@pytest.mark.parametrize(("search", "words", "message"), MISUSE)
def test_what_is_missing_or_wrong_is_said(
    search: str,
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    from grading import __main__ as grading

    old = tmp_path / "old" / "bwrap"
    old.parent.mkdir()
    old.write_text('#!/bin/sh\necho "bubblewrap 0.4.0, --tmpfs DEST"')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin" if search == "old" else search)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copy").mkdir()
    (tmp_path / "empty.csv").write_text("id\n")
    (tmp_path / "copy" / ".course.json").write_text("{}")
    with pytest.raises(SystemExit, match="2"):
        sys.exit(grading.main(words))
    assert message in " ".join(capsys.readouterr().err.split())


def test_each_day_that_begins_after_the_deadline_costs_its_part(tmp_path: Path) -> None:
    (path := tmp_path / "any.ipynb").touch()
    due = datetime(2026, 12, 1, tzinfo=UTC)
    deadline = Deadline(due, percent=30)
    for hours, words, penalty in (
        (0, "", 0),
        (1 / 60, "late by 1 min, which counts as 1 day: 30% less", 0.3),
        (1, "late by 1 h, which counts as 1 day: 30% less", 0.3),
        (24, "late by 1 day, which counts as 1 day: 30% less", 0.3),
        (24 + 0.1 / 3600, "late by 1 day 1 s, which counts as 2 days: 60% less", 0.6),
        (25, "late by 1 day 1 h, which counts as 2 days: 60% less", 0.6),
        (60, "late by 2 days 12 h, which counts as 3 days: 90% less", 0.9),
        (500, "late by 20 days 20 h, which counts as 21 days: 100% less", 1),
    ):
        moment = due.timestamp() + 3600 * hours
        os.utime(path, (moment, moment))
        assert deadline.lateness(path) == (words, pytest.approx(penalty))


def test_a_penalty_is_in_the_tables_and_on_the_page(small: Class, tmp_path: Path) -> None:
    path = small.folder / "grace" / f"{LESSON}.ipynb"
    os.utime(path, (1e9, 1e9))
    others = [each for each in small.folder.rglob("*.ipynb") if each != path]
    for other in others:
        os.utime(other, (9e8, 9e8))
    due = ["--due=2001-09-08T23:59:59+00:00", "--late-penalty=25", f"--lesson={LESSON}"]
    copy_results(small.out, tmp_path)
    small.grade_here(*due, out=tmp_path)
    with (tmp_path / "grades.csv").open() as file:
        rows = {(row["student"], row["task"]): row for row in csv.DictReader(file)}
    assert [rows[name, "why"]["points"] for name in ("ada", "grace")] == ["3.0", "2.25"]
    late = "late by 1 h 46 min 41 s, which counts as 1 day: 25% less"
    assert rows["grace", "why"]["reason"] == late
    page = (tmp_path / "feedback" / "grace" / f"{LESSON}.html").read_text()
    assert late in html.unescape(page)


def test_a_roster_adds_who_handed_in_nothing_and_closed_pages_show_letters(
    small: Class, tmp_path: Path
) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name\nada,Ada\nalan,Alan\n")
    out = tmp_path / "out"
    copy_results(small.out, out)
    small.grade_here(f"--roster={roster}", f"--lesson={LESSON}", "--closed", out=out)
    with (out / "platform.csv").open() as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert sorted(rows) == ["ada", "alan", "edsger", "grace"]
    assert [rows["alan"][LESSON], rows["alan"][f"{LESSON} maximum"]] == ["0.0", "12.0"]
    page = html.unescape((out / "feedback" / "edsger" / f"{LESSON}.html").read_text())
    assert "expected 'b', but got 'c'" in page
    with zipfile.ZipFile(out / "feedback.zip") as pages:
        assert f"alan/{LESSON}.html" in pages.namelist()


def test_a_damaged_result_is_graded_again(submission: tuple) -> None:
    from grading import results

    submission, grader = submission
    path = grader.out / "results" / "ada" / f"{LESSON}.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"student": "ad')
    assert grader.result(submission) is None
    assert results.load_all(grader.out) == []
    assert not grader.is_up_to_date(submission)


DAY = "2026-12-01"
TIMES = {
    DAY: f"{DAY}T23:59:59+01:00",
    f"{DAY}T18:00": f"{DAY}T18:00:00+01:00",
    f"{DAY} 18:00:00 +0200": f"{DAY}T18:00:00+02:00",
    f"{DAY} 18:00:00.123456 America/New_York": f"{DAY}T18:00:00.123456-05:00",
    f"{DAY} EST": f"{DAY}T23:59:59-05:00",
}


def test_a_time_has_a_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    (file := tmp_path / "any.ipynb").touch()
    due = deadlines.parse_due("2026-11-30T18:00:00-05:00")
    try:
        for text, expected in TIMES.items():
            assert deadlines.parse_due(text).isoformat() == expected
        for text in (f"{DAY} 18:00 CEST", "tomorrow"):
            (tmp_path / "timestamp.txt").write_text(text)
            wrong = f"expected a day or a time, .* or Europe/Berlin, but got '{text}'"
            late, penalty = Deadline(due, 10, stamped=True).lateness(file)
            assert re.match(rf"late\? its time cannot be read: {wrong}", late)
            assert penalty == 0
            assert Deadline(due).lateness(file) == ("", 0)  # a student's own stamp
            with pytest.raises(ValueError, match=wrong):
                deadlines.parse_due(text)
    finally:
        monkeypatch.undo()
        time.tzset()


HEAD = "student,lesson,task,points,comment"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"student;lesson;task;points;comment\nada;90;say;2;", "save it as CSV"),
        (f'{HEAD}\n\nada,90,say,"1,5",'.encode(), "row 3: .* from 0 to 2, .* got '1,5'"),
        (f"{HEAD}\nada,90,say,25,".encode(), "csv, row 2: .* number from 0 to 2, .* got '25'"),
        (f"{HEAD}\nada,90,say,-3,".encode(), "row 2: .* from 0 to 2, .* got '-3'"),
        (f"{HEAD}\nada,90,say,nan,".encode(), "row 2: .* from 0 to 2, .* got 'nan'"),
        (f"{HEAD}\nZo\xeb,90,say,1,".encode("latin-1"), "not UTF-8"),
    ],
)
def test_a_wrong_mark_by_hand_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "manual.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        by_hand.read_marks(tmp_path, {("90", "say"): 2.0})


def test_a_text_that_a_spreadsheet_would_compute_comes_back_as_it_was(tmp_path: Path) -> None:
    names = ("=1+1", "'=1", "'quoted'", "@x", "ada")
    rows = [by_hand.Row(name, "90", "say", "1", name) for name in names]
    for _ in range(2):
        by_hand.write(tmp_path, [], rows)
        assert by_hand.read(tmp_path) == ([], rows)
    assert not re.search(r"^[=@]|,[=@]", (tmp_path / "manual.csv").read_text(), re.M)


def test_an_ordinary_users_sandbox_has_no_user_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one, more of Linux could be attacked. SECURITY.md says that root's sandbox allows them."""
    if "--disable-userns" not in sandbox.bubblewrap("--help"):
        pytest.skip("bubblewrap is older than 0.8")
    user = os.getuid() or 65534
    monkeypatch.setattr(os, "getuid", lambda: user)
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)  # this Python may be root's alone
    another = ["setpriv", f"--reuid={user}", "--clear-groups"] if os.geteuid() == 0 else []

    def status(*words: str) -> int:
        line = [*another, *sandbox.command(Path(folder), sandbox.Limits(), [*words])]
        return subprocess.run(line, env=sandbox.environment(), stderr=subprocess.DEVNULL).returncode

    with tempfile.TemporaryDirectory() as folder:
        shutil.chown(folder, user)
        if status("true"):
            pytest.skip("an ordinary user cannot make a sandbox here")
        assert status("unshare", "--user", "true") != 0
