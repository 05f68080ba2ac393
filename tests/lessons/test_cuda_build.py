"""PyTorch built for CUDA, next to a CUDA toolkit, without a GPU: as on a login node."""

from pathlib import Path

import pytest

from helpers import terminal
from tools import notebooks

AS_IF_BUILT_FOR_CUDA = """
import torch
torch.version.cuda = "13.0"
torch._C._cuda_getDeviceCount = lambda: 0
"""


@pytest.mark.everything
@pytest.mark.parametrize("name", ["01_timing", "11_nsight"])
def test_the_set_up_warns_of_nothing(name: str, tmp_path: Path) -> None:
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
