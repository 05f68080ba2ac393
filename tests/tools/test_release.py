"""What a release states is true: its version, its links, its quotations, and Binder's start."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest
import torch
import yaml

from tests.lessons import rules
from tools import lab, notebooks

ROOT = notebooks.ROOT
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"])


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    newest, date = re.search(r"^## \[([\d.]+)\] - ([\d-]+)$", read("CHANGELOG.md"), re.M).groups()
    citation = yaml.safe_load(read("CITATION.cff"))
    assert newest == citation["version"] == project["version"]
    assert date == citation["date-released"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert list(rules.dead_links(page.read_text(encoding="utf-8"), page, set())) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_binder_keeps_its_server_and_gets_the_course_as_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"  # writes down what it is called with
    python.write_text(
        '#!/bin/sh\necho "$@" >>calls\n'
        '[ "$2" != venv ] || { mkdir -p .venv/bin; cp "$0" .venv/bin/python; }\n'
    )
    python.chmod(0o755)
    here = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "NB_PYTHON_PREFIX": "/srv/nb"}
    subprocess.run([ROOT / ".binder" / "postBuild"], cwd=tmp_path, env=here, check=True)
    *words, copies = (tmp_path / "calls").read_text().splitlines()
    kernel = "-m ipykernel install --prefix /srv/nb --name python3"
    assert words == ["-m venv .venv", "tools/install.py", kernel]
    folders = []
    monkeypatch.setattr(lab, "hand_out", lambda folder: folders.append(folder) or [])
    exec(copies.removeprefix("-c "))
    assert folders == [ROOT / "work"]


MESSAGES = [
    "Name another one, as in: make lab PYTHON=python3.12",
    "taking the ordinary build, several gigabytes.",
    "The disk is full, so the course could not be installed in ",
    "This folder cannot be written to: copy the course to one of your own, and call make there.",
    "The reader's copy cannot be written to",
    "is newer in the course; yours stays (--fresh starts it again)",
    "differs from the course's; yours stays (--fresh starts it again)",
    "not confirmed on this run: ",
    "Scalene is not installed here (it has no wheel): read on.",
    "No nsys here: nothing was recorded.",
    "bubblewrap, which shuts a student's code in, is not installed",
    "bubblewrap cannot make a sandbox here (",
]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_found_in_the_page_of_troubles_as_it_appears(message: str) -> None:
    rooms = ("tools", "helpers", "grading")
    files = [ROOT / "Makefile", *(path for room in rooms for path in (ROOT / room).rglob("*.py"))]
    files += ROOT.glob("notebooks/*.ipynb")
    assert message in read("docs/troubles.md")
    assert any(message in path.read_text(encoding="utf-8") for path in files)


def test_the_calls_named_for_other_gpus_exist() -> None:
    page = read("docs/gpus.md")
    calls = set(re.findall(r"\btorch(?:\.\w+)+", re.sub(r"\]\([^)]*\)", "", page)))
    assert len(calls) > 15
    for call in calls:
        resolve_name(call)  # or raises
    assert not hasattr(torch.profiler.ProfilerActivity, "MPS")  # else the page is out of date
