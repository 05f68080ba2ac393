"""``make collect``: the exercises of a class, out of the homes of a hub, for ``make grade``.

    python -m tools.collect HOMES FOLDER [--work measure-pytorch/work]

HOMES holds a folder for each student, named by the login, such as /home. Each set in which the
student has written an answer is copied to FOLDER/STUDENT/SET/SET.ipynb, with the time of its last
change in timestamp.txt, and a table says who handed in what. Run this as root: it reads a file as
the student who owns the copy of the course, and follows no link, so that nobody hands in what only
others can read.
"""

import argparse
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools import exercises, notebooks

LARGEST = 20 * 2**20  # bytes of a notebook, as in grading/
WRITTEN_ID = re.compile(r"""^student *= *(["'])(.*?)\1""", re.M)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.collect", allow_abbrev=False)
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
        sys.exit(f"Not everything was collected: {error.filename}: {error.strerror}.")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())
    return 0


def collect(home: Path, work: str, folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Copy what the student of a home hands in: (student, set, time, note) of each set."""
    student, course = home.name, home / Path(work).parts[0]
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
    for released in sorted(exercises.EXERCISES.glob("*/*.ipynb")):
        name = released.stem
        try:
            content, seconds = read(owner, home, f"{work}/exercises/{name}/{released.name}")
        except FileNotFoundError:
            continue
        except OSError as error:
            yield student, name, "-", f"NOT COLLECTED: {error.strerror}"
            continue
        if not (note := described(content, notebooks.read(released), student)):
            continue
        target = folder / student / name / released.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        time = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
        target.with_name("timestamp.txt").write_text(f"{time} UTC\n")
        yield student, name, time, note


def read(owner: os.stat_result, home: Path, name: str) -> tuple[bytes, float]:
    """The content of a plain file in a home, and the time of its last change.

    Raises an OSError that says why if ``owner`` cannot read it, if the way to it has a link, or if
    it belongs to another user.
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
            raise OSError(error.errno, f"{name} is a link, or leads through one") from None
        finally:
            os.close(here)
        with os.fdopen(file, "rb") as opened:
            facts = os.fstat(file)
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != owner.st_uid:
                raise OSError(0, f"{name} is not a plain file of the student's own")
            if facts.st_size > LARGEST:
                raise OSError(0, f"{name} has more than {LARGEST // 2**20} MB")
            return opened.read(), facts.st_mtime


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


def described(content: bytes, released: NotebookNode, student: str) -> str:
    """What is worth saying of a set that was begun; "" if its answers are as they were released."""
    try:
        cells = nbformat.reads(content.decode(), as_version=4).cells
    except Exception as error:  # of any kind, because the file is a student's
        return f"collected, but it is not a whole notebook ({type(error).__name__})"
    sources = {cell.get("id", ""): cell.source for cell in cells}
    answers = {
        cell.id: cell.source
        for cell in released.cells
        if cell.metadata.nbgrader.get("solution") and cell.id != "student"
    }
    if all(sources.get(name, source).split() == source.split() for name, source in answers.items()):
        return ""
    written = WRITTEN_ID.findall(sources.get("student", ""))
    if not written or written[-1][1].strip() == student:
        return "collected"
    return f"collected; its id is {written[-1][1]!a}, and it will be graded as {student!r}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
