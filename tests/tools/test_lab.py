"""The reader's own copy: nothing spoiled, nothing lost."""

import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers import predictions
from helpers.checks import LEDGER
from tools import lab, notebooks

LESSON, OTHER, SCRIPT = "01_timing.ipynb", "02_cprofile.ipynb", "scripts/run.py"
AGAIN = "yours stays (make lab FRESH=01_timing starts it again)"
NEWER = f"work/{LESSON} is newer in the course; {AGAIN}"
UPDATED = {LESSON: "the reader's", OTHER: "second version", SCRIPT: "second version"}
DIFFERS = f"work/{LESSON} differs from the course's; {AGAIN}"


@pytest.fixture
def course(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What the course hands out, for a test to change; make is installed."""
    monkeypatch.setattr(shutil, "which", lambda name, **_: name)
    files = dict.fromkeys([LESSON, OTHER, SCRIPT], b"first version")
    monkeypatch.setattr(lab, "contents", lambda teach: files.items())
    return files


@pytest.fixture
def work(course: dict[str, bytes], tmp_path: Path) -> Path:
    """A copy whose reader has changed a lesson."""
    folder = tmp_path / "work"
    assert list(lab.hand_out(folder)) == []
    (folder / LESSON).write_text("the reader's")
    return folder


def files_in(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != LEDGER)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def test_a_later_call_updates_what_the_reader_never_changed(course: dict, work: Path) -> None:
    (work / SCRIPT).unlink()
    course |= dict.fromkeys(course, b"second version")
    for _ in range(2):
        assert list(lab.hand_out(work)) == [NEWER]
        assert files_in(work) == UPDATED


def test_a_lesson_starts_again_and_the_old_one_is_kept(course: dict, work: Path) -> None:
    for number in (1, 2):
        (work / LESSON).write_text(f"the reader's {number}")
        kept = f"work/01_timing.yours-{number}.ipynb"
        line = f"work/{LESSON} starts again; yours is kept as {kept}"
        assert list(lab.hand_out(work, restart=["01"])) == [line]
        assert (work / f"01_timing.yours-{number}.ipynb").read_text() == f"the reader's {number}"
        assert (work / LESSON).read_text() == "first version"
    assert list(lab.hand_out(work)) == []


@pytest.mark.parametrize("damage", ["[]", '{"01_timing.ipynb": ', None])
def test_a_lost_ledger_is_restored_from_the_files(course, work, damage: str | None) -> None:
    (work / LEDGER).unlink()
    if damage:
        (work / LEDGER).write_text(damage)
    assert list(lab.hand_out(work)) == [DIFFERS]
    assert list(lab.hand_out(work)) == []
    course |= dict.fromkeys(course, b"second version")  # what nobody touched follows it
    assert list(lab.hand_out(work)) == [NEWER]
    assert files_in(work) == UPDATED


@pytest.mark.parametrize("writes", range(3))
def test_a_full_disk_loses_nothing(
    course: dict, work: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """After some ``writes`` the disk is full: in a file of the course, or in the ledger."""
    course |= dict.fromkeys(course, b"second version")
    budget = [writes]

    def write_bytes(path: Path, content: bytes) -> None:
        with path.open("wb") as file:
            file.write(content if budget[0] else content[:3])
        if not budget[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        budget[0] -= 1

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", write_bytes)
        with pytest.raises(OSError, match="No space left"):
            list(lab.hand_out(work))
    assert set(files_in(work)) == set(course)
    assert set(files_in(work).values()) <= {"the reader's", "first version", "second version"}
    assert list(lab.hand_out(work)) == [NEWER]
    assert files_in(work) == UPDATED


def test_a_copy_has_every_lesson_and_what_it_starts(tmp_path: Path) -> None:
    assert list(lab.hand_out(tmp_path)) == []
    lessons = {path.name for path in notebooks.NOTEBOOKS.glob("*.ipynb")}
    assert {path.name for path in tmp_path.glob("*.ipynb")} == lessons
    assert (tmp_path / "scripts" / "train_small_cnn.py").exists()
    assert (tmp_path / "exercises").exists()
    assert not list(tmp_path.rglob("solutions"))


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.everything
def test_a_student_of_a_shared_course_has_what_lessons_show(tmp_path: Path) -> None:
    """The course is only read; what is the student's stays, and starts again with make lab."""
    student = tmp_path / "a student's"
    copy_only = [sys.executable, "-m", "tools.lab", "--copy-only", student]
    environment = {**os.environ, "PYTHONPATH": ""}

    def call(line: list, folder: Path = notebooks.ROOT) -> str:
        done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert call(copy_only) == ""
    assert (student / "work" / LESSON).exists()
    for name in ("assets/figures/map.svg", "docs/glossary.md"):
        assert (student / name).read_bytes() == (notebooks.ROOT / name).read_bytes()
    (student / "work" / LESSON).write_text("the student's")
    (student / "docs" / "glossary.md").write_text("changed by accident")
    assert call(copy_only) == ""
    assert (student / "work" / LESSON).read_text() == "the student's"
    assert "changed by accident" not in (student / "docs" / "glossary.md").read_text()
    answer = call(["make", "--no-print-directory", "lab", "FRESH=01_timing"], student)
    assert answer == f"work/{LESSON} starts again; yours is kept as work/01_timing.yours-1.ipynb\n"
    assert "the student's" not in (student / "work" / LESSON).read_text()


@pytest.mark.parametrize("name", ["Makefile", "docs/glossary.md", "assets/figures/map.svg"])
def test_a_file_that_the_course_did_not_write_stays(
    tmp_path: Path, course: dict, name: str
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("all:\n\techo mine\n")
    with pytest.raises(SystemExit, match=rf"did not write .*{name} and would replace it"):
        lab.main(["--copy-only", str(tmp_path)])
    assert files_in(tmp_path) == {name: "all:\n\techo mine\n"}


def test_a_students_folder_gets_updates_unless_its_makefile_is_another(
    tmp_path: Path, course: dict
) -> None:
    lab.main(["--copy-only", str(tmp_path)])
    makefile, page = tmp_path / "Makefile", tmp_path / "docs" / "glossary.md"
    first_line = makefile.read_text().splitlines()[0]
    page.write_text("of an older release")
    makefile.write_text(f"{first_line}\nof an older release\n")
    (tmp_path / "work" / LEDGER).unlink()
    lab.main(["--copy-only", str(tmp_path)])
    assert "older release" not in page.read_text() + makefile.read_text()
    makefile.unlink()
    page.write_text("of an older release")
    lab.main(["--copy-only", str(tmp_path)])
    assert "older release" not in page.read_text()
    assert makefile.read_text().startswith(first_line)
    makefile.write_text("all:\n\techo mine\n")
    with pytest.raises(SystemExit, match=r"did not write .*Makefile"):
        lab.main(["--copy-only", str(tmp_path)])
    assert makefile.read_text() == "all:\n\techo mine\n"


def test_a_message_names_a_file_in_full_and_the_command(work: Path, course: dict) -> None:
    name = "exercises/01_timing/01_timing.ipynb"
    course |= {name: b"first version"}
    list(lab.hand_out(work))
    (work / name).write_text("the reader's")
    course[name] = b"second version"
    (line,) = lab.hand_out(work)
    assert line.startswith(f"work/{name} is newer")
    assert "(make lab FRESH=exercises/01_timing starts it again)" in line
    (line,) = lab.hand_out(work, restart=["exercises/01_timing"])
    assert line == f"work/{name} starts again; yours is kept as work/{name[:-6]}.yours-1.ipynb"
    assert sorted([LESSON, "01_timing.yours-1.ipynb", OTHER])[0] == LESSON  # as JupyterLab sorts


def lesson(*sources: str, executed: bool = False) -> bytes:
    """A notebook; executed, it has what a run in JupyterLab leaves."""
    cells = [new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(sources)]
    made = new_notebook(cells=cells, metadata=notebooks.METADATA)
    if executed:
        made.metadata = {"language_info": {"name": "python", "version": "3.11.7"}}
        for number, cell in enumerate(cells, 1):
            cell.execution_count = number
            cell.outputs = [new_output("stream", name="stdout", text=f"output of {cell.source}")]
            cell.metadata = {"execution": {"iopub.status.busy": "2026-11-28"}, "scrolled": True}
    return notebooks.as_text(made).encode()


def outputs(path: Path) -> dict[str, str]:
    cells = notebooks.read(path).cells
    return {cell.source: cell.outputs[0].text if cell.outputs else "" for cell in cells}


@pytest.mark.parametrize("lost", [False, True])
def test_an_update_reaches_a_lesson_that_was_only_run(
    course: dict, tmp_path: Path, lost: bool
) -> None:
    """Outputs stay where the source is the same; a lost ledger is no reason to doubt it."""
    course[LESSON] = lesson("a", "b", "c")
    list(lab.hand_out(tmp_path))
    (tmp_path / LESSON).write_bytes(lesson("a", "b", "c", executed=True))
    if lost:
        (tmp_path / LEDGER).unlink()
    assert list(lab.hand_out(tmp_path)) == []
    ran = {name: f"output of {name}" for name in "abc"}
    assert outputs(tmp_path / LESSON) == ran
    course[LESSON] = lesson("new", "a", "changed", "c")
    for _ in range(2):
        assert list(lab.hand_out(tmp_path)) == []
        updated = outputs(tmp_path / LESSON)
        assert updated == {"new": "", "a": ran["a"], "changed": "", "c": ran["c"]}
    cell = notebooks.read(tmp_path / LESSON).cells[1]
    assert (cell.execution_count, list(cell.metadata)) == (1, ["execution"])


def test_predictions_stay_over_updates_and_a_fresh_start(course: dict, tmp_path: Path) -> None:
    """A letter is no change of a lesson: an update reaches it, and keeps the letter."""
    asked, answered = 'predict("01 clocks", "?")', 'predict("01 clocks", "b")'
    (tmp_path / predictions.NAME).write_text("kept")
    course[LESSON] = lesson("old", asked)
    list(lab.hand_out(tmp_path))
    for older, newer, executed in (("old", "new", False), ("new", "newest", True)):
        (tmp_path / LESSON).write_bytes(lesson(older, answered, executed=executed))
        course[LESSON] = lesson(newer, asked)
        assert list(lab.hand_out(tmp_path)) == []
        ran = f"output of {answered}" if executed else ""
        assert outputs(tmp_path / LESSON) == {newer: "", answered: ran}
    list(lab.hand_out(tmp_path, restart=["01"]))
    assert asked in outputs(tmp_path / LESSON)
    assert (tmp_path / predictions.NAME).read_text() == "kept"


def test_a_changed_source_stays_the_readers(course: dict, tmp_path: Path) -> None:
    course[LESSON] = lesson("a", "b")
    list(lab.hand_out(tmp_path))
    readers = lesson("a", "mine", executed=True)
    (tmp_path / LESSON).write_bytes(readers)
    course[LESSON] = lesson("a", "c")
    (line,) = lab.hand_out(tmp_path)
    assert line.endswith(f"{LESSON} is newer in the course; {AGAIN}")
    assert (tmp_path / LESSON).read_bytes() == readers


def test_a_ledger_of_an_older_release_is_read(course: dict, tmp_path: Path) -> None:
    """It has the digests of files alone, so of a lesson that was run it knows nothing."""
    course |= {LESSON: lesson("a"), OTHER: lesson("b")}
    list(lab.hand_out(tmp_path))
    versions = json.loads((tmp_path / LEDGER).read_text())
    (tmp_path / LEDGER).write_text(json.dumps({name: it[0] for name, it in versions.items()}))
    (tmp_path / LESSON).write_bytes(lesson("mine"))
    assert list(lab.hand_out(tmp_path)) == []
    assert json.loads((tmp_path / LEDGER).read_text()) == versions
    course[LESSON] = lesson("new")
    (line,) = lab.hand_out(tmp_path)
    assert "is newer in the course" in line


def test_what_left_the_course_leaves_the_copy_unless_it_was_changed(
    course: dict, tmp_path: Path
) -> None:
    exercise = "exercises/01_timing/01_timing.ipynb"
    course |= {LESSON: lesson("a"), exercise: lesson("b")}
    list(lab.hand_out(tmp_path))
    (tmp_path / LESSON).write_bytes(lesson("a", executed=True))
    (tmp_path / OTHER).write_text("the reader's")
    for name in (LESSON, OTHER, exercise):
        del course[name]
    gone = "is no longer in the course"
    folder = tmp_path.name
    assert list(lab.hand_out(tmp_path)) == [
        f"{folder}/{LESSON} {gone}, and was removed",
        f"{folder}/{OTHER} {gone}; yours stays",
        f"{folder}/{exercise} {gone}, and was removed",
    ]
    assert files_in(tmp_path) == {OTHER: "the reader's", SCRIPT: "first version"}
    assert not (tmp_path / "exercises" / "01_timing").exists()
    assert list(lab.hand_out(tmp_path)) == []


def test_several_lessons_start_again(course: dict, work: Path) -> None:
    (work / OTHER).write_text("the reader's")
    assert len(list(lab.hand_out(work, restart=["01", "02"]))) == 2
    assert {files_in(work)[name] for name in (LESSON, OTHER)} == {"first version"}


@pytest.fixture
def jupyterlab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, course: dict) -> list[str]:
    """The words that JupyterLab would be started with; the course and a home are in tmp_path."""
    from jupyterlab.labapp import LabApp  # slow to import

    words = []
    monkeypatch.setattr(notebooks, "ROOT", tmp_path / "course")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "home"))
    monkeypatch.setattr(LabApp, "launch_instance", words.extend)
    monkeypatch.chdir(tmp_path)
    notebooks.ROOT.mkdir()
    return words


def test_the_readers_own_settings_come_along_and_stay_as_they_were(
    jupyterlab: list, tmp_path: Path
) -> None:
    theme = Path("lab", "user-settings", "@jupyterlab", "theme")
    (tmp_path / "home" / theme).parent.mkdir(parents=True)
    (tmp_path / "home" / theme).write_text("dark")
    lab.main([])
    (settings,) = (word.partition("=")[2] for word in jupyterlab if "user_settings_dir" in word)
    assert Path(settings).is_relative_to(notebooks.ROOT / "work")
    copy = Path(settings, "@jupyterlab", "theme")
    assert copy.read_text() == "dark"
    copy.write_text("light")
    lab.main([])
    assert copy.read_text() == "light"
    assert (tmp_path / "home" / theme).read_text() == "dark"


@pytest.mark.parametrize("root", [False, True])
def test_root_is_warned_and_can_begin(
    jupyterlab: list, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, root: bool
) -> None:
    monkeypatch.setattr(lab, "is_root", lambda: root)
    lab.main([])
    assert ("--allow-root" in jupyterlab) == root
    assert ("You are root" in capsys.readouterr().out) == root


def test_a_copy_of_the_course_says_whose_helpers_it_uses(
    jupyterlab: list, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "other" / "helpers").mkdir(parents=True)
    (tmp_path / "other" / "helpers" / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "other"))
    lab.main([])
    assert f"Lessons use the helpers in {tmp_path / 'other'}: " in capsys.readouterr().out


def test_a_long_path_for_temporary_files_is_named(
    jupyterlab: list, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / ("long" * 20)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 20)))
    lab.main([])
    assert "lesson 10 would wait for ever: set TMPDIR" in capsys.readouterr().out


def test_a_link_to_nowhere_ends_in_a_sentence(jupyterlab: list, tmp_path: Path) -> None:
    (notebooks.ROOT / "work").symlink_to(tmp_path / "nowhere")
    with pytest.raises(
        SystemExit, match=r"work is a link to a folder that is not there: .*nowhere"
    ):
        lab.main([])


@pytest.mark.parametrize("teach", [False, True])
def test_a_copy_spoils_nothing_and_notes_are_the_instructors(teach: bool) -> None:
    answer = "<details><summary>Read the answer</summary>\n\n**Read.** (b).\n\n</details>"
    notes = "<details{}><summary>Instructor notes</summary>\n\nAsk (b).\n\n</details>"
    result = new_output("execute_result", data={"text/plain": "2"}, execution_count=1)
    code = new_code_cell("1 + 1", execution_count=1, outputs=[result])
    code.metadata.jupyter = {"source_hidden": True}
    texts = [new_markdown_cell(answer), new_markdown_cell(notes.format(""))]
    seen, *shown = lab.readers_copy(new_notebook(cells=[code, *texts]), teach).cells
    assert (seen.outputs, seen.execution_count) == ([], None)
    assert seen.metadata.jupyter.source_hidden
    assert [cell.source for cell in shown] == [answer] + [notes.format(" open")] * teach


def test_a_chart_whose_title_answers_a_question_is_folded_until_the_check() -> None:
    chart = 'title = "Most of the time"\nbars(times, title=title)'
    sources = [chart, 'predict("01 most", "?")', "times = {}", chart, 'outcome("01 most")', chart]
    cells = [new_code_cell(source) for source in sources]
    copy = lab.readers_copy(new_notebook(cells=cells), teach=False)
    folded = ["source_hidden" in cell.metadata.get("jupyter", {}) for cell in copy.cells]
    assert folded == [False, False, False, True, False, False]


def test_what_cannot_be_done_ends_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, course: dict
) -> None:
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="no lesson '77' to start again: give one of 01, 02"):
        lab.main(["--fresh", "77"])
    (tmp_path / "teach").write_text("a file where the folder should be")
    with pytest.raises(SystemExit, match="copy the course to a folder of your own"):
        lab.main(["--teach"])

    def on_a_full_disk(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(notebooks, "write", on_a_full_disk)
    with pytest.raises(SystemExit, match=r"work \(No space left on device\): .* Free some space"):
        lab.main([])


@pytest.mark.everything
def test_jupyterlab_asks_at_ctrl_c_and_shows_a_class_large_type(tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect", reason="a terminal of POSIX is needed")
    code = (
        "import sys, pathlib; from tools import lab, notebooks; "
        "notebooks.ROOT = pathlib.Path(sys.argv[1]); lab.main(sys.argv[2:])"
    )
    words = ["-c", code, str(tmp_path), "--teach", "--no-browser", "--allow-root"]
    words += ["--IdentityProvider.token=secret"]
    environment = {**os.environ, "HOME": str(tmp_path)}
    log = io.StringIO()
    server = pexpect.spawn(
        sys.executable,
        words,
        60,
        logfile=log,
        cwd=notebooks.ROOT,
        env=environment,
        encoding="utf-8",
    )
    server.expect("Use Control-C.*Skipped non-installed")  # the server answers from here on
    address = re.search(r"http://127[^/]+/", log.getvalue())[0]
    themes = f"{address}lab/api/settings/@jupyterlab/apputils-extension:themes?token=secret"
    with urllib.request.urlopen(themes) as answer:
        assert json.load(answer)["settings"]["overrides"]["code-font-size"] == "20px"
    for reply, end in {"n": "resuming operation", "y": "Shutdown confirmed"}.items():
        os.killpg(server.pid, signal.SIGINT)  # as a terminal does at Ctrl+C
        server.expect("Shut down this Jupyter server")
        server.sendline(reply)
        server.expect(end)
        time.sleep(0.5)  # it says that it resumes a moment before it does
    server.expect(pexpect.EOF)
    server.close()
    assert server.exitstatus == 0
    assert "Traceback" not in log.getvalue()
