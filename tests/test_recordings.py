"""Every file in assets/recordings: provenance, size, and nothing of the machine it came from."""

import getpass
import json
import os
import re
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import notebooks

RECORDINGS = notebooks.ROOT / "assets" / "recordings"
FILES = sorted(path for path in RECORDINGS.rglob("*") if path.is_file())
EVERYWHERE = {"root", "user", "runner", "localhost", "nobody", "vm", "host", "test", "build"}
# The tables that a stripped nsys report may keep: nothing with an environment or a process list.
TABLES = re.compile(
    r"NVTX_EVENTS|OSRT_API|StringIds|META_DATA_EXPORT|PROVENANCE|CUPTI_ACTIVITY_KIND_\w+|ENUM_\w+"
)
TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"
LARGEST = 1_000_000


def strings(path: Path) -> Iterator[str]:
    """Every text in a file: a database's bytes too, because a deleted row may still lie there."""
    yield path.read_bytes().decode("utf-8", errors="replace")
    if path.suffix == ".sqlite":
        with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as db:
            for (table,) in db.execute(TABLE_NAMES).fetchall():
                for row in db.execute(f'SELECT * FROM "{table}"'):
                    yield from (value for value in row if isinstance(value, str))


def leaks(text: str) -> Iterator[str]:
    """What in ``text`` tells about a machine or its user."""
    roots = "home|Users|root|tmp|work|opt|usr|var|private|mnt|srv|proc|lib|etc|scratch|nfs"
    patterns = {
        "an absolute path": rf"(?<![\w.~<:/])/(?:{roots})/[\w.-]"
        r"|\b[A-Z]:\\\w|site-packages|\.venv/",
        "an environment variable": r"\b(?:PATH|HOME|USER|LOGNAME|HOSTNAME|PWD|SHELL|LD_\w+"
        r"|PYTHON\w+|\w*(?:SECRET|PASSWORD|API_KEY))\s*=",
        "a process": r"\bkthreadd\b|\bsystemd\b|\bkworker\b|\bsshd\b|/sbin/init",
        "an e-mail address": r"[\w.]+@[\w-]+\.\w{2,}",
        "an address": r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?<!\d\.\d\.0)",
    }
    for kind, pattern in patterns.items():
        for found in re.findall(pattern, text):
            if kind != "an address" or is_address(found):
                yield f"{kind}: {found!r}"
    here = {getpass.getuser(), socket.gethostname(), socket.gethostname().split(".")[0]}
    for name in here - EVERYWHERE:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            yield f"a name of this machine: {name!r}"
    for value in (str(Path.home()), str(notebooks.ROOT)):
        if len(value) > 6 and value in text:
            yield f"a path of this machine: {value!r}"
    for key, value in os.environ.items():
        if (
            len(value) > 11
            and not value.isdigit()
            and re.search(r"[^\w. ]", value)
            and value in text
        ):
            yield f"the value of {key}"


def is_address(text: str) -> bool:
    """Four small numbers can also be a version, such as 2023.4.4.54 or 2024.1.1.0."""
    return all(int(part) < 256 for part in text.split("."))


def test_there_are_recordings() -> None:
    assert len(FILES) >= 4


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_holds_nothing_of_the_machine(path: Path) -> None:
    assert [leak for text in strings(path) for leak in leaks(text)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_small(path: Path) -> None:
    assert path.stat().st_size < LARGEST


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_says_where_it_comes_from(path: Path) -> None:
    if path.suffix == ".sqlite":
        with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as db:
            about = dict(db.execute("SELECT name, value FROM PROVENANCE"))
    elif path.suffix == ".json":
        about = json.loads(path.read_text(encoding="utf-8"))["provenance"]
    else:
        beside = path.with_name(path.name.split(".")[0] + ".json")
        about = json.loads(beside.read_text(encoding="utf-8"))["provenance"]
    assert {"device", "date", "command"} <= set(about)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", about["date"])
    assert all(about.values())


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix == ".sqlite"], ids=lambda path: path.name
)
def test_a_report_keeps_only_the_tables_that_are_read(path: Path) -> None:
    with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as db:
        tables = [name for (name,) in db.execute(TABLE_NAMES)]
        used = set()
        for table, column in {"NVTX_EVENTS": "textId", "OSRT_API": "nameId"}.items():
            used |= {name for (name,) in db.execute(f"SELECT DISTINCT {column} FROM {table}")}
        kept = {name for (name,) in db.execute("SELECT id FROM StringIds")}
        freelist = db.execute("PRAGMA freelist_count").fetchone()[0]
    strange = [name for name in tables if not TABLES.fullmatch(name)]
    assert strange == []
    assert freelist == 0
    if not any(name.startswith("CUPTI") for name in tables):
        assert kept <= used


@pytest.mark.parametrize(
    "text",
    [
        "/root/.bashrc",
        "opened /home/ada/run.py",
        r"C:\Users\ada",
        "HOME=/",
        "MY_SECRET = hunter2",
        "kthreadd",
        "ada@example.org",
        "10.1.2.3",
        "lib/python3.11/site-packages/torch",
        f"{Path.home()}/x",
    ],
)
def test_a_leak_is_noticed(text: str) -> None:
    assert list(leaks(text))


@pytest.mark.parametrize(
    "text",
    ["notebooks/scripts/record_nsys.py", "nsys 2023.4.4.54", "and/or", "~12.3 ms", "-e NAME=value"],
)
def test_an_innocent_text_is_left_alone(text: str) -> None:
    assert list(leaks(text)) == []


def test_a_deleted_row_of_a_database_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("CREATE TABLE StringIds (id, value)")
        db.execute("INSERT INTO StringIds VALUES (1, '/home/ada/run.py')")
        db.commit()
        db.execute("DELETE FROM StringIds")
    assert any(leak for text in strings(path) for leak in leaks(text))
