"""The cells for readers with a GPU run, too: here on a pretended one, so that no name is wrong.

What they measure there is the CPU's. That a real GPU gives what the text says of it is checked by
whoever has one. Of the other cells those run that define what these use.
"""

import dis
import os
import re
import subprocess
import sys
from pathlib import Path
from types import CodeType

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from tools import notebooks, refresh

PRETENDED = notebooks.ROOT / "tests" / "lessons" / "pretended_gpu"
BEYOND_PRETENCE = {"memlab-lines"}  # pytorch_memlab asks CUDA itself, not torch.cuda


def for_gpus(cell: NotebookNode) -> bool:
    """Whether a cell does one thing with a GPU and another without."""
    asks = r"^if (torch\.cuda\.is_available\(\)|cuda):"
    return cell.cell_type == "code" and bool(re.search(asks, cell.source, re.M))


def needed(cells: list[NotebookNode], late: frozenset[str] = frozenset()) -> list[NotebookNode]:
    """The cells for GPUs, and of those before them the ones that define what they use.

    What functions read, ``late``, may be defined after them: found, it is looked for once more.
    """
    found, wanted, in_functions = [], set(late), set(late)
    for cell in reversed(cells):
        code = compile(TransformerManager().transform_cell(cell.source), cell.id, "exec")
        made, used = set(), set()
        for instruction in dis.get_instructions(code):
            if instruction.opname == "STORE_NAME":
                made.add(instruction.argval)
            elif instruction.opname == "LOAD_NAME" and instruction.argval not in made:
                used.add(instruction.argval)
        if for_gpus(cell) or (found and wanted & made):
            found.insert(0, cell)
            in_functions |= read_in_functions(code)
            wanted = (wanted - made) | used | (read_in_functions(code) - made)
    return found if in_functions == late else needed(cells, frozenset(in_functions))


def read_in_functions(code: CodeType) -> set[str]:
    """The global names that the functions in ``code`` read."""
    functions = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    names = {i.argval for f in functions for i in dis.get_instructions(f) if "GLOBAL" in i.opname}
    return names.union(*map(read_in_functions, functions))


LESSONS = [
    path for path in notebooks.all_of_them() if any(map(for_gpus, notebooks.read(path).cells))
]


def test_the_pretended_gpu_refuses_what_a_real_one_would() -> None:
    program = """import torch
torch.zeros(2, device="cuda").sum(), torch.cuda.synchronize(0)
try:
    torch.cuda.memory_allocated(devise=0)
except TypeError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(PRETENDED)}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.stdout == "got an unexpected keyword argument 'devise'\n", done.stderr


@pytest.mark.everything
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_cells_for_gpus_run_on_a_pretended_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PRETENDED), prepend=os.pathsep)
    cells = needed([cell for cell in notebooks.read(path).cells if cell.cell_type == "code"])
    # The other cells may err: a pretended GPU disturbs what they measure of the CPU.
    lesson = new_notebook(cells=cells, metadata=notebooks.METADATA)
    for cell in filter(for_gpus, refresh.execute(lesson, path.parent, failing=True).cells):
        if cell.id not in BEYOND_PRETENCE:
            printed = "".join(text for _, text in notebooks.texts(cell.outputs))
            assert [out for out in cell.outputs if out.output_type == "error"] == [], cell.id
            assert "No CUDA GPU here" not in printed, cell.id
