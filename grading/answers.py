"""What a student wrote into a set of exercises, for the grader and for ``make collect``.

It needs nothing that only graders have, because nbgrader is not installed on a hub.
"""

import ast
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from grading import ids
from tools import exercise_sets

LARGEST = 64 * 2**20  # bytes of a notebook
MOST_CELLS, MOST_CHARACTERS = 1000, 400_000  # of a notebook, without its outputs
NOTHING = "nothing"  # in place of the digest of an answer that is as it was released


@dataclass(frozen=True)
class Issued:
    """A set as students received it: cells' ids to their sources, and to what the cells are."""

    sources: dict[str, str]
    kinds: dict[str, str]  # of the code cells, and of the texts that a student writes
    solved: dict[str, str] = field(default_factory=dict)  # the sources in the instructor's copy

    @classmethod
    def of(cls, released: NotebookNode, solved: NotebookNode | None = None) -> "Issued":
        return cls(
            {cell.id: cell.source for cell in released.cells},
            {
                cell.id: exercise_sets.split_id(cell.id)[1]
                for cell in released.cells
                if cell.cell_type == "code" or cell.metadata.get("nbgrader", {}).get("solution")
            },
            {cell.id: cell.source for cell in solved.cells} if solved else {},
        )


class Answers:
    """What a student wrote, cell by cell, with notes about cells that are not as they should be."""

    def __init__(self, content: bytes, issued: Issued, student: str) -> None:
        """Raises a ValueError with a sentence for the student if there are no answers to run."""
        self.issued = issued
        self.first = ""  # what the first cell holds besides the id
        self.written_id = ""
        self.by_cell: dict[str, str] = {}
        self.added: dict[str, list[str]] = {}  # by the cell that they follow
        self.notes: dict[str, list[str]] = {}  # by task
        released, kinds, solved = issued.sources, issued.kinds, issued.solved
        seen, altered, last = set(), [], ""
        for name, is_code, source in named(cells(content), released):
            kind = kinds.get(name)
            if name not in released:
                if is_code:
                    self.added.setdefault(last, []).append(source)
                continue
            if name in seen:
                if kind == "answer":  # JupyterLab copies the metadata of a cell that is split
                    self.by_cell[name] += "\n" + source
                    self.note(name, f"{name} came more than once: all of them ran, in order")
                continue
            seen.add(name)
            last = name
            if kind == "answer":
                self.by_cell[name] = source
            elif kind == "student":
                self.first = as_python(source)
                self.written_id = ids.written_in(source)
                if self.written_id and self.written_id != student:
                    self.note(
                        name,
                        f"the first cell says {ids.shown(self.written_id)}, but the folder is "
                        f"{ids.shown(student)}: graded with its numbers",
                    )
            elif (
                kind
                and differ(source, released[name])
                and differ(source, solved.get(name, released[name]))
            ):
                altered.append(name)
        self.note_altered(altered)
        answers = [name for name in released if kinds.get(name) == "answer"]
        self.put_together(answers)
        self.replace_missing(list(released), seen, kinds)
        self.bring_forward(answers, released)
        self.changed = {
            name: source for name, source in self.by_cell.items() if differ(source, released[name])
        }
        checked = {
            exercise_sets.split_id(name)[0] for name, kind in kinds.items() if kind == "check"
        }
        with_code = {
            cell: sources for cell, sources in self.added.items() if task_of(cell) in checked
        }
        self.digests = {"": NOTHING} | digests(self.changed, with_code)

    @property
    def begun(self) -> bool:
        """Whether the student wrote anything besides the id."""
        added = any(source.strip() for sources in self.added.values() for source in sources)
        more = statements(self.first) - statements(self.issued.sources.get("student", ""))
        return bool(self.changed or added or more)

    def note_altered(self, altered: list[str]) -> None:
        """A note for each locked cell that differs; one for many, as another release would have."""
        if len(altered) >= 3:
            others = f"and {len(altered) - 1} more were altered, or come from another release"
            self.note(altered[0], f"{altered[0]} {others}: the course's own ran")
            return
        for name in altered:
            self.note(name, f"{name} was altered: the course's own ran")

    def put_together(self, answers: list[str]) -> None:
        """Join an answer that was split with the cells after it, if only the whole is Python."""
        for name in answers:
            pieces = [self.by_cell.get(name, ""), *self.added.get(name, [])]
            if len(pieces) > 1 and not all(map(parses, pieces)) and parses("\n".join(pieces)):
                self.by_cell[name] = "\n".join(pieces)
                del self.added[name]

    def replace_missing(self, order: list[str], seen: set[str], kinds: dict[str, str]) -> None:
        """Of an answer's cell that is missing, the cells that were added in its place count."""
        before = ""
        for name in order:
            if name in seen:
                before = name
            elif kinds.get(name) == "answer" and before in self.added:
                self.by_cell[name] = "\n".join(self.added.pop(before))
                self.note(name, f"{name} is missing: the cells in its place ran instead")
            elif kinds.get(name) == "answer":
                self.note(name, f"{name} is missing")
            elif name in kinds and kinds[name] != "student":
                self.note(name, f"{name} was missing: the course's own ran")

    def bring_forward(self, answers: list[str], released: dict[str, str]) -> None:
        """Run what was added below a check before it, if the answer's own cell is as released."""
        for name in answers:
            task = exercise_sets.split_id(name)[0]
            if not differ(self.by_cell.get(name, released[name]), released[name]):
                below = [cell for cell in self.added if cell.startswith(f"{task}-check")]
                moved = [source for cell in below for source in self.added.pop(cell)]
                if moved:
                    self.added[name] = self.added.get(name, []) + moved
                    self.note(name, f"{name} was not answered: the cells below its check ran")

    def note(self, cell: str, sentence: str) -> None:
        self.notes.setdefault(exercise_sets.split_id(cell)[0], []).append(sentence)


def task_of(cell: str) -> str:
    """The task of a released cell, or "" of the title, the id's cell and the set-up."""
    try:
        return exercise_sets.split_id(cell)[0]
    except ValueError:
        return ""


def digests(changed: dict[str, str], added: dict[str, list[str]]) -> dict[str, str]:
    """A task to a digest of its answer: the cells that were changed, and those added after them."""
    written: dict[str, list[str]] = defaultdict(list)
    for cell, source in changed.items():
        written[exercise_sets.split_id(cell)[0]].append(source)
    for cell, sources in sorted(added.items()):
        written[exercise_sets.split_id(cell)[0]] += sources
    return {task: digest(sources) for task, sources in written.items()}


def digest(sources: Iterable[str]) -> str:
    """A short hash of what a student wrote, but for blanks at the ends of lines."""
    text = repr([stripped(source) for source in sources])
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def cells(content: bytes) -> list[tuple[str, bool, str]]:
    """(grade_id or id, whether it is code, source) of each cell in a notebook's file."""
    try:
        too_much = size_problem(json.loads(content.decode("utf-8-sig")).get("cells", []))
    except Exception:  # of any kind, because the file is a student's; nbformat says what is wrong
        too_much = ""
    if too_much:
        raise ValueError(f"{too_much}: shorten it, and hand it in once more")
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
        raise ValueError(
            f"the file is not a whole notebook ({why}): save it again, and hand it in once more"
        ) from None


def named(
    found: list[tuple[str, bool, str]], released: dict[str, str]
) -> list[tuple[str, bool, str]]:
    """The same cells; one whose id was lost gets that of the course's cell with its text.

    The cell of the student's id has another text, so it is the first one that gives an id.
    """
    known = {name for name, _, _ in found} & released.keys()
    lost = {source.strip(): name for name, source in released.items() if name not in known}
    renamed = []
    for name, is_code, source in found:
        if name not in known:
            name = lost.get(source.strip(), name)
            if is_code and "student" in lost.values() and ids.written_in(source):
                name = "student"
                lost = {text: other for text, other in lost.items() if other != "student"}
        renamed.append((name, is_code, source))
    return renamed


def size_problem(cells: list[dict]) -> str:
    """What is too large in a notebook's cells, as JSON has them, or ""."""
    if len(cells) > MOST_CELLS:
        return f"the notebook has {len(cells):,} cells, and at most {MOST_CELLS:,} are read"
    size = sum(len("".join(cell["source"])) for cell in cells)
    if size > MOST_CHARACTERS:
        return f"its cells hold {size:,} characters, and at most {MOST_CHARACTERS:,} are read"
    return ""


def as_python(source: str) -> str:
    """A cell with its magics as the calls that IPython makes of them, or "" if it is no Python."""
    with suppress(SyntaxError):  # of a cell that ends within a string
        source = TransformerManager().transform_cell(source)
    return source if parses(source) else ""


def parses(source: str) -> bool:
    """Whether this is Python, with ``await`` at the top level, as JupyterLab runs it."""
    try:
        compile(source, "answer", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def statements(first: str) -> set[str]:
    """What the first cell does besides giving the id, without comments."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    lines = map(ast.unparse, compile(first, "first cell", "exec", flags).body)
    # Until release 2.0.0, this cell had the "..." of an answer, too.
    return {line for line in lines if line != "..." and not line.startswith("student =")}


def differ(one: str, other: str) -> bool:
    """Whether two sources differ in more than blanks at the ends of lines."""
    return stripped(one) != stripped(other)


def stripped(source: str) -> list[str]:
    return [line.rstrip() for line in source.strip().splitlines()]
