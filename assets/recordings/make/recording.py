"""What the recorders share: provenance, small reports, and a search for what is personal.

The recorders were run by hand. After another run renew SHA256SUMS, as CONTRIBUTING.md says;
tests/tools/test_recordings.py examines every file.
"""

import datetime
import getpass
import json
import os
import platform
import re
import socket
import sqlite3
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).resolve().parents[1]
ROOT = RECORDINGS.parent.parent

RANGE = 59  # NVTX_EVENTS.eventType of a range that was pushed and popped
CREATED = 75  # of a library that announced its name: it starts with the program, and has no end

# What a stripped report keeps, with the columns that point into StringIds. Of those
# only the names in use are kept. Everything else is dropped.
TABLES = {
    "NVTX_EVENTS": ["textId"],
    "OSRT_API": ["nameId"],
    "CUPTI_ACTIVITY_KIND_RUNTIME": ["nameId"],
    "CUPTI_ACTIVITY_KIND_KERNEL": ["demangledName", "shortName", "mangledName"],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [],
    "CUPTI_ACTIVITY_KIND_MEMSET": [],
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [],
    "ENUM_CUDA_MEMCPY_OPER": [],
    "ENUM_CUDA_MEM_KIND": [],
}


def strip(
    source: Path, target: Path, about: dict[str, str], nvtx: tuple[int, ...] = (RANGE,)
) -> None:
    """Copy what the lessons read into a new database, and nothing else; ``nvtx``: the types."""
    target.unlink(missing_ok=True)
    new = sqlite3.connect(target, uri=True)
    new.execute("ATTACH ? AS old", [f"{source.resolve().as_uri()}?mode=ro&immutable=1"])
    schema = dict(new.execute("SELECT name, sql FROM old.sqlite_master WHERE type = 'table'"))
    types = f"WHERE eventType IN ({', '.join(map(str, nvtx))})"
    used = []
    for table in (table for table in TABLES if table in schema):
        new.execute(schema[table])
        kept = types if table == "NVTX_EVENTS" else ""
        order = "id" if table.startswith("ENUM") else "start, end DESC"
        new.execute(f"INSERT INTO {table} SELECT * FROM old.{table} {kept} ORDER BY {order}")
        used += [f"SELECT {column} FROM main.{table}" for column in TABLES[table]]
    rows = {
        "StringIds": f"id IN ({' UNION '.join(used)}) ORDER BY id",
        "META_DATA_EXPORT": "name LIKE 'EXPORT_SCHEMA%'",
    }
    for table in rows.keys() & schema.keys():
        new.execute(schema[table])
        new.execute(f"INSERT INTO {table} SELECT * FROM old.{table} WHERE {rows[table]}")
    new.execute("CREATE TABLE PROVENANCE (name TEXT PRIMARY KEY, value TEXT)")
    new.executemany("INSERT INTO PROVENANCE VALUES (?, ?)", about.items())
    new.commit()
    new.execute("VACUUM")
    new.close()


def provenance(recorder: str, device: str, command: str, **more: str) -> dict[str, str]:
    """Where a recording comes from; the lessons' captions name the ``device``."""
    return {
        "device": device,
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **more,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "recorder": f"assets/recordings/make/{Path(recorder).name}",
    }


def save(name: str, about: dict[str, str], **results: Any) -> None:
    """Write JSON for people to read, and print what may name this machine or its user.

    Only the person who records can judge that: a login may be a word of the course.
    """
    text = json.dumps({"provenance": about, **results}, indent=1, ensure_ascii=False)
    (RECORDINGS / f"{name}.json").write_text(text + "\n", encoding="utf-8", newline="\n")
    host, home = socket.gethostname(), str(Path.home())
    words = {getpass.getuser(), host, host.split(".")[0], home, str(ROOT)}
    words |= {value for value in os.environ.values() if len(value) > 11}
    for word in words:
        if len(word) > 2 and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            print(f"{name} contains {word!r}: does this say where it was recorded?")
