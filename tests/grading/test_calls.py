"""Calls that are stopped, repeated, shared between machines, or wrong."""

import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import psutil
import pytest

from grading import sandbox, tables
from tests.grading.classroom import CELLS, LESSON, MARKS, Class, call
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


def written(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in out.iterdir() if path.is_file()}


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
    for k, part in enumerate(parts, 1):
        small.grade(f"--shard={k}/2", out=part)
    merge = [sys.executable, "-m", "grading", "--merge", *map(str, parts), "--out", str(out)]
    call(merge)
    assert written(out) == written(small.out)
    assert {path.name for path in (out / "feedback").iterdir()} == {"ada", "edsger", "grace"}
    by_hand = out / "manual.csv"
    by_hand.write_text(f"{by_hand.read_text()}grace,{LESSON},macs,2.5,half\nnobody,1,say,1,\n")
    assert "nobody, 1, say was not graded: no mark was given" in call(merge)
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
    (submission,) = submissions.find_submissions(everyone.folder, {everyone.set: []}, None, (1, 1))
    return submission, results.Grader(everyone.out, sandbox.Limits(), {}, tmp_path)


def test_a_file_that_is_replaced_while_it_is_graded_is_graded_again(
    submission: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grading import score

    submission, grader = submission

    def replaced_meanwhile(*arguments: object) -> tuple:
        submission.files[0].write_text("a better one")
        return score.no_points(submission, "a bad one")

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
    files = [notebooks.ROOT / folder / "file" for folder in results.COURSE[:-1]]
    files.append(notebooks.ROOT / results.COURSE[-1])

    def fingerprint() -> str:
        results.course_fingerprint.cache_clear()
        return results.fingerprint_of(submission, submission.read(), grader.limits)

    seen = [fingerprint()]
    assert fingerprint() == seen[0]
    for content, file in product("12", files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        seen.append(fingerprint())
    monkeypatch.setattr(results, "distributions", list)
    seen.append(fingerprint())
    assert len(set(seen)) == len(seen)


MISUSE = [  # (search path, arguments, part of the message)
    ("", ["."], "apt-get install bubblewrap"),
    ("/usr/bin", ["."], "expected FOLDER/STUDENT/NN_name.ipynb"),
    ("/usr/bin", ["there-is-none"], "expected a folder of submissions"),
    ("/usr/bin", [""], "but nothing came"),
    ("/usr/bin", [".", "--shard=3/2"], "--shard: expected k/n, such as 1/4, but 3/2 came"),
    ("/usr/bin", [".", "--lesson=1"], "a set or its number, such as 03, but"),
    ("/usr/bin", [".", "--due=1.12.2026"], "or Europe/Berlin, but '1.12.2026' came"),
    ("/usr/bin", ["--merge", "there-is-none"], "or of a shard, but there-is-none came"),
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
    with pytest.raises(SystemExit, match="2"):
        sys.exit(grading.main(words))
    assert message in " ".join(capsys.readouterr().err.split())


DAY = "2026-12-01"
MOMENTS = {
    DAY: f"{DAY}T23:59:59+01:00",
    f"{DAY}T18:00": f"{DAY}T18:00:00+01:00",
    f"{DAY} 18:00:00 +0200": f"{DAY}T18:00:00+02:00",
    f"{DAY} 18:00:00.123456 America/New_York": f"{DAY}T18:00:00.123456-05:00",
    f"{DAY} EST": f"{DAY}T23:59:59-05:00",
}


def test_a_moment_has_a_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from grading import submissions

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    files = (tmp_path / "any.ipynb",)
    files[0].touch()
    due = submissions.moment("2026-11-30T18:00:00-05:00")
    try:
        for text, expected in MOMENTS.items():
            assert submissions.moment(text).isoformat() == expected
        for text in (f"{DAY} 18:00 CEST", "tomorrow"):
            (tmp_path / "timestamp.txt").write_text(text)
            wrong = f"expected a day or a time, .* or Europe/Berlin, but '{text}' came"
            late = submissions.lateness(files, due)
            assert re.match(rf"late\? its time cannot be read: {wrong}", late)
            with pytest.raises(ValueError, match=wrong):
                submissions.moment(text)
    finally:
        monkeypatch.undo()
        time.tzset()


HEAD = "student,lesson,task,points,comment"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"student;lesson;task;points;comment\nada;90;say;2;", "save it as CSV"),
        (f'{HEAD}\n\nada,90,say,"1,5",'.encode(), "row 3: .* from 0 to 2, .* '1,5' came"),
        (f"{HEAD}\nada,90,say,25,".encode(), "csv, row 2: .* number from 0 to 2, .* '25' came"),
        (f"{HEAD}\nada,90,say,-3,".encode(), "row 2: .* from 0 to 2, .* '-3' came"),
        (f"{HEAD}\nada,90,say,nan,".encode(), "row 2: .* from 0 to 2, .* 'nan' came"),
        (f"{HEAD}\nZo\xeb,90,say,1,".encode("latin-1"), "not UTF-8"),
    ],
)
def test_a_wrong_mark_by_hand_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "manual.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        tables.read_marks(tmp_path, {("90", "say"): 2.0})


def test_a_text_that_a_spreadsheet_would_compute_comes_back_as_it_was(tmp_path: Path) -> None:
    rows = [[name, "90", "say", "1", name] for name in ("=1+1", "'=1", "'quoted'", "@x", "ada")]
    for _ in range(2):
        tables.write_csv(tmp_path / "manual.csv", tables.BY_HAND, rows)
        assert tables.read_by_hand(tmp_path) == rows
    assert not re.search(r"^[=@]|,[=@]", (tmp_path / "manual.csv").read_text(), re.M)
