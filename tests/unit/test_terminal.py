"""A line runs in its folder, with this Python, without colours, and its errors are seen."""

from pathlib import Path

import pytest

from helpers.terminal import terminal


def test_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    program = "import os, sys; print(os.environ.get('FORCE_COLOR'), os.environ['WHO'])"
    assert terminal(f'python -c "{program}"', tmp_path, WHO="ada") == "None ada\n"
    assert terminal(f'python -c "{program}"', tmp_path, WHO="x", FORCE_COLOR="2") == "2 x\n"

    (tmp_path / "fail.py").write_text("1 / 0", "utf-8")
    said = terminal("python fail.py", tmp_path)
    assert "fail.py" in said
    assert said.endswith("ZeroDivisionError: division by zero\n")
    assert str(tmp_path) not in said
