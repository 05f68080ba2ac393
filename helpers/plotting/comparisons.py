"""What several measures say: dots with their values, curves, rounds of changes, and requests."""

import inspect
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREEN, GREY, ORANGE, RED
from helpers.plotting.hot_spots import line_heat_map

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# A series of dots or of a curve: its colour, its marker, and the marker as a letter.
_SERIES = [(BLUE, "o", "●"), (RED, "D", "◆"), (GREEN, "s", "■")]
# The parts of a program keep these colours in all rows.
_PARTS = [BLUE, ORANGE, GREEN, RED, GREY, "#CC79A7"]  # as of stacked bars


def dots(
    rows: "Mapping[str, Mapping[str, float]] | DataFrame",
    *,
    title: str,
    xlabel: str = "time",
    unit: _canvas.Unit = units.seconds,
    log: bool = False,
    reference: tuple[float, str] | None = None,
    ratio: bool = False,
) -> None:
    """At most three series of dots, one of each in a row, with their values beside the chart.

    ``rows`` maps a name to the values of its series, or is a data frame with a column for each
    series. Values are in what ``unit`` prints: positive on a ``log`` axis, else zero or more. A
    mapping may lack a series. A dashed line at the ``reference`` has the name that comes with it.
    ``ratio``: the second value of each row divided by its first stands beside the two.
    """
    _input.filled("rows", rows, what="row")
    rows = rows.to_dict("index") if hasattr(rows, "to_dict") else rows
    rows = {name: dict(row) for name, row in rows.items()}
    check = _input.positive if log else _input.not_negative
    series = list(dict.fromkeys(key for row in rows.values() for key in row))
    ax = _canvas.canvas(height=1.5 + 0.34 * len(rows))
    for place, (name, row) in enumerate(rows.items()):
        if row:
            values = _input.each(check, f"rows[{name!r}]", row, what="the place of a dot")
            ax.plot([min(values), max(values)], [place, place], color=GREY, linewidth=2, zorder=1)
        for key, value in row.items():
            colour, marker, _ = _SERIES[series.index(key)]
            size = (11, 6, 5)[series.index(key)]  # where dots coincide, the first one is a rim
            ax.plot(value, place, marker, color=colour, markersize=size, zorder=2)
    if reference is not None:
        value, words = reference
        ax.axvline(value, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
        ax.text(value, -0.8, words, color=GREY, ha="center", va="bottom")
    heads = [f"{letter} {key}" for key, (*_, letter) in zip(series, _SERIES, strict=False)]
    cells = [[unit(row[key]) if key in row else "–" for key in series] for row in rows.values()]
    colours = [colour for colour, *_ in _SERIES[: len(series)]]
    if ratio:
        heads, colours = [*heads, "ratio"], [*colours, "black"]
        for row, words in zip(rows.values(), cells, strict=True):
            words.append(units.ratio(row[series[1]] / row[series[0]]))
    _canvas.write_columns(ax, heads, cells, colours)
    _frame(ax, list(rows), xlabel=xlabel, log=log)
    if not log:
        ax.set_xlim(left=-0.02 * ax.get_xlim()[1])
        ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    _canvas.tick_units(ax, unit)
    marks = [
        f"{name}: {', '.join(f'{key} {unit(value)}' for key, value in row.items()) or 'nothing'}"
        + (f", {words[-1]}" if ratio else "")
        for (name, row), words in zip(rows.items(), cells, strict=True)
    ]
    if reference is not None:
        marks.append(f"a dashed line, {words}, at {unit(value).lstrip('~')}")
    _show(ax, title, "; ".join(marks))


def function_lines(
    function: Callable, profile: "Mapping[str, Series | None]", *, title: str
) -> None:
    """The source of a ``function`` with the share of each line, or a sentence without a profile.

    ``profile`` maps the name of the profiler to its values, indexed by the number of a line in its
    file, or to None if it did not run.
    """
    ((name, values),) = profile.items()
    if values is None or not values.sum():
        print(f"{name} did not run here, so this cell shows nothing.")
        return
    source, first = inspect.getsourcelines(function)
    lines = [line.rstrip() for line in source]
    body = {
        line.strip(): float(values.get(number, 0))
        for number, line in enumerate(lines, first)
        if not re.match(r'\s*(@|def |""")', line)
    }
    line_heat_map(lines, {name: body}, title=title)


def compared(rows: Mapping[str, tuple[Mapping[str, float], _canvas.Unit]], *, title: str) -> None:
    """Two things, such as two models, compared by measures of different units.

    ``rows`` maps a measure to the values of the two, both positive, by their names, and the
    function that prints one of them. A dot is at the second value divided by the first, on a log
    axis; beside the chart are both values.
    """
    _input.filled("rows", rows, what="measure")
    names = list(next(iter(rows.values()))[0])
    ax = _canvas.canvas(height=1.5 + 0.34 * len(rows))
    marks, cells = [], []
    for place, (name, (values, unit)) in enumerate(rows.items()):
        first, second = _input.each(_input.positive, f"rows[{name!r}]", values, what="a value")
        ax.plot([1, second / first], [place, place], color=GREY, linewidth=2, zorder=1)
        ax.plot(second / first, place, "o", color=BLUE, markersize=8, zorder=2)
        cells.append([unit(values[key]) for key in names])
        marks.append(f"{name}: {' and '.join(cells[-1])}")
    ax.axvline(1, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
    ax.text(1, -0.8, "equal", color=GREY, ha="center", va="bottom")
    ax.margins(x=0.1)
    _canvas.write_columns(ax, names, cells, ["black"] * 2)
    _frame(ax, list(rows), xlabel=f"{names[1]} divided by {names[0]}", log=True)
    _canvas.tick_units(ax, units.ratio)
    marks.append("a dashed line, equal, at 1×")
    _show(ax, title, f"{names[0]} and {names[1]}; {'; '.join(marks)}")


def _frame(ax: Axes, names: list[str], *, xlabel: str, log: bool) -> None:
    """The axes of dots in rows with ``names``."""
    ax.set_yticks(range(len(names)), [name.replace(units.NAME_MARK, "") for name in names])
    ax.set(ylim=(len(names) - 0.4, -0.7), xscale="log" if log else "linear")
    ax.set_xlabel(f"{xlabel} (log scale)" if log else xlabel)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color=GREY, alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def _show(ax: Axes, title: str, marks: str) -> None:
    """Show a chart whose title is as wide as the figure."""
    ax.figure.suptitle(title, size="large")
    words = f"Dot chart. Title: {title}. x axis: {ax.get_xlabel()}. {marks}."
    _canvas.show(ax.figure, words)


def curves(
    panels: Mapping[str, tuple[Mapping[str, Sequence[tuple[float, float]]], _canvas.Unit]],
    *,
    title: str,
    xlabel: str,
    log: bool = False,
) -> None:
    """Lines over a common x axis, in panels one below the other, each with its own unit.

    ``panels`` maps the label of a y axis to its lines and the function that prints a value. A line
    has a name and its points (x, y), at most three lines in a panel; with ``log``, both axes are
    logarithmic and all values positive. The lines of one panel have the same x, and a line's name
    is where its right half is farthest from the others.
    """
    _input.filled("panels", panels, what="panel")
    figure = _canvas.sheet(7.2, 0.9 + 1.9 * len(panels))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    check = _input.positive if log else _input.not_negative
    marks = []
    for ax, (label, (lines, unit)) in zip(axes, panels.items(), strict=True):
        for (name, points), (colour, marker, _) in zip(lines.items(), _SERIES, strict=False):
            places, values = zip(*points, strict=True)
            _input.each(check, f"panels[{label!r}][{name!r}]", values, what="a height")
            dot = marker if len(points) < 30 else ""
            ax.plot(places, values, marker=dot, color=colour, linewidth=1.8, markersize=5)
            if len(lines) > 1:
                above = {"color": colour, "textcoords": "offset points", "ha": "center"}
                others = [line for other, line in lines.items() if other != name]
                ax.annotate(name, _clearest(points, others), (0, 5), **above)
            first, highest, last = map(unit, (values[0], max(values), values[-1]))
            marks.append(f"{name}: first {first}, highest {highest}, last {last}")
        if log:
            ax.set(xscale="log", yscale="log")
            ax.xaxis.set_major_formatter("{x:,.0f}")
        else:
            ax.set_ylim(0, 1.15 * ax.get_ylim()[1])
        ax.set_ylabel(f"{label} (log scale)" if log else label)
        ax.yaxis.set_major_formatter(lambda value, _, unit=unit: _canvas.tick(unit(value)))
        ax.yaxis.set_minor_formatter("")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_title(title)
    axes[-1].set_xlabel(f"{xlabel} (log scale)" if log else xlabel)
    labels = " and ".join(panels)
    words = f"Curves. Title: {title}. x axis: {xlabel}; y axis: {labels}. {'; '.join(marks)}."
    _canvas.show(figure, words)


def _clearest(
    points: Sequence[tuple[float, float]], others: Sequence[Sequence[tuple[float, float]]]
) -> tuple[float, float]:
    """The point in the right half of a line that is farthest above or below all other lines."""
    places = range(len(points) // 2, len(points))
    return points[
        max(
            places, key=lambda place: min(abs(points[place][1] - line[place][1]) for line in others)
        )
    ]


def ladder(
    times: Mapping[str, float | None],
    *,
    title: str,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    parts: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """The time of a program after each round of changes, and what it consists of.

    ``times`` maps a version to its seconds, positive, or to None where they are not known yet; the
    speedup stands between two known times that follow each other. ``bounds`` maps some versions to
    a lowest and a highest time. ``parts`` maps each version to the fractions of its parts, which
    add up to 1: a bar beside its dot.
    """
    known = {name: seconds for name, seconds in times.items() if seconds is not None}
    _input.each(_input.positive, "times", known, what="a time on a log axis")
    rows = list(times)
    figure = _canvas.sheet(7.2, 1.3 + 0.5 * len(rows))
    figure.get_layout_engine().set(wspace=0.08)
    columns = figure.subplots(1, 2 if parts else 1, sharey=True, squeeze=False)[0]
    ax = columns[0]
    marks = []
    for place, (name, seconds) in enumerate(times.items()):
        if seconds is None:
            middle = (min(known.values()) * max(known.values())) ** 0.5
            ax.text(middle, place, "?", color=GREY, size=14, ha="center", va="center")
            marks.append(f"{name}: not measured yet")
            continue
        ax.plot(seconds, place, "o", color=BLUE, markersize=8)
        words = f"{name}: {units.seconds(seconds)}"
        if bounds and name in bounds:
            ax.plot(bounds[name], [place, place], color=BLUE, linewidth=1.5)
            words += " from {} to {}".format(*map(units.seconds, bounds[name]))
        beside = {"textcoords": "offset points", "va": "center"}
        ax.annotate(units.seconds(seconds), (seconds, place), (9, 0), **beside)
        before = times[rows[place - 1]] if place else None
        if before is not None:
            speedup = units.ratio(before / seconds)
            ax.plot([before, seconds], [place - 1, place], color=GREY, linewidth=1, zorder=0)
            middle = (before * seconds) ** 0.5
            ax.annotate(speedup, (middle, place - 0.5), (6, -2), color="#555555", **beside)
            words += f", a speedup of {speedup}"
        marks.append(words)
    low, high = min(known.values()), max(known.values())
    ax.set(xscale="log", xlim=(low / 2, high * 5), ylim=(len(rows) - 0.5, -0.5))
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel("time (log scale)")
    ax.grid(axis="y", color=GREY, alpha=0.25)
    _canvas.tick_units(ax, units.seconds)
    if parts:
        marks.append(_draw_parts(columns[1], rows, parts))
    for each in columns:
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(axis="y", length=0)
    figure.suptitle(title, size="large")
    words = f"Ladder. Title: {title}. x axis: time (log scale). {'; '.join(marks)}."
    _canvas.show(figure, words)


def _draw_parts(ax: Axes, rows: Sequence[str], parts: Mapping[str, Mapping[str, float]]) -> str:
    """Bars of 100 % at the height of each row; returns their words."""
    marks, handles = [], {}
    for name, row in parts.items():
        end = 0.0
        for (part, fraction), colour in zip(row.items(), _PARTS, strict=False):
            bar = ax.barh(rows.index(name), fraction, 0.6, left=end, color=colour, edgecolor="w")
            handles[part] = bar
            end += fraction
        shown = ", ".join(f"{part} {units.percent(fraction)}" for part, fraction in row.items())
        marks.append(f"{name}: {shown}")
    ax.set(xlim=(0, 1), xlabel="fraction of the time", xticks=[0, 0.5, 1])
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "columnspacing": 1}
    ax.legend(handles.values(), handles, frameon=False, ncols=2, fontsize=9, **place)
    _canvas.tick_units(ax, units.percent)
    return f"parts: {'; '.join(marks)}"


def requests(
    servers: Mapping[str, Sequence[tuple[float, float, float, float]]], *, title: str
) -> None:
    """A line for each request to a server, in the order of arrival: what its user waits for.

    ``servers`` maps a name to its requests, each in seconds: when it arrived, when the server began
    with it, its first token, and its last. The values are printed without the mark of a
    measurement, so they come from a recording.
    """
    _input.filled("servers", servers, what="server")
    figure = _canvas.sheet(7.2, 1.1 + 1.9 * len(servers))
    axes = figure.subplots(len(servers), 1, sharex=True, squeeze=False)[:, 0]
    parts = [("in the queue", "#C4C4C4"), ("prompt", RED), ("answer", BLUE)]
    marks = []
    for ax, (name, rows) in zip(axes, servers.items(), strict=True):
        _input.filled(f"servers[{name!r}]", rows, what="request")
        rows = sorted(rows)
        medians = []
        for index, (part, colour) in enumerate(parts):
            starts, ends = [row[index] for row in rows], [row[index + 1] for row in rows]
            ax.hlines(range(len(rows)), starts, ends, color=colour, linewidth=0.8)
            median = statistics.median(end - start for start, end in zip(starts, ends, strict=True))
            medians.append(f"{part} {median:.2f} s")
        ends = [row[2] for row in rows]  # of prompts, which may be shorter than a pixel
        ax.plot(ends, range(len(rows)), ".", color=RED, markersize=2)
        ax.set(ylim=(len(rows), -1), ylabel="request")
        ax.text(1, 0.95, name, transform=ax.transAxes, ha="right", va="top", size=11)
        ax.spines[["top", "right"]].set_visible(False)
        marks.append(f"{name}: {len(rows)} requests; medians: {', '.join(medians)}")
    for part, colour in parts:
        axes[0].plot([], [], color=colour, linewidth=6, label=part)
    axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 0.98), ncols=3, frameon=False)
    axes[0].set_title(title, pad=26)
    axes[-1].set_xlabel("seconds after the first request")
    axes[-1].set_xlim(left=0)
    words = f"Requests. Title: {title}. x axis: {axes[-1].get_xlabel()}. {'; '.join(marks)}."
    _canvas.show(figure, words)
