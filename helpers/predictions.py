"""``predict``: the reader's answer to a question of a lesson, kept beside the reader's copy.

Each answer becomes a line of ``predictions.jsonl``, to which lines are only added. The last answer
before a check showed what came out is the prediction; one after it is kept, too. Nothing leaves the
computer by itself.
"""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from IPython import get_ipython
from IPython.display import display

from helpers.questions import AMBER, GREEN, GREY, as_html, questions, votes

NAME = "predictions.jsonl"
# Beside the notebook that imports this, unless the variable names another file.
FILE = Path(os.environ.get("PREDICTIONS_FILE") or NAME).absolute()
OF_THE_CLASS = "predictions_of_the_class.json"  # in an instructor's copy, by grading/predictions.py

LINE = "border-left: 3px solid {0}; background-color: {0}22; padding: 2px 10px"
SQUARE = (
    "display: inline-block; width: 1.8em; margin: 2px; text-align: center; "
    "border: 2px solid {0}; background-color: {0}22"
)


class Answer(NamedTuple):
    """What one reader chose for one question."""

    predicted: str  # the last letter before the check showed what came out
    checked: bool = False
    later: str = ""  # the last letter after that


def predict(question: str, answer: str) -> None:
    """Keep the letter ``answer``, and display which option it is; "?" displays what was kept.

    A wrong letter ends in a sentence and not in an error, so that the lesson goes on.
    """
    if not (asked := questions().get(question)):
        _show(f"This version of the course has no question {question!r}, so nothing was kept.")
        return
    kept = answers(lines_of(own_file())[0]).get(question)
    chosen = kept and (kept.later or kept.predicted)
    *letters, last = (f'"{letter}"' for letter in asked.options)
    letters = f"{', '.join(letters)} or {last}"
    if answer in list(asked.options):
        problem = _keep(question, chose=answer) if answer != chosen else ""
        _show(f"You predict ({answer}): {asked.options[answer]}{problem}")
    elif answer != "?":
        _show(f"The answer must be {letters}, in quotes, but it is {answer!r}, so it was not kept.")
    elif chosen:
        _show(f"You predicted ({chosen}): {asked.options[chosen]}")
    else:
        _show(f"No prediction yet: write {letters} instead of the question mark, or just go on.")
    if counts := _of_the_class(question):
        _show(*votes(asked, counts))


def outcome(question: str) -> None:
    """In a check: display what the reader predicted beside what came out, if there is anything."""
    asked, kept = questions().get(question), answers(lines_of(own_file())[0]).get(question)
    if asked and kept:
        if not kept.checked:
            _keep(question, saw=asked.right)
        line = f"You predicted ({kept.predicted}), and the answer is ({asked.right})."
        line += f" Later you chose ({kept.later})." if kept.later else ""
        colour = GREEN if kept.predicted == asked.right else AMBER
        _show(line, f'<div class="prediction" style="{LINE.format(colour)}">{line}</div>')
    if asked and (counts := _of_the_class(question)):
        _show(*votes(asked, counts, asked.right))


def record_of(lesson: str) -> None:
    """Display the reader's record of a lesson, such as "01": a square for each question, green if
    it was predicted right and amber if not, and below them the questions to go back to."""
    lines, damaged = lines_of(own_file())
    kept, go_back_to, squares = answers(lines), [], ""
    own = [it for name, it in questions().items() if name.startswith(f"{lesson} ")]
    asked = [it for it in own if it.name in kept or not it.at_home]
    for it in asked:
        letter = kept[it.name].predicted if it.name in kept else "–"
        colour = GREEN if letter == it.right else AMBER if it.name in kept else GREY
        squares += f'<span style="{SQUARE.format(colour)}">{letter}</span>'
        if colour == AMBER:
            go_back_to.append(
                f"{it.section}: you predicted ({letter}), not ({it.right}). {it.text}"
            )
    made = sum(it.name in kept for it in asked)
    summary = (
        f"{made} of {len(asked)} answers predicted, and {made - len(go_back_to)} of them right."
    )
    summary += f" {len(damaged)} lines of {NAME} cannot be read." if damaged else ""
    summary += " Go back to:" if go_back_to else ""
    if not made:
        _show(f"You have predicted none of this lesson's {len(asked)} answers yet.")
        return
    items = "".join(f"<li>{as_html(text)}</li>" for text in go_back_to)
    picture = f'<div role="img" aria-label="{summary}">{squares}</div>'
    _show("\n- ".join([summary, *go_back_to]), f"{picture}<p>{summary}</p><ul>{items}</ul>")


def answers(lines: list[dict[str, str]]) -> dict[str, Answer]:
    """What a reader chose, by question."""
    found: dict[str, Answer] = {}
    for line in lines:
        before = found.get(line["question"])
        if "saw" in line:
            found |= {line["question"]: before._replace(checked=True)} if before else {}
        elif before and before.checked:
            found[line["question"]] = before._replace(later=line["chose"])
        else:
            found[line["question"]] = Answer(line["chose"])
    return found


def lines_of(content: bytes) -> tuple[list[dict[str, str]], list[str]]:
    """The lines of a file of predictions, and the beginning of each that is none."""
    lines, damaged = [], []
    for written in content.decode(errors="replace").splitlines():
        try:
            line = json.loads(written)
            if not re.fullmatch("[a-e]", line.get("chose") or line["saw"]):
                raise ValueError
            lines.append({**line, "question": str(line["question"])})
        except (ValueError, KeyError, TypeError, AttributeError):
            damaged.append(written[:60])
    return lines, damaged


def own_file() -> bytes:
    """What the reader's file holds; nothing if there is none."""
    try:
        return FILE.read_bytes()
    except OSError:
        return b""


def _keep(question: str, **letter: str) -> str:
    """Add a line to the reader's file; a sentence, to go after another, if that is not possible."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        with FILE.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time, "question": question, **letter}) + "\n")
    except OSError as error:
        return f" (This could not be kept in {FILE.name}: {error.strerror}.)"
    return ""


def _of_the_class(question: str) -> dict[str, int]:
    """How many of the class chose each letter, if this is its instructor's copy."""
    path = FILE.with_name(OF_THE_CLASS)
    return json.loads(path.read_bytes()).get(question, {}) if path.exists() else {}


def _show(text: str, markup: str = "") -> None:
    if get_ipython() is None:
        print(text)
    else:
        display({"text/plain": text} | ({"text/html": markup} if markup else {}), raw=True)
