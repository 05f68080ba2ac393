"""``make grade SUBMISSIONS=folder``: a class's exercises, each in a sandbox of its own.

    python -m tools.grade SUBMISSIONS [--lesson 03] [--due 2026-12-01T23:59] [--out grades]
    python -m tools.grade SUBMISSIONS --shard 1/4 --out part1      (about a quarter of them)
    python -m tools.grade --merge part1 part2 part3 part4 --out grades

Submissions are ``folder/STUDENT/NN_name.ipynb``. A second call grades only what is new or changed.
"""

import argparse
import contextlib
import hashlib
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from multiprocessing.connection import wait
from pathlib import Path

import nbformat

from tools import exercises, notebooks

try:
    from tools.grading import marking, sandbox, summary
except ModuleNotFoundError as error:
    sys.exit(
        f"Grading needs {error.name}, which is not here. It wants Linux, Python 3.11 to 3.13, and "
        "what make grade installs: pip install -r requirements-grade.txt -c constraints.txt"
    )

NOTHING = "{} holds no exercises of a student: expected FOLDER/STUDENT/NN_name.ipynb"
READ_BY_GRADING = ("helpers/exercises.py", "tools/values.py", "tools/exercises.py", "tools/grading")


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    out = options.out.resolve()
    try:
        out.mkdir(parents=True, exist_ok=True)
        if options.merge:
            merge(options.merge, out)
            results = summary.kept(out)
            late = {(one["student"], one["lesson"]): one["late"] for one in results if one["late"]}
            say_marks(out, results)
            return finish(out, results, late)
        limits = sandbox.Limits(
            cell=options.cell_seconds,
            submission=options.seconds,
            memory=options.memory,
            sandbox=not options.no_sandbox,
            see=tuple(options.see),
            hide=tuple(str(path.resolve()) for path in (options.folder, out, options.sets)),
        )
        problem = sandbox.trouble(limits)
        with tempfile.TemporaryDirectory(prefix="grade-") as scratch:
            jobs = [] if problem else list(found(options, limits, Path(scratch)))
            if not jobs:
                print(problem or NOTHING.format(options.folder), file=sys.stderr)
                return 2
            late = {(job.student, job.lesson): lateness(job, options.due) for job in jobs}
            stopped = grade(jobs, out, late, options.jobs)
        results = [one for job in jobs if (one := result_of(job, out))]
        return finish(out, results, late) or (130 if stopped else 0)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.grade", allow_abbrev=False)
    add = parser.add_argument
    add("folder", nargs="?", default="", help="holds a folder for each student, named by their id")
    add("--out", type=Path, default=Path("grades"), help="where the tables and pages go")
    add("--lesson", action="append", default=[], help="only this one, such as 03")
    add("--due", type=moment, help="what came after 2026-12-01T23:59 is said to be late")
    add("--shard", default="1/1", help="k/n: the k-th of n parts of the class, about alike large")
    add("--merge", nargs="+", type=Path, help="the --out folders of shards")
    add("--no-sandbox", action="store_true", help="only for code that you trust")
    add("--jobs", type=int, default=os.cpu_count(), help="submissions at the same time")
    add("--cell-seconds", type=float, default=60, help="a cell's limit")
    add("--seconds", type=float, default=300, help="a submission's limit")
    add("--memory", type=float, default=4, help="a submission's limit, in GB")
    add("--see", action="append", default=[], help="one more folder that kernels may read")
    add("--sets", type=Path, default=exercises.SOLUTIONS, help="where the sets are")
    options = parser.parse_args(arguments)
    part, _, parts = options.shard.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        parser.error(f"--shard must be k/n, such as 1/4, but {options.shard} came")
    options.part, options.parts = int(part) - 1, int(parts)
    if not options.merge and not (options.folder and Path(options.folder).is_dir()):
        parser.error(f"SUBMISSIONS must be a folder, but {options.folder or 'nothing'} came")
    options.folder = Path(options.folder)
    for place in options.merge or []:
        if not place.is_dir():
            parser.error(f"--merge wants the --out folders of shards, but {place} came")
    for one in options.lesson:
        if not any(is_meant(path, [one]) for path in sets(options)):
            parser.error(f"--lesson must be a set or its number, such as 03, but {one} came")
    return options


def moment(word: str) -> datetime:
    try:
        return datetime.fromisoformat(word)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a day and a time such as 2026-12-01T23:59, but {word} came"
        ) from None


def sets(options: argparse.Namespace) -> list[Path]:
    found = options.sets.resolve().glob("*/*.ipynb")
    return sorted(path for path in found if path.stem == path.parent.name)


def is_meant(source: Path, lessons: list[str]) -> bool:
    """Whether it is the set 03_macs_and_flops, or that of the number 03."""
    return f"{source.stem}_".startswith(tuple(f"{one}_" for one in lessons))


def found(
    options: argparse.Namespace, limits: sandbox.Limits, scratch: Path
) -> Iterator[marking.Job]:
    """A job for each student and each lesson that someone handed in."""
    students = []
    for path in sorted(options.folder.resolve().iterdir()):
        if path.is_dir() and path.name.isprintable() and not path.name.startswith("."):
            students.append(path)
        else:
            print(f"{path.name!a} is no student's folder: left out")
    for source in sets(options):
        if options.lesson and not is_meant(source, options.lesson):
            continue
        files = {student: handed_in(student, source.stem) for student in students}
        if not any(files.values()):
            continue
        cells = nbformat.reads(exercises.release(source), as_version=4).cells
        released = {cell.id: cell.source for cell in cells}
        for number, student in enumerate(students):
            own = int(hashlib.sha256(student.name.encode()).hexdigest(), 16)
            if own % options.parts == options.part:
                place = scratch / f"{source.stem[:2]}{number}"
                place.mkdir(mode=0o755)
                names = (student.name, source, files[student], released)
                yield marking.Job(*names, limits, place, scratch / "turn")


def handed_in(student: Path, lesson: str) -> tuple[Path, ...]:
    """The files in a student's folder that may be meant for this lesson."""
    places = [student] if student.is_symlink() else [student, student / lesson]
    with contextlib.suppress(OSError):  # a folder that cannot be read is an empty one
        files = [path for place in places if place.is_dir() for path in place.iterdir()]
        return tuple(sorted(path for path in files if path.match(f"{lesson}*.ipynb")))
    return ()


def grade(jobs: list, out: Path, late: dict[tuple, str], at_once: int) -> bool:
    """Grade what is new, each in a process of its own; return whether it was stopped."""
    # On Linux a worker starts with all that is imported here, and torch has computed nothing yet.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    marks = summary.marks_by_hand(out)
    todo = [job for job in jobs if not fresh(job, out, marks, late)]
    if len(todo) < len(jobs):
        print(f"{len(jobs) - len(todo)} are graded already, and unchanged")
    if len(todo) > at_once:  # and with these, which checks import: layers on the meta device do
        for name in ("pandas", "torch._dynamo"):
            importlib.import_module(name)
    running: dict[int, tuple] = {}
    waiting, done = list(reversed(todo)), 0
    try:
        while waiting or running:
            while waiting and len(running) < max(at_once, 1):
                job = waiting.pop()
                told = late[job.student, job.lesson]
                process = context.Process(target=work, args=(job, out, marks, told))
                with uninterrupted():
                    process.start()
                    running[process.sentinel] = (process, job, time.monotonic())
            for sentinel in wait(list(running)):
                process, job, start = running.pop(sentinel)
                process.join()
                done += 1
                if process.exitcode:
                    why = f"grading it ended by force ({process.exitcode}): too large or too slow"
                    told = late[job.student, job.lesson]
                    one, notebook = marking.nothing(job, why)
                    store(job, out, one | {"digest": "tried"}, notebook, marks, told)
                rows = result_of(job, out)["rows"].values()
                points, of = (sum(row[what] for row in rows) for what in ("points", "of"))
                who = f"{summary.clean(job.student):20} {job.lesson:28}"
                took = f"{points:5g} of {of:g} {time.monotonic() - start:6.1f} s"
                print(f"[{done:3}/{len(todo)}] {who} {took}", flush=True)
    except KeyboardInterrupt:
        print("stopped; the next call goes on from here", file=sys.stderr)
        for process, *_ in running.values():
            process.kill()
            process.join()
        return True
    return False


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl+C waits for the end of this: who is started is known, and will be stopped."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def work(job: marking.Job, out: Path, marks: summary.Marks, late: str) -> None:
    """One submission, in its own process."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    before = result_of(job, out)
    if before and before["digest"] == digest(job):  # only a mark, or its being late, is new
        path = out / "autograded" / job.student / job.lesson / f"{job.lesson}.ipynb"
        store(job, out, before, notebooks.read(path), marks, late)
    else:
        store(job, out, *marking.mark(job), marks, late)


def end_with_parent() -> None:
    """A grader that was killed leaves nobody at work: a kernel ends with this process."""
    wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def store(
    job: marking.Job, out: Path, one: dict, notebook: nbformat.NotebookNode, marks: dict, late: str
) -> None:
    """Write the three files of a submission; the result last, whole or not at all."""
    one = {"digest": digest(job), **one, "marks": own_marks(job, marks), "late": late}
    graded = out / "autograded" / job.student / job.lesson / f"{job.lesson}.ipynb"
    page = out / "feedback" / job.student / f"{job.lesson}.html"
    result = out / "results" / job.student / f"{job.lesson}.json"
    for path in (graded, page, result):
        path.parent.mkdir(parents=True, exist_ok=True)
    graded.write_text(notebooks.as_text(notebook), encoding="utf-8")
    page.write_text(summary.feedback(notebook, one, marks, late), encoding="utf-8")
    new = result.with_suffix(".new")
    new.write_text(json.dumps(one, indent=1))
    new.replace(result)


def result_of(job: marking.Job, out: Path) -> dict | None:
    path = out / "results" / job.student / f"{job.lesson}.json"
    return json.loads(path.read_text()) if path.exists() else None


def fresh(job: marking.Job, out: Path, marks: dict, late: dict[tuple, str]) -> bool:
    one = result_of(job, out)
    if one is None:
        return False
    same = (own_marks(job, marks), late[job.student, job.lesson])
    return one["digest"] == digest(job) and (one["marks"], one["late"]) == same


def own_marks(job: marking.Job, marks: dict) -> list:
    mine = [(who[2], *mark) for who, mark in marks.items() if who[:2] == (job.student, job.lesson)]
    return [list(mark) for mark in sorted(mine)]


def digest(job: marking.Job) -> str:
    """What a result depends on: what was handed in, the set, the grader and its limits."""
    total = hashlib.sha256(repr((job.student, job.files, job.limits)).encode())
    try:
        total.update(marking.read(job.files))
    except marking.Refused as refused:
        total.update(str(refused).encode())
    paths = [job.source, *(notebooks.ROOT / name for name in READ_BY_GRADING)]
    for path in paths:
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            total.update(file.read_bytes())
    return total.hexdigest()


def lateness(job: marking.Job, due: datetime | None) -> str:
    """How late it was handed in, by nbgrader's timestamp.txt or the file's time, or ""."""
    if due is None or len(job.files) != 1:
        return ""
    try:
        came = datetime.fromtimestamp(job.files[0].lstat().st_mtime, UTC)
        stamp = job.files[0].with_name("timestamp.txt")
        if stamp.is_file() and not stamp.is_symlink():
            came = utc(summary.utils.parse_utc(stamp.read_text()[:100].strip()))
    except (OSError, ValueError, OverflowError):
        return "late? its time cannot be read"
    hours = (came - due.astimezone()).total_seconds() / 3600
    if hours <= 0:
        return ""
    return f"late by {hours:.1f} hours" if hours < 48 else f"late by {hours / 24:.0f} days"


def utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)


def merge(parts: list[Path], out: Path) -> None:
    """The shards' files in one folder; marks entered by hand are put together."""
    by_hand: dict[tuple, list] = {}
    for part in [out, *parts]:
        for name in ("autograded", "feedback", "results"):
            if part != out and (part / name).is_dir():
                shutil.copytree(part / name, out / name, dirs_exist_ok=True)
        for line in summary.by_hand(part):
            who, points = tuple(line[:3]), line[3]
            if who not in by_hand or (points and not by_hand[who][3]):
                by_hand[who] = line
    summary.write_by_hand(out, by_hand.values())


def say_marks(out: Path, results: list[dict]) -> None:
    """Put marks that were entered by hand after the shards were graded onto the students' pages."""
    marks = summary.marks_by_hand(out)
    marked = {who[:2] for who in marks}
    for one in results:
        student, lesson = one["student"], one["lesson"]
        if (student, lesson) in marked:
            graded = notebooks.read(out / "autograded" / student / lesson / f"{lesson}.ipynb")
            page = out / "feedback" / student / f"{lesson}.html"
            page.write_text(summary.feedback(graded, one, marks, one["late"]), encoding="utf-8")


def finish(out: Path, results: list[dict], late: dict[tuple, str]) -> int:
    summary.write(out, results, late)
    known = {
        (one["student"], one["lesson"], task) for one in summary.kept(out) for task in one["rows"]
    }
    for who in summary.marks_by_hand(out).keys() - known:
        print(f"manual.csv: {summary.clean(', '.join(who))} was not graded: no mark was given")
    overdue = sum(bool(told) for told in late.values())
    pairs = len((out / "alike.csv").read_text().splitlines()) - 1
    print(f"{len(results)} submissions, {overdue} late, {pairs} pairs alike: {out}/grades.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
