"""Files that tools write, as data: a line of pandas asks them, ``helpers.plotting`` draws them."""

import gzip
import json
import pstats
from pathlib import Path

import pandas as pd


def chrome_trace(path: Path | str) -> pd.DataFrame:
    """The events of a Chrome trace, ``.json`` or ``.json.gz``, in the order of their start.

    Columns: ``ph``, ``cat``, ``name``, ``pid``, ``tid``, ``args`` as in the file, and ``ts`` and
    ``dur``, start and duration in microseconds, ``ts`` from the first event that has a duration.
    """
    raw = Path(path).read_bytes()
    file = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    columns = ["ph", "cat", "name", "ts", "dur", "pid", "tid", "args"]
    events = pd.DataFrame(file["traceEvents"]).reindex(columns=columns)
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
