"""What the pages say is so: the version, the calls, the table of lessons, minutes, their order."""

import re
import tomllib
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace

import pytest
import torch
import yaml
from nbformat import NotebookNode

from tools import notebooks, rules

ROOT = notebooks.ROOT
LESSONS = [SimpleNamespace(**row) for row in rules.TABLE]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
OPENING = "the opening"
MAP = "assets/figures/map.svg"
lesson = cache(notebooks.read)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    newest, date = re.search(r"^## \[([\d.]+)\] - ([\d-]+)$", text("CHANGELOG.md"), re.M).groups()
    citation = yaml.safe_load(text("CITATION.cff"))
    assert newest == citation["version"] == project["version"]
    assert date == citation["date-released"]


def test_the_calls_named_for_other_gpus_exist() -> None:
    page = text("docs/gpus.md")
    calls = set(re.findall(r"\btorch(?:\.\w+)+", re.sub(r"\]\([^)]*\)", "", page)))
    assert len(calls) > 15
    for call in calls:
        resolve_name(call)  # or raises
    assert not hasattr(torch.profiler.ProfilerActivity, "MPS")  # else the page is out of date


# The table of lessons


def test_lessons_and_readme_have_the_tables_names_titles_and_minutes() -> None:
    paths = sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
    assert [row.name for row in LESSONS] == [path.stem for path in paths]
    for row, path in zip(LESSONS, paths, strict=True):
        question = row.question[0].lower() + row.question[1:]
        heading = f"# {row.number} · {row.title}: {question}\n"
        assert lesson(path).cells[0].source.startswith(heading)
        link = f"[{row.number} {row.title}](notebooks/{row.name}.ipynb)"
        assert f"| {link} | {row.question} | {row.tools} |\n" in text("README.md")


def test_the_readme_says_how_long_a_lesson_takes() -> None:
    minutes = [stated(ROOT / "notebooks" / f"{row.name}.ipynb") for row in LESSONS]
    words = f"Each lesson takes {min(minutes)} to {max(minutes)} minutes in class."
    assert words in text("README.md")


def test_the_map_and_its_alternative_text_show_the_table() -> None:
    drawn = re.findall(r'font-weight="bold"[^>]*>([^<]+)<|"middle"[^>]*>(\d\d)<', text(MAP))
    read = re.search(rf"!\[([^\]]+)\]\({MAP}\)", text("README.md"))[1]
    for part in dict.fromkeys(row.part for row in LESSONS[1:]):
        rows = [row for row in LESSONS[1:] if row.part == part]
        start = drawn.index((part, "")) + 1
        assert drawn[start : start + len(rows)] == [("", row.number) for row in rows]
        found = re.findall(r"lesson (\d\d), (.+?)(?=: | \()", read.partition(part.rstrip("?"))[2])
        assert found[: len(rows)] == [(row.number, row.title) for row in rows]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_to_a_lesson_bears_its_number_and_title(page: Path) -> None:
    links = re.findall(r"\[(\d\d [^\]]+)\]\(\S*?notebooks/(\w+)\.ipynb\)", page.read_text("utf-8"))
    titles = {row.name: f"{row.number} {row.title}" for row in LESSONS}
    assert [label for label, name in links] == [titles[name] for label, name in links]


# The syllabus


@cache
def minutes_of_parts(path: Path) -> dict[str, float]:
    """Minutes of a lesson's sections, by heading; what is before them is its opening."""
    parts: dict[str, list] = {OPENING: []}
    for cell in lesson(path).cells:
        heading = re.match(r"## (.+)", cell.source) if cell.cell_type == "markdown" else None
        parts.setdefault(heading[1] if heading else list(parts)[-1], []).append(cell)
    return {
        name: 1.3 * sum(rules.minutes(NotebookNode(cells=cells))) for name, cells in parts.items()
    }


def stated(path: Path) -> int:
    """The minutes that a lesson or a set of exercises gives itself."""
    time = r"\*\*Time\*\* (\d+) minutes|about (\d+) minutes|about three hours"
    return int(next(filter(None, re.search(time, lesson(path).cells[0].source).groups()), 180))


def linked(cell: str) -> Path | None:
    link = re.search(r"\]\((\.\./notebooks/\S+\.ipynb)\)", cell)
    return (ROOT / "docs" / link[1]).resolve() if link else None


def tables(source: str) -> list[list[list[str]]]:
    """The rows of each table, as cells, without its header."""
    blocks = re.findall(r"(?:^\|.*\n)+", source, flags=re.M)
    rows = [[line.strip("|").split("|") for line in block.splitlines()[2:]] for block in blocks]
    return [[[cell.strip() for cell in row] for row in table] for table in rows]


def plan(length: str) -> str:
    """The syllabus's text for one length of the course."""
    return re.split(rf"^## (?={length}\n)", text("docs/syllabus.md"), flags=re.M)[1].split("\n## ")[
        0
    ]


@pytest.mark.parametrize(
    ("length", "most"), [("90 minutes", 90), ("Half a day", 240), ("Two days", 360)]
)
def test_a_short_plan_adds_up_and_fits(length: str, most: int) -> None:
    assert f"{most} minutes" in plan(length)
    for *rows, (last, _, together, _) in tables(plan(length)):
        for what, parts, minutes, _ in rows:
            if (path := linked(what)) and parts == "all":
                assert int(minutes) == stated(path), what
            elif path and parts:
                named = [OPENING] * parts.startswith(OPENING) + re.findall(r"\*(.+?)\*", parts)
                of = minutes_of_parts(path)
                assert int(minutes) == round(sum(of[name] for name in named)), what
        assert last == "**together**"
        assert int(together.strip("*")) == sum(int(row[2]) for row in rows) <= most


def test_a_term_has_every_lesson_in_order_and_every_set() -> None:
    ((*weeks, total),) = tables(plan("A term"))
    assert [row[0] for row in weeks if row[0]] == [str(week + 1) for week in range(len(LESSONS))]
    for at, together in ((1, total[2]), (3, total[4])):
        rows = [(linked(row[at]), int(row[at + 1])) for row in weeks if row[at]]
        assert all(minutes == stated(path) for path, minutes in rows)
        assert int(together.strip("*")) == sum(minutes for _, minutes in rows)
    taught = [linked(row[1]).stem for row in weeks if row[1]]
    assert taught == [row.name for row in LESSONS]
    handed_out = {linked(row[3]) for row in weeks if row[3]}
    assert handed_out == set((notebooks.NOTEBOOKS / "exercises").rglob("*.ipynb"))


# The ten questions


def test_the_ten_questions_are_answered_by_claims_of_the_lessons() -> None:
    questions, _, key = text("docs/learners.md").partition("<details>")
    asked = re.split(r"^\d+\. ", questions.partition("## Ten questions")[2], flags=re.M)[1:]
    (answers,) = tables(key)
    assert len(answers) == len(asked) == 10
    for question, (_, letter, where, claim, _) in zip(asked, answers, strict=True):
        assert f"   - {letter} " in question
        code = "\n".join(cell.source for cell in lesson(linked(where)).cells)
        assert claim.strip("*") in re.sub(r'"\s*"', "", code), where
