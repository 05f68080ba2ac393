"""What the results of a class become: tables, and a page for the class."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from grading import spreadsheets
from tools import notebooks

COLUMNS = ["student", "lesson", "task", "points", "of", "reason"]
# What a check says of a harness that attacks have fooled; it names them.
FOOLED = re.compile(r"attacks that fool measure: expected \[\], but got \[([\w', ]+)")


def write(out: Path, results: list[dict]) -> None:
    """Write all tables, and the page for the class."""
    results = sorted(results, key=lambda result: (result["lesson"], result["student"]))
    grades = pd.DataFrame(grade_rows(results), columns=COLUMNS).astype({"points": float})
    spreadsheets.write(out / "grades.csv", COLUMNS, grades.to_numpy())
    spreadsheets.write(out / "platform.csv", *for_a_platform(grades, results))
    notebooks.write(out / "class.md", "\n".join(class_page(results, grades)).encode())


def write_changes(out: Path, before: Iterable[dict], now: Iterable[dict]) -> list[str]:
    """Write changes.csv, a row for each task whose points are not as before; return some in words.

    What was not graded before is no change.
    """
    old = {tuple(row[:3]): row[3] for row in grade_rows(before)}
    changed = [
        [*row[:3], old[key], row[3], row[5]]
        for row in grade_rows(now)
        if (key := tuple(row[:3])) in old and old[key] != row[3]
    ]
    head = ["student", "lesson", "task", "points before", "points", "reason"]
    spreadsheets.write(out / "changes.csv", head, changed)
    lines = [f"{one_line(', '.join(row[:3]))}: {row[3]:g} → {row[4]:g} points" for row in changed]
    if len(lines) > 5:
        lines[5:] = [f"{len(lines)} tasks changed: {out}/changes.csv"]
    return lines


def for_a_platform(grades: pd.DataFrame, results: list[dict]) -> tuple[list[str], list[list]]:
    """The head and a row for each student: of each set the points, the most, and how late."""
    sums = grades.pivot_table(["points", "of"], "student", "lesson", "sum", fill_value=0.0).round(2)
    late = {(result["student"], result["lesson"]): result["late"] for result in results}
    lessons = sorted(grades["lesson"].unique())
    head = ["student"]
    head += [f"{lesson}{column}" for lesson in lessons for column in ("", " maximum", " late")]
    most = {lesson: sums["of", lesson].max() for lesson in lessons}
    rows = []
    for student, row in sums.iterrows():
        rows.append([student])
        for lesson in lessons:
            rows[-1] += [row["points", lesson], most[lesson], late.get((student, lesson), "")]
    return head, rows


def grade_rows(results: Iterable[dict]) -> Iterator[list]:
    """The rows of grades.csv; a mark by hand takes the place of a task's points."""
    for result in results:
        student, lesson = result["student"], result["lesson"]
        for task, row in result["rows"].items():
            points, reasons = row["points"], list(row["reasons"])
            mark, outdated = (result.get(of, {}).get(task) for of in ("marks", "outdated"))
            if mark:
                points, reasons = mark[0], [mark[1] or "marked by hand", *reasons]
            elif row["by_hand"]:
                reasons.append("to be marked by hand, in manual.csv")
            if outdated:
                reasons.append(out_of_date(outdated))
            reasons += filter(None, [result["late"]])
            points = round(points * (1 - result["penalty"]), 2)
            yield [student, lesson, task, points, row["of"], one_line("; ".join(reasons))]


def points(result: dict) -> tuple[float, float]:
    """The points of a result after marks by hand and what is taken off, and the most."""
    rows = list(grade_rows([result]))
    return round(sum(row[3] for row in rows), 2), sum(row[4] for row in rows)


def out_of_date(mark: list) -> str:
    """What a mark by hand is that was given for another answer."""
    return f"a mark of {mark[0]:g} by hand was given for another answer, and does not count"


def one_line(text: str) -> str:
    """One line of printable characters, because a student's text may be meant for a terminal."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return line if len(line) <= 600 else f"{line[:600]}…"


def class_page(results: list[dict], grades: pd.DataFrame) -> Iterator[str]:
    """The class, without names: what was missed, and what came instead."""
    yield "# The class\n"
    reasons: dict[tuple, Counter] = defaultdict(Counter)
    for result in results:
        for task, row in result["rows"].items():
            if row["points"] < row["of"] and row["reasons"]:
                # The names of files may be those of students.
                reason = row["reasons"][0].partition("; the student's folder has ")[0]
                reason = re.sub(r"\d[\d,.]*", "…", reason)
                reasons[result["lesson"], task][reason] += 1
    for lesson, rows in grades.groupby("lesson"):
        sums = rows.groupby("student")[["points", "of"]].sum()
        median, most = sums["points"].median(), sums["of"].max()
        yield f"## {lesson}: {len(sums)} students, median {median:g} of {most:g}\n"
        yield "| task | missed by | what came instead |\n|---|---|---|"
        for task, row in rows.groupby("task", sort=False):
            missed = sum(row["points"] < row["of"])
            common = reasons[lesson, task].most_common(5)
            instead = "; ".join(f"{n} × {as_code(why)}" for why, n in common)
            yield f"| {task} | {missed} of {len(sums)} | {instead} |"
        yield ""
        yield from attacks([result for result in results if result["lesson"] == lesson])


def attacks(results: list[dict]) -> Iterator[str]:
    """A table of the attacks that fooled the harnesses of a class, if any did.

    A harness counts once for each attack, however many checks name it.
    """
    fooled = Counter[str]()
    for result in results:
        lists = FOOLED.findall("\n".join(result["failures"].values()))
        fooled.update({name for listed in lists for name in re.findall(r"\w{1,30}", listed)})
    if fooled:
        yield "| attack | harnesses that it fooled |\n|---|---|"
        for name, count in fooled.most_common(50):
            yield f"| {as_code(name)} | {count} of {len(results)} |"
        yield ""


def as_code(text: str) -> str:
    """Markdown that shows a text as code in a table, whatever a student put into it."""
    return f"`{one_line(text)[:160].replace('`', chr(39)).replace('|', chr(92) + '|')}`"
