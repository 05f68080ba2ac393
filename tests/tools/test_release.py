"""What a release states is true: its version, its links, and the calls it names."""

import re
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest
import torch
import yaml

from tests.lessons import rules
from tools import notebooks

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


def test_the_calls_named_for_other_gpus_exist() -> None:
    page = read("docs/gpus.md")
    calls = set(re.findall(r"\btorch(?:\.\w+)+", re.sub(r"\]\([^)]*\)", "", page)))
    assert len(calls) > 15
    for call in calls:
        resolve_name(call)  # or raises
    assert not hasattr(torch.profiler.ProfilerActivity, "MPS")  # else the page is out of date
