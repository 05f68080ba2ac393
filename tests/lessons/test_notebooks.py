"""Every notebook keeps the rules, and every rule is shown to notice a notebook that breaks it."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.checks import rendered
from tests.lessons import rules
from tools import notebooks


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
@pytest.mark.parametrize("rule", rules.ALL, ids=lambda rule: rule.__name__)
def test_rule(rule: Callable, path: Path) -> None:
    assert list(rule(notebooks.read(path), path)) == []


CHECKS = {"jupyter": {"source_hidden": True}, "tags": [rules.FOLDED]}
CHECK = '# Check\nclaim("one and one make two", total == 2, total=total)'


def good() -> NotebookNode:
    """The smallest lesson that breaks no rule; cell 2 measures, 3, 6, 9 and 12 check."""
    title = (
        "# 01 · Timing: how much is it?\n\n**You will be able to** add. **You need** nothing. "
        "**Time** 5 minutes. **Tools** none."
    )
    measure = new_code_cell("total = 1 + 1\nprint(total)", id="sum-measure")
    measure.outputs = [new_output("stream", text="2\n")]
    cells = [new_markdown_cell(title, id="title")]
    for number in range(1, 5):
        question = f"## Sum {number}\n\n**Predict.** How much?"
        check = new_code_cell(CHECK, id=f"sum-{number}-check", metadata=CHECKS)
        check.outputs = [
            new_output("display_data", data=rendered("one and one make two", "total = 2"))
        ]
        cells += [
            new_markdown_cell(question, id=f"sum-{number}"),
            *([measure] if number == 1 else []),
            check,
            new_markdown_cell(
                "**Read.** Two, as everybody who counted has predicted.", id=f"sum-{number}-read"
            ),
        ]
    cells += [
        new_markdown_cell("## What a sum cannot tell you", id="limits"),
        new_markdown_cell("## Recap", id="recap"),
    ]
    code = [cell for cell in cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        cell.execution_count = number
    return notebooks.canonical(new_notebook(cells=cells))


def complaints_of(notebook: NotebookNode, folder: Path) -> dict[str, list[str]]:
    path = folder / "01_adding.ipynb"
    path.write_text(notebooks.as_text(notebook), encoding="utf-8")
    found = {rule.__name__: list(rule(notebook, path)) for rule in rules.ALL}
    return {name: complaints for name, complaints in found.items() if complaints}


def named(name: str, change: Callable) -> Callable[[NotebookNode], None]:
    change.__name__ = name[:50]
    return change


def sets(cell: int, **fields: object) -> Callable[[NotebookNode], None]:
    """The change of a cell's fields."""
    return named(f"{cell} {fields}", lambda notebook: notebook.cells[cell].update(fields))


def marks(cell: int, **metadata: object) -> Callable[[NotebookNode], None]:
    return sets(cell, metadata=nbformat.from_dict(metadata))


def replaces(old: str, new: str, cell: int = 0) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        assert old in notebook.cells[cell].source
        notebook.cells[cell].source = notebook.cells[cell].source.replace(old, new)

    return named(f"{new!r} for {old!r}", change)


def writes(text: str, cell: int = 1) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        notebook.cells[cell].source += text

    return named(f"writes {text!r}", change)


def asserts(condition: str) -> Callable[[NotebookNode], None]:
    source = (
        f'# Check\nexpected = 2\nknown = expected == 2\nclaim("so it is", {condition}, total=total)'
    )
    return named(condition, lambda notebook: notebook.cells[3].update(source=source))


def prints(text: str = "", kind: str = "stream", **more: object) -> Callable[[NotebookNode], None]:
    more |= {"text": text} if kind == "stream" else {}
    return sets(2, outputs=[new_output(kind, **more)])


def other_kernel(notebook: NotebookNode) -> None:
    notebook.metadata.kernelspec.name = "conda-env-mine"


def widget_state(notebook: NotebookNode) -> None:
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}


def out_of_order(notebook: NotebookNode) -> None:
    notebook.cells[2].execution_count, notebook.cells[3].execution_count = 2, 1


def ignored_without_claim(notebook: NotebookNode) -> None:
    marks(2, tags=["nbval-ignore-output"])(notebook)
    notebook.cells[3].source = notebook.cells[6].source = "print(total)"


def at_home(
    *, words: int = 0, last: bool = True, stated: str = ""
) -> Callable[[NotebookNode], None]:
    section = new_markdown_cell("## At home\n\n" + " word" * words, id="home")

    def change(notebook: NotebookNode) -> None:
        replaces("5 minutes", f"5 minutes{stated}")(notebook)
        notebook.cells.insert(len(notebook.cells) if last else 1, section)

    return named(f"at home {words} {last}", change)


BREAKS = {
    rules.execution_counts_run_from_1: [
        sets(2, execution_count=None),
        out_of_order,
        sets(12, execution_count=6),
    ],
    rules.nothing_escapes_the_comparison: [
        ignored_without_claim,
        marks(12, tags=["nbval-ignore-output"]),
        writes("\n# NBVAL_IGNORE_OUTPUT", cell=2),
        marks(2, tags=["nbval-skip"]),
        writes(";", cell=2),
    ],
    rules.no_stored_errors: [prints(kind="error", ename="ValueError", evalue="no")],
    rules.the_file_is_canonical: [
        marks(2, execution={"shell.execute_reply": "2026-01-01T00:00:00Z"}),
        widget_state,
        other_kernel,
        sets(2, id="8c7F3a"),
    ],
    rules.every_figure_has_alt_text: [
        prints(kind="display_data", data={"image/png": "iVBORw0KGgo="}),
        prints(kind="display_data", data={"text/html": '<img src="data:image/png;base64,iVBO=">'}),
        writes("\n\n![](https://example.org/drawing.svg)"),
    ],
    rules.headings_nest: [writes("\n\n#### Too deep"), writes("\n\n# Another")],
    rules.links_lead_somewhere: [
        writes("\n\nSee [the next](02_missing.ipynb)."),
        writes("\n\nSee [above](#Nowhere)."),
    ],
    rules.outputs_name_no_machine: [
        prints("saved to /home/ada/x.json"),
        prints("saved to /tmp/tmpab12/x.json"),
        prints(r"saved to C:\Users\ada\x.json"),
        prints(f"read {notebooks.ROOT}"),
    ],
    rules.cells_are_short: [writes("\ntotal += 0" * 25, cell=2), writes("  # " + 84 * "x", cell=2)],
    rules.the_mark_comes_from_units: [writes('\nprint(f"~{total} FLOP")', cell=2)],
    rules.prose_holds_no_measurement: [writes("\n\nIt takes 3.2 ms.")],
    rules.notes_are_folded: [marks(1, slideshow={"slide_type": "notes"})],
    rules.a_lesson_has_its_anatomy: [
        sets(1, source="## Sum 1"),
        replaces("how much is it?", "sums"),
        at_home(last=False),
    ],
    rules.a_prediction_is_measured_before_it_is_read: [
        writes("\n\n**Read.** Two."),
        writes("\n\n**Predict.** And then?", cell=-1),
    ],
    rules.a_lesson_fits_its_class: [
        writes(" word" * 38 * 130),
        replaces("5 minutes", "6 minutes"),
        at_home(words=16 * 130),
        at_home(words=130),  # not stated
    ],
    rules.checks_are_folded: [
        marks(3),
        marks(3, jupyter={"source_hidden": True}),
        marks(2, **CHECKS),
        writes("\n" + CHECK, cell=2),
        writes("\nprint(total)", cell=3),
        replaces("# Check\n", "", cell=3),
    ],
    rules.claims_can_fail: [
        asserts(condition)
        for condition in (
            "True",
            "2 > 1",
            "total",
            "total == 2 and 2 > 1",
            "2 > 1 or not total > 1",
            "total == total",
            "len([total]) >= 0",
            "all([])",
            "expected == 2",
            "known",
        )
    ],
    rules.outputs_fit_a_screen: [prints("row\n" * 33)],
    rules.lessons_are_named: [
        writes("See lesson 05."),
        writes("See [lesson 05](05_torch_profiler.ipynb)."),
        writes("See lesson 05, cProfile."),
        writes("See [lesson 02, cProfile](05_torch_profiler.ipynb)."),
        writes("Lessons 02, cProfile, and 05 say so."),
        writes("Lesson 15, more, says so."),
    ],
}


def test_every_rule_is_shown_to_notice_something() -> None:
    assert set(BREAKS) == set(rules.ALL)


@pytest.mark.parametrize(
    ("rule", "change"),
    [(rule, change) for rule, changes in BREAKS.items() for change in changes],
    ids=lambda value: value.__name__,
)
def test_rule_notices(rule: Callable, change: Callable, tmp_path: Path) -> None:
    notebook = nbformat.from_dict(good())
    change(notebook)
    assert rule.__name__ in complaints_of(notebook, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        writes(""),
        asserts("expected < 2 * total < 9 or expected == total"),
        asserts("math.isclose(total, expected)"),
        at_home(words=10 * 130, stated=", and 13 at home"),
        prints("row\n" * 32),
        writes("[Lesson 02,\ncProfile](02_cprofile.ipynb), cProfile (lesson 02)"),
        writes("Lesson 02 (cProfile) and lesson 06, the GPU's timeline"),
        writes("Lessons 02, cProfile, and 06, the GPU’s timeline, say so in 10 lines."),
    ],
    ids=lambda value: value.__name__,
)
def test_no_rule_complains_of_what_is_meant(change: Callable, tmp_path: Path) -> None:
    notebook = nbformat.from_dict(good())
    change(notebook)
    (tmp_path / "02_cprofile.ipynb").touch()
    assert complaints_of(notebook, tmp_path) == {}


def test_lessons_link_their_neighbours() -> None:
    """Every recap's Before and Next name the lessons beside it."""
    lessons = notebooks.NOTEBOOKS.glob("[0-9]*.ipynb")
    for earlier, later in pairwise(sorted(lessons)):
        assert re.search(rf"\*\*Next:\*\*.*\({later.name}\)", earlier.read_text("utf-8")), earlier
        assert re.search(rf"\*\*Before:\*\*.*\({earlier.name}\)", later.read_text("utf-8")), later
