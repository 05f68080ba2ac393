"""The notebook that was handed in: answers, added cells, and what became of the course's cells."""

import re

import nbformat
from nbgrader import utils

from grading.submissions import Submission
from tools import exercises

WRITTEN_ID = re.compile(r"""^student *= *(["'])(.*?)\1""", re.M)


class UnreadableNotebook(Exception):
    """The file is not a notebook; the text says why, for the student."""


class Answers:
    """What a student wrote, cell by cell, with notes about cells that are not as they should be."""

    def __init__(self, submission: Submission, content: bytes) -> None:
        self.by_cell: dict[str, str] = {}
        self.added: dict[str, list[str]] = {}  # by the cell that they follow
        self.notes: dict[str, list[str]] = {}  # by task
        released = submission.assignment.released
        course = exercises.Set(submission.assignment.source).notebook.cells
        kinds = {
            cell.id: exercises.parts(cell.id)[1]
            for cell in course
            if cell.cell_type == "code" or utils.is_solution(cell)
        }
        solved = {cell.id: cell.source for cell in course}  # an instructor's copy is not altered
        seen, last = set(), ""
        for name, is_code, source in cells(content):
            kind = kinds.get(name)
            if name not in released:
                if is_code:
                    self.added.setdefault(last, []).append(source)
                continue
            if name in seen:
                if kind == "answer":
                    self.note(name, f"{name} came twice: the first one counts")
                continue
            seen.add(name)
            last = name
            if kind == "answer":
                self.by_cell[name] = source
            elif kind == "student":
                written = WRITTEN_ID.findall(source)
                if written and written[-1][1].strip() != submission.student:
                    self.note(
                        name,
                        f"the first cell says {written[-1][1]!r}, but the folder is "
                        f"{submission.student!r}: graded with its numbers",
                    )
            elif kind and differ(source, released[name]) and differ(source, solved[name]):
                self.note(name, f"{name} was altered: the course's own ran")
        for name in kinds.keys() - seen - {"student"}:
            fate = "is missing" if kinds[name] == "answer" else "was missing: the course's own ran"
            self.note(name, f"{name} {fate}")
        self.changed = {
            name: source for name, source in self.by_cell.items() if differ(source, released[name])
        }

    def note(self, cell: str, sentence: str) -> None:
        self.notes.setdefault(exercises.parts(cell)[0], []).append(sentence)


def cells(content: bytes) -> list[tuple[str, bool, str]]:
    """(grade_id or id, whether it is code, source) of each cell in a notebook's file."""
    try:
        return [
            (
                str(cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "")),
                cell.cell_type == "code",
                cell.source.encode(errors="replace").decode(),
            )
            for cell in nbformat.reads(content.decode("utf-8-sig"), as_version=4).cells
        ]
    except Exception as error:  # of any kind, because the file is a student's
        why = "it is empty" if not content.strip() else type(error).__name__
        raise UnreadableNotebook(
            f"the file is not a whole notebook ({why}): save it again, and hand it in once more"
        ) from None


def differ(one: str, other: str) -> bool:
    """Whether two sources differ in more than blanks at the ends of lines."""
    one, other = ([line.rstrip() for line in text.strip().splitlines()] for text in (one, other))
    return one != other
