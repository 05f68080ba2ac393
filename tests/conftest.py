"""What several tests need."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import notebooks


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the course's test set-up with one good notebook and one fast test."""
    for name in ("conftest.py", "pyproject.toml", "tools/__init__.py", "tools/notebooks.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(notebooks.ROOT / name, tmp_path / name)
    for room in ("unit", "lessons", "tools"):
        (tmp_path / "tests" / room).mkdir(parents=True)
    shutil.copy(notebooks.SANITIZE, tmp_path / "tests" / "lessons")
    (tmp_path / "tests" / "__init__.py").touch()
    (tmp_path / "tests" / "unit" / "test_one.py").write_text("def test_one():\n    assert True\n")
    write_notebook(tmp_path / "notebooks" / "good.ipynb", {"print(1 + 1)": "2\n"})
    return tmp_path


def write_notebook(path: Path, cells: dict[str, str], tags: tuple[str, ...] = ()) -> None:
    """A canonical notebook: a title, and ``cells``, sources to what they printed."""
    made = [new_markdown_cell("# Adding", id="title")]
    for number, (source, printed) in enumerate(cells.items(), 1):
        outputs = [new_output("stream", text=printed)] if printed else []
        cell = new_code_cell(source, id=f"cell-{number}", execution_count=number, outputs=outputs)
        cell.metadata.tags = list(tags)
        made.append(cell)
    text = notebooks.as_text(notebooks.canonical(new_notebook(cells=made)))
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def run_pytest(course: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs pytest in the copy of the course, with the given words."""

    def run(*words: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PYTHONPATH": str(course)}
        line = [sys.executable, "-m", "pytest", "-q", *words]
        return subprocess.run(line, cwd=course, env=environment, capture_output=True, text=True)

    return run
