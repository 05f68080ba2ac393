"""Every notebook keeps the rules, and every rule is shown to notice a notebook that breaks it."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.lessons import rules
from tools import notebooks, recording


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
@pytest.mark.parametrize("rule", rules.ALL, ids=lambda rule: rule.__name__)
def test_rule(rule: Callable, path: Path) -> None:
    complaints = list(rule(notebooks.read(path), path))
    if path.name[:2] in rules.NOT_YET.get(rule, ()):
        assert complaints, f"it keeps the rule now: take {path.name[:2]} out of rules.NOT_YET"
    else:
        assert not complaints, "\n".join(complaints)


def test_every_exception_is_a_lesson_that_there_is() -> None:
    there = {path.name[:2] for path in notebooks.all_of_them()}
    assert set().union(*rules.NOT_YET.values()) <= there


def good() -> NotebookNode:
    """The smallest lesson that breaks no rule."""
    title = (
        "# 01 · Timing: how much is it?\n\n**You will be able to** add. **You need** nothing. "
        "**Time** 5 minutes. **Tools** none."
    )
    cells = [new_markdown_cell(title, id="title")]
    for number in range(1, 5):
        question = f"## Sum {number}\n\n**Predict.** How much?"
        cells += [
            new_markdown_cell(question, id=f"sum-{number}"),
            new_code_cell(
                'claim("one and one make two", total == 2, total=total)',
                id=f"sum-{number}-check",
                execution_count=number,
                outputs=[new_output("stream", text="✓ one and one make two  (total = 2)\n")],
            ),
            new_markdown_cell("**Read.** Two.", id=f"sum-{number}-read"),
        ]
    cells += [
        new_markdown_cell("## What a sum cannot tell you", id="limits"),
        new_markdown_cell("## Recap", id="recap"),
    ]
    return notebooks.canonical(new_notebook(cells=cells))


def complaints_of(notebook: NotebookNode, folder: Path) -> dict[str, list[str]]:
    path = folder / "01_adding.ipynb"
    path.write_text(notebooks.as_text(notebook), encoding="utf-8")
    found = {rule.__name__: list(rule(notebook, path)) for rule in rules.ALL}
    return {name: complaints for name, complaints in found.items() if complaints}


def test_a_good_notebook_breaks_no_rule(tmp_path: Path) -> None:
    assert complaints_of(good(), tmp_path) == {}


def cleared(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []


def one_not_run(notebook: NotebookNode) -> None:
    notebook.cells[2].execution_count = None


def out_of_order(notebook: NotebookNode) -> None:
    notebook.cells[2].execution_count, notebook.cells[5].execution_count = 2, 1


def counts_with_a_gap(notebook: NotebookNode) -> None:
    notebook.cells[11].execution_count = 5


def ignored_without_claim(notebook: NotebookNode) -> None:
    notebook.cells[2].metadata.tags = ["nbval-ignore-output"]
    notebook.cells[5].source = "print(total)"


def ignored_at_the_end(notebook: NotebookNode) -> None:
    notebook.cells[11].metadata.tags = ["nbval-ignore-output"]


def skipped(notebook: NotebookNode) -> None:
    notebook.cells[2].metadata.tags = ["nbval-skip"]


def stored_error(notebook: NotebookNode) -> None:
    notebook.cells[2].outputs = [new_output("error", ename="ValueError", evalue="no")]


def timestamps(notebook: NotebookNode) -> None:
    notebook.cells[2].metadata["execution"] = {"shell.execute_reply": "2026-01-01T00:00:00Z"}


def widget_state(notebook: NotebookNode) -> None:
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}


def other_kernel(notebook: NotebookNode) -> None:
    notebook.metadata.kernelspec.name = "conda-env-mine"


def random_id(notebook: NotebookNode) -> None:
    notebook.cells[2].id = "8c7F3a"


def bare_png(notebook: NotebookNode) -> None:
    data = {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure size 640x480>"}
    notebook.cells[2].outputs = [new_output("display_data", data=data)]


def html_picture(notebook: NotebookNode) -> None:
    data = {"text/html": '<img src="data:image/png;base64,iVBORw0KGgo=">', "text/plain": ""}
    notebook.cells[2].outputs = [new_output("display_data", data=data)]


def writes(text: str, cell: int = 1) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        notebook.cells[cell].source += text

    change.__name__ = f"writes {text[:40]!r}"
    return change


def prints(text: str) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        notebook.cells[2].outputs = [new_output("stream", text=text)]

    change.__name__ = f"prints {text}"
    return change


def open_notes(notebook: NotebookNode) -> None:
    notebook.cells[1].metadata["slideshow"] = {"slide_type": "notes"}


def no_prediction(notebook: NotebookNode) -> None:
    notebook.cells[1].source = "## Sum 1"


def other_time(notebook: NotebookNode) -> None:
    notebook.cells[0].source = notebook.cells[0].source.replace("5 minutes", "6 minutes")


def at_home(*, words: int = 0, last: bool = True) -> Callable[[NotebookNode], None]:
    def at_home(notebook: NotebookNode) -> None:
        section = new_markdown_cell("## At home" + " word" * words, id="home")
        notebook.cells.insert(len(notebook.cells) if last else 1, section)

    return at_home


def no_question(notebook: NotebookNode) -> None:
    notebook.cells[0].source = notebook.cells[0].source.replace("how much is it?", "sums")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (cleared, rules.every_code_cell_was_run),
        (one_not_run, rules.every_code_cell_was_run),
        (out_of_order, rules.execution_counts_run_from_1),
        (counts_with_a_gap, rules.execution_counts_run_from_1),
        (ignored_without_claim, rules.nothing_escapes_the_comparison),
        (ignored_at_the_end, rules.nothing_escapes_the_comparison),
        (writes("\n# NBVAL_IGNORE_OUTPUT", cell=2), rules.nothing_escapes_the_comparison),
        (skipped, rules.nothing_escapes_the_comparison),
        (writes(";", cell=2), rules.nothing_escapes_the_comparison),
        (stored_error, rules.no_stored_errors),
        (timestamps, rules.the_file_is_canonical),
        (widget_state, rules.the_file_is_canonical),
        (other_kernel, rules.the_file_is_canonical),
        (random_id, rules.the_file_is_canonical),
        (bare_png, rules.every_figure_has_alt_text),
        (html_picture, rules.every_figure_has_alt_text),
        (writes("\n\n![](https://example.org/drawing.svg)"), rules.every_figure_has_alt_text),
        (writes("\n\n#### Too deep"), rules.headings_nest),
        (writes("\n\n# Another"), rules.headings_nest),
        (writes("\n\nSee [the next](02_missing.ipynb)."), rules.links_lead_somewhere),
        (writes("\n\nSee [above](#Nowhere)."), rules.links_lead_somewhere),
        (prints("saved to /home/ada/x.json"), rules.outputs_name_no_machine),
        (prints("saved to /tmp/tmpab12/x.json"), rules.outputs_name_no_machine),
        (prints(r"saved to C:\Users\ada\x.json"), rules.outputs_name_no_machine),
        (prints(f"read {notebooks.ROOT}"), rules.outputs_name_no_machine),
        (writes("\ntotal += 0" * 25, cell=2), rules.cells_are_short),
        (writes('\nprint(f"~{total} FLOP")', cell=2), rules.the_mark_comes_from_units),
        (writes("\n\nIt takes 3.2 ms."), rules.prose_holds_no_measurement),
        (open_notes, rules.notes_are_folded),
        (no_prediction, rules.a_lesson_has_its_anatomy),
        (no_question, rules.a_lesson_has_its_anatomy),
        (at_home(last=False), rules.a_lesson_has_its_anatomy),
        (writes("\n\n**Read.** Two."), rules.a_prediction_is_measured_before_it_is_read),
        (
            writes("\n\n**Predict.** And then?", cell=-1),
            rules.a_prediction_is_measured_before_it_is_read,
        ),
        (writes(" word" * 38 * 165), rules.a_lesson_fits_its_class),
        (other_time, rules.a_lesson_fits_its_class),
        (at_home(words=15 * 165), rules.a_lesson_fits_its_class),
        (writes("  # " + 84 * "x", cell=2), rules.cells_are_short),
        (prints("row\n" * 33), rules.outputs_fit_a_screen),
        (writes("See lesson 05."), rules.lessons_are_named),
        (writes("See [lesson 05](05_torch_profiler.ipynb)."), rules.lessons_are_named),
        (writes("See lesson 05, cProfile."), rules.lessons_are_named),
        (writes("See [lesson 02, cProfile](05_torch_profiler.ipynb)."), rules.lessons_are_named),
        (writes("Lessons 02, cProfile, and 05 say so."), rules.lessons_are_named),
        (writes("Lesson 15, more, says so."), rules.lessons_are_named),
    ],
    ids=lambda value: value.__name__,
)
def test_rule_notices(change: Callable, rule: Callable, tmp_path: Path) -> None:
    notebook = nbformat.from_dict(good())
    change(notebook)
    assert rule.__name__ in complaints_of(notebook, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        at_home(words=10 * 165),
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


@pytest.mark.parametrize("home", ["/", "", "/home/ada"])
@pytest.mark.parametrize("user", ["step", "ada", KeyError, OSError])
def test_whoever_runs_the_tests_is_no_complaint(
    home: str, user: str | type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def getuser() -> str:
        if isinstance(user, str):
            return user
        raise user("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", getuser)
    monkeypatch.setenv("HOME", home)
    notebook = good()
    prints("one step: 1 / 2 of and/or, step/forward, ~1.2 ms / step\n")(notebook)
    assert complaints_of(notebook, tmp_path) == {}
    assert list(recording.leaks('{"name": "step", "path": "step/forward", "a": "1 / 2"}')) == []


def test_the_home_folder_is_a_complaint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/people/ada")
    notebook = good()
    prints("read /people/ada/x.json")(notebook)
    assert "outputs_name_no_machine" in complaints_of(notebook, tmp_path)
    assert list(recording.leaks("read /people/ada/x.json"))
