"""What the pages beside the notebooks say of them is so: links, minutes, order, answers."""

import ast
import html
import re
import subprocess
from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from tests.lessons import rules
from tools import notebooks

ROOT = notebooks.ROOT
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
OPENING = "the opening"


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def tracked() -> set[Path]:
    """Every file of the course that git knows, and their folders; without git, every file."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    names = listing.stdout.split("\0")[:-1] if listing.returncode == 0 else ROOT.rglob("*")
    files = {ROOT / name for name in names}
    return files | {folder for file in files for folder in file.parents if ROOT in folder.parents}


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a Markdown page."""
    source = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ +(.+?) *$", source, flags=re.M)
    words = (re.sub(r"[^\w\- ]", "", html.unescape(heading).lower()) for heading in headings)
    return {word.replace(" ", "-") for word in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file_of_the_course(page: Path) -> None:
    source = re.sub(
        r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    found = re.findall(r"\]\(<?([^)\s>]+)", source) + re.findall(r'(?:src|href)="([^"]+)"', source)
    dead = []
    for target in (target for target in found if not re.match(r"[a-z]+:", target)):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if file not in tracked() or (anchor and anchor not in anchors(file)):
            dead.append(target)
    assert dead == []


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "CHANGELOG.md"],  # which names what is gone, too
    ids=lambda page: page.name,
)
def test_every_make_of_a_page_is_there(page: Path) -> None:
    code = re.findall(r"^```.*?^```|`[^`\n]+`", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    named = {target for part in code for target in re.findall(r"\bmake ([a-z][a-z-]*)", part)}
    rules_of_make = set(re.findall(r"^([a-z-]+):", text("Makefile"), flags=re.M))
    assert named <= rules_of_make


def test_a_new_reader_is_at_work_before_250_words() -> None:
    top = text("README.md").partition("\n## The course")[0]
    assert "make lab" in top
    assert "make test" in top
    shown = re.sub(r"!\[[^\]]*\]|\]\([^)]*\)", "", top)
    assert len(re.findall(r"[\w'’-]+", shown)) <= 250


def test_the_picture_is_small_and_says_what_it_shows() -> None:
    alt, name = re.search(r"!\[([^\]]+)\]\((\S+jupyterlab\.png)\)", text("README.md")).groups()
    assert len(alt) > 100
    assert (ROOT / name).stat().st_size <= 250_000


# The syllabus


@cache
def lesson(path: Path) -> NotebookNode:
    return notebooks.read(path)


@cache
def minutes_of_parts(path: Path) -> dict[str, float]:
    """Minutes of a lesson's sections, by heading; what stands before them is its opening."""
    parts: dict[str, list] = {OPENING: []}
    for cell in lesson(path).cells:
        heading = re.match(r"## (.+)", cell.source) if cell.cell_type == "markdown" else None
        parts.setdefault(heading[1] if heading else list(parts)[-1], []).append(cell)
    return {
        name: 1.3 * sum(rules.minutes(NotebookNode(cells=cells))) for name, cells in parts.items()
    }


def stated(path: Path) -> int:
    """The minutes that a lesson or a set of exercises gives itself."""
    first = lesson(path).cells[0].source
    if "exercises" not in path.parts:
        return int(re.search(r"\*\*Time\*\* (\d+) minutes", first)[1])
    return int(re.search(r"about (?:(\d+) minutes|three hours)", first)[1] or 180)


def needs(path: Path) -> set[str]:
    """The numbers of the lessons that a lesson asks for."""
    said = re.search(r"\*\*You need\*\*(.*?)\*\*Time\*\*", lesson(path).cells[0].source, re.S)
    return (
        set(re.findall(r"(?<!\w)\d\d(?!\w)", re.sub(r"\]\([^)]*\)", "]", said[1])))
        if said
        else set()
    )


def linked(cell: str) -> Path | None:
    link = re.search(r"\]\((\.\./notebooks/\S+\.ipynb)\)", cell)
    return (ROOT / "docs" / link[1]).resolve() if link else None


def tables(source: str) -> list[list[list[str]]]:
    """The rows of each table, as cells, without its header."""
    found = re.findall(r"(?:^\|.*\n)+", source, flags=re.M)
    rows = [[line.strip("|").split("|") for line in table.splitlines()[2:]] for table in found]
    return [[[cell.strip() for cell in row] for row in table] for table in rows]


def plans() -> dict[str, str]:
    """The syllabus's text for each length of a course, by its heading."""
    _, *sections = re.split(r"^## ", text("docs/syllabus.md"), flags=re.M)
    return {section.partition("\n")[0]: section.partition("\n")[2] for section in sections}


SHORT = {"90 minutes": [90], "Half a day": [240, 240], "Two days": [360, 360]}


@pytest.mark.parametrize("length", SHORT)
def test_a_short_plan_adds_up_and_fits(length: str) -> None:
    days = tables(plans()[length])
    assert len(days) == len(SHORT[length])
    for rows, most in zip(days, SHORT[length], strict=True):
        assert f"{most} minutes" in f"{length} {plans()[length]}"
        *rows, (last, _, together, _) = rows
        for what, parts, minutes, _ in rows:
            if (path := linked(what)) and parts == "all":
                assert int(minutes) == stated(path), what
            elif path and parts:
                named = [OPENING] * parts.startswith(OPENING) + re.findall(r"\*(.+?)\*", parts)
                of = minutes_of_parts(path)
                assert int(minutes) == round(sum(of[name] for name in named)), what
        assert last == "**together**"
        assert int(together.strip("*")) == sum(int(row[2]) for row in rows) <= most


@pytest.mark.parametrize("length", SHORT)
def test_a_short_plan_bridges_what_it_left_out_and_nothing_else(length: str) -> None:
    plan = tables(plans()[length])
    for rows in [chain(*plan)] if length == "Two days" else plan:  # half a day has two roads
        whole: set[str] = set()
        for what, parts, _, bridge in rows:
            path = linked(what)
            if path and path.parent == notebooks.NOTEBOOKS:
                assert set(re.findall(r"\b\d\d\b", bridge)) == needs(path) - whole, what
                whole |= {path.name[:2]} if parts == "all" else set()
            elif path:
                assert path.name[:2] in whole, f"{what} before its lesson"


def test_a_term_has_every_lesson_and_every_set_in_an_order_that_meets_their_needs() -> None:
    ((*weeks, total),) = tables(plans()["A term"])
    both = [[(row[at], row[at + 1]) for row in weeks if row[at]] for at in (1, 3)]
    for at, rows in zip((2, 4), both, strict=True):
        assert all(int(minutes) == stated(linked(what)) for what, minutes in rows)
        assert int(total[at].strip("*")) == sum(int(minutes) for _, minutes in rows)
    classes, sets = ([linked(what) for what, _ in rows] for rows in both)
    assert [row[0] for row in weeks if row[0]] == [str(week) for week in range(1, 16)]
    assert classes == sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
    assert set(sets) == set((notebooks.NOTEBOOKS / "exercises").rglob("*.ipynb"))
    taught = [path.name[:2] for path in classes]
    assert all(needs(path) <= set(taught[:week]) for week, path in enumerate(classes))


# The ten questions


def claims(path: Path) -> set[str]:
    """The texts of a notebook's claims."""
    found = set()
    for cell in lesson(path).cells:
        if cell.cell_type == "code":
            tree = ast.parse(rules.TransformerManager().transform_cell(cell.source))
            calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
            found |= {
                call.args[0].value
                for call in calls
                if isinstance(call.func, ast.Name)
                and call.func.id == "claim"
                and isinstance(call.args[0], ast.Constant)
            }
    return found


def test_the_ten_questions_are_answered_by_claims_of_the_lessons() -> None:
    page = text("docs/learners.md")
    questions, key = page.partition("<details>")[::2]
    asked = re.split(r"^\d+\. ", questions.partition("## Ten questions")[2], flags=re.M)[1:]
    options = [re.findall(r"^ +- \((\w)\) \S", question, flags=re.M) for question in asked]
    assert options == 10 * [["a", "b", "c", "d"]]
    (answers,) = tables(key)
    assert [row[0] for row in answers] == [str(number) for number in range(1, 11)]
    for number, letter, where, said, why in answers:
        assert re.fullmatch(r"\([a-d]\)", letter)
        assert said.strip("*") in claims(linked(where)), number
        assert len(why) > 20
    assert len({where for _, _, where, _, _ in answers}) == 10  # a lesson each
    assert max(Counter(letter for _, letter, *_ in answers).values()) <= 3
    prose = NotebookNode(cells=[new_markdown_cell(page)])
    assert list(rules.prose_holds_no_measurement(prose, ROOT)) == []
