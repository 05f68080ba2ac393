"""What a GPU and its CPU did, from a trace of torch.profiler, ready for the charts of lanes.

All times of the data frames are in microseconds, those of the results in seconds. ``pairs`` has a
row for each GPU operation and its call: ``ts`` and ``dur``, start and duration of the operation,
and ``ts_call`` and ``dur_call``, those of the call that launched it.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from helpers import recordings, units
from helpers.traces import chrome_trace, intervals


def read(path: Path | str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The timed events of a program that uses a GPU, those of the device, and the launching calls.

    Columns as in ``chrome_trace``, in microseconds, and ``end`` and ``correlation``, the number
    that a call shares with the GPU operations that it launches. The ranges that the profiler
    repeats on the GPU are left out.
    """
    trace = chrome_trace(path)
    rows = trace[(trace.ph == "X") & (trace.cat != "gpu_user_annotation")].copy()
    rows["end"] = rows.ts + rows.dur
    rows["correlation"] = rows.args.str.get("correlation")
    device = rows[rows.cat.isin(recordings.DEVICE)]
    calls = rows[rows.cat.str.endswith(recordings.CALLS, na=False)]
    return rows, device, calls


def waiting(pairs: pd.DataFrame) -> list[int]:
    """How many launched operations had not begun yet, at each launch, in their order."""
    starts, begun, queue = sorted(pairs.ts), 0, []
    for launched, call in enumerate(sorted(pairs.ts_call)):
        while begun < len(starts) and starts[begun] < call:
            begun += 1
        queue.append(launched - begun)
    return queue


def launch_window(
    pairs: pd.DataFrame, start: float, length: float = 20_000
) -> tuple[list[float], list[tuple[float, float]], list[int]]:
    """Launches, work and queue of a window for ``plotting.launch_queues``, in seconds.

    The window begins at ``start`` and has the ``length``, both in microseconds.
    """
    calls = pairs.sort_values("ts_call").assign(queue=waiting(pairs))
    calls = calls[calls.ts_call.between(start, start + length)]
    work = pairs[pairs.ts.between(start, start + length)]
    launches = ((calls.ts_call - start) / 1e6).tolist()
    return launches, intervals(work, start, math.inf), calls.queue.tolist()


def launch_lanes(
    programs: Mapping[str, pd.DataFrame],
    every: int,
    length: float = math.inf,
    busy: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Two rows for each program, its launches and its GPU: arguments of ``plotting.activity``.

    ``programs`` maps a name to ``pairs``. The window has the ``length``, in microseconds, and
    begins at a program's first launch. Each launch whose number is a multiple of ``every`` is
    joined to the start of its operation. The notes say the median delay from launch to
    start, and the fraction of the time in which the GPU is ``busy``, if given.
    """
    rows: dict[str, dict] = {}
    links, notes = [], {}
    for name, pairs in programs.items():
        start = pairs.ts_call.min()
        by_call = pairs[pairs.ts_call <= start + length].sort_values("ts_call")
        upper, lower = f"{name}: launches", f"{name}: GPU"
        rows[upper] = {"launch": [((call - start) / 1e6, 0.0) for call in by_call.ts_call]}
        rows[lower] = {"GPU operation": intervals(pairs, start, length)}
        for pair in by_call[::every].itertuples():
            if pair.ts <= start + length:
                moments = (pair.ts_call - start) / 1e6, (pair.ts - start) / 1e6
                links.append(((upper, moments[0]), (lower, moments[1])))
        delay = units.seconds((pairs.ts - pairs.ts_call).median() / 1e6).lstrip("~")
        notes[upper] = f"median delay\n{delay}"
        if busy:
            notes[lower] = f"GPU busy\n{busy[name]:.0%}"
    return {"rows": rows, "links": links, "notes": notes}


def steps(rows: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """When the CPU launched each profiler step, ``ts`` to ``end``, and when the GPU ran it.

    The columns ``gpu_ts`` and ``gpu_end`` go from the start of the first to the end of the last
    operation that the step launched. All times are in microseconds; the index is the step's number.
    """
    marks = rows[rows.name.str.startswith("ProfilerStep")]
    steps = marks[["ts", "end"]].set_index(marks.name.str.split("#").str[1])
    launched = [pairs[pairs.ts_call.between(mark.ts, mark.end)] for mark in marks.itertuples()]
    return steps.assign(
        gpu_ts=[work.ts.min() for work in launched], gpu_end=[work.end.max() for work in launched]
    )


def step_lanes(programs: Mapping[str, tuple], length: float) -> dict[str, dict[str, list]]:
    """What the GPU of each program did, from its first operation on, for ``plotting.activity``.

    ``programs`` maps a name to the device's events and to ``steps``. The kernels of NCCL, in which
    a GPU exchanges data or waits for another one, are a kind of work of their own. The window has
    the ``length``, in microseconds.
    """
    rows = {}
    for name, (device, of_program) in programs.items():
        start = device.ts.min()
        is_exchange = device.name.str.contains("nccl")
        rows[name] = {"GPU operation": intervals(device[~is_exchange], start, length)}
        if is_exchange.any():
            rows[name]["NCCL"] = intervals(device[is_exchange], start, length)
        ends = (of_program.gpu_end - start)[of_program.gpu_end <= start + length]
        rows[name]["end of a step"] = [(end / 1e6, 0.0) for end in ends]
    return rows


def step_tracks(steps: pd.DataFrame) -> dict[str, Any]:
    """The CPU's and the GPU's track of ``steps``, joined: arguments of ``plotting.timeline``."""
    tracks: dict[str, list] = {"CPU": [], "GPU": []}
    links = []
    for step in steps.itertuples():
        tracks["CPU"].append((step.ts / 1e6, (step.end - step.ts) / 1e6, step.Index, 0))
        tracks["GPU"].append((step.gpu_ts / 1e6, (step.gpu_end - step.gpu_ts) / 1e6, step.Index, 0))
        links.append((("CPU", step.ts / 1e6), ("GPU", step.gpu_ts / 1e6)))
    return {"tracks": tracks, "links": links}


def middle_steps(
    rows: pd.DataFrame, pairs: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Four complete steps of a training program, without the first and the last ones.

    Returns the steps' marks, their data loading, and the copies of their images: the calls that
    took over a millisecond.
    """
    steps = rows[rows.name.str.contains("ProfilerStep")]
    loading = rows[rows.name.str.contains("DataLoader")]
    copies = pairs[(pairs.name_call == "cudaMemcpyAsync") & (pairs.dur_call > 1000)]
    return steps[1:5], loading[1:5], copies[1:5]


def loading_parts(steps: pd.DataFrame, loading: pd.DataFrame) -> dict[str, Any]:
    """A row for each step, its loading and its rest: arguments of ``plotting.activity``."""
    rows, notes = {}, {}
    for number, (load, step) in enumerate(zip(loading.dur, steps.dur, strict=True), start=1):
        parts = {
            "loading": [(0, load / 1e6)],
            "rest of the step": [(load / 1e6, (step - load) / 1e6)],
        }
        rows[f"step {number}"] = parts
        notes[f"step {number}"] = f"{load / step:.0%} loading"
    return {"rows": rows, "notes": notes}


def loading_lanes(
    programs: Mapping[str, tuple[pd.DataFrame, ...]], length: float
) -> dict[str, dict[str, list]]:
    """Two lanes for each program, its CPU and its GPU, for ``plotting.activity``.

    ``programs`` maps a name to the device's events and to what ``middle_steps`` returns. The window
    has the ``length``, in microseconds, and begins with the first of these steps.
    """
    rows = {}
    for name, (device, steps, loading, copies) in programs.items():
        start = steps.ts.min()
        calls = copies.assign(ts=copies.ts_call, dur=copies.dur_call)
        rows[f"{name}: CPU"] = {
            "loading": intervals(loading, start, length),
            "copy call": intervals(calls, start, length),
        }
        rows[f"{name}: GPU"] = {
            "GPU operation": intervals(device, start, length),
            "end of a step": [
                ((end - start) / 1e6, 0.0) for end in steps.end if end <= start + length
            ],
        }
    return rows


def short_and_long(short: pd.DataFrame) -> dict[str, Any]:
    """Two bars of 100 % for each trace, of its kernels and of their time, for ``activity``.

    ``short`` has a row for each trace and two columns: the fraction of the kernels that are short,
    and the fraction of the kernel time that these take.
    """
    rows, notes = {}, {}
    for name, fractions in short.iterrows():
        for what, fraction in zip(("number", "time"), fractions, strict=True):
            parts = {"short kernels": [(0.0, fraction)]}
            rows[f"{name}: {what}"] = parts | {"long kernels": [(fraction, 1 - fraction)]}
            notes[f"{name}: {what}"] = f"{fraction:.1%} short"
    return {"rows": rows, "notes": notes, "unit": "{:.0%}".format}


def waiting_call_lanes(rows: pd.DataFrame, pair: pd.Series) -> dict[str, Any]:
    """A call that waits for the GPU, the operators around it, and what the GPU did meanwhile.

    ``rows`` holds all events, and ``pair`` is one row of ``pairs``. Returns arguments of
    ``plotting.activity``; the window is a third longer than the call.
    """
    start, length = pair.ts_call - pair.dur_call / 6, pair.dur_call * 4 / 3
    end = pair.ts_call + pair.dur_call
    around = rows[(rows.cat == "cpu_op") & (rows.ts <= pair.ts_call) & (rows.end >= end)]
    lanes = {
        f"CPU: {name.removeprefix('aten::')}": {"operator": intervals(events, start, length)}
        for name, events in around.groupby("name", sort=False)
    }
    call, copy = f"CPU: {pair.name_call}", "GPU: the copy"
    lanes[call] = {"copy call": [((pair.ts_call - start) / 1e6, pair.dur_call / 1e6)]}
    lanes[copy] = {"GPU operation": [((pair.ts - start) / 1e6, pair.dur / 1e6)]}
    kernels = rows[rows.cat == "kernel"]
    lanes["GPU: kernels"] = {"GPU operation": intervals(kernels, start, length)}
    link = (call, (pair.ts_call - start) / 1e6), (copy, (pair.ts - start) / 1e6)
    return {"rows": lanes, "links": [link]}
