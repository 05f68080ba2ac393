"""What a class's results become: tables, feedback pages, a page for the class, look-alikes."""

import ast
import csv
import hashlib
import html
import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

import nbgrader
import nbgrader.preprocessors
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbgrader import utils

from tools import exercises

PAGES = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader"
STYLES = PAGES / "static" / "node_modules" / "bootstrap" / "dist" / "css"
COLUMNS = ["student", "lesson", "task", "points", "of", "reason"]
BY_HAND = ["student", "lesson", "task", "points", "comment"]
ALIKE = 0.8  # the share of their rarer parts that two near-identical submissions have in common
PIECES = 5  # consecutive nodes of an answer's syntax tree that are compared as one part

Marks = dict[tuple[str, str, str], tuple[float, str]]  # (student, lesson, task): points, comment


def marks_by_hand(out: Path) -> Marks:
    found = {}
    for number, (*who, points, comment) in enumerate(by_hand(out), 2):
        try:
            if points.strip():
                found[tuple(who)] = (float(points), comment)
        except ValueError:
            raise ValueError(f"{out / 'manual.csv'}, row {number}: points must be a number such as "
                             f"2.5, but {points!r} came") from None  # fmt: skip
    return found


def by_hand(out: Path) -> list[list[str]]:
    """The rows of manual.csv below its first, which a spreadsheet may have written."""
    path = out / "manual.csv"
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head, *lines = [*csv.reader(file)] or [[]]
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8: save it as CSV, in UTF-8, with commas") from None
    if head[: len(BY_HAND)] != BY_HAND:
        came = ",".join(head) or "nothing"
        raise ValueError(f"{path} must begin with {','.join(BY_HAND)}, but {came} came: "
                         "save it as CSV, in UTF-8, with commas")  # fmt: skip
    return [(line + [""] * len(BY_HAND))[: len(BY_HAND)] for line in lines if any(line)]


def write_by_hand(out: Path, lines: Iterable[list]) -> None:
    with (out / "manual.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([BY_HAND, *lines])


def rows(results: Iterable[dict], marks: Marks, late: dict[tuple, str]) -> Iterator[list]:
    """The lines of grades.csv; a mark entered by hand wins."""
    for one in results:
        for task, row in one["rows"].items():
            points, reasons = row["points"], list(row["reasons"])
            mark = marks.get((one["student"], one["lesson"], task))
            if mark:
                points, reasons = mark[0], [mark[1] or "marked by hand", *reasons]
            elif row.get("by_hand"):
                reasons.append("to be marked by hand, in manual.csv")
            said = late.get((one["student"], one["lesson"]))
            reasons += [said] if said else []
            reason = "; ".join(reasons)
            yield [one["student"], one["lesson"], task, round(points, 2), row["of"], clean(reason)]


def write(out: Path, results: list[dict], late: dict[tuple, str]) -> None:
    results = sorted(results, key=lambda one: (one["lesson"], one["student"]))
    marks = marks_by_hand(out)
    grades = list(rows(results, marks, late))
    table(out / "grades.csv", COLUMNS, grades)
    lessons = sorted({one["lesson"] for one in results})
    sums: Counter = Counter()
    for student, lesson, _, points, *_ in grades:
        sums[student, lesson] += points
    students = sorted({one["student"] for one in results})
    totals = [[who, *(round(sums[who, lesson], 2) for lesson in lessons)] for who in students]
    table(out / "platform.csv", ["student", *lessons], totals)
    hand = by_hand(out)
    for one in results:
        for task, row in one["rows"].items():
            who = [one["student"], one["lesson"], task]
            if row.get("by_hand") and who not in [line[:3] for line in hand]:
                hand.append([*who, "", ""])
    write_by_hand(out, hand)
    table(out / "alike.csv", ["lesson", "student", "and", "alike"], alike(results))
    (out / "class.md").write_text("\n".join(page(results, grades)), encoding="utf-8")


def table(path: Path, head: list[str], lines: Iterable[list]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([[cell(value) for value in line] for line in lines])


def cell(value: object) -> object:
    """A text that a spreadsheet would compute gets a mark that stops it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else value


def clean(text: str) -> str:
    """One line of printable signs: what a student sent may be meant for a terminal."""
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    return line if len(line) <= 600 else f"{line[:600]}…"


def page(results: list[dict], grades: list[list]) -> Iterator[str]:
    """The class, without names: what was missed, and what came instead."""
    yield "# The class\n"
    for lesson in sorted({one["lesson"] for one in results}):
        mine = [one for one in results if one["lesson"] == lesson]
        lines = [line for line in grades if line[1] == lesson]
        sums: Counter = Counter()
        for student, _, _, points, *_ in lines:
            sums[student] += points
        of = sum(row["of"] for row in mine[0]["rows"].values())
        median = statistics.median(sums.values())
        yield f"## {lesson}: {len(mine)} students, median {median:g} of {of:g}\n"
        yield "| task | missed by | what came instead |\n|---|---|---|"
        for task in mine[0]["rows"]:
            missed = [line for line in lines if line[2] == task and line[3] < line[4]]
            known, came = Counter(), Counter()
            for one in mine:
                row = one["rows"][task]
                if row["wrong"]:
                    known[f"*{row['wrong'][0]}*"] += 1  # what the set's author foresaw
                elif row["points"] < row["of"] and row["reasons"]:
                    came[re.sub(r"\d[\d,.]*", "…", row["reasons"][0])] += 1
            most = [*known.most_common(), *came.most_common(5)]
            told = "; ".join(f"{n} × {clean(what)[:160]}" for what, n in most)
            told = told.replace("|", "\\|").replace("<", "&lt;")
            yield f"| {task} | {len(missed)} of {len(mine)} | {told} |"
        yield ""


def alike(results: list[dict]) -> Iterator[list]:
    """Pairs for a person to look at: they share what few others have."""
    by_lesson: dict[str, dict[str, set]] = defaultdict(dict)
    for one in results:
        parts = set().union(*(pieces(text) for text in one["answers"].values()))
        if parts:
            by_lesson[one["lesson"]][one["student"]] = parts
    for lesson, parts in sorted(by_lesson.items()):
        having = Counter(piece for some in parts.values() for piece in some)
        rare = max(2, len(parts) // 4)  # what more than these have, the task itself brings
        own = {who: {p for p in some if having[p] <= rare} for who, some in parts.items()}
        for one, other in combinations(sorted(own), 2):
            both = own[one] | own[other]
            share = len(own[one] & own[other]) / len(both) if len(both) >= 2 * PIECES else 0
            if share >= ALIKE:
                yield [lesson, one, other, f"{share:.0%}"]


def pieces(source: str) -> set[str]:
    """The parts of an answer, whatever its names, comments and layout."""
    try:
        names: dict[str, str] = {}
        nodes = []
        for node in ast.walk(ast.parse(source)):
            called = getattr(node, "id", getattr(node, "arg", None))
            if called is not None:
                called = names.setdefault(called, f"name {len(names)}")
            value = repr(node.value)[:80] if isinstance(node, ast.Constant) else ""
            nodes.append(f"{type(node).__name__} {called or getattr(node, 'attr', '')} {value}")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        nodes = re.findall(r"\w+", source)
    lines = ["\n".join(nodes[k : k + PIECES]) for k in range(max(1, len(nodes) - PIECES + 1))]
    return {hashlib.sha256(line.encode(errors="replace")).hexdigest()[:16] for line in lines}


def feedback(notebook: NotebookNode, one: dict, marks: Marks, late: str) -> str:
    """nbgrader's own page of a submission, without the hidden tests."""
    score = most = 0.0
    given: set[str] = set()
    for part in notebook.cells:
        about = part.metadata.get("nbgrader", {})
        if not utils.is_grade(part):
            continue
        task = exercises.parts(part.id)[0]
        points, of = utils.determine_grade(part)
        mark = marks.get((one["student"], one["lesson"], task))
        if mark:  # a task's mark: on its first graded cell
            points = 0.0 if task in given else mark[0]
            given.add(task)
        about["score"], about["points"] = points or 0.0, of
        score, most = score + about["score"], most + of
    for part in filter(utils.is_solution, notebook.cells):
        task = exercises.parts(part.id)[0]
        if part.cell_type == "markdown":  # no student's HTML on a page
            part.source = part.source.replace("<", "&lt;")
        mark = marks.get((one["student"], one["lesson"], task))
        notes = [*([mark[1]] if mark else []), *one["notes"].get(task, [])]
        notes += [late] if late and not task else []
        part.metadata.nbgrader["comment"] = "\n\n".join(map(html.escape, notes))
    notebook, _ = nbgrader.preprocessors.ClearHiddenTests().preprocess(notebook, {})
    exporter = HTMLExporter(
        template_name="feedback",
        extra_template_basedirs=[str(PAGES / "templates")],
        extra_template_paths=[str(STYLES)],
    )
    about = {"notebook": one["lesson"], "score": score, "max_score": most, "late_penalty": 0}
    return exporter.from_notebook_node(notebook, {"nbgrader": about})[0]


def kept(out: Path) -> list[dict]:
    """The results that were written to ``out``."""
    return [json.loads(path.read_text()) for path in sorted((out / "results").glob("*/*.json"))]
