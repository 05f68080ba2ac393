"""The decks of ``make slides`` on a screen of 1280 × 720, as a class sees them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import notebooks, slides

pytestmark = pytest.mark.everything
LESSONS = sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
SCRIPT = Path(__file__).with_name("slides.js")


# What is done to a good deck, and what must be said of it then.
HARM = {
    "an output comes with its code": "one('.fragment').classList.remove('fragment')",
    "a prediction shares its slide": "slideOf('.predict').append(one('.jp-CodeCell'))",
    "a question of": "one('.predict').parentNode.append(' word'.repeat(61))",
    "the notes are shown": "one('aside.notes').style.display = 'block'",
    "code that is no code": "one('p:has(.option)').append(' `so`')",
    "a trap that is a title only": "one('h3 ~ p').remove()",
    "nothing is shown": "slideOf('h1').replaceChildren()",
    "something does not fit": "one('p:has(.option)').style.marginTop = '500px'",
    "something is cut off": "one('.highlight pre').style.height = '20px'",
    "type of 15 pixels": "one('p:has(.option)').style.fontSize = '15px'",
    "has no alt text": "one('img').alt = ''",
    "a picture is not shown": "one('img').src = 'gone.png'",
    "no slide opens the section First": "one('h2').remove()",
    "the code cells are not those": "one('.jp-CodeCell .highlight').remove()",
    "0 predictions instead of 1": "one('.predict').remove()",
}
FIND = """
const one = (what) => document.querySelector(`.slides ${what}`);
const slideOf = (what) => one(what).closest("section");
"""


def small() -> NotebookNode:
    """A lesson of each kind of slide."""
    dot = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
    cells = [
        new_markdown_cell("# 15 · More: is it good?\n\nSaid.", id="title"),
        new_markdown_cell("## First\n\n**Predict.** How? (a) So. (b) Or `so`.", id="first"),
        new_code_cell("claim('so')", id="so", outputs=[new_output("stream", text="✓ so  (n = 1)")]),
        new_markdown_cell(f"**Read.** (a).\n\n![a dot]({dot})", id="dot"),
        new_markdown_cell("**Trap: a `trap`.** It is one.", id="trap"),
        new_markdown_cell("## Recap\n\nConfirmed:\n- it is.", id="recap"),
        new_markdown_cell("## At home\n\n**Predict.** And then?", id="home"),
        new_code_cell("left_out", id="left-out"),
    ]
    return notebooks.canonical(new_notebook(cells=cells))


@pytest.fixture(scope="module")
def deck(chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """``deck(name)`` opens a deck and gives the page; ``deck.outside``: what it asked others."""
    words = "a package is missing: pip install -r requirements-make.txt -c constraints.txt"
    for package in ("sphinx_revealjs", "latex2mathml"):
        pytest.importorskip(package, reason=words)
    folder = tmp_path_factory.mktemp("slides")
    one_more = folder / "15_small.ipynb"
    one_more.write_text(notebooks.as_text(small()), encoding="utf-8")
    page = chromium.new_page(viewport={"width": 1280, "height": 720})

    def opened(lesson: Path):
        (deck,) = slides.build([lesson], folder)
        page.goto(deck.as_uri())
        page.wait_for_function("() => window.Reveal?.isReady()")
        page.add_script_tag(path=SCRIPT)
        return page

    opened.small, opened.outside = one_more, []
    here = (folder.as_uri(), "data:", "blob:")
    page.on("request", lambda it: it.url.startswith(here) or opened.outside.append(it.url))
    yield opened
    page.close()


def hidden(cell: NotebookNode) -> bool:
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def in_class(lesson: NotebookNode) -> dict:
    """What the deck must show, as the notebook has it."""
    ids = [cell.id for cell in lesson.cells if cell.source.startswith("## At home")]
    end = [cell.id for cell in lesson.cells].index(ids[0]) if ids else len(lesson.cells)
    cells = lesson.cells[:end]
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return {
        "sections": re.findall(r"^## (.+)", text, re.M),
        "code": [cell.source for cell in cells if cell.cell_type == "code" and not hidden(cell)],
        "predictions": text.count("**Predict.**"),
    }


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.name)
def test_a_deck_is_for_a_class(deck, lesson: Path) -> None:
    expected = in_class(notebooks.read(lesson))
    assert expected["code"]
    assert expected["predictions"]
    assert deck(lesson).evaluate("lesson => complaints(lesson)", expected) == []
    assert deck.outside == []


def test_the_notes_hold_what_is_said(deck) -> None:
    page = deck(LESSONS[1])
    notes = " ".join(page.locator("aside.notes").all_text_contents())
    for said in ("Plan for 45 minutes", "You will be able to", "A sleeping process uses no core"):
        assert said in notes
    assert "synchronises for you" in notes
    assert page.locator("aside.notes details").count() == 0


def test_what_a_class_would_stumble_over_is_noticed(deck) -> None:
    expected = in_class(small())
    page = deck(deck.small)
    assert page.evaluate("lesson => complaints(lesson)", expected) == []
    for complaint, harm in HARM.items():
        page = deck(deck.small)
        page.evaluate(f"() => {{ {FIND} {harm} }}")
        page.wait_for_function("() => [...document.images].every((picture) => picture.complete)")
        found = page.evaluate("lesson => complaints(lesson)", expected)
        assert complaint in " ".join(found), harm
    assert deck.outside == []


def test_a_picture_from_outside_is_noticed(deck) -> None:
    page = deck(deck.small)
    page.evaluate("() => { document.images[0].src = 'http://127.0.0.2:1/far.png' }")
    page.wait_for_function("() => document.images[0].complete")
    assert deck.outside == ["http://127.0.0.2:1/far.png"]
    deck.outside.clear()


def test_what_is_no_lesson_is_named(capsys: pytest.CaptureFixture) -> None:
    assert slides.main(["notebooks/99_more.ipynb"]) == 1
    assert "99_more.ipynb is no lesson: give a path such as" in capsys.readouterr().err
