"""Every notebook keeps the rules, and every rule is shown to notice a notebook that breaks it."""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import notebooks, rules


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
def test_a_notebook_keeps_the_rules(path: Path) -> None:
    assert list(rules.complaints(path)) == []


CHECKS = {"jupyter": {"source_hidden": True}, "tags": [rules.FOLDED]}
CHECK = '# Check\nexpected = 2\nclaim("one and one make two", {}, total=total)'


def good() -> NotebookNode:
    """A copy of the smallest lesson that breaks no rule."""
    return notebooks.canonical(smallest())


@cache
def smallest() -> NotebookNode:
    """A lesson of whose parts 2 measures, and 3, 6, 9 and 12 check."""
    title = (
        "# 01 · Timing: how much is it?\n\n**You will be able to** add. **You need** nothing. "
        "**Time** 5 minutes. **Tools** none."
    )
    cells = [new_markdown_cell(title, id="title")]
    for number in range(1, 5):
        name = f"sum-{number}"
        question = "## Sum\n\n**Predict.** How much? (a) It is two. (b) It is too much."
        cells.append(new_markdown_cell(question, id=name))
        cells.append(new_code_cell(f'predict("01 {name}", "?")', id=f"{name}-answer"))
        if number == 1:
            output = new_output("stream", text="2\n")
            source = "total = 1 + 1\nprint(total)"
            cells.append(new_code_cell(source, id="sum-measure", outputs=[output]))
        check = CHECK.format("total == expected") + f'\noutcome("01 {name}")'
        cells.append(new_code_cell(check, id=f"{name}-check", metadata=CHECKS))
        answer = f"**Read.** The answer is ({'ab'[number % 2]}), as who counted has predicted."
        cells.append(new_markdown_cell(answer, id=f"{name}-read"))
    cells.append(new_markdown_cell("## What a sum cannot tell you", id="limits"))
    cells.append(new_markdown_cell("## Recap", id="recap"))
    cells.append(new_code_cell('record_of("01")', id="record"))
    for number, cell in enumerate((cell for cell in cells if cell.cell_type == "code"), 1):
        cell.execution_count = number
    return new_notebook(cells=cells)


def parts(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells between which the reader predicts."""
    return [cell for cell in notebook.cells if not notebooks.is_prediction(cell)]


def changed(part: int, more: str = "", **fields: object) -> NotebookNode:
    """The good lesson with ``more`` at the end of a part's source, or other fields of the cell."""
    notebook = good()
    cell = parts(notebook)[part]
    cell.source += more
    cell.update(nbformat.from_dict(fields))
    return notebook


def without(text: str, instead: str = "") -> NotebookNode:
    """The good lesson with other words in place of ``text``."""
    notebook = good()
    for cell in notebook.cells:
        cell.source = cell.source.replace(text, instead)
    return notebook


def two_checks(first: str, second: str) -> NotebookNode:
    """The good lesson with a first check that begins with ``first`` and compares ``twice``."""
    notebook = changed(6, f"\n{second}")
    check = parts(notebook)[3]
    check.source = check.source.replace("expected = 2\n", first).replace("expected", "twice / 2")
    return notebook


def calling_a_function(later: str) -> NotebookNode:
    """The good lesson with a first check that reads ``total`` only in the function ``add``."""
    notebook = changed(6, f"\n{later}")
    parts(notebook)[2].source += "\n\n\ndef add():\n    return total + 1"
    parts(notebook)[3].source = '# Check\nclaim("one and two make three", add() == 3)'
    return notebook


def complaints_of(notebook: NotebookNode, folder: Path) -> set[str]:
    path = folder / "01_adding.ipynb"
    path.write_text(notebooks.as_text(notebook), encoding="utf-8")
    return {rule.__name__ for rule in rules.ALL if list(rule(notebook, path))}


def printed(text: str, name: str = "stdout") -> list[NotebookNode]:
    return [new_output("stream", name=name, text=text)]


IGNORED = {"tags": [rules.IGNORED]}
DRAWN = [new_output("display_data", data={"image/png": "iVBORw0KGgo="})]
BREAKS = [
    (rules.execution_counts_run_from_1, changed(2, execution_count=None)),
    (rules.nothing_escapes_the_comparison, changed(12, metadata=CHECKS | IGNORED)),
    (rules.nothing_escapes_the_comparison, changed(2, "\n# NBVAL_IGNORE_OUTPUT")),
    (rules.nothing_escapes_the_comparison, changed(2, ";")),
    (rules.the_file_is_canonical, changed(2, metadata={"execution": {"shell": "2026-01-01"}})),
    (rules.the_file_is_canonical, changed(2, id="8c7F3a")),
    (rules.a_section_ends_in_a_picture, changed(2, outputs=printed("1, 2, 3 and 4"))),
    (rules.a_section_ends_in_a_picture, changed(2, outputs=printed("~2"))),
    (rules.a_set_has_a_picture, good()),  # among the solutions
    (rules.every_figure_has_alt_text, changed(2, outputs=DRAWN)),
    (rules.every_figure_has_alt_text, changed(1, "\n![](https://example.org/drawing.svg)")),
    (rules.outputs_name_no_machine, changed(2, outputs=printed("saved to /home/ada/x.json"))),
    (rules.nothing_is_warned, changed(2, outputs=printed("old", "stderr"))),
    (rules.cells_are_short, changed(2, "\ntotal += 0" * 25)),
    (rules.cells_are_short, changed(2, outputs=printed("row\n" * 33))),
    (rules.the_mark_comes_from_units, changed(2, '\nprint(f"~{total} FLOP")')),
    (rules.prose_holds_no_measurement, changed(1, "\n\nIt takes 3.2 ms.")),
    (rules.notes_are_folded, changed(1, metadata={"slideshow": {"slide_type": "notes"}})),
    (rules.a_lesson_has_its_anatomy, changed(1, source="## Sum 1")),
    (rules.a_prediction_is_measured_before_it_is_read, changed(1, "\n\n**Read.** Two.")),
    *(
        (rules.predictions_are_kept, without(*words))
        for words in (
            ('predict("01 sum-2", "?")', "total"),
            ('predict("01 sum-2", "?")', 'predict("01 sum-2", "b")'),
            ("**Predict.**", "**Guess.**"),
            ("01 sum-2", "02 sum-2"),
            ('outcome("01 sum-2")',),
            ('outcome("01 sum-2")', 'outcome("01 sum-1")'),
            ('record_of("01")', "total"),
            ("(b) It is", "It is"),
            ("too much.", "too much" + " by far" * 40),
            ("answer is (a)", "answer is (b)"),
        )
    ),
    (rules.a_lesson_fits_its_class, changed(1, " word" * 38 * 130)),
    (
        rules.a_lesson_fits_its_class,
        changed(15, source="## At home\n" + " word" * 130),
    ),  # not stated
    (rules.checks_are_folded, changed(3, metadata={})),
    (rules.checks_are_folded, changed(2, metadata=CHECKS)),
    (rules.checks_are_folded, changed(3, "\nprint(total)")),
    (rules.lessons_are_named, changed(1, "See lesson 05.")),
    (rules.lessons_are_named, changed(1, "See [lesson 02, cProfile](05_torch_profiler.ipynb).")),
    *(
        (rules.claims_can_fail, changed(3, source=CHECK.format(condition)))
        for condition in (
            "True",
            "total",
            "total == 2 and 2 > 1",
            "total == total",
            "len([total]) >= 0",
            "all([])",
            "expected == 2",
        )
    ),
    *(
        (rules.checks_can_run_twice, changed(6, f"\n{rebinding}"))
        for rebinding in (
            "total = 3",
            "total: int = 3",
            "total += 1",
            "first, (*total, last) = [1, [2, 3]]",
            "del total",
            "for total in range(3): pass",
            "[total := number for number in range(3)]",
            "with open('sums.txt') as total: pass",
            "import math as total",
            "from math import total",
            "def total(): pass",
            "class total: pass",
            "def add():\n    global total\n    total = 3",
            "try: pass\nexcept ValueError as total: pass",
            "match [1, 2]:\n    case [1, total]: pass",
            "%time total = 1 + 2",
            "%lprun -f add total = add(1, 2)",
            "claim = print",
        )
    ),
    # The check itself, what a function reads that it calls, and a name that is not surely its own.
    (rules.checks_can_run_twice, changed(3, "\ntotal = total + 1")),
    (rules.checks_can_run_twice, calling_a_function("total = 3")),
    (rules.checks_can_run_twice, two_checks("if total > 2:\n    twice = 4\n", "twice = 5")),
    (rules.checks_can_run_twice, two_checks("for twice in []:\n    pass\n", "twice = 5")),
]


def test_every_rule_is_shown_to_notice_something() -> None:
    assert {rule for rule, _ in BREAKS} == set(rules.ALL)


@pytest.mark.parametrize(("rule", "notebook"), BREAKS)
def test_rule_notices(rule: Callable, notebook: NotebookNode, tmp_path: Path) -> None:
    folder = tmp_path / ("solutions" if rule is rules.a_set_has_a_picture else "lessons")
    folder.mkdir()
    assert rule.__name__ in complaints_of(notebook, folder)


@pytest.mark.parametrize(
    "notebook",
    [
        good(),
        without("total == expected", "total < 9 or math.isclose(total, 2)"),
        changed(2, outputs=printed("row\n" * 32)),
        two_checks("twice = total * 2\n", "twice = 5"),
        changed(6, "\nadd = lambda total: [total for total in range(total)]"),
        changed(1, "\nLessons 02 and\n06, cProfile and the GPU’s timeline, say so in 10 lines."),
    ],
    ids=["good", "claim", "output", "own name", "own scope", "names"],
)
def test_no_rule_complains_of_what_is_meant(notebook: NotebookNode, tmp_path: Path) -> None:
    assert complaints_of(notebook, tmp_path) == set()


def test_lessons_link_their_neighbours() -> None:
    """Every recap's Before and Next name the lessons beside it."""
    lessons = notebooks.NOTEBOOKS.glob("[0-9]*.ipynb")
    for earlier, later in pairwise(sorted(lessons)):
        assert re.search(rf"\*\*Next:\*\*.*\({later.name}\)", earlier.read_text("utf-8")), earlier
        assert re.search(rf"\*\*Before:\*\*.*\({earlier.name}\)", later.read_text("utf-8")), later
