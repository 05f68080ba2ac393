"""Tools, provenance, and files that tell nothing of the machine they come from."""

import contextlib
import datetime
import functools
import getpass
import gzip
import json
import os
import platform
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "notebooks" / "scripts"

# Names that every second machine has: finding one of them gives nothing away.
EVERYWHERE = {"root", "user", "runner", "localhost", "nobody", "vm", "host", "test"}
EVERYWHERE |= {"build", "gpu", "cuda", "torch", "pytorch", "python", "nvidia", "container"}


def tool(name: str) -> str | None:
    """nsys or ncu: of $NSYS or $NCU, or the PATH; absolute, as it is started elsewhere."""
    path = shutil.which(os.environ.get(name.upper(), name))
    return path and str(Path(path).absolute())


def run(words: list[str | Path], folder: Path, **environment: str) -> tuple[int, str]:
    """Exit status and output of a command, started with almost nothing in its environment.

    After five minutes it is ended, with what it started, and TimeoutExpired is raised.
    """
    libraries = {"LD_LIBRARY_PATH", "PYTHONPATH"} & os.environ.keys()
    needed = {name: os.environ[name] for name in libraries}
    process = subprocess.Popen(
        [str(word) for word in words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **needed, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=300)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, said


def version(path: str) -> str:
    """What ``path --version`` says, as four or so numbers with dots."""
    text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    return re.search(r"[Vv]ersion (\d+\.\d+\.\d+[.\d]*)", text)[1]


def provenance(recorder: str, device: str, command: str, **more: str) -> dict[str, str]:
    """Where a recording comes from; the lessons' captions name the ``device``."""
    return {
        "device": device,
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **more,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "recorder": f"tools/{recorder}",
    }


def save(path: Path, content: dict[str, Any]) -> None:
    """Write JSON for people to read."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def texts(path: Path) -> Iterator[str]:
    """Every text in a file: a database's bytes too, as a deleted row may be there."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    yield data.decode("utf-8", errors="replace")
    if path.suffix == ".sqlite":
        with sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True) as db:
            names = "SELECT name FROM sqlite_master WHERE type = 'table'"
            for (table,) in db.execute(names).fetchall():
                for row in db.execute(f'SELECT * FROM "{table}"'):
                    yield from (value for value in row if isinstance(value, str))


def paths(text: str) -> Iterator[str]:
    """Every absolute path in ``text``, and those of this course and of its user's home."""
    roots = "home|Users|root|tmp|work|opt|usr|var|private|mnt|srv|proc|lib|etc|scratch|nfs"
    absolute = rf"(?<![\w.~<:/])/(?:{roots})/[\w.-]|\b[A-Z]:\\\w|site-packages|\.venv/"
    for found in re.findall(absolute, text):
        yield f"an absolute path: {found!r}"
    for value in (home(), str(ROOT)):
        if len(value) > 6 and value in text:
            yield f"a path of this machine: {value!r}"


def leaks(text: str) -> Iterator[str]:
    """What in ``text`` tells about a machine or its user."""
    yield from paths(text)
    patterns = {
        "an environment variable": r"\b(?:PATH|HOME|USER|LOGNAME|HOSTNAME|PWD|SHELL"
        r"|LD_\w+|PYTHON\w+|\w*(?:SECRET|PASSWORD|API_KEY))\s*=",
        "a process": r"\bkthreadd\b|\bsystemd\b|\bkworker\b|\bsshd\b|/sbin/init",
        "an e-mail address": r"[\w.]+@[\w-]+\.\w{2,}",
        "an address": r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?<!\d\.\d\.0)",
    }
    for kind, pattern in patterns.items():
        for found in re.findall(pattern, text):
            # a version such as 2023.4.4.54 is no address
            if kind != "an address" or all(int(part) < 256 for part in found.split(".")):
                yield f"{kind}: {found!r}"
    host = socket.gethostname()
    # A user called "step" is no leak where a program's range is called so.
    innocent = EVERYWHERE | words_of_the_course()
    for name in {user(), host, host.split(".")[0]} - innocent:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            yield f"a name of this machine: {name!r}"
    for key, value in os.environ.items():
        # A version such as 2.11.0+cu130 may be in a variable; it tells nothing.
        telling = len(value) > 20 or (len(value) > 11 and re.search(r"[/@:\\]", value))
        if telling and re.search(r"[^\w. ]", value) and value in text:
            yield f"the value of {key}"


def user() -> str:
    """The user's name; empty where the user id has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def home() -> str:
    """The user's home folder; empty where there is none, as in a container."""
    found = os.path.expanduser("~")  # noqa: PTH111, as Path.home() may raise
    return "" if found in ("~", "/") else found


@functools.cache
def words_of_the_course() -> set[str]:
    """Every word of the programs that are recorded and that record; and the empty one."""
    programs = [*SCRIPTS.glob("*.py"), *Path(__file__).parent.glob("*.py")]
    found = {word for path in programs for word in re.findall(r"\w+", path.read_text("utf-8"))}
    return found | {""}
