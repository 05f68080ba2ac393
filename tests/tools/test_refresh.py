"""A refresh keeps what did not really change, and takes what did."""

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
def lesson(tmp_path: Path) -> Path:
    """A committed, executed notebook with a measured and an exact output."""
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
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_nothing_changes_without_a_change_and_a_tampered_output_is_mended(lesson: Path) -> None:
    assert refresh.refresh(lesson) == 0
    edit(lesson, '"2\\n"', '"5\\n"')
    assert refresh.refresh(lesson) == 1
    assert git(lesson.parent, "status", "--porcelain") == ""


def test_a_changed_cell_is_taken_and_so_is_all_when_what_cells_read_changes(lesson: Path) -> None:
    edit(lesson, "print(1 + 1)", "print(1 + 2)")
    assert refresh.refresh(lesson) == 1
    assert notebooks.read(lesson).cells[1].outputs[0].text == "3\n"
    for name in READ:
        (lesson.parent / name).write_text("2\n")
        assert refresh.committed_sources(lesson) == {}
        (lesson.parent / name).write_text("1\n")
    assert list(refresh.committed_sources(lesson)) == ["measured", "exact"]


def test_a_failing_notebook_is_left_as_it_was(lesson: Path, capsys: pytest.CaptureFixture) -> None:
    edit(lesson, "print(1 + 1)", "print(1 / 0)")
    before = lesson.read_text(encoding="utf-8")
    assert refresh.main([str(lesson)]) == 1
    assert lesson.read_text(encoding="utf-8") == before
    assert "left as it was, because a cell failed" in capsys.readouterr().out
