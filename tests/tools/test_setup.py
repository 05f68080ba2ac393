"""The set-up says what it needs in one place, and a run that tests too little fails."""

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import conftest
from tests.lessons import rules
from tools import notebooks

ROOT = notebooks.ROOT
REQUIREMENTS = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
LINES = [line for line in REQUIREMENTS if line and not line.startswith("#")]
PINS = [Requirement(line.split(" #")[0]) for line in LINES if not line.startswith("-e")]


def test_every_requirement_is_pinned_and_says_what_needs_it() -> None:
    assert LINES[0].startswith("-e . ")
    assert all(re.search(r" # .{5,}", line) for line in LINES)
    for pin in PINS:
        (version,) = pin.specifier
        assert version.operator == "=="
        assert "*" not in version.version
    assert "==2.13.0" in {str(pin.specifier) for pin in PINS if pin.name == "torch"}


def test_what_is_installed_is_what_is_pinned() -> None:
    for pin in PINS:
        if pin.marker is None or pin.marker.evaluate():
            assert pin.specifier.contains(importlib.metadata.version(pin.name)), pin


def imported(path: Path) -> set[str]:
    """The top-level modules that a Python file or a notebook imports."""
    if path.suffix == ".ipynb":
        cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "code"]
        sources = [rules.TransformerManager().transform_cell(cell.source) for cell in cells]
    else:
        sources = [path.read_text(encoding="utf-8")]
    found = set()
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_everything_that_is_imported_is_pinned() -> None:
    pinned = {canonicalize_name(pin.name) for pin in PINS}
    distributions = importlib.metadata.packages_distributions()
    scripts = ROOT / "notebooks" / "scripts"
    ours = {"helpers", "tests", "conftest", "scripts", *(path.stem for path in scripts.iterdir())}
    folders = [ROOT / "helpers", ROOT / "tests", scripts]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    for path in [*files, *notebooks.all_of_them()]:
        for module in imported(path) - ours - set(sys.stdlib_module_names):
            owners = {canonicalize_name(name) for name in distributions.get(module, [])}
            assert owners & pinned, f"{path.name} imports {module}, which no requirement pins"


def test_conda_installs_python_and_then_the_same_requirements() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, rest = environment["dependencies"]
    assert re.fullmatch(r"python=3\.1[123]", python)
    assert pip == "pip"
    assert rest == {"pip": ["-r requirements.txt"]}


def dry_run(*arguments: str) -> str:
    command = ["make", "--dry-run", "--always-make", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", ["lab", "test"])
def test_make_sets_everything_up(target: str) -> None:
    plain, cpu = dry_run(target), dry_run(target, "CPU=1")
    assert "-m venv .venv" in plain
    assert "pip install -r requirements.txt" in plain
    assert "download.pytorch.org" not in plain
    assert "pip install --index-url https://download.pytorch.org/whl/cpu" in cpu
    assert cpu.index("/whl/cpu") < cpu.index("-r requirements.txt")
    opens = "jupyter lab notebooks/00_start_here.ipynb" if target == "lab" else "-m pytest"
    assert opens in plain


def test_ci_calls_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "\nmake test\n" in script.read_text(encoding="utf-8")


def test_helpers_are_importable_from_anywhere_and_load_no_plots(tmp_path: Path) -> None:
    code = (
        "import sys, helpers.workloads; helpers.workloads.photograph(); "
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('matplotlib', 'seaborn', 'plotly', 'bokeh', 'altair')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


def test_links_of_the_readme_lead_somewhere() -> None:
    readme = ROOT / "README.md"
    assert list(rules.dead_links(readme.read_text(encoding="utf-8"), readme, set())) == []


@pytest.mark.parametrize(
    ("system", "processor", "expected"),
    [("Linux", "x86_64", "strict"), ("Linux", "aarch64", "lax"), ("Darwin", "arm64", "lax")],
)
def test_outputs_are_compared_where_they_were_made(
    system: str, processor: str, expected: str
) -> None:
    assert conftest.mode(system, processor) == expected


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the course's test set-up with one good notebook and one fast test."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "notebooks").mkdir()
    shared = ["conftest.py", "pyproject.toml", "tests/notebooks.py", "tests/nbval_sanitize.cfg"]
    for name in [*shared, "tests/__init__.py"]:
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "test_one.py").write_text("def test_one():\n    assert True\n")
    write_notebook(tmp_path / "notebooks" / "good.ipynb", "print(1 + 1)", "2\n")
    return tmp_path


def write_notebook(path: Path, source: str, output: str | None) -> None:
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    cells = [new_markdown_cell("# Adding", id="title")]
    if output is not None:
        outputs = [new_output("stream", text=output)]
        cells.append(new_code_cell(source, id="sum", execution_count=1, outputs=outputs))
    text = notebooks.as_text(notebooks.canonical(new_notebook(cells=cells)))
    path.write_text(text, encoding="utf-8")


def run_pytest(folder: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("PYTEST_CURRENT_TEST", None)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_a_whole_run_passes(course: Path) -> None:
    done = run_pytest(course)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_changed_number_fails_the_run_in_its_cell(course: Path) -> None:
    write_notebook(course / "notebooks" / "good.ipynb", "print(1 + 1)", "3\n")
    done = run_pytest(course)
    assert done.returncode == 1
    assert "notebooks/good.ipynb::Cell 0" in done.stdout


def test_a_notebook_that_nobody_runs_fails_the_run(course: Path) -> None:
    write_notebook(course / "notebooks" / "empty.ipynb", "", None)
    done = run_pytest(course)
    assert done.returncode != 0
    assert "nothing was collected from notebooks/empty.ipynb" in done.stderr + done.stdout


def test_a_test_file_that_collects_nothing_fails_the_run(course: Path) -> None:
    (course / "tests" / "test_nothing.py").write_text("def check_one():\n    assert True\n")
    done = run_pytest(course)
    assert done.returncode != 0
    assert "nothing was collected from tests/test_nothing.py" in done.stderr + done.stdout
