"""``make collect``: a class's exercises and predictions, out of the homes of a hub.

    python -m grading.collect HOMES FOLDER [--work measure-pytorch/work]

HOMES holds a folder for each student, named by the login, such as /home. Each set in which the
student has written an answer is copied to FOLDER/STUDENT/SET/SET.ipynb, and the predictions to
FOLDER/STUDENT/predictions/predictions.jsonl, each with the time of its last change in
timestamp.txt, and a table says who handed in what: ``make grade`` and ``make predictions`` take
FOLDER. Run this as root: it reads a file as
the student who owns the copy of the course, and follows no link, so that nobody hands in what only
others can read.
"""

import argparse
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

from grading import ids
from grading.answers import LARGEST, Answers, Issued
from helpers.predictions import NAME
from tools import exercise_sets, notebooks


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grading.collect", allow_abbrev=False)
    parser.add_argument("homes", type=Path, help="holds the students' homes, such as /home")
    parser.add_argument("folder", type=Path, help="for what they hand in, such as submissions")
    parser.add_argument("--work", default="measure-pytorch/work", help="the copy in each home")
    options = parser.parse_args(arguments)
    if not hasattr(os, "seteuid"):
        parser.error("it reads the homes of a hub, which runs on Linux")
    if "" in arguments:
        parser.error("give both folders: make collect HOMES=/home SUBMISSIONS=submissions")
    if not options.homes.is_dir():
        parser.error(f"expected the folder that holds the students' homes, but got {options.homes}")
    rows = [("student", "set", "last change (UTC)", "note")]
    try:
        options.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # a whole class's work
        for home in sorted(path for path in options.homes.iterdir() if path.is_dir()):
            collected = list(collect(home, options.work, options.folder))
            rows += collected or [(home.name, "-", "-", "nothing was handed in")]
    except OSError as error:
        sys.exit(f"Not everything was collected: {error}")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())
    return 0


def collect(home: Path, work: str, folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Copy what the student of a home hands in: (student, set, time, note) of each set."""
    student, course = ids.composed(home.name), home / Path(work).parts[0]
    try:
        owner = course.lstat()
    except FileNotFoundError:
        return
    except PermissionError:
        yield student, "-", "-", "NOT COLLECTED: only root can read it"
        return
    if not owner.st_uid or os.geteuid() not in (0, owner.st_uid):
        why = "only root can read it" if owner.st_uid else f"{course.name} is root's"
        yield student, "-", "-", f"NOT COLLECTED: {why}"
        return
    lost = set()  # links that lead nowhere, of which each is told once
    for name, path, describe in wanted(work, student):
        try:
            content, seconds = read(owner, home, path)
        except FileNotFoundError:
            continue
        except Linked as error:
            if (link := dangling(owner, home, path)) and link not in lost:
                lost.add(link)
                yield student, "-", "-", f"NOT COLLECTED: {link} is a link that leads nowhere"
            elif not link and may_be_begun(owner, home / path, describe):
                yield student, name, "-", f"NOT COLLECTED: {error.strerror}"
            continue
        except OSError as error:
            yield student, name, "-", f"NOT COLLECTED: {error.strerror}"
            continue
        if not (note := describe(content)):
            continue
        target = folder / student / name / Path(path).name
        target.parent.mkdir(parents=True, exist_ok=True)
        notebooks.write(target, content)
        time = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
        target.with_name("timestamp.txt").write_text(f"{time} UTC\n")
        yield student, name, time, note


def wanted(work: str, student: str) -> Iterator[tuple[str, str, Callable[[bytes], str]]]:
    """(name, path in a home, what is worth saying of the content) of what is collected."""
    for released in sorted(exercise_sets.EXERCISES.glob("*/*.ipynb")):
        path = f"{work}/exercises/{released.stem}/{released.name}"
        yield released.stem, path, partial(described, released=released, student=student)
    yield "predictions", f"{work}/{NAME}", lambda content: "collected" if content else ""


class Linked(OSError):
    """A file is not read, because the way to it has a link."""


def read(owner: os.stat_result, home: Path, name: str) -> tuple[bytes, float]:
    """The content of a plain file in a home, and the time of its last change.

    Raises an OSError that says why if ``owner`` cannot read it or if it belongs to another user,
    and one that is ``Linked`` if the way to it has a link.
    """
    *folders, last = Path(name).parts
    with rights_of(owner):
        here = os.open(home, os.O_RDONLY)
        try:
            for part in folders:
                inside = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
                os.close(here)
                here = inside
            file = os.open(last, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=here)
        except (FileNotFoundError, PermissionError):
            raise
        except OSError as error:
            raise Linked(error.errno, f"{name} is a link, or leads through one") from None
        finally:
            os.close(here)
        with os.fdopen(file, "rb") as opened:
            facts = os.fstat(file)
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != owner.st_uid:
                raise OSError(0, f"{name} is not a plain file of the student's own")
            if facts.st_size > LARGEST:
                raise OSError(0, f"{name} has more than {LARGEST // 2**20} MB")
            return opened.read(), facts.st_mtime


def dangling(owner: os.stat_result, home: Path, name: str) -> str:
    """The first link on the way to a file that leads nowhere, or ""."""
    here = home
    with rights_of(owner):
        for part in Path(name).parts:
            here = here / part
            try:
                here.stat()
            except FileNotFoundError:
                return str(here.relative_to(home)) if here.is_symlink() else ""
            except OSError:  # it leads to where the student must not look
                return ""
    return ""


def may_be_begun(owner: os.stat_result, path: Path, describe: Callable[[bytes], str]) -> bool:
    """Whether a file that is only reached by a link may hold answers: what its owner sees there."""
    try:
        with rights_of(owner), os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
                return True
            content = file.read()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return bool(describe(content))


@contextmanager
def rights_of(owner: os.stat_result) -> Iterator[None]:
    """Within it, root opens files with the rights of another user."""
    groups = os.getgroups()
    if os.geteuid():
        yield
        return
    os.setgroups([])
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(os.getgid())
        os.setgroups(groups)


def described(content: bytes, released: Path, student: str) -> str:
    """What is worth saying of a set that was begun; "" if its answers are as they were released.

    What counts as begun is what the grader finds, in whatever cells.
    """
    try:
        answers = Answers(content, issued(released), student)
    except ValueError as problem:
        return f"collected, but {str(problem).partition(': ')[0]}"
    if not answers.begun:
        return ""
    if answers.written_id in ("", student):
        return "collected"
    written_id = ids.shown(answers.written_id)
    return f"collected; its id is {written_id}, and it will be graded as {student!r}"


@cache
def issued(released: Path) -> Issued:
    return Issued.of(notebooks.read(released))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
