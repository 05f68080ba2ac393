"""What profilers of functions, lines, processes and memory write, as data frames and as stacks.

A stack is a tuple of names, the outermost call first. Stacks come as a dictionary that gives each
of them a weight, as ``plotting.icicle`` draws it.
"""

import json
import pstats
import re
from collections.abc import Iterator
from linecache import getlines
from pathlib import Path, PureWindowsPath
from types import FunctionType
from typing import TYPE_CHECKING

from pandas import DataFrame, concat

if TYPE_CHECKING:
    from line_profiler import LineStats

Stack = tuple[str, ...]


def function_rows(stats: pstats.Stats) -> DataFrame:
    """A profile of cProfile, one row per function (``workloads.forward``, ``torch.conv2d``).

    Columns: ncalls; primitive, the calls made while the function was not already running; tottime
    and cumtime, in seconds. Functions of the same name on different lines of a file have a row
    each, so a name may occur more than once.
    """
    rows = [
        (_function_name(function), ncalls, primitive, tottime, cumtime)
        for function, (primitive, ncalls, tottime, cumtime, _) in stats.stats.items()
    ]
    columns = ["function", "ncalls", "primitive", "tottime", "cumtime"]
    return DataFrame(rows, columns=columns).set_index("function")


def call_rows(stats: pstats.Stats) -> DataFrame:
    """A profile of cProfile, one row per pair of caller and callee.

    Columns: caller, callee, ncalls, and cumtime, the seconds that these calls took (of a
    recursion, the outermost ones).
    """
    rows = [
        (_function_name(caller), _function_name(callee), ncalls, cumtime)
        for callee, (*_, callers) in stats.stats.items()
        for caller, (ncalls, _, _, cumtime) in callers.items()
    ]
    return DataFrame(rows, columns=["caller", "callee", "ncalls", "cumtime"])


def callers_up(calls: DataFrame, function: str) -> DataFrame:
    """The rows of ``call_rows`` on the way up from ``function``, as far as it has one caller.

    The last rows are the callers of the function at which the way divides, or they are none, if it
    ends at a function that nothing called. Raises a ValueError if it leads around in a circle.
    """
    steps = [calls[calls.callee == function]]
    passed = {function}
    while len(steps[-1]) == 1:
        (function,) = steps[-1].caller
        if function in passed:
            raise ValueError(f"the only caller of {function!r} is one that it calls")
        passed.add(function)
        steps.append(calls[calls.callee == function].sort_values("ncalls"))
    return concat(steps)


def overhead_in_rows(stats: pstats.Stats, per_call: float) -> DataFrame:
    """``function_rows``, with an estimate of the profiler's own time in each row.

    ``per_call`` is the profiler's time for one call, in seconds. New columns: calls made, how many
    calls the function made; overhead, in seconds; and overhead / tottime, a fraction.
    """
    rows = function_rows(stats)
    made = call_rows(stats).groupby("caller").ncalls.sum()
    rows["calls made"] = made.reindex(rows.index, fill_value=0)  # 0 if it made no calls
    rows["overhead"] = rows["calls made"] * per_call
    rows["overhead / tottime"] = rows.overhead / rows.tottime
    return rows


def profile_key(function: FunctionType) -> tuple[str, int, str]:
    """What a profile calls a Python ``function`` after ``strip_dirs``: its file, line and name."""
    code = function.__code__
    return Path(code.co_filename).name, code.co_firstlineno, code.co_name


def call_stacks(stats: pstats.Stats, root: str, least: float = 0.01) -> dict[Stack, float]:
    """A profile of cProfile unfolded from the function ``root`` downwards: own seconds per stack.

    A profile does not say to which of its callers a function's callees belong, so their time is
    divided in proportion. A recursive call has no stack, because its time is in an outer call. A
    stack below ``least`` of the root's time ends there, with its cumtime.
    Raises a ValueError if not exactly one function has the name ``root``.
    """
    callees: dict = {}
    for callee, (*_, callers) in stats.stats.items():
        for caller, (*_, cumtime) in callers.items():
            callees.setdefault(caller, {})[callee] = cumtime
    roots = [function for function in stats.stats if _function_name(function) == root]
    if len(roots) != 1:
        raise ValueError(f"root must name one function, but {root!r} names {len(roots)}")
    smallest = least * stats.stats[roots[0]][3]
    stacks: dict[Stack, float] = {}

    def unfold(function: tuple, share: float, callers: tuple) -> None:
        _, _, tottime, cumtime, _ = stats.stats[function]
        path = (*callers, function)
        is_small = share * cumtime < smallest
        stack = tuple(map(_function_name, path))
        stacks[stack] = stacks.get(stack, 0.0) + share * (cumtime if is_small else tottime)
        if is_small:
            return
        for callee, seconds in sorted(callees.get(function, {}).items()):
            if callee not in path and stats.stats[callee][3] > 0:
                unfold(callee, share * seconds / stats.stats[callee][3], path)

    unfold(roots[0], 1.0, ())
    return stacks


def _function_name(function: tuple[str, int, str]) -> str:
    """``module.name`` of a Python function, the name of a function in C."""
    file, line, name = function
    if line == 0:  # such as <built-in method torch.relu>, <method 'item' of … objects>
        words = name.strip("<>").replace("'", "").split()
        return next((word for word in words if word not in ("built-in", "method")), name)
    path = PureWindowsPath(file)  # which reads the paths of all systems
    package = path.parent.name if path.stem == "__init__" else ""  # gone after strip_dirs
    return f"{package or path.stem}.{name}"


def import_times(listing: str) -> DataFrame:
    """What ``python -X importtime`` printed, one row per module, after those that it imported.

    Columns: module; depth, 0 for the outermost; own and cumulative, in seconds.
    """
    line = re.compile(r"^import time: +(\d+) \| +(\d+) \| ( *)(\S+)$", re.M)
    rows = [
        (module, len(indent) // 2, int(own) / 1e6, int(cumulative) / 1e6)
        for own, cumulative, indent, module in line.findall(listing)
    ]
    return DataFrame(rows, columns=["module", "depth", "own", "cumulative"])


def import_seconds(times: DataFrame, module: str) -> tuple[float, float]:
    """The time of all imports up to the end of that of ``module``, and of all later ones.

    ``times`` comes from ``import_times``.
    """
    end = times.index[times.module == module][0]
    return times.own[: end + 1].sum(), times.own[end + 1 :].sum()


def line_rows(stats: "LineStats", folder: Path | str = ".") -> DataFrame:
    """A profile of line_profiler, one row per line that ran: function, line, hits, seconds, code.

    ``folder`` is where the profiled program was started: the name of its file may be relative to
    it. The code is what the file holds now, and empty where it has no such line any more.
    """
    rows = []
    for (file, _, function), lines in stats.timings.items():
        path = Path(folder, file)
        source = path.read_text("utf-8").splitlines() if path.exists() else getlines(file)
        for line, hits, ticks in lines:
            code = source[line - 1].strip() if line <= len(source) else ""
            rows.append((function, line, hits, ticks * stats.unit, code))
    return DataFrame(rows, columns=["function", "line", "hits", "seconds", "code"])


def memory_profiler(text: str) -> DataFrame:
    """The table that memory_profiler prints for one function, indexed by line number.

    Columns: ``Mem usage`` and ``Increment``, in bytes; ``Occurrences``, but not before version
    0.58; ``source``. The tool rounds to thousandths of a MiB on the command line and to tenths in
    ``%mprun``. Lines that never ran are left out. Raises a ValueError if ``text`` holds no such
    table.
    """
    columns = ["line", "Mem usage", "Increment", "Occurrences", "source"]
    is_old = re.search("Increment +Line Contents", text)
    if is_old:
        columns.remove("Occurrences")
    count = "" if is_old else r" +(\d+)"
    rows = re.findall(rf"^ *(\d+) +([\d.]+) MiB +(-?[\d.]+) MiB{count} {{3}}(.*)$", text, re.M)
    if not rows:
        raise ValueError(f"text must hold a table of memory_profiler, but got {text[:80]!r}")
    table = DataFrame(rows, columns=columns).astype(dict.fromkeys({"line", *columns[3:-1]}, int))
    sizes = ["Mem usage", "Increment"]
    table[sizes] = table[sizes].astype(float) * 2**20
    return table.set_index("line")


def memray(capture: Path, file: str, when: str = "peak") -> tuple[int, dict[Stack, int]]:
    """A ``capture`` of memray: all bytes, and the stacks of those requested from within ``file``.

    Counts what is allocated at the high-water mark, or with ``when="left"`` at the end. A stack
    holds the calls of that file only, without its module level: ``("main:49", "convolve:39")``.
    """
    from memray import FileReader  # has no wheel for Windows

    total, stacks = 0, {}
    with FileReader(str(capture)) as reader:
        if when == "peak":
            records = reader.get_high_watermark_allocation_records(merge_threads=True)
        else:
            records = reader.get_leaked_allocation_records(merge_threads=True)
        for record in records:
            total += record.size
            frames = [(name, line) for name, path, line in record.stack_trace() if file in path]
            stack = tuple(f"{name}:{line}" for name, line in frames[::-1] if name != "<module>")
            if stack:
                stacks[stack] = stacks.get(stack, 0) + record.size
    return total, dict(sorted(stacks.items()))


def folded_stacks(text: str) -> dict[Stack, float]:
    """Folded stacks, a line for each (``main;work 17``), as {stack: weight}. Equal ones are added.

    In a file of ``py-spy record -f raw`` the weight is a number of samples, and the innermost frame
    is the function that ran. In a file of torch.profiler's ``export_stacks`` a line belongs to one
    event: the stack holds the event's Python callers, but not the event itself, and the weight is
    the time of that event alone, in microseconds. So a function's own time appears with its caller.
    Other tools also write fractions. Raises a ValueError for a line that does not end in a number.
    """
    weights: dict[Stack, float] = {}
    for line in filter(str.strip, text.splitlines()):
        frames, _, weight = line.rstrip().rpartition(" ")
        try:
            number = int(weight) if weight.isdigit() else float(weight)
        except ValueError:
            what = f"text must hold lines such as 'main;work 17', but got {line[:80]!r}"
            raise ValueError(what) from None
        stack = tuple(frames.split(";"))
        weights[stack] = weights.get(stack, 0) + number
    return weights


def times_by_function(path: Path) -> dict[str, float]:
    """How long each function ran with all that it called, as the profile in ``path`` has it.

    Reads cProfile (``.prof``, seconds), line_profiler (``.lprof``, nanoseconds on most computers),
    pyinstrument's JSON (``.tree``, seconds), py-spy's raw stacks (``.raw``, samples), the collapsed
    stacks of Python 3.15's ``profiling.sampling`` (``.collapsed``, samples) and Scalene (``.json``,
    percent). Scalene differs: its lines do not include what they call in the program's own files,
    so the times of its functions do not either. They are the sums of a function's lines, because
    Scalene's own rows of functions lack some lines, such as the ``for`` of a tight loop. A
    recursive function is counted again by ``.lprof`` and ``.tree``, and methods have qualified
    names, but not in ``.prof`` and ``.tree``.
    """
    readers = {
        ".prof": _times_in_cprofile,
        ".lprof": _times_in_line_profiler,
        ".tree": _times_in_pyinstrument,
        ".raw": _times_in_py_spy,
        ".collapsed": _times_in_collapsed_stacks,
        ".json": _times_in_scalene,
    }
    by_function: dict[str, float] = {}
    for name, time in readers[path.suffix](path):
        by_function[name] = by_function.get(name, 0) + time
    return by_function


def _times_in_cprofile(path: Path) -> Iterator[tuple[str, float]]:
    for (_, _, name), (*_, cumtime, _) in pstats.Stats(str(path)).stats.items():
        yield name, cumtime


def _times_in_line_profiler(path: Path) -> Iterator[tuple[str, float]]:
    from line_profiler import load_stats  # slow to import, and only needed here

    for (_, _, name), lines in load_stats(str(path)).timings.items():
        yield name, sum(ticks for *_, ticks in lines)


def _times_in_pyinstrument(path: Path) -> Iterator[tuple[str, float]]:
    waiting = [json.loads(path.read_text(encoding="utf-8"))["root_frame"]]
    while waiting:
        frame = waiting.pop()
        yield frame["function"], frame["time"]
        waiting += frame["children"]


def _times_in_py_spy(path: Path) -> Iterator[tuple[str, float]]:
    for stack, samples in folded_stacks(path.read_text(encoding="utf-8")).items():
        for name in {frame.split(" (")[0] for frame in stack}:
            yield name, samples


def _times_in_collapsed_stacks(path: Path) -> Iterator[tuple[str, float]]:
    for file in [path, *collapsed_children(path)]:
        for stack, samples in folded_stacks(file.read_text(encoding="utf-8")).items():
            frames = [frame.rsplit(":", 2) for frame in stack]  # file, function, line
            for name in {frame[1] for frame in frames if len(frame) == 3}:  # not tid:4711, <GC>
                yield name, samples


def collapsed_children(path: Path) -> list[Path]:
    """The files that ``profiling.sampling --subprocesses`` wrote beside ``path``, one per child.

    The profile ``w.collapsed`` of a program has such files as ``w_4711.collapsed``.
    """
    name = re.compile(rf"{re.escape(path.stem)}_\d+{re.escape(path.suffix)}")
    return sorted(file for file in path.parent.iterdir() if name.fullmatch(file.name))


def _times_in_scalene(path: Path) -> Iterator[tuple[str, float]]:
    for file in json.loads(path.read_text(encoding="utf-8"))["files"].values():
        names = {row["lineno"]: row["line"] for row in file["functions"]}
        for row in file["lines"]:
            if row["start_function_line"] in names:
                yield names[row["start_function_line"]], _scalene_share(row)


def samples_of(path: Path) -> float:
    """How many samples py-spy, ``profiling.sampling`` or Scalene (``.json``) took for ``path``.

    Those of py-spy (``.raw``) and ``profiling.sampling`` (``.collapsed``) are stacks of a thread.
    Scalene's are those that found a thread which it did not take to be waiting.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".raw", ".collapsed"):
        return sum(folded_stacks(text).values())
    return sum(sample["count"] for _, sample in json.loads(text)["stacks"])


def scalene_lines(path: Path, script: str) -> DataFrame:
    """Scalene's profile of a ``script``, indexed by line number.

    Columns: ``code``; ``share`` of the time, from 0 to 1; ``requested``, the bytes requested
    in all; ``peak``, Scalene's estimate of the most bytes that one run of the line added (often
    wrong for loops on one line, in other threads, and for a line that makes several arrays).
    """
    files = json.loads(path.read_text(encoding="utf-8"))["files"].items()
    (rows,) = [file["lines"] for name, file in files if Path(name).name == script]
    lines = [
        (r["lineno"], r["line"].strip(), _scalene_share(r) / 100, r["n_malloc_mb"], r["n_peak_mb"])
        for r in rows
    ]
    table = DataFrame(lines, columns=["number", "code", "share", "requested", "peak"])
    table[["requested", "peak"]] *= 2**20  # what Scalene calls mb has 1,048,576 bytes
    return table.set_index("number")


def _scalene_share(row: dict) -> float:
    return row["n_cpu_percent_python"] + row["n_cpu_percent_c"] + row["n_sys_percent"]
