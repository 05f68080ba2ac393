"""A class with every kind of submission: what is broken costs only itself, and nothing is won."""

import html
import os
import re
import socket
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from grading.answers import digest
from tests.grading.classroom import CELLS, LESSON, MARKS, Class
from tools import notebooks

pytestmark = MARKS

DUE = "--due=2001-09-09T02:46:40+00:00"
SCRIPT = "<script>alert(1)<&script>"
TEXT = (  # an answer for a person to read
    "Because `a < b`, [see](javascript:alert(1)), <script>alert(2)</script> "
    "![one](http://127.0.0.1/1.png) <img src=http://127.0.0.1/2.png>\n"
    "\n```python\ndone = True\n```\n"
)
HOSTILE = tomllib.loads(Path(__file__).with_name("hostile.toml").read_text())
UNREADABLE = {  # name: a part of the reason
    "truncated": "not a whole notebook",
    "deep-json": "not a whole notebook",
    "nothing": "nothing was handed in",
    "large": "100 MB",
    "long": r"its cells hold 6\d\d,\d\d\d characters, and at most 400,000",
    "many-cells": r"the notebook has 1,\d\d\d cells, and at most 1,000",
    "link": "symbolic link",
    "link-folder": "symbolic link",
    "pipe": "not a file",
    "folder": "not a file",
}


@pytest.fixture(scope="module")
def server() -> Iterator[socket.socket]:
    """A server here, which no submission must reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, server: socket.socket) -> Class:
    """The whole class, graded once."""
    everyone = Class(tmp_path_factory.mktemp("class"))
    everyone.hand_in("ada")
    everyone.hand_in("grace", macs=CELLS["macs-wrong-1"], why='why = "a"', say=TEXT)
    for name, broken in HOSTILE["breaks"].items():
        everyone.hand_in(name, macs=broken["answer"])
    for name, answer in HOSTILE["wins"].items():
        everyone.hand_in(name, macs=answer)
    for name, answer in HOSTILE["cheats"].items():
        everyone.hand_in(name, fast=answer)
    hand_in_explorer(everyone, server.getsockname()[1])
    hand_in_altered(everyone)
    hand_in_unreadable(everyone)
    hand_in_what_ends_the_kernel(everyone)
    everyone.hand_in("new\nline").write_bytes(b"")
    (everyone.folder / ".hidden").mkdir()
    hand_in_rearranged(everyone)
    late = everyone.write(SCRIPT, everyone.copy("ada"))
    for path in everyone.folder.rglob("*.ipynb"):
        os.utime(path, (1e9, 1e9), follow_symlinks=False)
    os.utime(late, (1e9 + 7200, 1e9 + 7200))
    (everyone.folder / "=1+1" / "timestamp.txt").write_text("2001-09-12 02:46:40 UTC")
    os.environ["SECRET_OF_THE_GRADER"] = "1"
    output = everyone.grade(DUE, "--timestamps", "--jobs=6")  # many of them only wait
    assert "late is what came after 2001-09-09 02:46:40 UTC" in output
    return everyone


def hand_in_explorer(everyone: Class, port: int) -> None:
    root = notebooks.ROOT
    places = [root, root / "helpers", everyone.folder, everyone.out, "/etc", "/usr", "/dev", "/"]
    given = f"PORT, PLACES = {port}, {[str(place) for place in places]}\n"
    macs = given + HOSTILE["explores"] + CELLS["macs-answer"]
    empties = "def fast(values):\n    return values.pop() + values.pop()"
    everyone.hand_in("explores", macs=macs, fast=empties)


def hand_in_altered(everyone: Class) -> None:
    altered = everyone.copy("alters")
    for cell in altered.cells:
        if "-check" in cell.id:
            cell.source = "pass"
        if cell.id == "macs-answer":
            cell.source = "macs = full = 0"
        if "points" in cell.metadata.get("nbgrader", {}):
            cell.metadata.nbgrader["points"] = 100.0
    everyone.write("alters", altered)
    deleted = everyone.copy("deletes", why='why = "a"')
    deleted.cells = [cell for cell in reversed(deleted.cells) if "-check" not in cell.id]
    everyone.write("deletes", deleted)
    added = everyone.copy("=1+1", macs=HOSTILE["added"]["macs"], say="It is.")
    added.cells.insert(place_of("macs-answer", added), new_code_cell(HOSTILE["added"]["cell"]))
    added.cells.append(new_code_cell("1 / 0"))
    everyone.write("=1+1", added)


def hand_in_rearranged(everyone: Class) -> None:
    """Honest work in another layout, as JupyterLab and other editors make it."""
    moved = everyone.copy(".dot")
    place = place_of("macs-answer", moved)
    moved.cells[place] = new_code_cell(moved.cells[place].source)
    everyone.write(".dot", moved)
    below = everyone.copy("below")
    answer, check = place_of("macs-answer", below), place_of("macs-check-2", below)
    below.cells.insert(check + 1, new_code_cell(below.cells[answer].source))
    released = nbformat.reads(everyone.released, as_version=4)
    below.cells[answer].source = released.cells[place_of("macs-answer", released)].source
    everyone.write("below", below)
    bare = everyone.copy("bare")
    bare.nbformat_minor = 4  # which has no ids
    for cell in bare.cells:
        cell.metadata = {}
        del cell["id"]
    everyone.write("bare", bare)
    split = everyone.copy("splits", macs=HOSTILE["first-cell"]["macs"])
    split.cells[1].source += HOSTILE["first-cell"]["cell"]
    split_answer(split, metadata=False)
    path = everyone.write("splits", split)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    repeated = everyone.copy("splits-with-metadata")
    split_answer(repeated, metadata=True)
    why = repeated.cells[place_of("why-answer", repeated)]
    repeated.cells.append(new_code_cell('why = "c"', metadata=why.metadata))
    everyone.write("splits-with-metadata", repeated, f"{LESSON}-Copy1.ipynb")


def place_of(name: str, notebook: NotebookNode) -> int:
    return [cell.id for cell in notebook.cells].index(name)


def split_answer(notebook: NotebookNode, metadata: bool) -> None:
    """Split the cell of an answer in two; JupyterLab copies the metadata, and others do not."""
    place = place_of("macs-answer", notebook)
    cell = notebook.cells[place]
    start, rest = cell.source.split('"""\n', 1)
    cell.source = start + '"""'
    notebook.cells.insert(
        place + 1, new_code_cell(rest, metadata=cell.metadata if metadata else {})
    )


def hand_in_unreadable(everyone: Class) -> None:
    path = everyone.hand_in("truncated")
    path.write_bytes(path.read_bytes()[:3000])
    everyone.hand_in("deep-json").write_text("[" * 100_000)
    everyone.hand_in("large").write_bytes(b" " * 100 * 2**20)
    everyone.hand_in("long", macs="x = 1\n" * 100_000)
    many = everyone.copy("many-cells")
    many.cells += [new_code_cell("1") for _ in range(1001)]
    everyone.write("many-cells", many)
    for name in ("nothing", "link", "pipe"):
        (everyone.folder / name).mkdir(parents=True)
    ada = everyone.folder / "ada" / f"{LESSON}.ipynb"
    (everyone.folder / "link" / ada.name).symlink_to(ada)
    (everyone.folder / "link-folder").symlink_to(ada.parent)
    os.mkfifo(everyone.folder / "pipe" / ada.name)
    (everyone.folder / "folder" / ada.name).mkdir(parents=True)


def hand_in_what_ends_the_kernel(everyone: Class) -> None:
    """Cells that a student added: only they are lost."""
    for name, source in HOSTILE["ends"].items():
        copy = everyone.copy(name)
        copy.cells.insert(place_of("macs-answer", copy) + 1, new_code_cell(source))
        everyone.write(name, copy)


@pytest.fixture(scope="module")
def rows(graded: Class) -> dict[str, dict]:
    rows = defaultdict(dict)
    for row in graded.table():
        rows[row["student"]][row["task"]] = row
    return rows


EXPECTED = {  # student: (points of macs, why and fast, the reasons of some of these tasks)
    "ada": ([4, 3, 3], {"fast": "^$"}),
    "grace": ([1, 0, 3], {"macs": r"^macs\(1\): expected [\d,]+, but got [\d,]+$"}),
    **{name: ([0, 3, 3], {"macs": broken["reason"]}) for name, broken in HOSTILE["breaks"].items()},
    **{name: ([4, 3, 0], {"fast": "at least 2 times as fast"}) for name in HOSTILE["cheats"]},
    **{name: ([0, 0, 0], {"macs": why}) for name, why in UNREADABLE.items()},
    "explores": (
        [4, 3, 0],
        {"macs": "^$", "fast": r"^the values after the call: expected \[1, 2\], but"},
    ),
    "alters": ([0, 3, 3], {"macs": "macs-check-1 and 3 more were altered, or "}),
    "deletes": ([4, 0, 3], {"why": "why-check was missing"}),
    "'=1+1": ([4, 3, 3], {"fast": "late by 3 days$"}),
    ".dot": (
        [4, 3, 3],
        {"macs": "macs-answer is missing: the cells in its place ran instead", "fast": "^$"},
    ),
    "below": (
        [4, 3, 3],
        {"macs": "^macs-answer was not answered: the cells below its check ran$"},
    ),
    **{
        name: ([4, 3, 3], {"macs": "^a cell that you added was left out: ", "why": "^$"})
        for name in HOSTILE["ends"]
    },
    "bare": ([4, 3, 3], {"macs": "macs-answer is missing: the cells in its place ran instead$"}),
    "splits": ([4, 3, 3], {"macs": "^$"}),
    "splits-with-metadata": (
        [4, 0, 3],
        {
            "macs": "^macs-answer came more than once: all of them ran, in order$",
            "why": "why-answer came more than once: all of them ran, in order$",
        },
    ),
    SCRIPT: ([4, 3, 3], {"why": "'ada', but the folder is '<script>alert.*': graded"}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_breaks_or_cheats_costs_itself_and_says_why(name: str, rows: dict) -> None:
    points, reasons = EXPECTED[name]
    found = [float(rows[name][task]["points"]) for task in ("macs", "why", "fast")]
    assert found == points, rows[name]
    for task, reason in reasons.items():
        assert re.search(reason, rows[name][task]["reason"])


def test_nothing_is_won_or_reached(rows: dict, server: socket.socket) -> None:
    for name in HOSTILE["wins"]:
        assert rows[name]["macs"]["points"] == "0.0"
        assert rows[name]["macs"]["reason"]
    assert rows["alters"]["why"]["of"] == "3.0"
    assert not Path("/tmp/owned-by-a-student").exists()
    with pytest.raises(BlockingIOError):
        server.accept()


def test_the_tables_have_everybody_and_what_a_person_must_look_at(
    graded: Class, rows: dict
) -> None:
    students = {path.name for path in graded.folder.iterdir()} - {"new\nline", ".hidden"}
    (escaped,) = {name.removeprefix("'") for name in rows} - students
    assert escaped.startswith("new\\nline~")
    assert [len(tasks) for tasks in rows.values()] == [4] * (len(students) + 1)
    pages = {path.parent.name for path in graded.out.glob(f"feedback/*/{LESSON}.html")}
    assert pages == students | {escaped}
    sums = {row["student"]: float(row[LESSON]) for row in graded.table("platform")}
    assert sums == {name: sum(float(row["points"]) for row in rows[name].values()) for name in rows}
    late = [name for name, tasks in rows.items() if "late" in tasks["fast"]["reason"]]
    assert sorted(late) == ["'=1+1", SCRIPT]
    assert rows[SCRIPT]["fast"]["reason"].endswith("; late by 1 h")
    page = (graded.out / "class.md").read_text()
    assert re.search(r"\| why \| \d+ of \d+ \| .*2 × `why: expected 'b', but got 'a'`", page)
    assert not [name for name in ("grace", "truncated", "below") if name in page]


def test_a_page_shows_its_own_student_no_hidden_test_and_text_as_text(graded: Class) -> None:
    assert "<script>alert" not in graded.page(SCRIPT)
    page = graded.page("grace")
    assert "Score: 4.0 / 12.0" in page
    assert "'grace'</span>" in page
    assert "why: 'a' is not right" in html.unescape(page)
    assert "expected 'b'" not in html.unescape(page)
    assert '✗</b> <a href="#macs-check-1">' in page
    assert '✓</b> <a href="#fast-check">' in page
    assert "Because <code>a &lt; b</code>" in page
    assert page.count("127.0.0.1") == 2  # both images, as text
    assert re.search(r'<div class="highlight"><pre>.*<span class="n">done</span>', page)
    assert "default-src 'none'" in page
    hidden = ("macs of other sizes", "splits", "endless", "truncated", "explores")
    active = ("alert(1)", "<script>alert", "<img")
    assert [words for words in hidden + active if words in page] == []


def test_the_graded_notebook_has_nbgraders_layout(graded: Class) -> None:
    from nbgrader import utils

    path = graded.out / "autograded" / "grace" / LESSON / f"{LESSON}.ipynb"
    cells = [cell for cell in notebooks.read(path).cells if utils.is_grade(cell)]
    assert [utils.determine_grade(cell)[0] for cell in cells] == [0, 1, 0, 3, None]


def test_a_second_call_grades_nothing_and_marks_by_hand_stay(graded: Class, rows: dict) -> None:
    path = graded.out / "manual.csv"
    first, second = digest(["It is."]), digest([TEXT])
    head = "student,lesson,task,points,comment,marked answer\n"
    lines = f"'=1+1,{LESSON},say,,,{first}\ngrace,{LESSON},say,,,{second}\n"
    assert path.read_text() == head + lines
    assert rows["grace"]["say"]["reason"] == "to be marked by hand, in manual.csv"
    assert rows["ada"]["say"]["points"] == "0.0"
    path.write_text(path.read_text().replace("say,,", "say,1.5,Nearly: why <b>?"))
    students = len(list(graded.folder.iterdir())) - 1  # without .hidden
    for unchanged in (students - 2, students):
        assert f"{unchanged} are graded already" in graded.grade_here(DUE, "--timestamps")
        rows = {row["student"]: row for row in graded.table() if row["task"] == "say"}
        for name in ("grace", "'=1+1"):
            assert rows[name]["points"] == "1.5"
            assert rows[name]["reason"].startswith("Nearly: why <b>?")
    assert "Score: 5.5 / 12.0" in graded.page("grace")
    assert "Nearly: why &lt;b&gt;?" in graded.page("grace")
