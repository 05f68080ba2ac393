"""What a GPU did, from a recording of either kind: a Chrome trace, or a report of nsys.

A Chrome trace, ``.json`` or ``.json.gz``, is what torch.profiler exports; a report of nsys is the
``.sqlite`` of ``nsys export``. ``answer`` says how busy each GPU was; lesson 06 and ``make trace``
call it.
"""

import contextlib
import gzip
import io
import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from helpers import units

# The categories that torch.profiler wrote until 2021, and those that it has written since.
CATEGORIES = {
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
}
# The work of a device: a GPU of CUDA, ROCm or XPU, then Meta's and Intel's accelerators.
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "hpu_op")
CALLS = ("_runtime", "_driver")  # the ends of the categories of calls that launch such work
# The same in a report of nsys: a table, and the column of StringIds with the names, or a name.
_KERNELS = {"CUPTI_ACTIVITY_KIND_KERNEL": "demangledName"}
OPERATIONS = _KERNELS | {
    "CUPTI_ACTIVITY_KIND_MEMCPY": "copy",
    "CUPTI_ACTIVITY_KIND_MEMSET": "memset",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "CUDA graph",
}

# A trace is read in pieces of so many characters, and an error so far from a piece's end is one.
_PIECE, _MARGIN = 1 << 23, 1 << 20
_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(strict=False)


class _Text:
    """The text of a JSON file, of which only a piece is in memory at a time.

    It also reads what PyTorch wrote and strict JSON does not allow: control characters in names,
    the backslashes of Windows, bytes that are no UTF-8, a lone ``nan`` or ``inf``.
    """

    def __init__(self, file: IO[str], name: str) -> None:
        self.file, self.name = file, name
        self.text, self.at, self.line = "", 0, 1

    def more(self) -> bool:
        """Read another piece; whether there was one."""
        try:
            piece = self.file.read(_PIECE)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(
                f"{self.name} is cut off or damaged ({error}): copy the whole file"
            ) from error
        self.line += self.text.count("\n", 0, self.at)
        self.text, self.at = self.text[self.at :] + piece, 0
        return bool(piece)

    def sign(self) -> str:
        """The next character that is not blank, which stays there; "" at the end."""
        while True:
            self.at = _BLANK.match(self.text, self.at).end()
            if self.at < len(self.text) or not self.more():
                return self.text[self.at : self.at + 1]

    def skip(self, sign: str) -> None:
        if self.sign() != sign:
            raise self.error(self.at, f"{sign!r} is missing")
        self.at += 1

    def value(self) -> object:
        is_repaired = False
        while self.sign():
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if len(self.text) - error.pos < _MARGIN and self.more():
                    continue
                if is_repaired:
                    raise self.error(error.pos, error.msg) from error
                cut = self.text.rfind("}") + 1  # not within an escape
                if cut > self.at:
                    repaired = _repaired(self.text[self.at : cut])
                    self.text = self.text[: self.at] + repaired + self.text[cut:]
                is_repaired = True
            else:
                if end < len(self.text) or not self.more():  # a number may go on
                    self.at = end
                    return value
        raise self.error(self.at, "a value is missing")

    def items(self) -> Iterator[object]:
        """The values of an array, one after another."""
        self.skip("[")
        while self.sign() not in ("]", ""):
            yield self.value()
            if self.sign() != ",":
                break
            self.at += 1
        self.skip("]")

    def error(self, at: int, problem: str) -> ValueError:
        line = self.line + self.text.count("\n", 0, at)
        around = self.text[max(0, at - 20) : at + 20]
        last = self.text[at:].strip()[-1:]
        with contextlib.suppress(OSError, EOFError, zlib.error):
            while piece := self.file.read(_PIECE):
                last = piece.strip()[-1:] or last
        if last and last in "}]":
            return ValueError(
                f"{self.name} is whole, but not JSON at line {line}, near {around!r}: "
                "correct this line in a text editor"
            )
        return ValueError(
            f"{self.name} is cut off, or no JSON ({problem}: line {line}): "
            "let the profiler stop before you export the trace, and copy the whole file"
        )


def _repaired(text: str) -> str:
    escapes = r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?'  # the others stand for themselves
    text = re.sub(escapes, lambda found: found[0] if found[1] else r"\\", text)
    text = re.sub(r"(?<=[:,\[ ])-?nan(?=\s*[,}\]])", "NaN", text)
    return re.sub(r"(?<=[:,\[ \-])inf(?=\s*[,}\]])", "Infinity", text)


def read_events(
    path: Path | str, about: dict | None = None, progress: Callable[[float], None] | None = None
) -> Iterator[dict]:
    """The events of a Chrome trace, one after another, so that a large file takes little memory.

    What else is in the file is added to ``about``; ``progress`` gets the fraction that was read.
    """
    path = Path(path)
    with path.open("rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file = gzip.GzipFile(fileobj=raw) if is_packed else raw
        text = _Text(io.TextIOWrapper(file, "utf-8-sig", "replace", newline="\n"), path.name)
        if text.sign() not in ("{", "["):
            raise ValueError(
                f"{path.name} is no trace: give the .json or .json.gz of torch.profiler's "
                "export_chrome_trace, or the .sqlite of nsys export -t sqlite"
            )
        size = path.stat().st_size
        for number, event in enumerate(_members(text, {} if about is None else about)):
            if progress and number % 10_000 == 0:
                progress(raw.tell() / size)
            if isinstance(event, dict):
                yield event
        if text.sign():
            raise text.error(text.at, "something follows its end")


def _members(text: _Text, about: dict) -> Iterator[object]:
    """The events of a trace, which is a list of them or holds one; the rest goes to ``about``."""
    if text.sign() == "[":
        yield from text.items()
        return
    text.skip("{")
    while text.sign() == '"':
        key = text.value()
        text.skip(":")
        if key == "traceEvents" and text.sign() == "[":
            yield from text.items()
        else:
            about[key] = text.value()
        if text.sign() != ",":
            break
        text.skip(",")
    text.skip("}")


def require_categories(name: str, categories: set, count: int) -> None:
    if not count:
        raise ValueError(f"{name} holds 0 events: it is no trace, or of a profile without any work")
    if not {"cpu_op", *DEVICE, *CATEGORIES} & categories:
        raise ValueError(
            f"{name} holds {count} events, and none is called as torch.profiler has "
            f"called operators and kernels since 2021, but {sorted(categories)[:5]}: "
            "a trace of another tool or version, or of a profile that recorded no operator"
        )


def gpu_work(
    path: Path | str, progress: Callable[[float], None] | None = None
) -> tuple[pd.DataFrame, dict]:
    """Each operation of the GPUs in a Chrome trace or a report of nsys, and what else it holds.

    Columns: ``device``, ``name``; ``ts``, ``dur`` and ``end``, in microseconds; ``ts_call``, when
    the call that launched it began, nan if this was not recorded. The dict says how many
    ``operators`` there are, how many GPU operations without a time were ``left out``, and of a
    process of several its ``rank``. Raises a ValueError as ``chrome_trace`` and ``open_report``.
    """
    if is_report(path):
        with contextlib.closing(connect(path)) as report:
            return _work_in_report(report)
    rows, calls, about, names = [], [], {}, {}
    categories, count, operators = set(), 0, 0
    for event in read_events(path, about, progress):
        count += 1
        category = event.get("cat")
        if event.get("ph") != "X" or not isinstance(category, str):
            continue
        category = CATEGORIES.get(category, category)
        categories.add(category)
        operators += category == "cpu_op"
        is_call = category.endswith(CALLS)
        if not is_call and category not in DEVICE:
            continue
        arguments, start = event.get("args"), event.get("ts")
        arguments = arguments if isinstance(arguments, dict) else {}
        correlation = arguments.get("correlation")
        if is_call:
            calls.append((correlation, start))
            continue
        name = str(event.get("name"))
        device = arguments.get("device", event.get("pid", "?"))
        rows.append((device, names.setdefault(name, name), start, event.get("dur"), correlation))
    require_categories(Path(path).name, categories, count)
    work = pd.DataFrame(rows, columns=["device", "name", "ts", "dur", "correlation"])
    launches = pd.DataFrame(calls, columns=["correlation", "ts_call"])
    info = about.get("distributedInfo")
    rank = info.get("rank") if isinstance(info, dict) else None
    work, left_out = _launched(work, launches, ["correlation"])
    return work, {"operators": operators, "left out": left_out, "rank": rank}


def _launched(work: pd.DataFrame, calls: pd.DataFrame, keys: list[str]) -> tuple[pd.DataFrame, int]:
    """Add to each operation when its call began; count those without a time, which are left out."""
    for table in (work, calls):
        for column in table.columns.intersection(["ts", "dur", "ts_call", *keys]):
            table[column] = pd.to_numeric(table[column], errors="coerce")
    timed = work[(work.dur >= 0) & np.isfinite(work.ts) & np.isfinite(work.dur)]
    calls = calls.dropna().sort_values("ts_call")
    # A number that several calls share is that of calls within the first one, but 0 may be none.
    repeated = calls.duplicated(keys, keep=False)
    calls = calls[~(repeated & (calls.correlation == 0))].drop_duplicates(keys)
    joined = timed.merge(calls, "left", keys)
    joined["end"] = joined.ts + joined.dur
    return joined, len(work) - len(timed)


def _runs(work: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """When at least one of the operations ran: starts and ends, in order, without an overlap."""
    starts, ends = work.sort_values("ts")[["ts", "end"]].to_numpy().T
    latest = np.maximum.accumulate(ends)
    begins = np.flatnonzero(np.r_[True, starts[1:] > latest[:-1]])
    return starts[begins], latest[np.r_[begins[1:] - 1, -1]]


def by_device(work: pd.DataFrame) -> pd.DataFrame:
    """A row for each device: its ``operations``, and how many have no ``launch`` in the recording.

    At least one operation ran for the fraction ``busy`` of ``length``, which goes from the start of
    the first one to the end of the last one. ``delay`` is the median from the start of a call to
    that of its operation. Both are in microseconds. ``early`` counts the operations that began
    before their call, which two clocks that differ can cause.
    """
    rows = {}
    columns = ["operations", "no launch", "early", "busy", "length", "delay"]
    for device, own in work.groupby("device"):
        starts, ends = _runs(own)
        delays = (own.ts - own.ts_call).dropna()
        length = own.end.max() - own.ts.min()
        busy = (ends - starts).sum() / length if length else 1.0
        counts = len(own), len(own) - len(delays), int((delays < 0).sum())
        rows[device] = (*counts, busy, length, delays.median())
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def sentences(work: pd.DataFrame, about: Mapping) -> Iterator[str]:
    """What ``answer`` says of each device, and of what was left out."""
    for device, row in by_device(work).iterrows():
        length = units.seconds(row.length / 1e6).lstrip("~")
        text = f"GPU {device} busy for {row.busy:.0%} of {length}"
        if row["no launch"] == row.operations:
            yield f"{text}, no launch of its work was recorded"
            continue
        delay = units.seconds(abs(row.delay) / 1e6).lstrip("~")
        text += f", median delay {'-' if row.delay < 0 else ''}{delay}"
        if row["no launch"]:
            text += f", {row['no launch']:,.0f} of {row.operations:,.0f} launches not recorded"
        if row.early:
            text += f", {row.early:,.0f} operations before their launch (two clocks)"
        yield text
    if work.empty:
        yield "no GPU event, so it cannot show who waited"
    if about["left out"]:
        yield f"{about['left out']:,} GPU operations without a time were left out"


def answer(path: Path | str) -> str:
    """How busy each GPU was from its first to its last operation, and how late these began.

    ``path`` is a Chrome trace or a report of nsys. The delay goes from the start of the call that
    launched an operation to its start.
    """
    return "; ".join(sentences(*gpu_work(path)))


def is_report(path: Path | str) -> bool:
    """Whether a file is a database, as ``nsys export -t sqlite`` writes it."""
    with Path(path).open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def open_report(file: Path | str) -> sqlite3.Connection:
    """Open a report that ``nsys export -t sqlite`` wrote, and add the tables ranges and work.

    ``ranges`` holds the push/pop ranges (``eventType`` 59): ``name``, without what emit_nvtx adds
    to it, so that all calls of an operator have one name; ``kind``, the name without a number at
    its end, so that "Copy 12" is a "Copy"; ``start``, ``end`` and ``duration``, in nanoseconds;
    ``globalTid``, the process and thread. It is empty if the program had none.

    ``work`` holds, for each ``kind`` of range and each GPU (``deviceId``), nanoseconds of kernels
    that were ``launched`` in such ranges, on any thread of the process, and for how many
    nanoseconds of these ranges a kernel was ``running``.

    Raises a ValueError if the file is no such report.
    """
    report = connect(file)
    columns = columns_of(report, "NVTX_EVENTS")
    name = f"coalesce({'text' if 'text' in columns else 'NULL'}, value)"
    cuts = [
        f"instr({name} || '{end}', '{end}')" for end in (", seq = ", ", op_id = ", ", sizes = ")
    ]
    ids = "LEFT JOIN StringIds ON id = textId"
    if "textId" not in columns:
        ids = "JOIN (SELECT NULL AS value)"
    events = f"SELECT substr({name}, 1, min({', '.join(cuts)}) - 1) AS name, start, end, globalTid"
    events += f" FROM NVTX_EVENTS {ids} WHERE eventType = 59"
    if not columns:
        events = "SELECT NULL AS name, 0 AS start, 0 AS end, 0 AS globalTid WHERE false"
    report.execute(f"""CREATE TEMP TABLE ranges AS
        SELECT name, rtrim(name, ' 0123456789') AS kind, start, end, end - start AS duration,
               globalTid FROM ({events})""")
    report.execute("CREATE TEMP TABLE work (kind, deviceId, launched, running)")
    report.executemany("INSERT INTO work VALUES (?, ?, ?, ?)", _work_in_ranges(report))
    return report


def require_tables(report: sqlite3.Connection, *tables: str) -> None:
    """Raise a ValueError unless a ``report`` of nsys has rows in all of these ``tables``.

    ``nsys export`` writes no table for what did not happen, and no kernel is the usual case.
    """
    present = _tables(report)
    filled = [t for t in tables if t in present and report.execute(f"SELECT 1 FROM {t}").fetchone()]
    if missing := sorted(set(tables) - set(filled)):
        raise ValueError(
            f"the report holds nothing in {', '.join(missing)}: no such work was recorded. Did the "
            "program do any, and was its kind (cuda, nvtx, osrt) in nsys profile -t …? It has "
            f"{', '.join(present)}"
        )


def connect(file: Path | str) -> sqlite3.Connection:
    """Open a report of nsys as it is, or raise a ValueError that says what the file is."""
    path = Path(file)
    if not is_report(path):
        raise ValueError(
            f"{path.name} is no database: type nsys export -t sqlite {path.stem}.nsys-rep, and "
            "give the .sqlite file that it writes"
        )
    report = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        tables = _tables(report)
    except sqlite3.DatabaseError as error:
        report.close()
        raise ValueError(f"{path.name} is cut off or damaged ({error}): export it again") from error
    if not {"NVTX_EVENTS", "OSRT_API", "CUPTI_ACTIVITY_KIND_RUNTIME"} & set(tables):
        report.close()
        raise ValueError(
            f"{path.name} is a database, but no report of nsys: its tables are {tables[:5]}"
        )
    return report


def _tables(report: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    return [name for (name,) in report.execute(query)]


def columns_of(report: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in report.execute(f"PRAGMA table_info({table})")]


def _operations(report: sqlite3.Connection, tables: Mapping[str, str]) -> pd.DataFrame:
    """What the GPUs did, from those of the ``tables`` that a report has, with when it was launched.

    ``tables`` maps a table to the name of its rows, or to the column of StringIds with the names.
    All times are in nanoseconds; ``process`` is the one that launched an operation.
    """
    frames = []
    for table, name in tables.items():
        columns = columns_of(report, table)
        if not columns:
            continue
        title, strings = f"'{name}'", ""
        if name in columns:
            title, strings = "value", f"LEFT JOIN StringIds ON id = {name}"
        frames.append(
            pd.read_sql(
                f"""SELECT deviceId AS device, {title} AS name, start AS ts, end - start AS dur,
                    correlationId AS correlation, globalPid >> 24 AS process
                    FROM {table} {strings}""",
                report,
            )
        )
    columns = ["device", "name", "ts", "dur", "correlation", "process"]
    work = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
    calls = pd.DataFrame(columns=["correlation", "process", "ts_call"])
    if "CUPTI_ACTIVITY_KIND_RUNTIME" in _tables(report):
        calls = pd.read_sql(
            """SELECT correlationId AS correlation, globalTid >> 24 AS process, start AS ts_call
               FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY start""",
            report,
        )
    return _launched(work, calls, ["process", "correlation"])


def _work_in_report(report: sqlite3.Connection) -> tuple[pd.DataFrame, dict]:
    work, left_out = _operations(report, OPERATIONS)
    times = ["ts", "dur", "end", "ts_call"]
    work[times] = work[times] / 1000
    return work, {"operators": 0, "left out": left_out, "rank": None}


def _work_in_ranges(report: sqlite3.Connection) -> Iterator[tuple[str, int, int, int]]:
    """The rows of the table ``work``: (kind, device, launched, running), in nanoseconds.

    Both are differences of sums up to the range's end and its start, which are found by bisection:
    comparing each range with each kernel would take hours for a large report.
    """
    kernels, _ = _operations(report, _KERNELS)
    query = "SELECT kind, start, end, globalTid >> 24 AS process FROM ranges WHERE end >= start"
    ranges = pd.read_sql(query, report)
    if kernels.empty or ranges.empty:
        return
    for device, own in kernels.groupby("device"):
        starts, ends = _runs(own)
        ran = [_ran_until(ranges[side].to_numpy(), starts, ends) for side in ("start", "end")]
        ranges["running"], ranges["launched"] = ran[1] - ran[0], 0
        for process, calls in (
            own.dropna(subset="ts_call").sort_values("ts_call").groupby("process")
        ):
            inside, sums = ranges.process == process, np.r_[0, calls.dur.cumsum()]
            first = np.searchsorted(calls.ts_call, ranges.start[inside])
            last = np.searchsorted(calls.ts_call, ranges.end[inside], "right")
            ranges.loc[inside, "launched"] = sums[last] - sums[first]
        for kind, row in ranges.groupby("kind")[["launched", "running"]].sum().iterrows():
            yield kind, int(device), *row.tolist()


def _ran_until(moments: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """For how long, until each of the ``moments``, the runs from ``starts`` to ``ends`` went on."""
    sums = np.r_[0, np.cumsum(ends - starts)]
    begun = np.searchsorted(starts, moments)
    return sums[begun] - np.where(begun > 0, np.maximum(ends[begun - 1] - moments, 0), 0)
