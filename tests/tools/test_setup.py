"""The set-up says what it needs in one place, and a run that tests too little fails."""

import ast
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import conftest
from tests.lessons import rules
from tools import install, notebooks

ROOT = notebooks.ROOT
REQUIREMENTS = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
LINES = [line for line in REQUIREMENTS if line and not line.startswith("#")]
PINS = [Requirement(line.split(" #")[0]) for line in LINES if not line.startswith("-e")]
MAKERS = [
    line
    for name in ("requirements-make.txt", "requirements-grade.txt")
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines()[1:]
]
MAKERS_PINS = [Requirement(line.split(" #")[0]) for line in MAKERS]


def test_every_requirement_is_pinned_and_says_what_needs_it() -> None:
    assert LINES[0].startswith("-e . ")
    assert all(re.search(r" # .{5,}", line) for line in LINES + MAKERS)
    for pin in PINS + MAKERS_PINS:
        (version,) = pin.specifier
        assert version.operator == "=="
        assert "*" not in version.version
    assert "==2.13.0" in {str(pin.specifier) for pin in PINS if pin.name == "torch"}


def imported(path: Path) -> set[str]:
    """The top-level modules that a Python file or a notebook imports."""
    sources = [path.read_text(encoding="utf-8")]
    if path.suffix == ".ipynb":
        cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "code"]
        sources = [rules.TransformerManager().transform_cell(cell.source) for cell in cells]
    names = []
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module)
    return {name.split(".")[0] for name in names}


def test_everything_that_is_imported_is_pinned() -> None:
    pinned = {canonicalize_name(pin.name) for pin in PINS + MAKERS_PINS}
    distributions = importlib.metadata.packages_distributions()
    scripts = ROOT / "notebooks" / "scripts"
    ours = {"helpers", "tests", "tools", "conftest", "scripts"} | {
        path.stem for path in scripts.iterdir()
    }
    folders = [ROOT / "helpers", ROOT / "tests", ROOT / "tools", scripts]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    for path in [*files, *notebooks.all_of_them()]:
        for module in imported(path) - ours - set(sys.stdlib_module_names):
            owners = {canonicalize_name(name) for name in distributions.get(module, [module])}
            assert owners & pinned, f"{path.name} imports {module}, which no requirement pins"


def locked() -> dict[str, list[Requirement]]:
    """Name to what constraints.txt says of it: a line for each marker."""
    found: dict[str, list[Requirement]] = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        requirement = Requirement(line)
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def holds(requirement: Requirement, there: dict[str, str] | None = None) -> bool:
    """Whether a requirement is meant for a system, by default for this one."""
    return requirement.marker is None or requirement.marker.evaluate(there)


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize(
    "system",
    [("linux", "Linux", "x86_64"), ("darwin", "Darwin", "arm64"), ("win32", "Windows", "AMD64")],
)
def test_the_lock_agrees_with_the_requirements(system: tuple[str, str, str], python: str) -> None:
    names = ("sys_platform", "platform_system", "platform_machine")
    there = dict(zip(names, system, strict=True))
    there |= {"python_version": python, "python_full_version": f"{python}.1"}

    wanted = partial(holds, there=there)
    lock = locked()
    for pin in filter(wanted, PINS + MAKERS_PINS):
        versions = [str(r.specifier) for r in filter(wanted, lock[canonicalize_name(pin.name)])]
        assert versions == [str(pin.specifier)], f"{pin}: run make lock"


def test_what_is_installed_is_what_is_locked() -> None:
    # Not of sys.path: setuptools, once some test has imported it, puts its own old copies there.
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    installed = importlib.metadata.distributions(path=sorted(places))
    there = {canonicalize_name(it.name): it.version for it in installed}
    lock = {name: [r for r in lines if holds(r)] for name, lines in locked().items()}
    assert {canonicalize_name(pin.name) for pin in PINS if holds(pin)} <= set(there)
    assert len(lock.keys() & there.keys()) > 100
    for name in lock.keys() & there.keys():
        assert any(r.specifier.contains(there[name]) for r in lock[name]), f"{name}: run make lock"


def test_conda_installs_python_and_then_the_same_two_files() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, rest = environment["dependencies"]
    assert re.fullmatch(r"python=3\.1[1-4]", python)
    assert pip == "pip"
    assert rest == {"pip": ["-r requirements.txt", "-c constraints.txt"]}


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What install.py would start, on a Linux without a GPU and without torch."""
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "call", lambda words, cwd: calls.append(words) or 0)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(install, "wants_cpu_build", lambda system: True)
    return calls


ORDINARY = install.PIP + install.ALL
CPU_BUILD = ["--index-url", install.CPU_INDEX, "torch==2.13.0"]


@pytest.mark.parametrize("reachable", [True, False])
def test_the_cpu_build_comes_first_by_itself_if_it_can(
    reachable: bool, pip: list, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def call(words: list[str], cwd: Path) -> int:
        pip.append(words)
        return 0 if reachable or "--index-url" not in words else 1

    monkeypatch.setattr(subprocess, "call", call)
    assert install.main() == 0
    first, second = pip
    assert first[-3:] == CPU_BUILD
    assert "--no-deps" in first
    assert second == ORDINARY
    said = "torch==2.13.0 is the CPU build.\n" if reachable else "could not be fetched"
    assert said in capsys.readouterr().out


def test_a_torch_that_is_there_stays(pip: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert install.main() == 0
    assert pip == [ORDINARY]


def test_a_gpu_is_seen_by_its_driver(tmp_path: Path) -> None:
    wants = partial(install.wants_cpu_build, devices=tmp_path)
    assert wants("Linux")
    assert not wants("Darwin")
    assert not wants("Windows")
    (tmp_path / "dxg").touch()
    assert not wants("Linux")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The course's Makefile in a folder with a difficult name, and a Python that does nothing."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    folder = tmp_path / "ein Kurs für Größen"
    folder.mkdir()
    names = ("requirements.txt", "requirements-grade.txt", "constraints.txt", "pyproject.toml")
    for name in ("Makefile", *names):
        shutil.copy(ROOT / name, folder / name)
    return folder


def make(folder: Path, target: str) -> list[str]:
    """``make target`` with a Python that only writes down what it is called with: these calls."""
    python = folder / "python"
    python.write_text("""#!/bin/sh
echo "$@" >>calls
[ "$2" != venv ] || { mkdir -p .venv/bin; cp "$0" .venv/bin/python; }
""")
    python.chmod(0o755)
    subprocess.run(["make", target, "PYTHON=./python"], cwd=folder, check=True, capture_output=True)
    return (folder / "calls").read_text().splitlines()


PARALLEL = "-n 2 --dist loadfile --no-loadscope-reorder"


@pytest.mark.parametrize(
    ("target", "last"),
    [("lab", "-m tools.lab"), ("test", f"-m pytest {PARALLEL}"), ("report", "-m tools.report ")],
)
def test_make_sets_everything_up_once(checkout: Path, target: str, last: str) -> None:
    first = ["tools/install.py --check", "-m venv .venv", "tools/install.py", last]
    assert make(checkout, target) == first
    assert make(checkout, target) == [*first, last]
    (checkout / "constraints.txt").touch()
    assert make(checkout, target) == [*first, last, *first]


def test_what_graders_need_comes_with_the_first_make_grade(checkout: Path) -> None:
    *_, installs, grades = make(checkout, "grade")
    assert installs == "-m pip install --quiet -r requirements-grade.txt -c constraints.txt"
    assert grades.strip() == "-m tools.grade"
    *_, before, again = make(checkout, "grade")
    assert (before, again) == (grades, grades)


@pytest.mark.parametrize(("python", "fits"), [((3, 10), False), ((3, 11), True), ((3, 15), False)])
def test_a_wrong_python_ends_in_a_sentence(
    python: tuple, fits: bool, pip: list, capsys: pytest.CaptureFixture
) -> None:
    assert install.main(check_only=True, python=python) == (0 if fits else 1)
    said = capsys.readouterr().err
    assert fits == (said == "")
    assert fits or ("needs Python 3.11 to 3.14" in said and f"is 3.{python[1]}." in said)
    assert pip == []


def test_ci_calls_make_test_all() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert re.search(r"^part .* make test-all$", script.read_text(encoding="utf-8"), re.M)
    rule = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ntest-all:")[2]
    assert rule.split()[0] == "test"  # what docs/trust.md names comes first
    assert "-m pytest --everything" in rule


def test_the_workflow_has_three_systems_and_the_oldest_and_newest_python() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    job = workflow["jobs"]["test"]
    assert job["strategy"]["matrix"] == {
        "system": ["ubuntu-latest", "macos-latest", "windows-latest"],
        "python": ["3.11", "3.14"],
    }
    said = "\n".join(step.get("run", "") for step in job["steps"])
    assert "make test PYTHON=python" in said
    assert "python tools/install.py\npython -m pytest" in said


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


def test_the_readme_names_every_lesson_with_its_question_and_minutes() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"):
        first = notebooks.read(path).cells[0].source
        name, question = re.match(r"# \d\d · ([^:]+): (.+)", first).groups()
        minutes = re.search(r"\*\*Time\*\* (\d+) minutes", first)[1]
        row = next(line for line in readme.splitlines() if f"({path.relative_to(ROOT)})" in line)
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[0].startswith(f"[{path.name[:2]} {name}]")
        assert cells[1].lower() == question.lower()
        assert cells[3] == minutes


def test_what_contributors_are_told_of_is_there() -> None:
    said = re.findall(r"`([^`]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    names = {rule.__name__ for rule in rules.ALL}
    assert {word for word in said if re.fullmatch(r"\w*_\w*_\w+", word)} <= names
    paths = [word for word in said if re.search(r"/|\.(py|txt)$", word) and "NN" not in word]
    assert len(paths) > 8
    missing = [word for word in paths if " " not in word and not (ROOT / word).exists()]
    assert set(missing) <= {"notebooks/exercises/"}


@pytest.mark.parametrize(
    ("system", "processor", "expected"),
    [("Linux", "x86_64", "strict"), ("Linux", "aarch64", "lax"), ("Darwin", "arm64", "lax")],
)
def test_outputs_are_compared_where_they_were_made(
    system: str, processor: str, expected: str
) -> None:
    assert conftest.mode(system, processor) == expected
