"""Work and its time: bars of one unit, a computer's limits, a model's speed, a training run."""

from collections.abc import Mapping, Sequence

from pandas import DataFrame, Series

from helpers import _input, units
from helpers.machine import Ceilings
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE
from helpers.plotting.bar_charts import bar_rows, bars, stacked_bars
from helpers.plotting.distributions import intervals, spread
from helpers.plotting.grids import errors
from helpers.plotting.pairs import dumbbells
from helpers.plotting.timelines import timeline


def times(values: Mapping[str, float], *, title: str, xlabel: str = "time") -> None:
    """A bar per entry of ``values``, which are in seconds, from zero on."""
    bars(values, title=title, xlabel=xlabel, log=False)


def numbers(
    values: Mapping[str, float],
    *,
    title: str,
    xlabel: str,
    limit: tuple[str, float] | None = None,
) -> None:
    """A bar per entry of ``values``, which are exact whole numbers, from zero on.

    ``limit`` is the name and the value of a dashed line.
    """
    bars(values, title=title, xlabel=xlabel, unit=_whole, log=False, limit=limit)


def ratios(values: Mapping[str, float], *, title: str, xlabel: str) -> None:
    """A bar per entry of ``values``, which are measured ratios, from zero on."""
    bars(values, title=title, xlabel=xlabel, unit=units.ratio, log=False)


def overhead_of_rows(rows: DataFrame, *, title: str) -> None:
    """How much of each row of a profile is the profiler's own time: ``profiles.overhead_in_rows``.

    A dashed line at a fifth shows where a row is not to be trusted.
    """
    shares = rows["overhead / tottime"].to_dict()
    limit = ("a fifth", 0.2)
    label = "estimated overhead / tottime"
    bars(shares, title=title, xlabel=label, unit=units.percent, log=False, limit=limit)


def pairs_of_times(table: DataFrame, *, title: str, xlabel: str) -> None:
    """A dumbbell for each row of a table with two columns, which are in seconds."""
    rows = {name: tuple(row) for name, row in table.iterrows()}
    dumbbells(rows, ends=tuple(table.columns), title=title, xlabel=xlabel)


def parts_of_time(
    rows: Mapping[str, Mapping[str, float]], *, title: str, xlabel: str = "time"
) -> None:
    """A bar per row, made of its parts, which are in seconds."""
    stacked_bars(rows, title=title, xlabel=xlabel, unit=units.seconds)


def rows_of_times(rows: Mapping[str, Mapping[str, float]], *, title: str) -> None:
    """A row of bars for each of ``rows``, in seconds, all with the same keys."""
    bar_rows(
        {name: (row, units.seconds) for name, row in rows.items()}, title=title, highlight=False
    )


def rows_of_numbers(
    rows: Mapping[str, Mapping[str, float]] | DataFrame,
    seconds: Mapping[str, float] | None = None,
    *,
    title: str,
) -> None:
    """A row of bars for each of ``rows``, exact whole numbers, all with the same keys.

    A data frame has a row of bars for each column. ``seconds`` adds a row of measured times.
    """
    drawn = {name: (dict(row), _whole) for name, row in rows.items()}
    if seconds is not None:
        drawn["time"] = (seconds, units.seconds)
    bar_rows(drawn, title=title)


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def columns_of_profiles(
    columns: Mapping[str, Series], functions: Sequence[str], *, title: str
) -> None:
    """A row of bars for each column of a profile, in seconds: its values for these functions.

    The name of a function is shown without its module.
    """
    rows_of_times(
        {
            name: {function.rpartition(".")[2]: column[function] for function in functions}
            for name, column in columns.items()
        },
        title=title,
    )


def time_ratios(
    groups: Mapping[str, Sequence[float]], *, title: str, xlabel: str = "time of new / time of old"
) -> None:
    """Every ratio of two times as a dot, with a dashed line at 1, where the times are equal."""
    spread(groups, title=title, xlabel=xlabel, reference=1)


def ratio_intervals(
    results: Mapping[str, tuple[float, tuple[float, float]]],
    *,
    floor: float,
    title: str,
    xlabel: str = "CPU time of new / CPU time of old",
) -> None:
    """A forest plot of what ``compare.mean_and_interval`` returned, with a band around 1."""
    rows = {name: (ratio, low, high) for name, (ratio, (low, high)) in results.items()}
    intervals(rows, floor=floor, title=title, xlabel=xlabel)


def count_errors(
    differences: Mapping[str, Mapping[str, int]], true: Mapping[str, int], *, title: str
) -> None:
    """The relative errors of counts of MACs, with a column for each tool.

    ``differences`` maps each tool to the difference of its count from the true one.
    """
    rows = {
        f"{name}: {count:,}": {tool: row[name] / count for tool, row in differences.items()}
        for name, count in true.items()
    }
    errors(rows, title=title, xlabel="error of each tool; the true MACs are next to each name")


def forward_and_step(macs: Mapping[str, tuple[int, int]], *, title: str) -> None:
    """The MACs of training steps, exact, as bars of a forward and a backward part.

    ``macs`` maps a name to the MACs of a forward pass, and of a forward and a backward pass.
    """
    rows = {
        name: {"forward pass": forward, "backward pass": step - forward}
        for name, (forward, step) in macs.items()
    }
    stacked_bars(rows, title=title, xlabel="MACs", unit=_whole)


def limits_of_computer(one: Ceilings, every: Ceilings, *, title: str) -> None:
    """The rates that a computer reached with one thread, and with all its threads.

    The last row is what the computer could do, at its peak, while it copies one float32 value: such
    a copy reads 4 bytes and writes 4.
    """
    limits = {"one thread": one, "all threads": every}

    def row(name: str, unit: str) -> tuple[dict[str, float], _canvas.Unit]:
        values = {threads: getattr(rates, name) for threads, rates in limits.items()}
        return values, lambda value: units.rate(value, unit)

    per_copy = {threads: rates.compute / (rates.copy / 8) for threads, rates in limits.items()}
    bar_rows(
        {
            "matrix multiplication": row("matrix_product", "FLOP"),
            "convolution": row("convolution", "FLOP"),
            "copy (bandwidth)": row("copy", "B"),
            "FLOP per copied value": (per_copy, units.number),
        },
        title=title,
        highlight=False,
    )


def speed_by_batch(latency: Mapping[int, float], flop: float, *, peak: float, title: str) -> None:
    """Latency, throughput, achieved FLOP/s and utilisation for each size of a batch of images.

    ``latency`` maps a number of images to the seconds of one batch, ``flop`` is the work for one
    image, and ``peak`` the processor's FLOP/s; all above zero.
    """
    _input.filled("latency", latency, what="batch")
    _input.positive("peak", peak, what="a rate in FLOP/s")
    for count, seconds in latency.items():
        _input.positive(f"latency[{count}]", seconds, what="the time of a batch")
    batches = {count: f"batch of {count}" for count in latency}
    throughput = {batches[count]: count / seconds for count, seconds in latency.items()}
    achieved = {batch: flop * images for batch, images in throughput.items()}
    bar_rows(
        {
            "latency": ({batches[n]: seconds for n, seconds in latency.items()}, units.seconds),
            "throughput": (throughput, lambda x: units.rate(x, "images")),
            "achieved FLOP/s": (achieved, lambda x: units.rate(x, "FLOP")),
            "utilisation": (
                {batch: rate / peak for batch, rate in achieved.items()},
                units.percent,
            ),
        },
        title=title,
        highlight=False,
    )


def training_steps(steps: DataFrame, *, title: str) -> None:
    """The steps of a recorded training run: a lane for the CPU, and one for the GPU.

    ``steps`` has a row per step, with its number as index, and the columns ``cpu_start_ms``,
    ``cpu_end_ms`` and ``gpu_end_ms``, in milliseconds of one clock. On the GPU, a step lasts from
    the end of the step before; the first step has no box there, because its start is not known. A
    line joins the end of a step on the CPU with its end on the GPU.
    """
    _input.filled("steps", steps.index, what="step")
    cpu, gpu, links, before = [], [], [], None
    for number, step in steps.iterrows():
        begin, end, done = (
            step[column] / 1e3 for column in ("cpu_start_ms", "cpu_end_ms", "gpu_end_ms")
        )
        cpu.append((begin, end - begin, str(number), 0))
        if before is not None:
            gpu.append((before, done - before, str(number), 0))
        links.append((("step on the CPU", end), ("step on the GPU", done)))
        before = done
    tracks = {"step on the CPU": cpu, "step on the GPU": gpu}
    timeline(tracks, title=title, unit=_milliseconds, links=links)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f}".removesuffix(".0") + " ms"


def counts(rows: Mapping[str, Mapping[str, int]], *, out_of: int, title: str, xlabel: str) -> None:
    """A table of counts as coloured cells: the more of ``out_of``, the darker.

    ``rows`` maps the name of a row to its counts by column, in the same order in each row.
    """
    _input.filled("rows", rows, what="row")
    columns = list(next(iter(rows.values())))
    ax = _canvas.canvas(height=1.1 + 0.4 * len(rows))
    marks = []
    for y, (name, row) in enumerate(rows.items()):
        if list(row) != columns:
            raise ValueError(f"rows[{name!r}] must have the columns {columns}, not {list(row)}")
        for x, count in enumerate(row.values()):
            share = count / out_of
            ax.barh(y, 0.97, left=x - 0.485, height=0.92, color=BLUE, alpha=0.06 + 0.79 * share)
            ink = "white" if share > 0.6 else "black"
            ax.text(x, y, f"{count} of {out_of}", ha="center", va="center", color=ink, fontsize=11)
        marks.append(f"{name}: {', '.join(f'{key} {count}' for key, count in row.items())}")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    ax.set(title=title, xlabel=xlabel)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    _canvas.finish(ax, "Coloured table", f"of {out_of} each; {'; '.join(marks)}")
