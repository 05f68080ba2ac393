"""``make test-changed`` finds what a change reaches, and runs no more."""

import subprocess
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools import changed, notebooks

FILES = {
    "helpers/__init__.py": "",
    "helpers/units.py": "def seconds(): pass",
    "helpers/faults.py": "from helpers import units  # not models.py",
    "helpers/models.py": "",
    "helpers/plotting/__init__.py": (
        "from helpers.plotting.bars import bars\nfrom helpers.plotting.roofs import roofline"
    ),
    "helpers/plotting/bars.py": "def bars(): pass",
    "helpers/plotting/roofs.py": "def roofline(): pass",
    "notebooks/scripts/train.py": "import torch",
    "assets/recordings/gpu/h100.json.gz": "",
    "docs/syllabus.md": "See 02_roofs.ipynb.",
    "tests/unit/test_units.py": "import helpers.units",
    "tests/unit/test_plotting.py": "from helpers import plotting",
    "tests/lessons/test_rules.py": "from tools import notebooks\nnotebooks.all_of_them()",
    "tests/tools/test_pages.py": "PAGES = ROOT / 'docs'",
}
NOTEBOOKS = {
    "01_faults": [
        "from helpers import faults, plotting",
        "!python scripts/train.py",
        "plotting.bars()",
    ],
    "02_roofs": [
        "from helpers.plotting import roofline",
        'for name in ("h100", "v100"):\n    pass',
    ],
}
ONE, TWO = (f"notebooks/{name}.ipynb" for name in NOTEBOOKS)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name, cells in NOTEBOOKS.items():
        notebook = new_notebook(cells=list(map(new_code_cell, cells)))
        (tmp_path / "notebooks" / f"{name}.ipynb").write_text(notebooks.as_text(notebook))
    for line in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -q -m first"):
        subprocess.run(["git", *line.split()], cwd=tmp_path, check=True)
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    return tmp_path


@pytest.fixture
def ran(course: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What each run of pytest was given."""
    lines = []
    monkeypatch.setattr(changed, "run_pytest", lambda tests: lines.append(tests) or 0)
    return lines


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("helpers/units.py", {ONE, "tests/unit/test_units.py"}),
        ("helpers/faults.py", {ONE}),
        ("helpers/plotting/bars.py", {ONE, "tests/unit/test_plotting.py"}),
        ("helpers/plotting/roofs.py", {TWO, "tests/unit/test_plotting.py"}),
        ("notebooks/scripts/train.py", {ONE}),
        ("assets/recordings/gpu/h100.json.gz", {TWO}),
        (TWO, {TWO, "tests/lessons/test_rules.py"}),
        ("docs/syllabus.md", {"tests/tools/test_pages.py"}),
        ("tests/unit/test_units.py", {"tests/unit/test_units.py"}),
        ("helpers/models.py", set()),
    ],
)
def test_a_change_reaches_what_imports_or_names_it(file: str, tests: set, course: Path) -> None:
    assert set(filter(changed.is_test, changed.reached({file}))) == tests


def test_what_differs_from_a_commit_is_run_and_says_why(course: Path, ran: list, capsys) -> None:
    assert changed.main([]) == 0
    assert "Nothing differs from HEAD" in capsys.readouterr().out
    (course / "helpers" / "units.py").write_text("def seconds(): return 1")
    (course / "tests" / "unit" / "test_new.py").write_text("")
    assert changed.main(["HEAD"]) == 0
    assert ran == [[ONE, "tests/unit/test_new.py", "tests/unit/test_units.py"]]
    assert f"{ONE} ← helpers/faults.py ← helpers/units.py\n" in capsys.readouterr().out


def test_what_every_test_needs_runs_all(course: Path, ran: list) -> None:
    (course / "conftest.py").write_text("")
    assert changed.main([]) == 0
    assert ran == [["notebooks", "tests"]]


def test_what_cannot_be_told_ends_in_a_sentence(course: Path, ran: list, capsys) -> None:
    (course / "helpers" / "models.py").write_text("class Model: ...")
    assert changed.main([]) == 0
    assert "No test and no notebook names or imports helpers/models.py" in capsys.readouterr().out
    (course / "helpers" / "models.py").write_text("class Model(:")
    assert changed.main([]) == 2
    assert capsys.readouterr().out == "helpers/models.py, line 1: invalid syntax\n"
    assert changed.main(["mian"]) == 2
    assert "git cannot compare with 'mian'" in capsys.readouterr().out
    assert ran == []
