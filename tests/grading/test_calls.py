"""Calls that are stopped, repeated, shared between machines, or wrong."""

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from grading import sandbox, tables
from tests.grading.classroom import CELLS, LESSON, MARKS, Class, call, write_set
from tests.tools import test_nsight
from tools import notebooks

pytestmark = MARKS


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """Three students, graded in one go."""
    small = Class(tmp_path_factory.mktemp("small"))
    small.hand_in("ada")
    small.hand_in("grace", macs=CELLS["macs-wrong-1"])
    small.hand_in("edsger", why='why = "c"', fast="def fast(values):\n    return 0")
    small.grade()
    return small


def written(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in out.iterdir() if path.is_file()}


def test_what_was_stopped_or_killed_goes_on_and_ends_alike(small: Class, tmp_path: Path) -> None:
    line = small.line("--jobs=1", out=tmp_path)
    with subprocess.Popen(line, cwd=notebooks.ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert "[  1/3] ada" in running.stdout.readline()
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


slurm = test_nsight.slurm  # a real one


@pytest.fixture
def parts(request: pytest.FixtureRequest, small: Class, tmp_path: Path) -> list[Path]:
    """The results of two shards: of a job array where there is a Slurm, else of two calls."""
    parts = [tmp_path / f"part-{k}" for k in (1, 2)]
    try:
        _, environment = request.getfixturevalue("slurm")
    except pytest.skip.Exception:
        for k, part in enumerate(parts, 1):
            small.grade(f"--shard={k}/2", out=part)
        return parts
    script = notebooks.ROOT / "assets" / "jobs" / "slurm" / "grade.sbatch"
    words = ["sbatch", "--array=1-2", "--cpus-per-task=2", "--chdir", notebooks.ROOT]
    words += [f"--output={tmp_path}/log-%a", script, *small.line()[3:5]]
    environment |= {"OUT": str(tmp_path / "part"), "PYTHONPATH": str(notebooks.ROOT)}
    environment |= {"VENV": str(Path(sys.executable).parent.parent)}
    subprocess.run(words, env=environment, check=True)
    while subprocess.check_output(["squeue", "--noheader"], env=environment):
        time.sleep(0.5)  # sbatch's own --wait asks less and less often
    logs = "\n".join(path.read_text() for path in sorted(tmp_path.glob("log-*")))
    assert all((part / "grades.csv").exists() for part in parts), logs
    return parts


def test_shards_add_up(small: Class, parts: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "all"
    merge = [sys.executable, "-m", "grading", "--merge", *map(str, parts), "--out", str(out)]
    call(merge)
    assert written(out) == written(small.out)
    assert {path.name for path in (out / "feedback").iterdir()} == {"ada", "edsger", "grace"}
    by_hand = out / "manual.csv"
    by_hand.write_text(f"{by_hand.read_text()}grace,{LESSON},macs,2.5,half\nnobody,1,say,1,\n")
    assert "nobody, 1, say was not graded: no mark was given" in call(merge)
    assert re.search(r"grace,\w+,macs,2.5,4.0,\W?half", (out / "grades.csv").read_text())
    assert "Score: 8.5 / 12.0" in (out / "feedback" / "grace" / f"{LESSON}.html").read_text()


def test_stock_nbgrader_agrees_on_honest_work(small: Class, tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    source = tmp_path / "notebooks" / "solutions" / LESSON
    shutil.copytree(small.set.parent, source)
    shutil.copy(notebooks.ROOT / "nbgrader_config.py", tmp_path)
    for name in ("grace", "edsger"):
        shutil.copytree(small.folder / name, tmp_path / "submitted" / name / LESSON)
    for words in (["generate_assignment", LESSON], ["autograde", LESSON, "--force"]):
        nbgrader = str(Path(sys.executable).with_name("nbgrader"))
        search = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
        environment = {**search, "PYTHONPATH": str(notebooks.ROOT), "LANG": "C.UTF-8"}
        subprocess.run([nbgrader, *words], cwd=tmp_path, env=environment, check=True)
    ours = {row["student"]: float(row[LESSON]) for row in small.table("platform")}
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        stock = {name: book.find_submission(LESSON, name).score for name in ("grace", "edsger")}
    assert ours == {"ada": 10, **stock} == {"ada": 10, "grace": 7, "edsger": 4}


def test_sets_whose_names_begin_alike_are_told_apart(tmp_path: Path) -> None:
    everyone = Class(tmp_path)
    longer = f"{LESSON}_two"
    write_set(everyone.sets, longer)
    for name in (LESSON, longer):
        everyone.write("ada", everyone.copy("ada"), f"{name}.ipynb").write_bytes(b"")
    everyone.grade()
    reasons = {(row["lesson"], row["reason"].partition(" (")[0]) for row in everyone.table()}
    assert reasons == {(name, "the file is not a whole notebook") for name in (LESSON, longer)}


@pytest.fixture
def submission(tmp_path: Path) -> tuple:
    """Something that was handed in, and what grades it."""
    from grading import submissions, workers

    everyone = Class(tmp_path)
    everyone.hand_in("ada")
    (submission,) = submissions.find_submissions(everyone.folder, {everyone.set: []}, None, (1, 1))
    return submission, workers.Grader(everyone.out, sandbox.Limits(), {}, tmp_path)


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
    course = tmp_path / "course"
    files = [f"{folder}/file" for folder in results.COURSE[:-1]]
    for name in files:
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        (course / name).write_text("1")
    (course / "nbgrader_config.py").touch()
    monkeypatch.setattr(notebooks, "ROOT", course)

    def fingerprint() -> str:
        results.course_fingerprint.cache_clear()
        return results.fingerprint(submission, submission.read(), grader.limits)

    seen = [fingerprint()]
    assert fingerprint() == seen[0]
    for name in files:
        (course / name).write_text("2")
        seen.append(fingerprint())
    monkeypatch.setattr(results, "distributions", lambda: [])
    seen.append(fingerprint())
    results.course_fingerprint.cache_clear()
    assert len(set(seen)) == len(files) + 2 == 7


MISUSE = [  # (search path, arguments, part of the message)
    ("", ["."], "apt-get install bubblewrap"),
    ("/usr/bin", ["."], "expected FOLDER/STUDENT/NN_name.ipynb"),
    ("/usr/bin", ["there-is-none"], "expected a folder of submissions"),
    ("/usr/bin", [""], "but nothing came"),
    ("/usr/bin", [".", "--shard=3/2"], "--shard: expected k/n, such as 1/4, but 3/2 came"),
    ("/usr/bin", [".", "--lesson=1"], "a set or its number, such as 03, but"),
    ("/usr/bin", [".", "--due=1.12.2026"], "or Europe/Berlin, but '1.12.2026' came"),
    ("/usr/bin", ["--merge", "there-is-none"], "or of a shard, but there-is-none came"),
    ("old", ["."], "The installed bubblewrap 0.4.0 is too old to make a sandbox: version 0.5"),
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
    old.write_text(
        '#!/bin/sh\n[ "$1" = --help ] && echo "--tmpfs DEST" && exit\n'
        '[ "$1" = --version ] && echo "bubblewrap 0.4.0" && exit\n'
        'echo "bwrap: Unknown option --perms" >&2; exit 1\n'
    )
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin" if search == "old" else search)
    monkeypatch.chdir(tmp_path)
    sandbox.bubblewrap.cache_clear()
    try:
        status = grading.main([*words, f"--out={tmp_path / 'out'}"])
    except SystemExit as ended:
        status = ended.code
    finally:
        sandbox.bubblewrap.cache_clear()
    assert status == 2
    assert message in " ".join(capsys.readouterr().err.split())


DAY = "2026-12-01"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DAY, f"{DAY}T23:59:59+01:00"),
        (f"{DAY}T18:00", f"{DAY}T18:00:00+01:00"),
        (f"{DAY} 18:00:00 +0200", f"{DAY}T18:00:00+02:00"),
        (f"{DAY} 18:00:00.123456 America/New_York", f"{DAY}T18:00:00.123456-05:00"),
        (f"{DAY} EST", f"{DAY}T23:59:59-05:00"),
        (f"{DAY} 18:00 CEST", "a zone such as .* or Europe/Berlin, but '.* CEST' came"),
        ("tomorrow", "expected a day or a time, such as .*, but 'tomorrow' came"),
    ],
)
def test_a_moment_has_a_zone(
    text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grading import submissions

    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        path = tmp_path / "any.ipynb"
        path.touch()
        path.with_name("timestamp.txt").write_text(text)
        late = submissions.lateness((path,), submissions.moment("2026-11-30T18:00:00-05:00"))
        if expected.startswith(DAY):
            assert submissions.moment(text).isoformat() == expected
            assert late.startswith("late by")
        else:
            assert re.match(f"late\\? its time cannot be read: .*{expected}", late)
            with pytest.raises(ValueError, match=expected):
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
