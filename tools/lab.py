"""``make lab`` and ``make teach``: the reader's own copy of the course, in JupyterLab.

    python -m tools.lab [--teach] [JUPYTERLAB'S OPTIONS] [--fresh NN ...]
    python -m tools.lab --copy-only [FOLDER] [--fresh NN ...]

``work/`` is a student's, ``teach/`` an instructor's. A later call adds what is new and brings what
the reader never changed up to date; what the reader changed stays. Running a notebook does not
change it: its outputs stay where the code is still the same. ``--fresh 04`` starts lesson 04 again,
and keeps the old one under another name.

``--copy-only`` starts no JupyterLab. Its FOLDER is a student's, who can only read the course, as on
a hub: it gets ``work/``, what the lessons show from outside it, and a Makefile for ``make lab
FRESH=04``, which uses the course's own Python. Nothing is written if that would replace a file that
the course did not write.
"""

import argparse
import contextlib
import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from pathlib import Path, PurePosixPath

import nbformat
from nbformat import NotebookNode

from helpers.checks import LEDGER
from tools import notebooks

# JupyterLab's settings in front of a class: 84 columns of code fit a screen of 1280 pixels.
TYPE = {"code-font-size": "20px", "content-font-size1": "20px", "ui-font-size1": "17px"}
ON_SCREEN = {
    "apputils-extension/themes": {"overrides": TYPE},
    "statusbar-extension/plugin": {"visible": False},
}
SETTINGS = ".settings"
# JupyterLab's settings for everybody, as defaults: what a reader has set goes before them.
DEFAULTS = Path(__file__).with_name("jupyterlab")
# An extension that tells the tabs of a lesson and of its exercises apart.
EXTENSIONS = DEFAULTS / "labextensions"
# What lessons show from outside their folder. It is copied, because JupyterLab shows no picture
# behind a link that leads out of the folder in which it was started.
BESIDE = ("assets", "docs")
# A version of a file, as the ledger has it: the digests of all of it, and of its sources.
Version = list[str]
# A socket's path has at most 103 bytes on macOS, and multiprocessing adds 32 to the folder's.
LONGEST_TMPDIR = 70
MAKEFILE = """\
# make lab FRESH=04 starts lesson 04 again; your own file is kept under another name.
lab:
\t@cd {course} && .venv/bin/python -m tools.lab --copy-only "$(CURDIR)" $(if $(FRESH),--fresh $(FRESH))
"""  # noqa: E501


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.lab", allow_abbrev=False)
    parser.add_argument("--teach", action="store_true", help="an instructor's copy, in teach/")
    words = "the lessons to start again, such as 04"
    parser.add_argument("--fresh", nargs="+", default=[], metavar="NN", help=words)
    words = "start no JupyterLab; bring the copy in FOLDER up to date, by default the course's own"
    parser.add_argument(
        "--copy-only", nargs="?", const=notebooks.ROOT, metavar="FOLDER", help=words
    )
    options, jupyter = parser.parse_known_args(arguments)
    course = Path(options.copy_only or notebooks.ROOT).resolve()
    folder = course / ("teach" if options.teach else "work")
    try:
        beside = contents_beside() if course != notebooks.ROOT else {}
        if strange := not_the_courses(course, beside):
            sys.exit(
                f"Nothing was copied, because the course did not write {strange} and would "
                "replace it: move this file, or give another folder."
            )
        for line in hand_out(folder, options.teach, options.fresh):
            print(line, flush=True)  # before the server's own lines
        copy_beside(course, beside)
        if not options.copy_only:
            settings = settings_of(folder)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "nothing of yours has changed. Free some space, and call this again"
        else:
            advice = "copy the course to a folder of your own, and call this there"
        sys.exit(f"The reader's copy cannot be written to {folder} ({error.strerror}): {advice}.")
    if options.copy_only:
        return
    if (other := folder_of_helpers()) != notebooks.ROOT:
        print(
            f"Lessons use the helpers in {other}: to use those of this folder, type python "
            "tools/install.py, with this Python."
        )
    if len(os.fsencode(tempfile.gettempdir())) > LONGEST_TMPDIR:
        print(
            f"The path of the folder for temporary files is longer than {LONGEST_TMPDIR} bytes, so "
            "lesson 10 would wait for ever: set TMPDIR to another one, such as /tmp."
        )
    # Rooted in the course, because lessons show figures that are not in the reader's folder. An
    # instructor sees JupyterLab's Simple Interface, with settings apart from the instructor's own.
    interface = "doc" if options.teach else "lab"
    words = [f"--ServerApp.root_dir={notebooks.ROOT}"]
    words += [f"--LabApp.default_url=/{interface}/tree/{folder.name}/00_start_here.ipynb"]
    words += [f"--LabApp.app_settings_dir={DEFAULTS}"]
    words += [f"--LabApp.extra_labextensions_path={EXTENSIONS}"]
    words += [f"--LabApp.user_settings_dir={settings}"]
    words += [f"--LabApp.workspaces_dir={settings / 'workspaces'}"]
    if is_root() and "--allow-root" not in jupyter:
        print("You are root, so a notebook may change everything here: better use another account.")
        words += ["--allow-root"]
    print(f"JupyterLab starts with {folder.name}/00_start_here.ipynb. Ctrl+C stops it.", flush=True)
    # In this process and not in a child: Ctrl+C then reaches JupyterLab alone, which asks first.
    from jupyterlab.labapp import LabApp  # which takes a second to import

    os.chdir(notebooks.ROOT)
    LabApp.launch_instance([*words, *jupyter])


def hand_out(folder: Path, teach: bool = False, restart: Sequence[str] = ()) -> Iterator[str]:
    """Bring the copy in ``folder`` up to date; yield a line for each thing worth saying.

    The ledger names the version of each file that the reader was given. A file that equals it, or
    the course's own, is the course's and is replaced by a newer version; any other is the
    reader's and stays. So a lost ledger is restored from the files. It is written last, and each
    file at once, so that this can be interrupted anywhere and called again.
    """
    course = dict(contents(teach))
    restarted = {name for word in restart for name in chosen(word, course)}
    if folder.is_symlink() and not folder.exists():
        sys.exit(f"{folder} is a link to a folder that is not there: {folder.readlink()}.")
    folder.mkdir(parents=True, exist_ok=True)
    ledger = folder / LEDGER
    versions = read_ledger(ledger)
    for name, content in course.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in restarted and path.exists():
            kept = put_aside(path).relative_to(folder.parent).as_posix()
            yield f"{folder.name}/{name} starts again; yours is kept as {kept}"
        given, newest = versions.get(name), version(content)
        current = path.read_bytes() if path.exists() else None
        if current is None:
            notebooks.write(path, content)
        elif is_one_of(current, given, newest):
            if given is None or given[0] != newest[0]:
                notebooks.write(path, with_outputs(content, current))
        elif given is None:
            hint = restart_hint(name, teach)
            yield f"{folder.name}/{name} differs from the course's; yours stays{hint}"
        elif given[0] != newest[0]:
            hint = restart_hint(name, teach)
            yield f"{folder.name}/{name} is newer in the course; yours stays{hint}"
            continue
        versions[name] = newest
    for name in sorted(versions.keys() - course.keys()):
        given, path = versions.pop(name), folder / name
        if path.exists() and is_one_of(path.read_bytes(), given):
            path.unlink()
            with contextlib.suppress(OSError):  # there is more in it
                path.parent.rmdir()
            yield f"{folder.name}/{name} is no longer in the course, and was removed"
        elif path.exists():
            yield f"{folder.name}/{name} is no longer in the course; yours stays"
    notebooks.write(ledger, json.dumps(versions, indent=1).encode())


def chosen(word: str, course: Collection[str]) -> set[str]:
    """The files of the lesson or the set of exercises that is to start again."""
    found = {name for name in course if re.match(rf"{re.escape(word)}(_|\.|/|$)", name)}
    if not found:
        lessons = ", ".join(sorted(name[:2] for name in course if name[:2].isdigit()))
        sys.exit(
            f"There is no lesson {word!r} to start again: give one of {lessons}, or a set of "
            "exercises such as exercises/01_timing."
        )
    return found


def restart_hint(name: str, teach: bool) -> str:
    """What to type to start a file again: `` (make lab FRESH=01_timing starts it again)``."""
    path = PurePosixPath(name)
    short = path.parent if path.parent.name == path.stem else name.removesuffix(".ipynb")
    if shutil.which("make"):
        line = f"make {'teach' if teach else 'lab'} FRESH={short}"
    else:
        line = f"{sys.executable} -m tools.lab {'--teach ' * teach}--fresh {short}"
    return f" ({line} starts it again)"


def contents_beside() -> dict[str, bytes]:
    """What is beside ``work/`` in a student's folder: the name of each file to its content."""
    files = [path for name in BESIDE for path in (notebooks.ROOT / name).rglob("*")]
    contents = {
        path.relative_to(notebooks.ROOT).as_posix(): path.read_bytes()
        for path in files
        if path.is_file()
    }
    makefile = MAKEFILE.format(course=shlex.quote(str(notebooks.ROOT)))
    return {**contents, "Makefile": makefile.encode()}


def not_the_courses(course: Path, beside: dict[str, bytes]) -> Path | None:
    """The first file in the way of ``beside`` in a student's folder that the course did not write.

    A Makefile is the course's if its first line is. The other files are the course's if they equal
    its own, or if the folder was handed out: then it has a ledger, or the course's Makefile.
    """
    there = {name: course / name for name in beside if (course / name).exists()}
    differ = [path for name, path in there.items() if path.read_bytes() != beside[name]]
    makefile, first_line = course / "Makefile", MAKEFILE.encode().splitlines()[0]
    has_makefile = makefile.exists() and makefile.read_bytes().splitlines()[:1] == [first_line]
    if makefile in differ and not has_makefile:
        return makefile
    handed_out = has_makefile or (course / "work" / LEDGER).exists()
    return None if handed_out or not differ else differ[0]


def copy_beside(course: Path, beside: dict[str, bytes]) -> None:
    """Bring what is beside ``work/`` in a student's folder up to date."""
    for name, content in beside.items():
        path = course / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            notebooks.write(path, content)


def read_ledger(path: Path) -> dict[str, Version]:
    """The name of each file to the version that the reader was given."""
    try:
        versions = dict(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):  # deleted, or damaged
        return {}
    # Until release 2.0.0 a version was the digest of the file alone.
    return {name: [it, it] if isinstance(it, str) else it for name, it in versions.items()}


def version(content: bytes) -> Version:
    """The digests of a file and of what a reader would change in it: of a notebook, its sources.

    A letter that answers a question is no change.
    """
    sources = [[cell["cell_type"], unanswered(cell["source"])] for cell in cells_of(content)]
    written = json.dumps(sources).encode() if sources else content
    return [hashlib.sha256(it).hexdigest() for it in (content, written)]


def is_one_of(content: bytes, *versions: Version | None) -> bool:
    """Whether the reader changed nothing in one of ``versions``; None is no version."""
    return any(digest in it for it in versions if it for digest in version(content))


def unanswered(source: str) -> str:
    """The source of a cell, without the letter by which a reader has answered a question."""
    return re.sub(r"^(predict\(.+?, *).*\)", r'\1"?")', source)


def with_outputs(content: bytes, older: bytes) -> bytes:
    """The notebook ``content``, with the outputs of ``older`` where the source is the same, and
    with the letters by which the reader answered the questions."""
    code = [cell for cell in cells_of(older) if cell["cell_type"] == "code"]
    if not any(
        it.get("execution_count") or it["source"] != unanswered(it["source"]) for it in code
    ):
        return content
    notebook = nbformat.reads(content.decode(), as_version=4)
    for cell in notebook.cells:
        same = [it for it in code if unanswered(it["source"]) == cell.source]
        if cell.cell_type == "code" and same:
            code.remove(same[0])
            cell.source = same[0]["source"]
            cell.outputs = nbformat.from_dict(same[0]["outputs"])
            cell.execution_count = same[0]["execution_count"]
            if times := same[0]["metadata"].get("execution"):
                cell.metadata.execution = nbformat.from_dict(times)
    return notebooks.as_text(notebook).encode()


def cells_of(content: bytes) -> list[dict]:
    """The cells of a notebook, as they are in its file; none of another file."""
    try:
        cells = json.loads(content)["cells"]
        return [{**cell, "source": "".join(cell["source"])} for cell in cells]
    except (ValueError, KeyError, TypeError):
        return []


def settings_of(folder: Path) -> Path:
    """JupyterLab's settings for ``folder`` alone, which begin with the reader's own.

    They are apart, because an extension that shows how long a cell runs changes a setting.
    """
    settings = folder / SETTINGS
    if not settings.exists():
        from jupyterlab.commands import get_user_settings_dir

        own = Path(get_user_settings_dir())
        if own.is_dir():
            shutil.copytree(own, settings)
    return settings


def folder_of_helpers() -> Path:
    """The folder whose ``helpers`` a lesson imports: another one's, if this one is a copy."""
    code = "import helpers, pathlib; print(pathlib.Path(helpers.__file__).parent.parent)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False
    )
    return Path(done.stdout.strip() or notebooks.ROOT).resolve()


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def contents(teach: bool) -> Iterator[tuple[str, bytes]]:
    """(name in the copy, content) of everything that a reader is handed."""
    for path in sorted(notebooks.NOTEBOOKS.rglob("*")):
        name = path.relative_to(notebooks.NOTEBOOKS)
        inside = name.parts[0]
        if not path.is_file() or {"__pycache__", ".ipynb_checkpoints"} & set(name.parts):
            continue
        if path.suffix == ".ipynb" and len(name.parts) == 1:
            copy = readers_copy(notebooks.read(path), teach)
            yield name.as_posix(), notebooks.as_text(copy).encode()
        elif inside in ("scripts", "exercises"):
            yield name.as_posix(), path.read_bytes()
    for name, values in ON_SCREEN.items() if teach else ():
        text = json.dumps(values, indent=1)
        yield f"{SETTINGS}/@jupyterlab/{name}.jupyterlab-settings", text.encode()


def readers_copy(lesson: NotebookNode, teach: bool) -> NotebookNode:
    """``lesson`` without outputs: a student's without notes, an instructor's with them open.

    A cell that draws the answer to a question is folded, because the title of the chart says it.
    """
    copy = notebooks.canonical(lesson)
    copy.cells = [
        cell for cell in copy.cells if teach or not cell.source.startswith(notebooks.NOTES)
    ]
    asked = False  # and not yet answered by a check
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []
            asked = cell.source.startswith("predict(") or (asked and "outcome(" not in cell.source)
            if asked and re.search(r"\btitle ?=", cell.source):
                cell.metadata.jupyter = {"source_hidden": True}
        elif cell.source.startswith(notebooks.NOTES):
            cell.source = cell.source.replace("<details>", "<details open>", 1)
    return copy


def put_aside(path: Path) -> Path:
    """Rename ``path`` to a free name, which JupyterLab lists after that of the course's file."""
    free = (path.with_name(f"{path.stem}.yours-{n}{path.suffix}") for n in count(1))
    return path.rename(next(name for name in free if not name.exists()))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:  # before JupyterLab can ask
        sys.exit("Stopped.")
