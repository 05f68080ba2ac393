"""``manual.csv``: marks that a person gives, each for the answer that the person saw.

Its sixth column, "marked answer", has the digest of this answer, so that a mark does not count for
an answer that is handed in later. A mark without a digest gets that of the answer in the stored
result, which is what the last call showed. All further columns are the person's own, and stay.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from grading import ids, spreadsheets
from grading.answers import NOTHING, digests

BY_HAND = ["student", "lesson", "task", "points", "comment"]
MARKED = "marked answer"
OUT_OF_DATE = " (out of date)"  # after the digest, where the answer is another one now

Column = tuple[str, int]  # a column of the person's: its name, and how many before it have the same
# (student, lesson) to task to the digest of an answer to [points, comment]
Marks = dict[tuple[str, str], dict[str, dict[str, list]]]


@dataclass
class Row:
    """A row of manual.csv."""

    student: str = ""
    lesson: str = ""
    task: str = ""
    points: str = ""
    comment: str = ""
    marked: str = ""  # the digest of the answer that the points are for
    own: dict[Column, str] = field(default_factory=dict)  # what the columns of the person hold

    @property
    def key(self) -> tuple[str, str, str]:
        return self.student, self.lesson, self.task

    @property
    def is_bare(self) -> bool:
        """Whether it holds nothing that a person wrote."""
        return not any(map(str.strip, (self.points, self.comment, *self.own.values())))


def read(out: Path) -> tuple[list[Column], list[Row]]:
    """The person's own columns, and the rows; a spreadsheet may have written them."""
    path = out / "manual.csv"
    if not path.exists():
        return [], []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head, *lines = [*csv.reader(file)] or [[]]
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} is not UTF-8: save it as CSV, in UTF-8, with commas") from None
    if head[: len(BY_HAND)] != BY_HAND:
        raise ValueError(
            f"{path} must begin with {','.join(BY_HAND)}, but got {','.join(head) or 'nothing'}: "
            "save it as CSV, in UTF-8, with commas"
        )
    width = max(map(len, [head, *lines]))  # a text may stand in a column without a name
    head = head + [""] * (width - len(head))
    if MARKED not in head:
        head.append(MARKED)
    place = head.index(MARKED)
    names = [*head[len(BY_HAND) : place], *head[place + 1 :]]
    own = [(name, names[:number].count(name)) for number, name in enumerate(names)]
    rows = []
    for line in lines:
        line = line + [""] * (len(head) - len(line))
        marked = line.pop(place).partition(" ")[0]
        texts = [spreadsheets.literal(text) for text in line[: len(BY_HAND)]]
        row = Row(*texts, marked, dict(zip(own, line[len(BY_HAND) :], strict=True)))
        row.student = ids.composed(row.student)
        rows.append(row)
    return own, rows


def write(out: Path, own: list[Column], rows: Iterable[Row]) -> None:
    """Write all rows that hold anything; the person's own columns as they were."""
    lines = [[*BY_HAND, MARKED, *(name for name, _ in own)]]
    for row in rows:
        texts = [*row.key, row.points, row.comment, row.marked]
        written = [row.own.get(column, "") for column in own]
        if any(texts) or any(written):
            lines.append([*map(spreadsheets.not_computed, texts), *written])
    spreadsheets.write_lines(out / "manual.csv", lines)


def digest_now(result: dict, task: str) -> str:
    """The digest of the answer in a result; earlier versions stored only the answers themselves."""
    known = result.get("digests") or digests(result["answers"], {})
    return known.get(task, known.get("", NOTHING))


def dated(rows: list[Row], results: Iterable[dict]) -> list[Row]:
    """The rows, after each mark without a digest got that of the answer in the stored result."""
    stored = {(result["student"], result["lesson"]): result for result in results}
    for row in rows:
        if row.points.strip() and not row.marked and row.key[:2] in stored:
            row.marked = digest_now(stored[row.key[:2]], row.task)
    return rows


def date(out: Path, results: Iterable[dict]) -> None:
    """Store for which answers the marks are, before these are graded again."""
    own, rows = read(out)
    if any(row.points.strip() and not row.marked for row in rows):
        write(out, own, dated(rows, results))


def read_marks(out: Path, points_of: dict[tuple[str, str], float]) -> Marks:
    """The marks in manual.csv; ``points_of`` maps (lesson, task) to the most points."""
    marks: Marks = defaultdict(lambda: defaultdict(dict))
    for number, row in enumerate(read(out)[1], 2):
        if not row.points.strip():
            continue
        most = points_of.get((row.lesson, row.task), 1e9)  # if the task is not graded now
        try:
            mark = float(row.points)
        except ValueError:
            mark = -1.0
        if not 0 <= mark <= most:
            raise ValueError(
                f"{out / 'manual.csv'}, row {number}: points must be a number from 0 to {most:g}, "
                f"but got {row.points!r}: correct it, and call make grade again"
            )
        marks[row.student, row.lesson][row.task][row.marked] = [mark, row.comment]
    return {key: dict(tasks) for key, tasks in marks.items()}


def split(marks: dict[str, dict[str, list]], now: dict[str, str]) -> dict[str, dict[str, list]]:
    """The "marks" that count, by task, and those that are "outdated"; ``now`` has the digests."""
    found: dict[str, dict[str, list]] = {"marks": {}, "outdated": {}}
    for task, by_answer in marks.items():
        mark = by_answer.get(now.get(task, now.get("", NOTHING)), by_answer.get(""))
        if mark:
            found["marks"][task] = mark
        else:
            found["outdated"][task] = [*by_answer.values()][-1]
    return found


def merge(parts: list[tuple[list[Column], list[Row]]], out: Path) -> None:
    """Put the rows of several manual.csv together; of one answer's, the first with points wins."""
    kept: dict[tuple, Row] = {}
    for row in (row for _, rows in parts for row in rows):
        has_key = any(row.key)
        key = *row.key, *([row.marked] if has_key else [row.comment, *row.own.values()])
        first = kept.setdefault(key, row)
        if first.points and row.points and first.points != row.points:
            name, (one, other) = ", ".join(row.key), (first.points, row.points)
            print(f"manual.csv: {name}: the same answer has {one} and {other}: {one} counts")
        written = {column: text for column, text in first.own.items() if text}
        kept[key] = first if first.points or not row.points else row
        kept[key].own = row.own | written  # what the person wrote, of both
    columns = dict.fromkeys(column for own, _ in parts for column in own)
    write(out, [*columns], kept.values())


def update(out: Path, results: Iterable[dict]) -> None:
    """Add rows for what is to be marked, and show which marks are out of date."""
    own, rows = read(out)
    for result in sorted(results, key=lambda result: (result["lesson"], result["student"])):
        for task, about in result["rows"].items():
            key, now = (result["student"], result["lesson"], task), digest_now(result, task)
            here = [row for row in rows if row.key == key]
            for row in here:
                if not (row.points.strip() and row.marked):
                    row.marked = now
            marked = [row for row in here if row.points.strip() and row.marked == now]
            others = [row for row in here if row.points.strip() and row.marked != now]
            free = [row for row in here if not row.points.strip()]
            for row in others:
                row.marked += OUT_OF_DATE
            # One empty row waits for points, and none if they are given.
            bare = [row for row in free if row.is_bare]
            surplus = bare if marked else bare[1:]
            rows = [row for row in rows if not any(row is one for one in surplus)]
            if (about["by_hand"] or others) and not (marked or free):
                new = Row(*key, marked=now)
                place = rows.index(others[-1]) + 1 if others else len(rows)
                rows.insert(place, new)
    write(out, own, rows)
