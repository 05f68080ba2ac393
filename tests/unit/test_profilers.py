import subprocess
from pathlib import Path

import pytest

from helpers import profilers


def test_a_profiler_that_is_not_here_has_no_profile(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert profilers.record("py-spy-of-nobody -o p.raw -- python p.py", tmp_path) == (None, "")
    with pytest.raises(subprocess.CalledProcessError):
        profilers.record("python missing.py -o p.prof", tmp_path)


def test_scalene_imports_no_torch_beside_a_program_without_it(tmp_path: Path) -> None:
    pytest.importorskip("scalene")
    text = "import sys, time\nend = time.time() + 0.3\nwhile time.time() < end: pass\n"
    (tmp_path / "p.py").write_text(text + "print([name for name in sys.modules if name[0] == 't'])")
    command = "python -m scalene run --cpu-only -o p.json p.py"
    profile, printed = profilers.record(command, tmp_path)
    assert profile, printed
    assert "'time'" in printed
    assert "'torch'" not in printed
