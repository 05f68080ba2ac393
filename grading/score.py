"""Scoring one submission: answers run in the student's kernel, and the course's checks run here."""

import ast
import contextlib
import fcntl
import io
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils

from grading.answers import Answers, task_of
from grading.kernel import (
    KernelEnded,
    StudentFunction,
    StudentKernel,
    cut,
    encodable,
    unpacked,
)
from grading.sandbox import Limits
from grading.submissions import Reading, Submission
from helpers import exercises
from tools import exercise_sets, notebooks

COURSE_SECONDS = 60.0  # the least that the course's own cells get, because they import much
MEASURES = re.compile(r"\b(?:faster|patiently|compare)\(")  # in a check that measures times


def score(
    submission: Submission, reading: Reading, limits: Limits, scratch: Path, secret: str
) -> tuple[dict, NotebookNode]:
    """The result of a submission, and its notebook with outputs, as nbgrader would leave it.

    ``scratch`` is a folder that all submissions of a call share. With the same ``secret``, hidden
    checks draw the same numbers.
    """
    try:
        answers = submission.answers(reading)
    except ValueError as error:
        return no_points(submission, str(error), reading)
    scoring = Scoring(submission, answers, limits, scratch, secret)
    try:
        scoring.run()
    finally:
        scoring.kernel.end()
    return result(submission, scoring.notebook, scoring.failures, answers), scoring.notebook


class Scoring:
    """The run of one submission; ``notebook`` is the course's, with the answers and outputs."""

    def __init__(
        self,
        submission: Submission,
        answers: Answers,
        limits: Limits,
        scratch: Path,
        secret: str,
    ) -> None:
        self.submission, self.answers, self.limits = submission, answers, limits
        self.secret = secret
        self.kernel = StudentKernel(scratch, limits)
        self.turns = Turns(scratch)
        self.set = exercise_sets.Set(submission.source)
        self.notebook = issued_copy(submission)
        self.failures: dict[str, str] = {}  # check to its sentence
        self.answer_errors: dict[str, str] = {}  # task to the error of its answer's cell
        self.ended: dict[str, str] = {}  # task to the reason why its kernel ended
        self.setup = {"__name__": "__main__", "student": submission.id}
        self.namespaces: dict[str, dict] = {}  # task to the names that its checks see
        self.apart: list[StudentKernel] = []  # where only the course's cells ran, for one check
        self.waiting = contextlib.ExitStack()  # what the student's kernel does meanwhile

    def run(self) -> None:
        self.run_added("")
        for cell in self.notebook.cells:
            if cell.cell_type == "code":
                task, kind = exercise_sets.split_id(cell.id)
                if kind == "check":
                    self.check(cell, task)
                else:
                    self.run_in_kernel(cell, task, kind)
            elif utils.is_solution(cell):  # a text, for a person to read
                cell.source = self.answers.by_cell.get(cell.id, cell.source)
            self.run_added(cell.id)

    def run_in_kernel(self, cell: NotebookNode, task: str, kind: str) -> None:
        """Run a cell in the student's kernel; the course's own also where the checks run."""
        seconds = max(self.limits.cell, COURSE_SECONDS)
        if kind == "answer":
            seconds = self.limits.cell
            cell.source = self.answers.by_cell.get(cell.id, cell.source)
        elif kind == "student":
            cell.source = "\n".join(filter(None, [self.answers.first, cell.source]))
        else:
            with contextlib.redirect_stdout(io.StringIO()):
                namespace = self.setup if kind == "setup" else self.namespace(task)
                exercise_sets.run_cell(cell.source, namespace)
        try:
            with self.turn():
                printed, error = self.kernel.run(cell.source, seconds)
        except KernelEnded as end:
            printed, error = "", str(end)
            self.ended.setdefault(task, f"{cell.id}: {end}")
        add_outputs(cell, printed, error)
        if error and kind == "answer":
            self.answer_errors[task] = f" (its cell failed: {error})"

    def run_added(self, after: str) -> None:
        """Run the cells that the student added after the cell ``after``."""
        for source in self.answers.added.get(after, []):
            try:
                with self.turn():
                    self.kernel.run(source, self.limits.cell)
            except KernelEnded as end:
                sentence = f"a cell that you added was left out: {end}"
                self.answers.notes.setdefault(task_of(after), []).append(sentence)

    def namespace(self, task: str) -> dict:
        return self.namespaces.setdefault(task, dict(self.setup))

    @contextlib.contextmanager
    def turn(self, alone: bool = False) -> Iterator[None]:
        """Run something beside other submissions, or alone; waiting takes none of its time."""
        start = time.monotonic()
        with self.turns.take(alone):
            self.kernel.deadline += time.monotonic() - start
            yield

    def check(self, cell: NotebookNode, task: str) -> None:
        with self.turn(alone=bool(MEASURES.search(cell.source))):
            self.run_check(cell, task)

    def run_check(self, cell: NotebookNode, task: str) -> None:
        seconds = max(self.limits.cell, COURSE_SECONDS)  # for all its calls; each has a limit, too
        printed = io.StringIO()
        try:
            if task in self.ended:
                raise KernelEnded(self.ended[task])
            with at_most(seconds), contextlib.redirect_stdout(printed):
                self.fetch_answers(cell, task)
                exercises.elsewhere = partial(self.elsewhere, task)
                exercise_sets.seed(f"{self.secret}, {self.submission.student}, {cell.id}")
                exercise_sets.run_cell(cell.source, self.namespace(task))
        except KernelEnded as end:
            self.failures[cell.id] = str(end)
            self.kernel.end()
        except Exception as failure:
            kind = "" if isinstance(failure, AssertionError) else f"{type(failure).__name__}: "
            sentence = encodable(kind + str(failure)[:2000])
            self.failures[cell.id] = sentence + self.answer_errors.get(task, "")
        finally:
            self.waiting.close()
            while self.apart:
                self.apart.pop().end()
        add_outputs(cell, cut(printed.getvalue()), self.failures.get(cell.id, ""))

    def elsewhere(self, task: str, functions: Sequence[Callable]) -> list[Callable]:
        """The course's functions in a kernel of their own, in which only the course's cells run."""
        kernel = StudentKernel(self.kernel.scratch, self.limits)
        self.apart.append(kernel)
        kernel.deadline = self.kernel.deadline
        cells = [*self.set.of("", "setup"), *self.set.of(task, "given")]
        sources = [f"student = {self.submission.id!r}", *(cell.source for cell in cells)]
        kernel.ran = [(source, COURSE_SECONDS) for source in sources]
        self.waiting.enter_context(self.kernel.paused())
        return [StudentFunction(kernel, function.__name__) for function in functions]

    def fetch_answers(self, check: NotebookNode, task: str) -> None:
        """Bring what a check uses of the names that the task's answers bind."""
        bound = exercise_sets.names(self.set.of(task, "answer"))
        nodes = ast.walk(ast.parse(check.source))
        wanted = sorted(bound & {node.id for node in nodes if isinstance(node, ast.Name)})
        namespace, values = self.namespace(task), self.kernel.ask("fetch_values", wanted)
        for name in wanted:
            match values.get(name) if isinstance(values, dict) else {}:
                case None:
                    namespace.pop(name, None)
                case {"function": True}:
                    namespace[name] = StudentFunction(self.kernel, name)
                case {"value": value}:
                    namespace[name] = unpacked(name, value)
                case {"refused": str(reason)}:
                    raise ValueError(f"{name}: {reason}")
                case _:
                    raise ValueError(f"{name}: what came back is not data")


class Turns:
    """All submissions of a call run side by side, but one that measures times runs alone.

    Who waits to be alone is next: nobody else comes in meanwhile.
    """

    def __init__(self, scratch: Path) -> None:
        self.door, self.room = ((scratch / name).open("w") for name in ("door", "room"))

    @contextlib.contextmanager
    def take(self, alone: bool) -> Iterator[None]:
        fcntl.flock(self.door, fcntl.LOCK_EX)
        fcntl.flock(self.room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self.door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self.room, fcntl.LOCK_UN)


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """KernelEnded from what takes longer."""

    def over(*_: object) -> None:
        raise KernelEnded(f"took more than {seconds:g} s")

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def issued_copy(submission: Submission) -> NotebookNode:
    """The notebook as the student received it, but with the hidden tests."""
    copy = notebooks.canonical(notebooks.read(submission.source))
    copy.cells = [cell for cell in copy.cells if "wrong" not in cell.metadata.get("tags", [])]
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if cell.id == "student":
            cell.source = f"student = {submission.id!r}"
        elif utils.is_solution(cell):
            cell.source = submission.issued.sources[cell.id]
    return copy


def add_outputs(cell: NotebookNode, printed: str, error: str) -> None:
    if printed:
        cell.outputs.append(new_output("stream", name="stdout", text=printed))
    if error:
        cell.outputs.append(new_output("error", ename="Error", evalue=error, traceback=[error]))


def no_points(submission: Submission, reason: str, reading: Reading) -> tuple[dict, NotebookNode]:
    """The result and the notebook of a submission that was not run."""
    notebook = issued_copy(submission)
    graded = [cell for cell in notebook.cells if utils.is_grade(cell)]
    for cell in graded:
        if cell.cell_type == "code":
            add_outputs(cell, "", reason)
    failed = result(submission, notebook, {cell.id: reason for cell in graded})
    return failed | {"digests": submission.digests_unread(reading)}, notebook


def result(
    submission: Submission,
    notebook: NotebookNode,
    failures: dict[str, str],
    answers: Answers | None = None,
) -> dict:
    """What is stored of a submission besides its notebook."""
    changed, notes = (answers.changed, answers.notes) if answers else ({}, {})
    rows: dict[str, dict] = {}
    for cell in filter(utils.is_grade, notebook.cells):
        task = exercise_sets.split_id(cell.id)[0]
        row = rows.setdefault(task, {"points": 0.0, "of": 0.0, "reasons": [], "by_hand": False})
        row["of"] += cell.metadata.nbgrader.points
        reason = failures.get(cell.id, "")
        if not reason and utils.is_solution(cell):
            row["by_hand"] = cell.id in changed
            reason = "" if row["by_hand"] else "not answered"
        elif not reason:
            row["points"] += cell.metadata.nbgrader.points
        if reason and reason not in row["reasons"]:
            row["reasons"].append(reason)
    for task, row in rows.items():
        row["reasons"] += [*notes.get(task, []), *notes.get("", [])]
    about = {"student": submission.student, "lesson": submission.lesson, "rows": rows}
    about["digests"] = answers.digests if answers else {}
    return {**about, "failures": failures, "answers": changed, "notes": notes}
