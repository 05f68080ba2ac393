"""What a profile of torch.profiler holds, as tables and for charts, and what it costs."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pandas import DataFrame, concat
from torch.profiler import ProfilerActivity, profile

from helpers import traces


def operator_table(prof: profile) -> DataFrame:
    """A row for each name, with the columns of the profiler's own table; times in microseconds."""
    columns = ["Name", "Self CPU in µs", "CPU total in µs", "# of Calls"]
    rows = [
        (row.key, row.self_cpu_time_total, row.cpu_time_total, row.count)
        for row in prof.key_averages()
    ]
    return DataFrame(rows, columns=columns).set_index("Name")


def self_seconds(prof: profile) -> dict[str, float]:
    """The time in seconds of each operator or range, without those that it called."""
    return {row.key: row.self_cpu_time_total / 1e6 for row in prof.key_averages()}


def longest_chain(prof: profile, name: str, depth: int) -> dict[tuple[str, ...], float]:
    """The first call of an operator and, level by level, the longest of the calls below it.

    At most ``depth`` levels, each with its own ("self") time in seconds, for ``plotting.icicle``.
    Raises a StopIteration if the profile holds no event of this ``name``.
    """
    event = next(event for event in prof.events() if event.name == name)
    chain, stacks = [], {}
    while event is not None and len(chain) < depth:
        chain.append(event.name)
        stacks[tuple(chain)] = event.self_cpu_time_total / 1e6
        event = max(event.cpu_children, key=lambda child: child.cpu_time_total, default=None)
    return stacks


def counted_flop(prof: profile) -> DataFrame:
    """The operators for which the profiler has counted FLOP, most first, with their shapes.

    The profile was recorded with ``with_flops`` and ``record_shapes``.
    """
    rows = [row for row in prof.key_averages(group_by_input_shape=True) if row.flops]
    counted = [(row.key, _as_text(row.input_shapes[:2]), row.flops) for row in rows]
    counted.sort(key=lambda row: (-row[2], row[1]))
    table = DataFrame(counted, columns=["operator", "shapes of the first two inputs", "FLOP"])
    return table.assign(FLOP=table.FLOP.map("{:,}".format))


def memory_of_ranges(prof: profile, names: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    """The memory of a profile with ``profile_memory=True``, a curve for each range of ``names``.

    A curve holds (seconds since the recording began, bytes allocated minus bytes freed since then,
    at least 0), for ``plotting.memory``. Each range occurs once. PyTorch writes a profile's trace
    only once, and this writes it. Raises a KeyError if the profile lacks one of them.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        trace = traces.chrome_trace(path)
    ranges = trace[trace.cat == "user_annotation"].set_index("name").loc[list(names)]
    changes = trace[trace.name == "[memory]"]
    changes = changes[changes.args.str["Device Type"] == 0]  # of CPU tensors
    in_use = changes.args.str["Bytes"].cumsum().clip(lower=0)
    curves = {}
    for name, start, duration in zip(ranges.index, ranges.ts, ranges.dur, strict=True):
        end = start + duration
        inside = changes.ts.between(start, end)
        before = [0.0, *in_use[changes.ts < start]][-1]
        sizes = [before, *in_use[inside]]
        moments = [start, *changes.ts[inside], end]
        curves[name] = list(zip((t / 1e6 for t in moments), [*sizes, sizes[-1]], strict=True))
    return curves


def cost(
    work: Callable[[], object], settings: Mapping[str, Mapping[str, bool]], rounds: int = 3
) -> DataFrame:
    """How long ``work`` takes without a profile, and with one of each of the ``settings``.

    ``settings`` maps a name to arguments of ``torch.profiler.profile``. The rows are "not profiled"
    and these names. The columns, medians of the ``rounds`` in seconds, are "run", the work itself,
    and "afterwards", leaving the ``with`` block and making the table.
    """
    tables = []
    for _ in range(rounds):
        work()  # making a table has emptied the caches
        start = time.perf_counter()
        work()
        rows = {"not profiled": (time.perf_counter() - start, 0.0)}
        for name, options in settings.items():
            with profile(activities=[ProfilerActivity.CPU], **options) as prof:
                start = time.perf_counter()
                work()
                end = time.perf_counter()
            prof.key_averages()
            rows[name] = end - start, time.perf_counter() - end
        tables.append(DataFrame(rows, index=["run", "afterwards"]).T)
    return concat(tables).groupby(level=0, sort=False).median()


def _as_text(shapes: list[list[int]]) -> str:
    return ", ".join("×".join(map(str, shape)) for shape in shapes)
