"""A refresh leaves a notebook alone that did not really change, and renews all of one that did."""

import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools import notebooks, refresh

READ = ["helpers/plot.py", "notebooks/scripts/train.py", "assets/recordings/trace.json"]


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed, executed notebook with a measured, an ignored and an exact output."""
    folder = tmp_path_factory.mktemp("course")
    sources = {
        "measured": "import time\nfrom helpers import units\nprint(units.number(time.time()))",
        "ignored": "print(time.time_ns())",
        "exact": "print(1 + 1)",
    }
    cells = [new_code_cell(source, id=id_) for id_, source in sources.items()]
    cells[1].metadata.tags = ["nbval-ignore-output"]
    path = folder / "lesson.ipynb"
    for name in READ:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("1\n")
    path.write_text(notebooks.as_text(notebooks.canonical(new_notebook(cells=cells))))
    refresh.refresh(path)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "a lesson")
    return folder


@pytest.fixture
def lesson(course: Path, tmp_path: Path) -> Path:
    """The notebook in a copy of the course."""
    return shutil.copytree(course, tmp_path / "course") / "lesson.ipynb"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def executed(path: Path, exact: str) -> nbformat.NotebookNode:
    """The notebook as a run would leave it whose last cell prints ``exact``."""
    notebook = notebooks.read(path)
    notebook.cells[-1].outputs = [new_output("stream", text=exact)]
    return notebook


def outputs(path: Path) -> list[str]:
    return [cell.outputs[0].text for cell in notebooks.read(path).cells]


def test_nothing_changes_without_a_change(lesson: Path) -> None:
    assert refresh.refresh(lesson) == 0
    assert git(lesson.parent, "status", "--porcelain") == ""


@pytest.mark.parametrize(("old", "new"), [('"2\\n"', '"5\\n"'), ("print(1 + 1)", "print(2 + 0)")])
def test_all_outputs_come_from_one_run_when_an_output_or_a_cell_changed(
    lesson: Path, old: str, new: str
) -> None:
    _, ignored_before, _ = outputs(lesson)
    edit(lesson, old, new)
    assert refresh.refresh(lesson) == 1
    _, ignored, exact = outputs(lesson)
    assert ignored != ignored_before
    assert exact == "2\n"


def test_all_is_taken_when_what_cells_read_changes(lesson: Path) -> None:
    for name in READ:
        (lesson.parent / name).write_text("2\n")
        assert refresh.committed_sources(lesson) == {}
        (lesson.parent / name).write_text("1\n")
    assert list(refresh.committed_sources(lesson)) == ["measured", "ignored", "exact"]


def test_a_failing_notebook_is_left_as_it_was(lesson: Path, capsys: pytest.CaptureFixture) -> None:
    edit(lesson, "print(1 + 1)", "print(1 / 0)")
    before = lesson.read_text(encoding="utf-8")
    assert refresh.main([str(lesson)]) == 1
    assert lesson.read_text(encoding="utf-8") == before
    assert "left as it was, because a cell failed" in capsys.readouterr().out


def test_what_the_author_saves_meanwhile_stays(
    lesson: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    edit(lesson, "print(1 + 1)", "print(2 + 2)")
    new = executed(lesson, "4\n")

    def execute_slowly(*_: object) -> nbformat.NotebookNode:
        edit(lesson, "print(2 + 2)", "print(3 + 3)")
        return new

    monkeypatch.setattr(refresh, "execute", execute_slowly)
    assert refresh.main([str(lesson)]) == 1
    assert "print(3 + 3)" in lesson.read_text(encoding="utf-8")
    assert capsys.readouterr().out == (
        "lesson.ipynb: left as it was, because it was saved meanwhile: refresh it again\n"
    )


def test_an_interrupted_write_leaves_the_notebook(
    lesson: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = lesson.read_bytes()
    edit(lesson, "print(1 + 1)", "print(2 + 0)")
    edited = lesson.read_bytes()
    new = executed(lesson, "2\n")

    def interrupted(path: Path, content: bytes) -> None:
        with path.open("wb") as file:
            file.write(content[:3])
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(refresh, "execute", lambda *_: new)
        stopped.setattr(Path, "write_bytes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            refresh.refresh(lesson)
    assert before != edited == lesson.read_bytes()
    assert [path.name for path in lesson.parent.glob("*lesson*")] == ["lesson.ipynb"]


@pytest.mark.parametrize("name", ["missing.ipynb", "helpers", "helpers/plot.py"])
def test_what_is_no_notebook_ends_in_a_sentence(
    lesson: Path, name: str, capsys: pytest.CaptureFixture
) -> None:
    (lesson.parent / "helpers" / "plot.py").write_text("not = JSON\n")
    assert refresh.main([str(lesson.parent / name)]) == 1
    sentence = f"there is no notebook {lesson.parent / name}: give a number such as 01, or"
    assert sentence in capsys.readouterr().out


@pytest.mark.parametrize("word", ["01", "01_timing", "notebooks/01_timing.ipynb"])
def test_a_notebook_is_named_by_its_number_or_its_path(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notebooks.ROOT)
    assert notebooks.named(word) == notebooks.NOTEBOOKS / "01_timing.ipynb"
    assert notebooks.named("0") == notebooks.ROOT / "0"
