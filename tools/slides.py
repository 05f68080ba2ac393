"""``make slides``: a deck for each lesson, in slides/, made from the notebook as it is stored.

    python -m tools.slides [01 ...]

A deck is for the room. A slide holds a question with its whole premise, a picture or a result with
the first claim of its check, a trap, or what cannot be spoken: a table, a drawing, a formula. A
cell's code is shown only if the cell has the tag ``tool``, which says that it is the call of a tool
that the reader will type; all other code is run in JupyterLab. All other text is in the speaker's
notes (key S). *At home* is left out. A deck asks nothing of the network: reveal.js is copied next
to it.
"""

import html
import re
import shutil
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from mimetypes import guess_type
from pathlib import Path

from nbconvert import SlidesExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers.questions import OPTION
from tools import notebooks

SLIDES = notebooks.ROOT / "slides"
PAGE = Path(__file__).with_name("slides.html.j2")
MOST_WORDS = 60  # of a trap
TOOL = "tool"  # the tag of a cell whose code is shown

FOLD = re.compile(r"<details[^>]*>\s*<summary>.*?</summary>|</details>")
BLOCK = re.compile(r"(?:```.*?```|.+?)(?:\n\n+|\Z)", re.S)
# A table, a picture, a formula, a drawing in letters.
UNSPEAKABLE = re.compile(r"(\||!\[|\$\$|```(text)?\n)|.*\n(\||```(text)?\n)", re.S)
SENTENCE = re.compile(r"(?<=[.?!]) (?=[A-Z`*(])")
MATH = re.compile(r"(```.*?```|`[^`]*`)|\$\$(.+?)\$\$|\$([^$\n]+)\$", re.S)
PICTURE = re.compile(r"!\[([^\]]*)\]\((?!\w+:)([^)]+)\)")
# It would lead nowhere from a deck.
LINK_TO_A_FILE = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]+\)")


@dataclass
class Slide:
    """``shown`` appears at once, but the outputs of a tool come one step after its code."""

    title: str
    shown: list[NotebookNode]
    spoken: list[str] = field(default_factory=list)
    begins_section: bool = False


def main(arguments: list[str]) -> int:
    course = sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
    lessons = [notebooks.named(word) for word in arguments] or course
    if unknown := [path for path in lessons if path not in course]:
        hint = "give a path such as notebooks/01_timing.ipynb, or only its number."
        print(f"{unknown[0]} is no lesson: {hint}", file=sys.stderr)
        return 1
    if not find_spec("sphinx_revealjs"):
        install = "python -m pip install -r requirements-make.txt -c constraints.txt"
        print(f"The decks need reveal.js: {install}", file=sys.stderr)
        return 1
    for page in build(lessons, SLIDES):
        print(f"written: {page}", flush=True)  # a deck takes a second
    return 0


def build(lessons: list[Path], folder: Path) -> Iterator[Path]:
    # Copied out of sphinx-revealjs, of which nothing else is used.
    package = find_spec("sphinx_revealjs").submodule_search_locations[0]
    reveal = Path(package, "_static", "revealjs")
    shutil.copytree(reveal, folder / "reveal", dirs_exist_ok=True)
    for lesson in lessons:
        page = folder / f"{lesson.stem}.html"
        page.write_text(as_page(notebooks.read(lesson), lesson), encoding="utf-8")
        yield page


def as_page(lesson: NotebookNode, path: Path) -> str:
    exporter = SlidesExporter(
        raw_template=PAGE.read_text(encoding="utf-8"),
        reveal_url_prefix="reveal",
        reveal_theme="white",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
    )
    return exporter.from_notebook_node(deck(lesson), {"metadata": {"name": path.stem}})[0]


def deck(lesson: NotebookNode) -> NotebookNode:
    """``lesson`` as a notebook with the slide types of nbconvert."""
    result = new_notebook(metadata=lesson.metadata)

    def add(cell: NotebookNode, slide_type: str) -> None:
        cell.metadata.slideshow = {"slide_type": slide_type}
        if cell.cell_type == "markdown":
            # nbconvert can embed pictures, but then it also rewrites the HTML in the text.
            text = PICTURE.sub(embedded, MATH.sub(as_mathml, cell.source))
            cell.source = LINK_TO_A_FILE.sub(r"\1", text)
        result.cells.append(cell)

    for slide in slides(lesson):
        add(new_markdown_cell(slide.title), "slide" if slide.begins_section else "subslide")
        shows_code = any(cell.cell_type == "code" and cell.source for cell in slide.shown)
        for number, cell in enumerate(slide.shown):
            add(cell, "fragment" if shows_code and number else "-")
        add(new_markdown_cell("\n\n".join(slide.spoken)), "notes")
    return result


def slides(lesson: NotebookNode) -> list[Slide]:
    title, introduction = lesson.cells[0].source.split("\n", 1)
    subject, question = re.fullmatch(r"# (.+?): (.+)", title).groups()
    above = f'<p class="lesson">{subject}</p>\n\n'
    first = Slide(f"{above}# {capital(question)}", [], [introduction], begins_section=True)
    result, section, notes = [first], capital(question), first.spoken
    for kind, content in pieces(lesson.cells[1:]):
        if kind == "section":
            section = content
            notes = [] if notes is result[-1].spoken else notes
        elif kind == "notes":
            first.spoken.insert(0, content)
        elif kind == "spoken":
            notes.append(content)
        else:
            begins = notes is not result[-1].spoken
            slide = Slide(f"{above}## {section}", content, notes if begins else [], begins)
            result.append(slide)
            notes = slide.spoken
    return result


def pieces(cells: list[NotebookNode]) -> Iterator[tuple[str, str | list[NotebookNode]]]:
    """(kind, content) of what a lesson holds, in order.

    The kinds are ``section``, ``spoken`` and ``notes``, whose content is a text, and ``shown``,
    whose content is a list of cells.
    """
    shown = results(cells)
    for cell in cells:
        if cell.id in shown:
            yield from (("shown", content) for content in shown[cell.id])
        elif cell.source.startswith(notebooks.NOTES):
            yield "notes", f"**Instructor notes**{FOLD.sub('', cell.source)}"
        elif cell.source.startswith("## At home"):
            return
        elif cell.cell_type == "markdown":
            is_recap = cell.source.startswith("## Recap")
            for block in BLOCK.findall(FOLD.sub("", cell.source).strip()):
                yield from of_text(block.strip(), is_recap)


def results(cells: list[NotebookNode]) -> dict[str, list[list[NotebookNode]]]:
    """What the slides of a code cell show, by its id.

    Of a tool's call these are its code and its outputs. Of the other cells it is each picture and,
    where a check follows and nothing else was shown of the section since the last one, the outputs
    before it. A check's claims go below them, the first below the first; more are not shown.
    """
    shown: dict[str, list[list[NotebookNode]]] = {}
    waiting, last = [], ("", [])  # the contents that wait for a claim, and the last outputs
    for cell in cells:
        outputs = [new_code_cell(outputs=[output]) for output in cell.get("outputs", [])]
        for output in outputs:
            output.metadata.transient = {"remove_source": True}
        pictures = [[output] for output in outputs if notebooks.is_picture(output.outputs[0])]
        if cell.source.startswith("## "):
            waiting, last = [], ("", [])
        elif cell.metadata.get("jupyter", {}).get("source_hidden"):
            if not waiting and last[0]:
                waiting = shown[last[0]] = [last[1]]
            claims = [claim for claim in outputs if 'class="claim ' in str(claim.outputs[0])]
            for content, claim in zip(waiting, claims, strict=False):
                content.append(claim)
            waiting, last = [], ("", [])
        elif TOOL in cell.metadata.get("tags", []):
            shown[cell.id] = [[new_code_cell(cell.source, id=cell.id), *outputs]]
            waiting += shown[cell.id]
        elif pictures:
            shown[cell.id] = pictures
            waiting += pictures
        elif outputs and not notebooks.is_prediction(cell):
            last = cell.id, outputs
    return shown


def of_text(block: str, is_recap: bool) -> Iterator[tuple[str, str | list[NotebookNode]]]:
    is_list = is_recap and "\n- " in block
    is_short_list = block.startswith("1. ") and len(block.split()) <= MOST_WORDS
    if block.startswith("## "):
        yield "section", block.removeprefix("## ")
    elif mark := re.search(r"\*\*(Predict\.\*\*|Trap:)", block):
        text = block[mark.end() :].strip()
        shown, spoken = trap(text) if mark[1] == "Trap:" else (question(text), "")
        yield "spoken", block[: mark.start()]
        yield "shown", [new_markdown_cell(shown)]
        yield "spoken", spoken
    elif UNSPEAKABLE.match(block) or is_list or is_short_list:
        yield "shown", [new_markdown_cell(block)]
    else:
        yield "spoken", block


def question(text: str) -> str:
    """A prediction with its whole premise, and an option a line."""
    lead, *options = OPTION.split(text)
    shown = [f'<b class="option">{option[1]}</b> {option[4:]}' for option in options]
    return "\n\n".join(['<p class="predict">Predict</p>', lead, *shown])


def trap(text: str) -> tuple[str, str]:
    """What is shown of a trap, as far as a slide has room, and what is said: all of it."""
    name, *sentences = SENTENCE.split(text.replace("**", "", 1))
    while len(" ".join([name, *sentences]).split()) > MOST_WORDS:
        sentences.pop()
    title = capital(name).rstrip(".")
    return f'<p class="trap">Trap</p>\n\n### {title}\n\n{" ".join(sentences)}', f"**Trap: {text}"


def as_mathml(found: re.Match) -> str:
    """A formula as what a browser draws without a script."""
    from latex2mathml.converter import convert  # only makers have it

    code, display, inline = found.groups()
    return code or convert(display or inline, display="block" if display else "inline")


def embedded(found: re.Match) -> str:
    """A picture of the course, with its content in the deck itself."""
    alt, path = html.escape(found[1]), notebooks.NOTEBOOKS / found[2]
    data = b64encode(path.read_bytes()).decode()
    return f'<img alt="{alt}" src="data:{guess_type(path.name)[0]};base64,{data}">'


def capital(text: str) -> str:
    """``text`` with a capital letter, unless it begins with a name such as p99."""
    return text[0].upper() + text[1:] if re.match(r"[a-z]([a-z]| )", text) else text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
