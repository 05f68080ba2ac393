"""One submission: the student's answers in their kernel, the course's checks here."""

import ast
import builtins
import contextlib
import hashlib
import io
import json
import os
import random
import re
import resource
import secrets
import signal
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import nbformat
import numpy as np
import torch
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils

from tools import exercises, notebooks
from tools.grading import inside
from tools.grading.sandbox import SHOWN, Gone, Kernel, Limits
from tools.values import pack, unpack

LARGEST = 20 * 2**20  # the bytes of a notebook that is handed in
NAMING = 15.0  # seconds for finding out which of the known wrong answers were given
WRITTEN = re.compile(r"""^student *= *(["'])(.*?)\1""", re.M)  # the id that a student wrote
_calls = count(1)


class Refused(Exception):
    """What was handed in cannot be graded; says why."""


@dataclass(frozen=True)
class Job:
    student: str
    source: Path  # of the set
    files: tuple[Path, ...]  # what was handed in for it: one, if all is well
    released: dict[str, str]  # grade_id to content, as students got it
    limits: Limits
    scratch: Path
    lock: Path

    @property
    def lesson(self) -> str:
        return self.source.stem


def read(files: tuple[Path, ...]) -> bytes:
    """What was handed in: one plain file, not too large, and not a way to another one."""
    if not files:
        raise Refused("nothing was handed in")
    if len(files) > 1:
        listed = " and ".join(path.name for path in files)
        raise Refused(f"{len(files)} files for one lesson, {listed}: hand in one")
    (path,) = files
    try:
        if path.parent.is_symlink() or path.is_symlink():
            raise Refused("a symbolic link came; hand in the file itself")
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Refused(f"the file cannot be read: {error.strerror}") from None
    with os.fdopen(opened, "rb") as file:
        about = os.fstat(opened)
        if not stat.S_ISREG(about.st_mode):
            raise Refused(f"{path.name} is not a file")
        if about.st_size > LARGEST:
            raise Refused(f"the notebook has {about.st_size / 2**20:.0f} MB, at most "
                          f"{LARGEST / 2**20:.0f} can be read: clear its outputs")  # fmt: skip
        return file.read()


def cells(content: bytes) -> list[tuple[str, bool, str]]:
    """(grade_id or "", whether it is code, source) of each cell that was handed in."""
    try:
        found = nbformat.reads(content.decode(), as_version=4).cells
        return [
            (
                str(cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "")),
                cell.cell_type == "code",
                cell.source.encode(errors="replace").decode(),
            )
            for cell in found
        ]
    except Exception as error:  # of whatever kind: the file is a student's
        why = "it is empty" if not content.strip() else type(error).__name__
        raise Refused(f"the file is not a whole notebook ({why}): save it again, and hand it in "
                      "once more") from None  # fmt: skip


class Handed:
    """The student's answers, the cells they added, and what they did to the course's cells."""

    def __init__(self, job: Job, content: bytes) -> None:
        self.answers: dict[str, str] = {}
        self.added: dict[str, list[str]] = {}  # after which cell
        self.notes: dict[str, list[str]] = {}  # of which task
        which = exercises.Set(job.source)
        kinds = {
            cell.id: exercises.parts(cell.id)[1]
            for cell in which.notebook.cells
            if cell.cell_type == "code" or utils.is_solution(cell)
        }
        own = {cell.id: cell.source for cell in which.notebook.cells}  # whoever has the solution
        seen, last = set(), ""
        for name, code, source in cells(content):
            if name not in job.released:
                if code:
                    self.added.setdefault(last, []).append(source)
                continue
            if name in seen:
                if kinds.get(name) == "answer":
                    self.note(name, f"{name} came twice: the first one counts")
                continue
            seen.add(name)
            last = name
            if kinds.get(name) == "student":
                written = WRITTEN.findall(source)
                if written and written[-1][1].strip() != job.student:
                    self.note(name, f"the first cell says {written[-1][1]!r}, but the folder is "
                                    f"{job.student!r}: graded with its numbers")  # fmt: skip
            if kinds.get(name) == "answer":
                self.answers[name] = source
            elif kinds.get(name) not in (None, "student") and (
                _differ(source, job.released[name]) and _differ(source, own[name])
            ):
                self.note(name, f"{name} was altered: the course's own ran")
        for name in kinds.keys() - seen - {"student"}:
            gone = "is missing" if kinds[name] == "answer" else "was missing: the course's own ran"
            self.note(name, f"{name} {gone}")

    def note(self, name: str, sentence: str) -> None:
        self.notes.setdefault(exercises.parts(name)[0], []).append(sentence)


def _differ(one: str, other: str) -> bool:
    one, other = ([line.rstrip() for line in text.strip().splitlines()] for text in (one, other))
    return one != other


class Place:
    """Where the student's code runs: a kernel, and a new one when that is gone.

    A new one runs again all that went well in the old one.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.ran, self.kernel = job, [], None
        self.deadline = time.monotonic() + job.limits.submission

    def __call__(self) -> Kernel:
        if self.kernel is None:
            self.kernel = Kernel(self.job.scratch, self.job.limits, self.deadline)
            for source, seconds in self.ran:
                self.kernel.run(source, seconds)
        return self.kernel

    def run(self, source: str, own: bool = True) -> tuple[str, tuple[str, str] | None]:
        """Run a cell; the course's own ones import much, and may take longer."""
        seconds = self.job.limits.cell if own else max(self.job.limits.cell, 60)
        with self.lost():
            done = self().run(source, seconds)
            self.ran.append((source, seconds))
            return done

    def ask(self, *words: object) -> object:
        with self.lost():
            return self().ask(*words)

    @contextlib.contextmanager
    def lost(self) -> Iterator[None]:
        try:
            yield
        except Gone:
            self.end()
            raise

    def end(self) -> None:
        if self.kernel:
            self.kernel.end("")
        self.kernel = None


class StandIn:
    """A student's function, seen from here: arguments go as data, data comes back."""

    def __init__(self, place: Place, name: str) -> None:
        self.place, self.name, self.asked = place, name, set()

    def __call__(self, *arguments: object) -> object:
        return self._result(self.place.ask("call", self.name, self._known(_packed(arguments))))

    def prepared(self, *arguments: object) -> Callable[[], object]:
        """A call that can be timed: the arguments are there already, sealed until then.

        What was asked before is asked in a new kernel, which remembers no answer.
        """
        packed = _packed(arguments)
        if packed in self.asked:
            self.place.end()
            self.asked.clear()
        number, key = next(_calls), secrets.token_hex(16)
        sealed = _base64(inside.sealed(self._known(packed).encode(), key))
        self.place.ask("bring", number, sealed)
        return lambda: self._result(self.place.ask("call_brought", self.name, number, key))

    def _known(self, packed: str) -> str:
        self.asked.add(packed)
        return packed

    def _result(self, answer: object) -> object:
        match answer:
            case {"gave": value}:
                return _opened(self.name, value)
            case {"raised": str(kind), "why": str(why)}:
                error = getattr(builtins, kind, None)
                if isinstance(error, type) and issubclass(error, Exception):
                    with contextlib.suppress(TypeError):  # some want more than a text
                        raise error(why)
                raise RuntimeError(f"{kind}: {why}")
        raise ValueError(f"{self.name}: what came back is not data")


def _packed(arguments: tuple) -> str:
    return json.dumps(pack(list(arguments)))


def _base64(content: bytes) -> str:
    return inside.base64.b64encode(content).decode()


def _opened(name: str, value: object) -> object:
    try:
        return unpack(value)
    except Exception as error:  # of whatever kind: a student's kernel wrote it
        raise ValueError(f"{name}: what came back is not data ({error})"[:500]) from None


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Gone from what takes longer."""

    def over(*_: object) -> None:
        raise Gone(f"took more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Marking:
    """The run of one submission. ``notebook`` is the course's, filled in."""

    def __init__(self, job: Job, handed: Handed, turn: "Turn") -> None:
        self.job, self.handed, self.turn = job, handed, turn
        self.which = exercises.Set(job.source)
        self.notebook = graders_copy(self.which)
        self.place = Place(job)
        self.said: dict[str, str] = {}  # check to the sentence of its failure
        self.failed: dict[str, str] = {}  # task to what happened in its answer's cell
        self.broken: dict[str, str] = {}  # task to why its kernel went
        self.ours: dict[str, dict] = {}  # task to the names that its checks see
        self.base = {"__name__": "__main__", "student": job.student}

    def run(self) -> None:
        self.extra("")
        for cell in self.notebook.cells:
            if cell.cell_type == "code":
                task, what = exercises.parts(cell.id)
                if what == "check":
                    self.check(cell, task)
                else:
                    self.student(cell, task, what)
            elif utils.is_solution(cell):  # a text, for a person to read
                cell.source = self.handed.answers.get(cell.id, self.job.released[cell.id])
            self.extra(cell.id)
        self.place.end()

    def student(self, cell: NotebookNode, task: str, what: str) -> None:
        """Run a cell in the student's kernel; the course's own also where the checks run."""
        if what == "student":
            cell.source = f"student = {self.job.student!r}"
        elif what == "answer":
            empty = self.job.released.get(cell.id, exercises.blank(cell))
            cell.source = self.handed.answers.get(cell.id, empty)
        else:
            with contextlib.redirect_stdout(io.StringIO()):
                exercises._run(cell.source, self.base if what == "setup" else self.space(task))
        try:
            printed, error = self.place.run(cell.source, what == "answer")
        except Gone as gone:
            printed, error = "", ("Ended", str(gone))
            self.broken.setdefault(task, f"{cell.id}: {gone}")
        show(cell, printed, error)
        if error and what == "answer":
            self.failed[task] = f" (its cell failed: {error[0]}: {error[1]})"

    def extra(self, after: str) -> None:
        for source in self.handed.added.get(after, []):
            try:
                self.place.run(source)
            except Gone as gone:
                task = after.rpartition("-")[0] and exercises.parts(after)[0]
                self.broken.setdefault(task, f"a cell that you added: {gone}")

    def space(self, task: str) -> dict:
        return self.ours.setdefault(task, dict(self.base))

    def check(self, cell: NotebookNode, task: str) -> None:
        printed, error = io.StringIO(), None
        try:
            if task in self.broken:
                raise Gone(self.broken[task])
            alone = (
                self.turn.alone(self.place)
                if "faster(" in cell.source
                else contextlib.nullcontext()
            )
            seconds = max(self.job.limits.cell, 60)  # each call of a student's function has its own
            with alone, at_most(seconds), contextlib.redirect_stdout(printed):
                self.fetch(cell, task)
                exercises._run(cell.source, self.space(task))
        except Gone as gone:
            error = ("Ended", str(gone))
            self.said[cell.id] = str(gone)
            self.place.end()
        except Exception as raised:
            error = (type(raised).__name__, str(raised)[:2000])
            sentence = error[1] if error[0] == "AssertionError" else ": ".join(error)
            self.said[cell.id] = sentence + self.failed.get(task, "")
        show(cell, printed.getvalue()[:SHOWN], error)

    def fetch(self, cell: NotebookNode, task: str) -> None:
        """Bring what a check needs of the names that the answers bind."""
        bound = exercises.names(self.which.of(task, "answer"))
        used = {node.id for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Name)}
        wanted, space = sorted(bound & used), self.space(task)
        found = self.place.ask("look", wanted)
        for name in wanted:
            match found.get(name) if isinstance(found, dict) else {}:
                case None:
                    space.pop(name, None)
                case {"function": True}:
                    space[name] = StandIn(self.place, name)
                case {"value": value}:
                    space[name] = _opened(name, value)
                case {"refused": str(why)}:
                    raise ValueError(f"{name}: {why}")
                case _:
                    raise ValueError(f"{name}: what came back is not data")

    def wrong_answers(self) -> dict[str, str]:
        """Check to the author's word for the known wrong answer that was given, if one was."""
        known, end = {}, time.monotonic() + NAMING
        for check in self.said:
            task = exercises.parts(check)[0]
            if task in self.failed or task in self.broken:
                continue
            last = self.which.of(task, "answer")[-1].id
            for cell in self.which.wrong:
                if exercises.parts(cell.id)[0] != task or time.monotonic() > end:
                    continue
                with contextlib.suppress(Exception, Gone), at_most(NAMING):
                    same = exercises.grade(self.which, task, self.job.student, {last: cell.source})
                    if same[check].removeprefix("AssertionError: ") == self.said[check]:
                        why = cell.source.partition("\n")[0]
                        known[check] = why.removeprefix("# wrong:").strip()
                        break
        return known


class Turn:
    """One lock for all workers: shared by all, but held by one alone while it takes times."""

    def __init__(self, path: Path) -> None:
        import fcntl  # not on Windows, where the grader says that it needs another system

        self.file, self.flock = path.open("w"), fcntl.flock
        self.shared, self.exclusive = fcntl.LOCK_SH, fcntl.LOCK_EX
        self.flock(self.file, self.shared)

    @contextlib.contextmanager
    def alone(self, place: Place) -> Iterator[None]:
        waits = time.monotonic()
        kernel = place.kernel
        if kernel:
            kernel.pause()
        self.flock(self.file, self.exclusive)
        if kernel:
            kernel.pause(go_on=True)
            kernel.deadline += time.monotonic() - waits
        place.deadline += time.monotonic() - waits
        try:
            yield
        finally:
            self.flock(self.file, self.shared)


def graders_copy(which: exercises.Set) -> NotebookNode:
    """The course's notebook without outputs and without the known wrong answers."""
    copy = notebooks.canonical(which.notebook)
    copy.cells = [cell for cell in copy.cells if "wrong" not in cell.metadata.get("tags", [])]
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return copy


def show(cell: NotebookNode, printed: str, error: tuple[str, str] | None) -> None:
    if printed:
        cell.outputs.append(new_output("stream", name="stdout", text=printed))
    if error:
        line = error[1] if error[0] in ("AssertionError", "Ended") else ": ".join(error)
        cell.outputs.append(new_output("error", ename=error[0], evalue=error[1], traceback=[line]))


def mark(job: Job) -> tuple[dict, NotebookNode]:
    """The result of a submission, and its notebook with outputs, as nbgrader would leave it."""
    prepare_process(job)
    try:
        content = read(job.files)
        handed = Handed(job, content)
    except Refused as refused:
        return nothing(job, str(refused))
    turn = Turn(job.lock)
    seed = hashlib.sha256(job.source.read_bytes() + job.student.encode()).digest()
    for start in (random.seed, np.random.seed, torch.manual_seed):
        start(int.from_bytes(seed[:4], "big"))
    marking = Marking(job, handed, turn)
    try:
        marking.run()
    finally:
        marking.place.end()
    known = marking.wrong_answers()
    return result(job, marking.notebook, marking.said, handed, known), marking.notebook


def nothing(job: Job, why: str) -> tuple[dict, NotebookNode]:
    """No point, for this reason."""
    notebook = graders_copy(exercises.Set(job.source))
    for cell in notebook.cells:
        if cell.cell_type == "code" and exercises.parts(cell.id)[1] == "student":
            cell.source = f"student = {job.student!r}"
        elif utils.is_solution(cell):
            cell.source = job.released.get(cell.id, "")
        elif utils.is_grade(cell):
            show(cell, "", ("Ended", why))
    said = {cell.id: why for cell in notebook.cells if utils.is_grade(cell)}
    return result(job, notebook, said), notebook


def result(
    job: Job,
    notebook: NotebookNode,
    said: dict[str, str],
    handed: Handed | None = None,
    known: dict[str, str] | None = None,
) -> dict:
    """What is kept of a submission besides its notebook."""
    answers = handed.answers if handed else {}
    own = {name: text for name, text in answers.items() if _differ(text, job.released[name])}
    rows: dict[str, dict] = {}
    for cell in notebook.cells:
        if not utils.is_grade(cell):
            continue
        task = exercises.parts(cell.id)[0]
        row = rows.setdefault(task, {"points": 0.0, "of": 0.0, "reasons": [], "wrong": []})
        points, most = utils.determine_grade(cell)
        row["of"] += most
        if points is None and cell.id in own:
            row["by_hand"] = True
        elif points is None and handed:
            row["reasons"].append("not answered")
        row["points"] += points or 0.0
        if said.get(cell.id) and said[cell.id] not in row["reasons"]:
            row["reasons"].append(said[cell.id])
        row["wrong"] += [word for check, word in (known or {}).items() if check == cell.id]
    notes = handed.notes if handed else {}
    for task, row in rows.items():
        row["reasons"] += [*notes.get(task, []), *notes.get("", [])]
    about = {"student": job.student, "lesson": job.lesson, "rows": rows}
    return {**about, "answers": own, "notes": notes}


def prepare_process(job: Job) -> None:
    """This process is the course's own; what a student sends may still make it large or slow."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    seconds = int(job.limits.submission * 2 + NAMING) + 60
    for kind, most in [(resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, 16 * 10**9)]:
        with contextlib.suppress(ValueError, OSError):  # a system that has no such limit
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
    os.chdir(job.scratch)
