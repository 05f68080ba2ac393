"""``make slides``: a deck for each lesson, in slides/, made from the notebook as it is stored.

    python -m tools.slides [notebooks/01_timing.ipynb ...]

A slide holds a question, a cell with its output, a check, a trap, or what cannot be spoken: a
table, a picture, a formula, a listing. All other text is in the speaker's notes (key S). A question
has its slide to itself, an output comes one step after its code, and *At home* is left out. It all
follows from the lesson's anatomy: no cell says how it is shown. A deck asks for nothing from
outside; reveal.js lies beside it.
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
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import notebooks

SLIDES = notebooks.ROOT / "slides"
PAGE = Path(__file__).with_name("slides.html.j2")
REVEAL = ("dist/reveal.js", "dist/reveal.css", "dist/theme/white.css", "plugin/notes/notes.js")
FONT = "dist/theme/fonts/source-sans-pro"
MOST_WORDS = 60  # of a question, and of a trap
MOST_LINES = 21  # of a cell and its output, where they share a slide

NOTES = "<details><summary>Instructor notes</summary>"
BLOCK = re.compile(r"(?:```.*?```|.+?)(?:\n\n+|\Z)", re.S)
UNSPEAKABLE = re.compile(
    r"(\||!\[|\$\$|```)|.*\n(\||```)", re.S
)  # table, picture, formula, listing
OPTION = re.compile(r"\s+(?=\([a-e1-5]\) )")
SENTENCE = re.compile(r"(?<=[.?!]) (?=[A-Z`*(])")
CLAIM = re.compile(r"✓ (.+?)(?:  \((.+)\))?")
MATH = re.compile(r"(```.*?```|`[^`]*`)|\$\$(.+?)\$\$|\$([^$\n]+)\$", re.S)


@dataclass
class Slide:
    """``shown`` comes piece by piece; a section's first slide begins a column of the deck."""

    heading: str
    shown: list[NotebookNode]
    spoken: list[str] = field(default_factory=list)
    opens: bool = False


def main(arguments: list[str]) -> int:
    course = sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
    lessons = [Path(name).resolve() for name in arguments] or course
    if strangers := [path for path in lessons if path not in course]:
        print(f"{strangers[0]} is no lesson: give a path such as notebooks/01_timing.ipynb.",
              file=sys.stderr)  # fmt: skip
        return 1
    if not (find_spec("sphinx_revealjs") and find_spec("latex2mathml")):
        print("The decks need reveal.js: python -m pip install -r requirements-make.txt "
              "-c constraints.txt", file=sys.stderr)  # fmt: skip
        return 1
    for page in build(lessons, SLIDES):
        print(f"written: {page}")
    return 0


def build(lessons: list[Path], folder: Path) -> Iterator[Path]:
    copy_reveal(folder / "reveal")
    for lesson in lessons:
        page = folder / f"{lesson.stem}.html"
        page.write_text(as_page(notebooks.read(lesson), lesson), encoding="utf-8")
        yield page


def copy_reveal(folder: Path) -> None:
    """reveal.js as sphinx-revealjs brings it; nothing of Sphinx is used."""
    package = find_spec("sphinx_revealjs").submodule_search_locations[0]
    files = Path(package, "_static", "revealjs")
    for name in ("LICENSE", *REVEAL):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(files / name, folder / name)
    shutil.copytree(files / FONT, folder / FONT, dirs_exist_ok=True)


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
    made = new_notebook(metadata=lesson.metadata)

    def add(cell: NotebookNode, kind: str) -> None:
        cell.metadata.slideshow = {"slide_type": kind}
        if cell.cell_type == "markdown":
            cell.source = with_links(with_mathml(cell.source))
        made.cells.append(cell)

    for slide in slides(lesson):
        heading = new_markdown_cell(slide.heading)
        add(heading, "slide" if slide.opens else "subslide")
        for cell in slide.shown[:1]:
            add(cell, "-")
        add(new_markdown_cell("\n\n".join(slide.spoken)), "notes")
        for cell in slide.shown[1:]:
            add(cell, "fragment")
    return made


def slides(lesson: NotebookNode) -> list[Slide]:
    title, rest = lesson.cells[0].source.split("\n", 1)
    subject, question = re.fullmatch(r"# (.+?): (.+)", title).groups()
    above = f'<p class="lesson">{subject}</p>\n\n'
    opener = Slide(f"{above}# {capital(question)}", [], [rest], opens=True)
    made, heading, waiting = [opener], "Set-up", False
    for kind, content in pieces(lesson.cells[1:]):
        if kind == "section":  # its slide comes with what is shown first
            heading, waiting, before = content, True, []
        elif kind == "spoken":
            (before if waiting else made[-1].spoken).append(content)
        elif kind == "notes":
            opener.spoken.insert(0, content)
        else:
            if waiting:
                opener = Slide(f"{above}## {heading}", [], before, opens=True)
                made.append(opener)
            if waiting and kind == "shown":  # a code cell gets the whole height of its own
                opener.shown = content
            else:
                where = f'<p class="where">{subject} · {html.escape(heading)}</p>'
                made.append(Slide(where, content))
            waiting = False
    return made


def pieces(cells: list[NotebookNode]) -> Iterator[tuple[str, str | list[NotebookNode]]]:
    """(kind, content): a section's heading; what is spoken; the instructor's notes; a slide."""
    for cell in cells:
        if cell.cell_type == "code":
            yield from of_code(cell)
        elif cell.source.startswith(NOTES):
            text = cell.source.removeprefix(NOTES).removesuffix("</details>")
            yield "notes", f"**Instructor notes**{text}"
        elif cell.source.startswith("## At home"):
            return
        elif cell.cell_type == "markdown":
            recap = cell.source.startswith("## Recap")
            for block in BLOCK.findall(cell.source):
                yield from of_text(block.strip(), recap)


def of_text(block: str, recap: bool) -> Iterator[tuple[str, str | list[NotebookNode]]]:
    if block.startswith("## "):
        yield "section", block.removeprefix("## ")
    elif "**Predict.**" in block:
        lead, _, asked = block.partition("**Predict.**")
        before, shown = question(asked.strip())
        yield "spoken", lead
        yield "shown", [new_markdown_cell(shown)]
        yield "spoken", before
    elif "**Trap" in block:
        lead, mark, warned = block.partition("**Trap:")
        yield "spoken", lead
        yield "shown", [new_markdown_cell(trap(warned))]
        yield "spoken", mark + warned
    elif UNSPEAKABLE.match(block) or (recap and "\n- " in block) or is_short_list(block):
        yield "shown", [new_markdown_cell(block)]
    else:
        yield "spoken", block


def is_short_list(block: str) -> bool:
    return block.startswith("1. ") and len(block.split()) <= MOST_WORDS


def question(text: str) -> tuple[str, str]:
    """What is said before it, and the question with an option a line."""
    lead, *options = OPTION.split(text)
    sentences, said = SENTENCE.split(lead), []
    while len(sentences) > 1 and len(" ".join([*sentences, *options]).split()) > MOST_WORDS:
        said.append(sentences.pop(0))
    shown = ['<p class="predict">Predict</p>', " ".join(sentences)]
    for option, following in zip(options, [*options[1:], "(a)"], strict=True):
        last = following[1] in "a1"
        words, *after = SENTENCE.split(option[4:], 1) if last else [option[4:]]
        shown += [f'<p class="option"><b>{option[1]}</b> {as_html(words)}</p>', *after]
    return " ".join(said), "\n\n".join(shown)


def as_html(words: str) -> str:
    """Code and emphasis as HTML: in an HTML block Markdown is left as it is."""
    words = re.sub(r"`([^`]+)`", lambda code: f"<code>{html.escape(code[1])}</code>", words)
    return re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"<em>\1</em>", words)


def trap(text: str) -> str:
    """Its first sentence as a title, and as many of the others as a slide has room for."""
    name, *sentences = SENTENCE.split(text.replace("**", "", 1).strip())
    while len(" ".join([name, *sentences]).split()) > MOST_WORDS:
        sentences.pop()
    if sentences and sentences[-1].endswith(":"):  # what it announces is not on this slide
        sentences[-1] = sentences[-1][:-1] + "."
    return f'<p class="trap">Trap</p>\n\n### {capital(name).rstrip(".")}\n\n{" ".join(sentences)}'


def of_code(cell: NotebookNode) -> Iterator[tuple[str, list[NotebookNode]]]:
    """The code, and then its outputs: on the same slide, as long as there is room."""
    shown, used = [new_code_cell(cell.source, id=cell.id)], len(cell.source.splitlines())
    for output in with_claims(cell.outputs):
        if used and used + lines(output) > MOST_LINES:
            yield "code", shown
            shown, used = [], 0
        used += lines(output)
        if shown and not shown[-1].source:
            shown[-1].outputs.append(output)
        else:
            shown.append(new_code_cell(outputs=[output]))
            shown[-1].metadata.transient = {"remove_source": True}
    yield "code", shown


def with_claims(outputs: list[NotebookNode]) -> Iterator[NotebookNode]:
    """``outputs``, with each claim that they print set as a line to be read from the last row."""
    for output in outputs:
        if output.output_type != "stream":
            yield output
            continue
        for part in re.split(r"^(✓ .*)\n?", output.text, flags=re.M):
            if claim := CLAIM.fullmatch(part):
                words, values = (html.escape(one or "") for one in claim.groups())
                line = f'<p class="claim"><b>✓</b> {words} <code>{values}</code></p>'
                yield new_output("display_data", {"text/html": line})
            elif part.strip():
                yield new_output("stream", text=part.strip("\n"))


def lines(output: NotebookNode) -> float:
    """About how many lines of code are as high as ``output``."""
    data = output.get("data", {})
    shown = data.get("text/html", "")
    if "<img" in shown:
        return MOST_LINES
    if "<tr" in shown:
        return 1 + 1.8 * shown.count("<tr")
    if shown:
        return 2.6 + 1.4 * (len(re.sub("<.*?>", "", shown)) // 80)
    return 1 + len(output.get("text", data.get("text/plain", "")).splitlines())


def with_mathml(text: str) -> str:
    """Formulas as what a browser draws by itself."""
    from latex2mathml.converter import convert  # only makers have it

    def drawn(found: re.Match) -> str:
        code, display, inline = found.groups()
        return code or convert(display or inline, display="block" if display else "inline")

    return MATH.sub(drawn, text)


def with_links(text: str) -> str:
    """Pictures are in the deck itself; a link into the course's folder leads nowhere from there."""

    def embedded(found: re.Match) -> str:
        alt, path = html.escape(found[1]), notebooks.NOTEBOOKS / found[2]
        data = b64encode(path.read_bytes()).decode()
        return f'<img alt="{alt}" src="data:{guess_type(path.name)[0]};base64,{data}">'

    text = re.sub(r"!\[([^\]]*)\]\((?!\w+:)([^)]+)\)", embedded, text)
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", text)


def capital(text: str) -> str:
    """``text`` as a title; a name such as p99 stays."""
    return text[0].upper() + text[1:] if re.match(r"[a-z]([a-z]| )", text) else text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
