"""The questions of the lessons, as their texts ask and answer them after **Predict.**."""

import html
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

LESSONS = Path(__file__).resolve().parent.parent / "notebooks"
# The cell below a question: its name is the lesson's number and a word, as in "01 clocks".
CELL = re.compile(r'predict\("(?P<name>\d\d [a-z0-9-]+)", "(?P<answer>.*)"\)')
OPTION = re.compile(r"\s+(?=\([a-e]\) )")
ANSWER = re.compile(r"answer is \(([a-e])\)")

GREEN, AMBER, GREY = "#2da44e", "#d29922", "#8c959f"  # right, wrong, and neither
BAR = (
    '<div style="display: flex"><span style="flex: none; width: 2em">({})</span>'
    '<span style="flex: none; width: 10em"><span style="display: inline-block; height: 0.8em; '
    'width: {}%; background-color: {}"></span></span>'
    '<span style="flex: none; width: 3.5em; text-align: center"><b>{}</b>{}</span>'
    "<span>{}</span></div>"
)


class Question(NamedTuple):
    """A question with its options, a letter to a text, and the letter of the right one."""

    name: str
    section: str
    text: str
    options: dict[str, str]
    right: str
    at_home: bool = False


@cache
def questions() -> dict[str, Question]:
    """Every question of the course by its name, in order."""
    lessons = [json.loads(path.read_bytes()) for path in sorted(LESSONS.glob("[0-9]*.ipynb"))]
    return {question.name: question for it in lessons for question in asked_in(it["cells"])}


def asked_in(cells: list[dict]) -> Iterator[Question]:
    """The questions of a notebook's cells; a ValueError names one without options or an answer."""
    section, texts = "", [_markdown(cell) for cell in cells]
    for number, cell in enumerate(cells):
        section = [section, *re.findall(r"^###? (.+)", texts[number], flags=re.M)][-1]
        if called := CELL.fullmatch("".join(cell["source"])):
            text, *options = OPTION.split(texts[number - 1].rpartition("**Predict.**")[2].strip())
            by_letter = {option[1]: option[4:] for option in options}
            right = (ANSWER.findall("\n".join(texts[number:])) or [""])[0]
            if "".join(by_letter) not in ("ab", "abc", "abcd", "abcde") or right not in by_letter:
                raise ValueError(
                    f"{called['name']!r}: the text above asks nothing, or none answers"
                )
            at_home = "\n## At home" in "\n".join(["", *texts[:number]])
            yield Question(called["name"], section, text, by_letter, right, at_home)


def _markdown(cell: dict) -> str:
    return "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""


def votes(question: Question, counts: dict[str, int], right: str = "") -> tuple[str, str]:
    """How many chose each option, as text and as HTML; the bar of the letter ``right`` is green."""
    lines, rows, most = [], [], max([1, *counts.values()])
    for letter, option in question.options.items():
        count, colour = counts.get(letter, 0), GREEN if letter == right else GREY
        width, mark = round(100 * count / most), " ✓" if letter == right else ""
        lines.append(f"{count:4}  ({letter}) {option}{mark}")
        rows.append(BAR.format(letter, width, colour, count, mark, as_html(option)))
    return "\n".join(lines), f'<div class="votes">{"".join(rows)}</div>'


def as_html(text: str) -> str:
    """A sentence of Markdown in HTML: its code, its emphasis, nothing else."""
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(r"\*(\S.*?)\*", r"<em>\1</em>", text)
