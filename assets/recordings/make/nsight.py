"""nsys: record, strip to what the lessons read, and export."""

import csv
import io
import sqlite3
from pathlib import Path

from recording import run, tool

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
    flags: list[str], program: list[str], folder: Path, **environment: str
) -> tuple[int, str, Path | None]:
    """Run ``nsys profile``; return status, output and the exported report."""
    report, database = folder / "r.nsys-rep", folder / "r.sqlite"
    words = [tool("nsys"), "profile", *flags, "-f", "true", "-o", "r", *program]
    for _ in range(3):
        for old in (report, database):
            old.unlink(missing_ok=True)
        status, text = run(words, folder, **environment)
        if "End of file" not in text:  # it lost its agent, as on a busy computer it may
            break
    if not report.exists():
        return status, text, None
    export = [tool("nsys"), "export", "-t", "sqlite", "-f", "true", "-o", database, report]
    text += run(export, folder)[1]
    return status, text, database if database.exists() else None


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


def stats(database: Path, folder: Path) -> list[dict[str, str]]:
    """The rows of ``nsys stats -r nvtx_sum``, as it computes them from the same report."""
    _, text = run([tool("nsys"), "stats", "-q", "-r", "nvtx_sum", "-f", "csv", database], folder)
    return list(csv.DictReader(io.StringIO(text[text.index("Time (%),") :])))
