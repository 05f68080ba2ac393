"""A refresh keeps what did not really change, and takes what did."""

import shutil
import subprocess
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools import notebooks, refresh

READ = ["helpers/plot.py", "notebooks/scripts/train.py", "assets/recordings/trace.json"]


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def lesson(repository: Path, tmp_path: Path) -> Path:
    """A committed, executed notebook with a measured and an exact output."""
    shutil.copytree(repository, tmp_path, dirs_exist_ok=True)
    return tmp_path / "lesson.ipynb"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("repository")
    sources = {
        "measured": "import time\nfrom helpers import units\nprint(units.number(time.time()))",
        "exact": "print(1 + 1)",
    }
    cells = [new_code_cell(source, id=id_) for id_, source in sources.items()]
    path = tmp_path / "lesson.ipynb"
    for name in READ:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("1\n")
    path.write_text(notebooks.as_text(notebooks.canonical(new_notebook(cells=cells))))
    refresh.refresh(path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "a lesson")
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_nothing_changed(lesson: Path) -> None:
    assert refresh.refresh(lesson) == 0
    assert git(lesson.parent, "status", "--porcelain") == ""


def test_a_changed_cell_and_a_wrong_output_are_taken(lesson: Path) -> None:
    edit(lesson, "print(1 + 1)", "print(1 + 2)")
    assert refresh.refresh(lesson) == 1
    assert notebooks.read(lesson).cells[1].outputs[0].text == "3\n"


def test_a_tampered_output_is_mended(lesson: Path) -> None:
    edit(lesson, '"2\\n"', '"5\\n"')
    assert refresh.refresh(lesson) == 1
    assert git(lesson.parent, "status", "--porcelain") == ""


@pytest.mark.parametrize("name", READ)
def test_a_change_of_what_cells_read_refreshes_everything(lesson: Path, name: str) -> None:
    assert list(refresh.committed_sources(lesson)) == ["measured", "exact"]
    (lesson.parent / name).write_text("2\n")
    assert refresh.committed_sources(lesson) == {}


def test_what_is_not_committed_is_taken_afresh(lesson: Path) -> None:
    (lesson.parent / READ[0]).write_text("2\n")
    assert refresh.refresh(lesson) == 2


def test_a_failing_notebook_is_left_as_it_was(lesson: Path, capsys: pytest.CaptureFixture) -> None:
    edit(lesson, "print(1 + 1)", "print(1 / 0)")
    before = lesson.read_text(encoding="utf-8")
    assert refresh.main([str(lesson)]) == 1
    assert lesson.read_text(encoding="utf-8") == before
    assert "left as it was, because a cell failed" in capsys.readouterr().out


def test_a_missing_notebook_ends_in_a_sentence(capsys: pytest.CaptureFixture) -> None:
    assert refresh.main(["no_such.ipynb"]) == 1
    assert "there is no such notebook; give the path" in capsys.readouterr().out
