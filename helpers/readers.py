"""A tool's file as data: a data frame, the spans of ``plotting.timeline``, or the stacks of
``plotting.icicle``. Each function reads one kind of file and says what its rows and columns are.
"""

import gzip
import json
import pstats
import re
import shlex
import sqlite3
import zlib
from linecache import getlines
from pathlib import Path
from pstats import Stats
from typing import TYPE_CHECKING

import pandas as pd
from pandas import DataFrame

if TYPE_CHECKING:
    from line_profiler import LineStats


def nsys_command(line: str) -> tuple[list[str], list[str]]:
    """The flags that ``nsys profile …`` gets, each with its value, and the words from the program
    on. The first word that is no flag *is* the program; everything behind it is the program's.

    >>> nsys_command("nsys profile -t nvtx --stats=true python train.py -f true")
    (['-t nvtx', '--stats=true'], ['python', 'train.py', '-f', 'true'])
    """
    words = shlex.split(line)
    if "profile" not in words:
        raise ValueError(f"line must hold the word profile, as in nsys profile …, not {line!r}")
    words, flags = words[words.index("profile") + 1 :], []
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        flags.append(flag if "=" in flag or not words else f"{flag} {words.pop(0)}")
    return flags, words


def memory_profiler(text: str) -> pd.DataFrame:
    """The table that memory_profiler prints for one function, as rows by line number.

    ``Mem usage`` and ``Increment`` in bytes (the tool rounds them to thousandths of a MiB),
    ``Occurrences``, ``source``. Lines that never ran are left out.
    """
    pattern = r"^ *(\d+) +([\d.]+) MiB +(-?[\d.]+) MiB +(\d+) {3}(.*)$"
    rows = re.findall(pattern, text, re.M)
    if not rows:
        raise ValueError(f"text must hold a table of memory_profiler, but {text[:80]!r} came")
    columns = ["line", "Mem usage", "Increment", "Occurrences", "source"]
    table = pd.DataFrame(rows, columns=columns).astype({"line": int, "Occurrences": int})
    sizes = ["Mem usage", "Increment"]
    table[sizes] = table[sizes].astype(float) * 2**20
    return table.set_index("line")


def memray(capture: Path, file: str, when: str = "peak") -> tuple[int, dict[tuple[str, ...], int]]:
    """All bytes of a memray ``capture`` and, of those asked for beneath ``file``, the stacks.

    Alive at the high-water mark, or with ``when="left"`` at the end. A stack is the calls of that
    file alone, from the outside in, as ``("main:49", "convolve:39")``, without its module level.
    """
    from memray import FileReader  # there is none for Windows

    if when not in ("peak", "left"):
        raise ValueError(f"when must be 'peak' or 'left', but {when!r} came")
    whole, stacks = 0, {}
    with FileReader(str(capture)) as reader:
        left = reader.get_leaked_allocation_records
        peak = reader.get_high_watermark_allocation_records
        for record in (peak if when == "peak" else left)(merge_threads=True):
            whole += record.size
            frames = [(name, line) for name, path, line in record.stack_trace() if file in path]
            calls = tuple(f"{name}:{line}" for name, line in frames[::-1] if name != "<module>")
            if calls:
                stacks[calls] = stacks.get(calls, 0) + record.size
    return whole, dict(sorted(stacks.items()))


def profile_rows(stats: Stats) -> DataFrame:
    """A profile of cProfile, one row a function (``workloads.forward``, ``torch.conv2d``).

    Columns: ncalls; primitive, the calls that came from outside the function itself; tottime and
    cumtime, in seconds.
    """
    rows = [
        (_label(function), ncalls, primitive, tottime, cumtime)
        for function, (primitive, ncalls, tottime, cumtime, _) in stats.stats.items()
    ]
    columns = ["function", "ncalls", "primitive", "tottime", "cumtime"]
    return DataFrame(rows, columns=columns).set_index("function")


def profile_calls(stats: Stats) -> DataFrame:
    """Who called whom, one row a pair: caller, callee, ncalls, and cumtime of those calls."""
    rows = [
        (_label(caller), _label(callee), ncalls, cumtime)
        for callee, (*_, callers) in stats.stats.items()
        for caller, (ncalls, _, _, cumtime) in callers.items()
    ]
    return DataFrame(rows, columns=["caller", "callee", "ncalls", "cumtime"])


def profile_stacks(stats: Stats, root: str, least: float = 0.01) -> dict[tuple[str, ...], float]:
    """The pairs unfolded from ``root`` downwards: own seconds by path, for ``plotting.icicle``.

    A profile does not say to which of its callers a function's callees belong, so their time is
    divided in proportion. A path ends at a recursion, or below ``least`` of the root's time.
    """
    callees: dict = {}
    for callee, (*_, callers) in stats.stats.items():
        for caller, (*_, cumtime) in callers.items():
            callees.setdefault(caller, {})[callee] = cumtime
    roots = [function for function in stats.stats if _label(function) == root]
    if len(roots) != 1:
        raise ValueError(f"root must name one function, but {root!r} names {len(roots)}")
    smallest = least * stats.stats[roots[0]][3]
    stacks: dict[tuple[str, ...], float] = {}

    def unfold(function: tuple, share: float, above: tuple) -> None:
        _, _, own, whole, _ = stats.stats[function]
        path = (*above, function)
        cut = share * whole < smallest
        names = tuple(map(_label, path))
        stacks[names] = stacks.get(names, 0.0) + share * (whole if cut else own)
        for callee, cumtime in sorted(callees.get(function, {}).items()) if not cut else ():
            if callee not in path and stats.stats[callee][3] > 0:
                unfold(callee, share * cumtime / stats.stats[callee][3], path)

    unfold(roots[0], 1.0, ())
    return stacks


def line_rows(stats: "LineStats", folder: Path | str = ".") -> DataFrame:
    """A profile of line_profiler, one row a line: function, line, hits, seconds, code.

    ``folder`` is where the profiled program was started: the name of its file may begin there.
    """
    rows = []
    for (file, _, function), lines in stats.timings.items():
        path = Path(folder, file)
        source = path.read_text("utf-8").splitlines() if path.exists() else getlines(file)
        for line, hits, ticks in lines:
            code = source[line - 1].strip() if source else ""
            rows.append((function, line, hits, ticks * stats.unit, code))
    return DataFrame(rows, columns=["function", "line", "hits", "seconds", "code"])


def import_times(listing: str) -> DataFrame:
    """What ``python -X importtime`` printed: module, depth, own and cumulative, in seconds.

    A module stands after those that it imported itself.
    """
    line = re.compile(r"^import time: +(\d+) \| +(\d+) \| ( *)(\S+)$", re.M)
    rows = [
        (module, len(indent) // 2, int(own) / 1e6, int(cumulative) / 1e6)
        for own, cumulative, indent, module in line.findall(listing)
    ]
    return DataFrame(rows, columns=["module", "depth", "own", "cumulative"])


def _label(function: tuple[str, int, str]) -> str:
    """``module.name`` of a Python function, the name of one in C."""
    file, line, name = function
    if line == 0:  # such as <built-in method torch.relu>, <method 'item' of … objects>
        words = name.strip("<>").replace("'", "").split()
        return next((word for word in words if word not in ("built-in", "method")), name)
    path = Path(file)
    package = path.parent.name if path.stem == "__init__" else ""  # gone after strip_dirs
    return f"{package or path.stem}.{name}"


# What the profiler called its categories until 2021: what it has called them since.
_CATEGORIES = {
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
}


def chrome_trace(path: Path | str) -> pd.DataFrame:
    """The events of a Chrome trace, ``.json`` or ``.json.gz``, in the order of their start.

    Columns: ``ph``, ``cat``, ``name``, ``pid``, ``tid``, ``args`` as in the file, and ``ts`` and
    ``dur``, start and duration in microseconds, ``ts`` from the first event that has a duration.
    Categories of 2021's profiler get today's names. A file that is cut off, or is of another kind
    or version, raises a ValueError that says so.
    """
    raw = Path(path).read_bytes()
    try:
        file = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (OSError, EOFError, zlib.error, ValueError) as error:  # gzip alone has three
        raise ValueError(
            f"{Path(path).name} is cut off, or no JSON ({error}): "
            "let the profiler stop before you export the trace, and copy the whole file"
        ) from error
    columns = ["ph", "cat", "name", "ts", "dur", "pid", "tid", "args"]
    rows = (file.get("traceEvents") if isinstance(file, dict) else file) or []
    events = pd.DataFrame(rows).reindex(columns=columns)
    if not {"cpu_op", "kernel", *_CATEGORIES} & set(events.cat):
        raise ValueError(
            f"{Path(path).name} holds {len(rows)} events, and none is called as torch.profiler has "
            f"called operators and kernels since 2021, but {sorted(set(events.cat.dropna()))[:5]}: "
            "a trace of another tool or version"
        )
    events["cat"] = events.cat.replace(_CATEGORIES)
    events["ts"] -= events.loc[events.ph == "X", "ts"].min()
    return events.sort_values("ts", kind="stable", ignore_index=True)


def spans(events: pd.DataFrame) -> list[tuple[float, float, str, int]]:
    """The events of one thread of a ``chrome_trace`` as spans for ``plotting.timeline``.

    Each is (start in s, duration in s, name, depth): an event within another is one level deeper.
    """
    found, ends = [], []
    timed = events[events.ph == "X"].sort_values(["ts", "dur"], ascending=[True, False])
    for start, duration, name in zip(timed.ts, timed.dur, timed.name, strict=True):
        while ends and ends[-1] <= start:
            ends.pop()
        found.append((start / 1e6, duration / 1e6, name, len(ends)))
        ends.append(start + duration)
    return found


def stacks(text: str) -> dict[tuple[str, ...], int]:
    """Folded stacks, ``main;work;add 17`` a line, as {outermost first: weight}, equal ones added.

    ``export_stacks`` of torch.profiler and ``py-spy record -f raw`` write such files.
    """
    weights: dict[tuple[str, ...], int] = {}
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        frames = tuple(stack.split(";"))
        weights[frames] = weights.get(frames, 0) + int(weight)
    return weights


def times_by_function(path: Path) -> dict[str, float]:
    """{function: its time with all that it calls}, from a file of cProfile (``.prof``),
    line_profiler (``.lprof``), pyinstrument (``.tree``, its JSON), py-spy (``.raw``) or Scalene
    (``.json``), in that tool's unit: seconds, nanoseconds, samples or percent.

    Scalene's functions are without those that they call.
    """
    found: dict[str, float] = {}
    if path.suffix == ".prof":
        called = pstats.Stats(str(path)).stats.items()
        times = [(name, row[3]) for (_, _, name), row in called]
    elif path.suffix == ".lprof":
        from line_profiler import load_stats  # heavy, and only here

        lines = load_stats(str(path)).timings.items()
        times = [(key[2], sum(time for *_, time in rows)) for key, rows in lines]
    elif path.suffix == ".tree":
        frames = [json.loads(path.read_text(encoding="utf-8"))["root_frame"]]
        for frame in frames:  # grows while we walk through it
            frames += frame["children"]
        times = [(frame["function"], frame["time"]) for frame in frames]
    elif path.suffix == ".raw":
        sampled = stacks(path.read_text(encoding="utf-8")).items()
        times = [(f, n) for stack, n in sampled for f in {frame.split(" (")[0] for frame in stack}]
    else:
        files = json.loads(path.read_text(encoding="utf-8"))["files"].values()
        times = [(row["line"], _scalene_share(row)) for f in files for row in f["functions"]]
    for name, time in times:
        found[name] = found.get(name, 0) + time
    return found


def scalene_lines(path: Path, script: str) -> pd.DataFrame:
    """Scalene's profile of a ``script`` by number of the line: ``code``; ``share`` of the CPU
    samples; ``asked``, bytes asked for in all; ``peak``, the most bytes that one run of it held.
    """
    files = json.loads(path.read_text(encoding="utf-8"))["files"].items()
    (rows,) = [file["lines"] for name, file in files if Path(name).name == script]
    lines = [
        (r["lineno"], r["line"].strip(), _scalene_share(r) / 100, r["n_malloc_mb"], r["n_peak_mb"])
        for r in rows
    ]
    table = pd.DataFrame(lines, columns=["number", "code", "share", "asked", "peak"])
    table[["asked", "peak"]] *= 2**20  # it writes mb, and means 1,048,576 bytes
    return table.set_index("number")


def _scalene_share(row: dict) -> float:
    return row["n_cpu_percent_python"] + row["n_cpu_percent_c"] + row["n_sys_percent"]


def nsys_has(db: sqlite3.Connection, *tables: str) -> None:
    """Nothing, if a report of nsys has rows in all of these ``tables``; else a ValueError.

    ``nsys export`` writes no table of what did not happen, and no kernel is the usual case.
    """
    there = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    full = [t for t in tables if t in there and db.execute(f"SELECT 1 FROM {t}").fetchone()]
    if missing := sorted(set(tables) - set(full)):
        raise ValueError(
            f"the report holds nothing in {', '.join(missing)}: no such work was recorded. Did the "
            f"program reach the GPU, and was cuda in nsys profile -t …? It has {', '.join(there)}"
        )


def same_batch(before: Path, after: Path, *models: str) -> DataFrame:
    """Two tables of timm's benchmarks side by side: model, img_size, batch_size, and the images/s
    of both, ``before`` and ``after``. Only rows of equal batch size, for a larger batch alone can
    raise the rate. ``models`` asks for some: a ValueError refuses those that are not comparable.
    """
    rows = pd.read_csv(before).merge(pd.read_csv(after), on=["model", "img_size"])
    asked = rows[rows.model.isin(models)] if models else rows
    equal = asked[asked.batch_size_x == asked.batch_size_y]
    for model in models:
        if model not in equal.model.values:
            came = asked.loc[asked.model == model, ["batch_size_x", "batch_size_y"]].values.tolist()
            sizes = f"batches of {came[0][0]} and {came[0][1]}" if came else "no such rows"
            raise ValueError(f"{model} must have rows of equal batch size, but {sizes} came")
    names = {"batch_size_x": "batch_size", "samples_per_sec_x": "before"}
    equal = equal.rename(columns={**names, "samples_per_sec_y": "after"})
    return equal.drop(columns="batch_size_y").reset_index(drop=True)
