"""The cells for readers with a GPU run, too: here on a pretended one, so that no name is wrong.

What they measure there is the CPU's. That a real GPU gives what the text says of it is checked by
whoever has one. Of the other cells those run that define what these use.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from tools import notebooks, refresh

PRETENDED = notebooks.ROOT / "tests" / "lessons" / "pretended_gpu"
BEYOND_PRETENCE = {"memlab-lines"}  # pytorch_memlab asks CUDA itself, not torch.cuda


def for_gpus(cell: NotebookNode) -> bool:
    """Whether a cell does one thing with a GPU and another without."""
    asks = r"^if (torch\.cuda\.is_available\(\)|cuda):"
    return cell.cell_type == "code" and bool(re.search(asks, cell.source, re.M))


def needed(
    cells: list[NotebookNode], in_functions: frozenset[str] = frozenset()
) -> list[NotebookNode]:
    """The cells for GPUs, and of those before them what defines or changes what they use.

    What functions read may be defined after them: ``in_functions`` are names found so before.
    """
    found, wanted, late = [], set(in_functions), set(in_functions)
    for cell in reversed(cells):
        statements = ast.parse(TransformerManager().transform_cell(cell.source)).body
        if for_gpus(cell) or (found and wanted & bound(statements, perhaps=True)):
            found.insert(0, cell)
            wanted = (wanted - bound(statements)) | read(statements)
            late |= read([node for node in statements if isinstance(node, ast.FunctionDef)])
    return found if late == in_functions else needed(cells, frozenset(late))


def bound(statements: list[ast.stmt], perhaps: bool = False) -> set[str]:
    """The names that statements bind for sure; with ``perhaps`` also in a branch or in part."""
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif perhaps or not isinstance(statement, ast.If | ast.Try):
            for node in ast.walk(statement):
                if isinstance(node, ast.alias):
                    names.add((node.asname or node.name).split(".")[0])
                elif isinstance(getattr(node, "ctx", None), ast.Store):
                    while perhaps and isinstance(node, ast.Attribute | ast.Subscript):
                        node = node.value
                    names |= {node.id} if isinstance(node, ast.Name) else set()
    return names


def read(statements: list[ast.stmt]) -> set[str]:
    """The names that statements take from before them."""
    names: set[str] = set()
    for statement in reversed(statements):
        blocks = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(statement, "handlers", [])]
        inside = {node for block in blocks for part in block for node in ast.walk(part)}
        head = [node for node in ast.walk(statement) if node not in inside]
        loads = {n.id for n in head if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        own = {node.arg for node in head if isinstance(node, ast.arg)}
        for node in head:  # what a loop, a with or a comprehension binds for itself
            if isinstance(node, ast.comprehension):
                loads -= bound([ast.Expr(node.target)])
            elif isinstance(node, ast.Name) and blocks[0]:
                own |= bound([ast.Expr(node)])
        names = (names - bound([statement])) | loads
        names |= set().union(*map(read, blocks)) - own
    return names


def lessons() -> list[Path]:
    return [
        path for path in notebooks.all_of_them() if any(map(for_gpus, notebooks.read(path).cells))
    ]


def test_there_are_lessons_with_cells_for_gpus() -> None:
    assert len(lessons()) >= 5


def test_what_a_cell_for_gpus_needs_runs_before_it_and_nothing_else() -> None:
    sources = {
        "imports": "import torch\nfrom helpers import units as u",
        "old": "size = 1\nprint(size)",
        "new": "size = 2",
        "function": "def double(x):\n    twice = factor * x\n    return twice",
        "unused": "x = [twice for twice in range(3)]",
        "factor": "factor = 2",
        "loop": "for i in range(3):\n    size = max(size, i)",
        "empty": "found = {}",
        "fill": "found['size'] = size",
        "gpu": "if torch.cuda.is_available():\n    x = found['size']\n    u.number(double(x))",
    }
    cells = [new_code_cell(source, id=name) for name, source in sources.items()]
    unneeded = {"old", "unused"}
    assert [cell.id for cell in needed(cells)] == [name for name in sources if name not in unneeded]


def test_the_pretended_gpu_refuses_what_a_real_one_would() -> None:
    program = """import torch
torch.zeros(2, device="cuda").sum(), torch.cuda.synchronize(0)
opened, closed = torch.cuda.Event(), torch.cuda.Event(enable_timing=True)
wrong = [
    lambda: torch.cuda.synchronize(0, 1),
    lambda: torch.cuda.memory_allocated(devise=0),
    lambda: torch.cuda.memory._record_memory_history(most=3),
    lambda: opened.elapsed_time(closed),
    lambda: torch.cuda.Event(timing=True),
    lambda: torch.cuda.no_such_function(),
]
for call in wrong:
    try:
        call()
    except Exception as error:
        print(type(error).__name__)
"""
    environment = {**os.environ, "PYTHONPATH": str(PRETENDED)}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == [*3 * ["TypeError"], "ValueError", "TypeError", "AttributeError"]


@pytest.mark.everything
@pytest.mark.parametrize("path", lessons(), ids=lambda path: path.stem)
def test_cells_for_gpus_run_on_a_pretended_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PRETENDED), prepend=os.pathsep)
    cells = needed([cell for cell in notebooks.read(path).cells if cell.cell_type == "code"])
    # The other cells may err: a pretended GPU disturbs what they measure of the CPU.
    lesson = new_notebook(cells=cells, metadata=notebooks.METADATA)
    for cell in filter(for_gpus, refresh.execute(lesson, path.parent, failing=True).cells):
        if cell.id not in BEYOND_PRETENCE:
            said = "".join(text for _, text in notebooks.texts(cell.outputs))
            assert [out for out in cell.outputs if out.output_type == "error"] == [], cell.id
            assert "No CUDA GPU here" not in said, cell.id
