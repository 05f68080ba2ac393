"""What a reader with a GPU, or with PyTorch built for one, meets: here without one.

The cells for GPUs run on a pretended one, so that no name is wrong. What they measure there is the
CPU's. That a real GPU gives what the text says of it is checked by whoever has one.
"""

import os
import re
from pathlib import Path

import pytest
from nbformat import NotebookNode

from helpers import terminal
from tools import notebooks, refresh

PRETENDED = Path(__file__).with_name("pretended_gpu")


def for_gpus(cell: NotebookNode) -> bool:
    """Whether a cell does one thing with a GPU and another without."""
    asks = r"^if (torch\.cuda\.is_available\(\)|cuda)( and .*)?:"
    return cell.cell_type == "code" and bool(re.search(asks, cell.source, re.M))


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
    printed = terminal.terminal(["python", "-c", program], PYTHONPATH=str(PRETENDED))
    assert printed == "got an unexpected keyword argument 'devise'\n"


@pytest.mark.everything
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_cells_for_gpus_run_on_a_pretended_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PRETENDED), prepend=os.pathsep)
    # The other cells may err: a pretended GPU disturbs what they measure of the CPU.
    lesson = refresh.execute(notebooks.read(path), path.parent, failing=True)
    for cell in filter(for_gpus, lesson.cells):
        printed = "".join(text for _, text in notebooks.texts(cell.outputs))
        assert [out for out in cell.outputs if out.output_type == "error"] == [], cell.id
        assert "no cuda gpu here" not in printed.lower(), cell.id


AS_IF_BUILT_FOR_CUDA = """
import torch
torch.version.cuda = "13.0"
torch._C._cuda_getDeviceCount = lambda: 0
"""


@pytest.mark.everything
@pytest.mark.parametrize("name", ["01_timing", "11_nsight"])
def test_the_set_up_warns_of_nothing_on_a_login_node(name: str, tmp_path: Path) -> None:
    """torch.utils.benchmark imports cpp_extension, which logs that it found no CUDA runtime."""
    notebook = notebooks.read(notebooks.NOTEBOOKS / f"{name}.ipynb")
    (setup,) = (cell.source for cell in notebook.cells if cell.id == "setup")
    assert "torch.utils" in setup
    program = tmp_path / "setup.py"
    program.write_text(AS_IF_BUILT_FOR_CUDA + setup)
    done = terminal.run(
        ["python", program], CUDA_HOME=str(tmp_path), PYTHONPATH=str(notebooks.ROOT)
    )
    assert done.stderr == ""
