"""Results of Nsight's tools: which flags nsys takes, what it records, and what ncu counts."""

import math
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from helpers import traces

Span = tuple[float, float, str, int]


def flag_outcomes(commands: Iterable[str], answers: Mapping[str, Mapping]) -> dict[str, dict]:
    """What happens to each flag in each command: ``{flag: {command: outcome}}``.

    ``commands`` are lines such as ``nsys profile …``, called 1, 2 and so on in the result, and
    ``answers`` says which flags nsys has ``accepted``. An outcome is ``accepted``, ``refused``, or
    ``passed on``, for a flag of nsys that comes after the program.
    """
    options = {flag.replace("=", " ").split()[0] for flag in answers}
    outcomes: dict[str, dict] = {}
    for number, line in enumerate(commands, start=1):
        flags, program = traces.nsys_command(line)
        if not flags:
            outcomes["(no flag)"] = {f"command {number}": "accepted"}
        for flag in flags:
            answer = answers["-o report" if flag.startswith("-o ") else flag]
            outcome = "accepted" if answer["accepted"] else "refused"
            outcomes.setdefault(flag, {})[f"command {number}"] = outcome
        for word in program:
            if word in options:
                outcomes.setdefault(word, {})[f"command {number}"] = "passed on"
    return outcomes


def recorded_steps(runs: Mapping[str, Mapping], steps: int) -> dict[str, dict]:
    """For each of several ``runs`` of a program under nsys, what became of each of its steps.

    A run has the ``ranges`` in its report (``step 0`` and so on, or None without a report), its
    exit ``status``, which is added to its name, and whether the ``program finished``. A step is
    ``recorded``, ``only run``, or, after the last recorded step of a program that nsys ended,
    ``not run``.
    """
    rows = {}
    for command, run in runs.items():
        recorded = [f"step {step}" in (run["ranges"] or {}) for step in range(steps)]
        end = steps if run["program finished"] else steps - recorded[::-1].index(True)
        words = ["recorded" if kept else "only run" for kept in recorded[:end]]
        words += ["not run"] * (steps - end)
        rows[f"{command} (status {run['status']})"] = {
            f"step {step}": word for step, word in enumerate(words)
        }
    return rows


def spans(report: sqlite3.Connection) -> pd.DataFrame:
    """All ranges of a report, and its kernels under the name ``kernels``, in order of their start.

    Columns: name, the kind of the range; start and duration, in seconds.
    """
    query = "SELECT kind AS name, start / 1e9 AS start, duration / 1e9 AS duration FROM ranges"
    tables = "SELECT name FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'"
    if report.execute(tables).fetchone():
        query += """ UNION ALL SELECT 'kernels', start / 1e9, (end - start) / 1e9
                     FROM CUPTI_ACTIVITY_KIND_KERNEL"""
    return pd.read_sql(f"{query} ORDER BY start", report)


def tracks(
    ranges: pd.DataFrame,
    rows: Mapping[str, str],
    between: tuple[float, float] = (-math.inf, math.inf),
) -> dict[str, list[Span]]:
    """Ranges in the rows of a timeline, as ``plotting.timeline`` draws them.

    ``ranges`` has the columns name, start and duration, in seconds, and ``rows`` maps each name
    that is to be drawn to its row, in order. Only ranges that lie ``between`` two moments, in
    seconds, are drawn. Spans of one name that follow each other in a row within 20 microseconds,
    such as kernels, are joined, because a timeline cannot show such gaps.
    """
    spans: dict[str, list[Span]] = {row: [] for row in rows.values()}
    within = (ranges.start >= between[0]) & (ranges.start + ranges.duration <= between[1])
    for name, start, duration in ranges[within][["name", "start", "duration"]].values.tolist():
        if name not in rows:
            continue
        row = spans[rows[name]]
        if row and row[-1][2] == name and start <= row[-1][0] + row[-1][1] + 20e-6:
            first = row.pop()[0]
            start, duration = first, start + duration - first
        row.append((start, duration, name, 0))
    return spans


def ncu_counters(file: Path, metrics: Mapping[str, tuple[str, float]], name: str) -> pd.DataFrame:
    """The counters in a CSV file of ``ncu``, one row per kernel.

    ``metrics`` maps the name of a column to ncu's name of the metric and the unit by which its
    value is divided. ``name`` is a regular expression whose group is a kernel's short name.
    """
    table = pd.read_csv(file, thousands=",")
    kernel = table["Kernel Name"].str.extract(name)[0].rename("kernel")
    counters = table.set_index([kernel, "Metric Name"])["Metric Value"].unstack()
    return pd.DataFrame(
        {column: counters[metric] / unit for column, (metric, unit) in metrics.items()}
    )


def in_milliseconds(tracks: Mapping[str, list[Span]]) -> list[tuple[str, float, float, str]]:
    """The ``tracks`` as spans for ``plotting.zoomable``: (row, start, end, name)."""
    return [
        (row, 1000 * start, 1000 * (start + duration), name)
        for row, spans in tracks.items()
        for start, duration, name, _ in spans
    ]


def busy(tracks: Mapping[str, list[Span]]) -> dict[str, float]:
    """The seconds of all spans in each row of a timeline."""
    return {row: sum(span[1] for span in spans) for row, spans in tracks.items()}
