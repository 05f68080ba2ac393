"""The decks of ``make slides`` on a screen of 1280 × 720, as a class sees them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode

from tools import notebooks

pytestmark = pytest.mark.everything
LESSONS = sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
SCRIPT = Path(__file__).with_name("slides.js")


@pytest.fixture(scope="module")
def slides():
    """What makes the decks; nbconvert, which it imports, is slow to import."""
    from tools import slides

    return slides


@pytest.fixture(scope="module")
def opened(chromium, slides, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """``opened(lesson)`` is a page that shows its deck; it asks nothing of the network."""
    words = "reveal.js is missing: pip install -r requirements-make.txt -c constraints.txt"
    pytest.importorskip("sphinx_revealjs", reason=words)
    folder = tmp_path_factory.mktemp("slides")
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    requests = []
    page.on("request", lambda request: requests.append(request.url))

    def open_deck(lesson: Path):
        (deck,) = slides.build([lesson], folder)
        page.goto(deck.as_uri())
        page.wait_for_function("() => window.Reveal?.isReady()")
        page.add_script_tag(path=SCRIPT)
        return page

    yield open_deck
    page.close()
    here = (folder.as_uri(), "data:", "blob:")
    assert [url for url in requests if not url.startswith(here)] == []


def in_class(lesson: NotebookNode, tag: str) -> dict:
    """What the deck must show, as the notebook has it; ``tag`` is that of code in a deck."""
    at_home = (i for i, cell in enumerate(lesson.cells) if cell.source.startswith("## At home"))
    cells = lesson.cells[: next(at_home, None)]
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    tools = [cell.source for cell in cells if tag in cell.metadata.get("tags", [])]
    return {
        "sections": re.findall(r"^## (.+)", text.replace("`", ""), re.M),
        "code": tools,
        "predictions": text.count("**Predict.**"),
        "pictures": sum(
            notebooks.is_picture(output) for cell in cells for output in cell.get("outputs", [])
        ),
    }


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.name)
def test_a_deck_is_for_a_class(opened, slides, lesson: Path) -> None:
    expected = in_class(notebooks.read(lesson), slides.TOOL)
    assert expected["pictures"]
    assert expected["predictions"]
    assert opened(lesson).evaluate("lesson => complaints(lesson)", expected) == []


def test_decks_show_more_pictures_than_code(slides) -> None:
    """A slide holds one picture at most, so that it can fill the slide."""
    decks = [slides.slides(notebooks.read(lesson)) for lesson in LESSONS]
    shown = [slide.shown for deck in decks for slide in deck]
    pictures = [
        sum(notebooks.is_picture(output) for cell in cells for output in cell.get("outputs", []))
        for cells in shown
    ]
    code = [any(cell.cell_type == "code" and cell.source for cell in cells) for cells in shown]
    assert max(pictures) == 1
    assert sum(pictures) >= 0.35 * len(shown)
    assert sum(code) <= 0.15 * len(shown)


def test_the_notes_hold_what_is_said(opened) -> None:
    page = opened(LESSONS[1])
    notes = " ".join(page.locator("aside.notes").all_text_contents())
    for part in ("Instructor notes", "Plan for", "Read.", "Trap:"):
        assert part in notes
    assert page.locator("aside.notes details").count() == 0


def test_what_is_no_lesson_is_named(slides, capsys: pytest.CaptureFixture) -> None:
    assert slides.main(["notebooks/99_more.ipynb"]) == 1
    assert "99_more.ipynb is no lesson: give a path such as" in capsys.readouterr().err
