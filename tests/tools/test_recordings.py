"""Every file in assets/recordings: unchanged, small, with its provenance, and impersonal."""

import gzip
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import notebooks, rules

RECORDINGS = notebooks.ROOT / "assets" / "recordings"
LISTED = {
    RECORDINGS / name: digest
    for digest, name in map(str.split, (RECORDINGS / "SHA256SUMS").read_text("utf-8").splitlines())
}
DATA = [path for path in LISTED if path.parent.name != "licences"]
# What no recording may hold, whoever made it; what names the person who makes a new one is shown
# to that person, by assets/recordings/make/recording.py.
LEAKS = {
    "an environment variable": r"\b(?:PATH|HOME|USER|LOGNAME|HOSTNAME|PWD|SHELL"
    r"|LD_\w+|PYTHON\w+|\w*(?:SECRET|PASSWORD|API_KEY))\s*=",
    "a process": r"\bkthreadd\b|\bsystemd\b|\bkworker\b|\bsshd\b|/sbin/init",
    "an e-mail address": r"[\w.]+@[\w-]+\.\w{2,}",
    "an address": r"(?<![\w.])(?:(?:1?\d?\d|2[0-4]\d|25[0-5])\.){3}(?:1?\d?\d|2[0-4]\d|25[0-5])\b"
    r"(?<!\d\.\d\.0)(?!\.\d)",  # not a version such as 2023.4.4.54 or 12.0.0.0
}


def leaks(text: str) -> Iterator[str]:
    """What in ``text`` tells about a machine or its user."""
    yield from rules.absolute_paths(text)
    for kind, pattern in LEAKS.items():
        yield from (f"{kind}: {match[0]!r}" for match in re.finditer(pattern, text))


def content(path: Path) -> str:
    """Everything in a file; a database as its bytes, where a deleted row may be left."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode(errors="replace")


def provenance(path: Path) -> dict[str, str]:
    """Where a recording comes from: in a table of a database, else in the .json beside it."""
    if path.suffix == ".sqlite":
        with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as db:
            return dict(db.execute("SELECT name, value FROM PROVENANCE"))
    beside = path.with_name(path.name.split(".")[0] + ".json")
    return json.loads(beside.read_text(encoding="utf-8"))["provenance"]


def test_every_recording_is_listed_and_unchanged() -> None:
    files = {path for path in RECORDINGS.rglob("*") if path.is_file()}
    made = {path for path in files if RECORDINGS / "make" in path.parents}
    assert files - made - {RECORDINGS / "SHA256SUMS"} == set(LISTED)
    changed = [p for p in LISTED if hashlib.sha256(p.read_bytes()).hexdigest() != LISTED[p]]
    assert changed == []


def test_they_are_small_enough_to_ship() -> None:
    sizes = [path.stat().st_size for path in LISTED]
    assert max(sizes) < 1_000_000
    assert sum(sizes) < 12_000_000


@pytest.mark.everything  # its checksum says that it is as it was when this was last run
def test_none_names_a_machine() -> None:
    found = {path.name: list(leaks(content(path))) for path in LISTED}
    assert not any(found.values()), found


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.name)
def test_it_says_where_it_comes_from(path: Path) -> None:
    about = provenance(path)
    assert all(about.values())
    assert "device" in about
    assert (notebooks.ROOT / about["recorder"]).exists()
    if "source" in about:  # recorded by others
        assert re.fullmatch(r"https://github.com/[\w-]+/[\w-]+ @ [0-9a-f]{8,40}", about["source"])
        assert (path.parent / about["licence text"]).stat().st_size > 1000
        assert {"licence", "source file", "versions", "workload"} <= set(about)
    else:
        assert {"date", "command"} <= set(about)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d|", about.get("date", ""))


LEAKING = ["opened /home/ada/run.py", r"C:\Users\ada", "MY_SECRET = hunter2", "kthreadd"]
LEAKING += ["ada@example.org", "10.1.2.3", "lib/python3.11/site-packages/torch"]


@pytest.mark.parametrize("text", LEAKING)
def test_a_leak_is_noticed(text: str) -> None:
    assert list(leaks(text))


def test_whoever_runs_the_tests_is_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ampere")
    monkeypatch.setattr("socket.gethostname", lambda: "sgemm")
    monkeypatch.setenv("HOME", "/convolve")
    monkeypatch.setenv("PROMPT", "volta_sgemm_128x64")
    text = "ampere sgemm volta_sgemm_128x64 /convolve, nsys 2023.4.4.54 and/or -e NAME=value"
    assert list(leaks(text)) == []
