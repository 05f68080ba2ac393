"""The cells for readers with a GPU run, too: here on a pretended one, so that no name is wrong.

What they measure there is the CPU's. That a real GPU gives what the text says of it is checked by
whoever has one.
"""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from tools import notebooks

PRETENDED = notebooks.ROOT / "tests" / "lessons" / "pretended_gpu"
BEYOND_PRETENCE = {"memlab-lines"}  # pytorch_memlab asks CUDA itself, not torch.cuda


def for_gpus(cell: NotebookNode) -> bool:
    """Whether a cell does one thing with a GPU and another without."""
    asks = r"^if (torch\.cuda\.is_available\(\)|cuda):"
    return cell.cell_type == "code" and bool(re.search(asks, cell.source, re.M))


def lessons() -> list[Path]:
    return [
        path for path in notebooks.all_of_them() if any(map(for_gpus, notebooks.read(path).cells))
    ]


def test_there_are_lessons_with_cells_for_gpus() -> None:
    assert len(lessons()) >= 5


@pytest.mark.parametrize("path", lessons(), ids=lambda path: path.stem)
def test_cells_for_gpus_run_on_a_pretended_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PRETENDED), prepend=os.pathsep)
    notebook = nbformat.from_dict(notebooks.read(path))
    last = max(number for number, cell in enumerate(notebook.cells) if for_gpus(cell))
    notebook.cells = notebook.cells[: last + 1]
    # The other cells may err: a pretended GPU disturbs what they measure of the CPU.
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=300, allow_errors=True, resources=resources).execute()
    for cell in filter(for_gpus, notebook.cells):
        if cell.id in BEYOND_PRETENCE:
            continue
        said = "".join(text for _, text in notebooks.texts(cell.outputs))
        errors = [out for out in cell.outputs if out.output_type == "error"]
        assert errors == [], cell.id
        assert "No CUDA GPU here" not in said, cell.id
