"""What a release states is stated alike everywhere, and the files for other places hold."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest
import torch
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.lessons import rules
from tools import audit, lab, notebooks

ROOT = notebooks.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONTAINER = (ROOT / "Containerfile").read_text(encoding="utf-8")
DEVCONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"])


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere() -> None:
    newest, date = re.search(r"^## \[([\d.]+)\] - ([\d-]+)$", read("CHANGELOG.md"), re.M).groups()
    citation = yaml.safe_load(read("CITATION.cff"))
    assert newest == citation["version"] == PROJECT["version"]
    assert date == citation["date-released"]
    assert " AND ".join(citation["license"]) == PROJECT["license"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert list(rules.dead_links(page.read_text(encoding="utf-8"), page, set())) == []


# --- elsewhere


def test_every_place_has_one_python_that_the_course_allows() -> None:
    named = {
        re.search(r"^FROM \S+/python:(3\.\d+)-", CONTAINER, re.M)[1],
        DEVCONTAINER["image"].rpartition(":")[2],
        read(".binder/runtime.txt").strip().removeprefix("python-"),
        re.search(r"python=(3\.\d+)", read("environment.yml"))[1],
    }
    assert len(named) == 1
    assert SpecifierSet(PROJECT["requires-python"]).contains(named.pop())


def test_the_container_installs_and_starts_as_no_root() -> None:
    (user,) = re.findall(r"^USER (\d+)$", CONTAINER, re.M)
    assert int(user) > 0
    assert f"--uid {user} " in CONTAINER
    assert CONTAINER.index("USER ") < CONTAINER.index("tools/install.py")
    python, option, module, *words = json.loads(re.search(r"^CMD (.+)$", CONTAINER, re.M)[1])
    assert (python, option) == (".venv/bin/python", "-m")
    assert find_spec(module)
    assert words == ["--ip=0.0.0.0", "--no-browser"]


def test_the_container_holds_what_a_student_needs() -> None:
    ignored = [line for line in read(".dockerignore").splitlines() if not line.startswith("#")]
    assert "notebooks/solutions" in ignored
    needed = ["tools/install.py", "tools/lab.py", "helpers", "assets", "notebooks/exercises"]
    needed += ["requirements.txt", "constraints.txt", "pyproject.toml", "LICENSE", "LICENSE-TEXT"]
    for path in map(Path, needed):
        assert (ROOT / path).exists()
        assert not {str(path), *map(str, path.parents)} & set(ignored)
    assert set(PROJECT["license-files"]) <= set(needed)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_devcontainer_calls_what_make_knows() -> None:
    make, target = DEVCONTAINER["postCreateCommand"].split()
    assert subprocess.run([make, "-n", target], cwd=ROOT, capture_output=True).returncode == 0
    interpreter = DEVCONTAINER["customizations"]["vscode"]["settings"]
    place = interpreter["python.defaultInterpreterPath"].partition("}/")[2]
    assert f"BIN := {Path(place).parent}" in read("Makefile")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_binder_keeps_its_server_and_gets_the_course_as_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = ROOT / ".binder" / "postBuild"
    assert os.access(build, os.X_OK)
    python = tmp_path / "python"  # writes down what it is called with
    python.write_text("""#!/bin/sh
echo "$@" >>calls
[ "$2" != venv ] || { mkdir -p .venv/bin; cp "$0" .venv/bin/python; }
""")
    python.chmod(0o755)
    here = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "NB_PYTHON_PREFIX": "/srv/nb"}
    subprocess.run(["bash", str(build)], cwd=tmp_path, env=here, check=True)
    *words, copies = (tmp_path / "calls").read_text().splitlines()
    kernel = "-m ipykernel install --prefix /srv/nb --name python3"
    assert words == ["-m venv .venv", "tools/install.py", kernel]
    folders = []
    monkeypatch.setattr(lab, "hand_out", lambda folder: folders.append(folder) or [])
    exec(copies.removeprefix("-c "))
    assert folders == [ROOT / "work"]


# --- what the pages say


OURS = [
    "Name another one, as in: make lab PYTHON=python3.12",
    "taking the ordinary build, several gigabytes.",
    "This folder cannot be written to: copy the course to one of your own, and call make there.",
    "The reader's copy cannot be written to",
    "is newer in the course; yours stays (--fresh starts it again)",
    "not confirmed on this run: ",
    "Scalene is not installed here (it has no wheel): read on.",
    "No nsys here: nothing was recorded.",
    "bubblewrap, which shuts a student's code in, is not installed",
    "bubblewrap cannot make a sandbox here (",
]


@pytest.mark.parametrize("message", OURS)
def test_a_message_of_the_course_is_quoted_as_it_comes(message: str) -> None:
    files = [*ROOT.glob("tools/**/*.py"), *ROOT.glob("helpers/*.py"), ROOT / "Makefile"]
    files += ROOT.glob("notebooks/*.ipynb")
    assert message in read("docs/troubles.md")
    assert any(message in path.read_text(encoding="utf-8") for path in files)


def test_the_calls_named_for_other_gpus_exist() -> None:
    page = read("docs/gpus.md")
    named = set(re.findall(r"\btorch(?:\.\w+)+", re.sub(r"\]\([^)]*\)", "", page)))
    assert len(named) > 15
    for name in named:
        resolve_name(name)  # or raises
    assert not hasattr(torch.profiler.ProfilerActivity, "MPS")  # else the page is out of date


# --- make audit


SKIPPED = {"name": "numpy", "skip_reason": "Dependency not found on PyPI"}
SOUND = {"name": "torch", "version": "2.13.0", "vulns": []}
WEAK = {"name": "pillow", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}


@pytest.mark.parametrize(
    ("answers", "errors", "status", "said"),
    [
        ([SOUND], [], 0, "1 packages checked, 0 not, 0 with weaknesses."),
        ([SOUND, WEAK], [], 1, "pillow 1: PYSEC-1, mended in 2"),
        ([SOUND, SKIPPED], [], 1, "numpy: not checked. Dependency not found on PyPI"),
        ([SKIPPED], [], 1, "Nothing was checked"),
        ([], ["ConnectionError"], 1, "Nothing was checked"),
        ([SOUND], ["ConnectionError"], 1, "ConnectionError"),
    ],
)
def test_an_audit_passes_only_if_everything_was_checked(
    answers: list, errors: list, status: int, said: str
) -> None:
    text, got = audit.verdict(answers, errors)
    assert got == status
    assert said in text


def test_an_audit_asks_about_every_line_of_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    asked = []

    def pip_audit(words: list[str], **_: object) -> subprocess.CompletedProcess:
        asked.append(Path(words[-1]).read_text(encoding="utf-8").splitlines())
        answers = [{"name": line, "skip_reason": "no network"} for line in asked[-1]]
        return subprocess.CompletedProcess(words, 0, json.dumps({"dependencies": answers}), "")

    monkeypatch.setattr(subprocess, "run", pip_audit)
    assert audit.main() == 1
    assert "That is no pass" in capsys.readouterr().err
    locked = map(Requirement, read("constraints.txt").splitlines())
    lines = [line for part in asked for line in part]
    assert sorted(lines) == sorted(f"{it.name}{it.specifier}" for it in locked)
    for part in asked:  # pip-audit refuses two versions of one package in a file
        names = [line.partition("==")[0] for line in part]
        assert len(names) == len(set(names))
    assert audit.PIP_AUDIT[0] == sys.executable
