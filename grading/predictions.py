"""``make predictions``: what a class predicted, as one page for the projector.

    python -m grading.predictions FOLDER [--lesson NN]

FOLDER holds the students' ``predictions.jsonl``, one for each, in whatever folders and under
whatever names that end in ``.jsonl``: as ``make collect`` leaves them, or as a platform gives them.
The page, reports/predictions.html, has the question, the options and how many chose each, and no
names. The counts go to teach/, where ``make teach`` shows them below each question.
"""

import argparse
import html
import json
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path

from helpers.predictions import OF_THE_CLASS, answers, lines_of
from helpers.questions import Question, as_html, questions, votes
from tools import notebooks, rules

LARGEST = 2**20  # bytes of a file, a hundred times as many as all answers need
PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>What the class predicted</title>
<style>
body {{ font: 20px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }}
h3, p {{ margin: 0.3em 0 }} section {{ margin: 2.5em 0; break-inside: avoid }}
small {{ color: #57606a }} td, th {{ padding: 0 1em 0 0; text-align: left }}
</style>
<h1>What the class predicted</h1>
<p>{summary}</p>
<table><tr><th>lesson<th>right<th>least often right</tr>
{table}</table>
{sections}
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grading.predictions", allow_abbrev=False)
    parser.add_argument("folder", help="holds the students' files, in whatever folders")
    parser.add_argument("--lesson", default="", help="only this one, such as 01")
    options = parser.parse_args(arguments)
    asked = [it for it in questions().values() if it.name.startswith(options.lesson)]
    if not options.folder or not Path(options.folder).is_dir():
        parser.error(f"expected the folder with the class's files, but got {options.folder!r}")
    if options.lesson not in ("", *rules.TITLES):
        parser.error(f"there is no lesson {options.lesson!r}: give a number, such as 01")
    read, problems = read_class(Path(options.folder))
    for problem in problems:
        print(f"left out: {problem}", file=sys.stderr)
    if not read:
        print(f"{options.folder} holds no file of predictions that can be read", file=sys.stderr)
        return 1
    counts = count(read)
    page = notebooks.ROOT / "reports" / "predictions.html"
    page.parent.mkdir(exist_ok=True)
    notebooks.write(page, as_page(asked, counts, len(read), len(problems)).encode())
    print(f"written: {page.relative_to(notebooks.ROOT)}, from {files(len(read))}")
    of_the_class = notebooks.ROOT / "teach" / OF_THE_CLASS
    of_the_class.parent.mkdir(exist_ok=True)
    notebooks.write(of_the_class, json.dumps(counts, indent=1).encode())
    print("make teach shows the counts below each question, and the right answer at its check")
    return 0


def read_class(folder: Path) -> tuple[list[dict[str, str]], list[str]]:
    """The letters that each student predicted, and a sentence for each file that is left out."""
    students, problems = [], []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        hidden = any(part.startswith((".", "__MACOSX")) for part in name.parts)
        if hidden or path.is_dir() or not path.name.lower().endswith((".jsonl", ".jsonl.txt")):
            continue
        try:
            students.append(predicted_in(path))
        except OSError as error:
            problems.append(f"{name}: it cannot be read: {error.strerror}")
        except ValueError as error:
            problems.append(f"{name}: {error}")
    return students, problems


def predicted_in(path: Path) -> dict[str, str]:
    """The letter that one student predicted, by question; ValueError says why there is none."""
    if path.is_symlink():
        raise ValueError("it is a link: hand in the file itself")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it has more than {LARGEST // 2**20} MB, but is a list of letters")
    lines, damaged = lines_of(path.read_bytes())
    predicted = {name: answer.predicted for name, answer in answers(lines).items()}
    known = questions()
    damaged += [
        f"{name}: {letter}"
        for name, letter in predicted.items()
        if name in known and letter not in known[name].options
    ]
    if damaged:
        raise ValueError(f"this is no line of predictions: {damaged[0]!r}")
    if not predicted:
        raise ValueError("it holds no prediction")
    return predicted


def count(students: list[dict[str, str]]) -> dict[str, Counter]:
    """How many students predicted each letter, by question."""
    return {
        name: Counter(student[name] for student in students if name in student)
        for name in questions()
    }


def as_page(asked: list[Question], counts: dict[str, Counter], read: int, left_out: int) -> str:
    summary = f"From {files(read)} of predictions. A green bar is the right answer."
    summary += f" {files(left_out)} could not be read." if left_out else ""
    table, sections = "", ""
    answered = [it for it in asked if counts[it.name]]
    for number, lesson in groupby(answered, lambda it: it.name[:2]):
        own, title = list(lesson), html.escape(f"{number} {rules.TITLES[number]}")
        hardest = min(own, key=lambda it: right_share([it], counts))
        table += (
            f'<tr><td><a href="#{number}">{title}</a><td>{percent(own, counts)}'
            f"<td>{as_html(hardest.section)}: {percent([hardest], counts)}</tr>\n"
        )
        sections += f'<h2 id="{number}">{title}</h2>\n'
        for it in own:
            sections += (
                f"<section><h3>{as_html(it.section)}</h3><p>{as_html(it.text)}</p>\n"
                f"{votes(it, counts[it.name], it.right)[1]}\n"
                f"<small>{counts[it.name].total()} answers, "
                f"{percent([it], counts)} right</small></section>\n"
            )
    return PAGE.format(summary=summary, table=table, sections=sections)


def right_share(asked: list[Question], counts: dict[str, Counter]) -> float:
    """The fraction of all answers to some questions that is right."""
    right = sum(counts[it.name][it.right] for it in asked)
    return right / sum(counts[it.name].total() for it in asked)


def percent(asked: list[Question], counts: dict[str, Counter]) -> str:
    return f"{100 * right_share(asked, counts):.0f} %"


def files(number: int) -> str:
    return f"{number} {'file' if number == 1 else 'files'}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
