"""Files that tools write, as data: a line of pandas asks them, ``helpers.plotting`` draws them."""

import gzip
import json
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
