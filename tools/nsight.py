"""nsys and ncu: record, strip to what the lessons read, and export."""

import csv
import io
import re
import sqlite3
from pathlib import Path

from tools.recording import run, tool

QUIET = ["-s", "none", "--cpuctxsw=none"]
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


def record(
    flags: list[str],
    program: list[str],
    folder: Path,
    nsys: str | None = None,
    timeout: float = 300,
    **environment: str,
) -> tuple[int, str, Path | None]:
    """Run ``nsys profile``; return status, output and the exported report."""
    nsys = nsys or tool("nsys")
    report, database = folder / "r.nsys-rep", folder / "r.sqlite"
    words = [nsys, "profile", *flags, "-f", "true", "-o", "r", *program]
    for _ in range(3):
        for old in (report, database):
            old.unlink(missing_ok=True)
        status, text = run(words, folder, timeout, **environment)
        if "End of file" not in text:  # it lost its agent, as on a busy computer it may
            break
    if not report.exists():
        return status, text, None
    export = [nsys, "export", "-t", "sqlite", "-f", "true", "-o", database, report]
    _, said = run(export, folder)
    return status, text + said, database if database.exists() else None


def tables_of(database: Path) -> set[str]:
    """The tables of a report."""
    with sqlite3.connect(database) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master")}


def strip(
    source: Path, target: Path, about: dict[str, str], nvtx: tuple[int, ...] = (RANGE,)
) -> None:
    """Copy what the lessons read into a new database, and nothing else; ``nvtx``: the types."""
    target.unlink(missing_ok=True)
    old = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    new = sqlite3.connect(target)
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
    schema = dict(old.execute(query).fetchall())
    strings: set[int] = set()
    for table, columns in TABLES.items():
        if table not in schema:
            continue
        new.execute(schema[table])
        types = ", ".join(map(str, nvtx))
        kept = f"WHERE eventType IN ({types})" if table == "NVTX_EVENTS" else ""
        order = "id" if table.startswith("ENUM") else "start, end DESC"
        cursor = old.execute(f"SELECT * FROM {table} {kept} ORDER BY {order}")
        names = [name for name, *_ in cursor.description]
        for row in cursor.fetchall():
            marks = ", ".join("?" * len(row))
            new.execute(f"INSERT INTO {table} VALUES ({marks})", row)
            strings |= {row[names.index(column)] for column in columns}
    for table in {"StringIds", "META_DATA_EXPORT"} & set(schema):
        new.execute(schema[table])
    for identity in sorted(strings - {None}):
        query = "SELECT id, value FROM StringIds WHERE id = ?"
        row = old.execute(query, [identity]).fetchone()
        new.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", row)
    if "META_DATA_EXPORT" in schema:
        schema_rows = "SELECT name, value FROM META_DATA_EXPORT WHERE name LIKE 'EXPORT_SCHEMA%'"
        insert = "INSERT INTO META_DATA_EXPORT (name, value) VALUES (?, ?)"
        new.executemany(insert, old.execute(schema_rows).fetchall())
    new.execute("CREATE TABLE PROVENANCE (name TEXT PRIMARY KEY, value TEXT)")
    new.executemany("INSERT INTO PROVENANCE VALUES (?, ?)", about.items())
    new.commit()
    new.execute("VACUUM")
    old.close()
    new.close()


def stats(database: Path, name: str, folder: Path, nsys: str | None = None) -> list[dict[str, str]]:
    """The rows of ``nsys stats``, as it computes them from the same report."""
    words = [nsys or tool("nsys"), "stats", "-q", "-r", name, "-f", "csv", str(database)]
    _, text = run(words, folder)
    header = re.search(r"^(Time \(%\)|Range|Start \(ns\)),", text, re.MULTILINE)
    if header is None:
        raise RuntimeError(f"nsys stats printed no table, but: {text}")
    return list(csv.DictReader(io.StringIO(text[header.start() :])))
