"""The charts of a report on a model: what to look at first, its layers, and its single calls."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREY, RED

_LOWEST = 1e-3  # a value below this part of its limit is drawn at the left edge, as an arrow


def against_limits(rows: Mapping[str, tuple[float, str, str]], *, title: str) -> None:
    """How far each value is below or above its limit: a dot per row, the farthest above on top.

    ``rows`` maps a name to value / limit, zero or more, and to the two as text. The axis is
    logarithmic. What is above its limit is red, all else is blue.
    """
    quotients = _input.each(
        _input.not_negative, "rows", {key: row[0] for key, row in rows.items()}, what="a quotient"
    )
    ax = _canvas.canvas(height=1.3 + 0.3 * len(rows))
    ax.set(xscale="log", xlim=(_LOWEST / 1.5, 3 * max(3, *quotients)))
    ax.axvline(1, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
    order = sorted(rows, key=lambda key: -rows[key][0])
    for row, key in enumerate(order):
        quotient, *texts = rows[key]
        colour, marker = RED if quotient > 1 else BLUE, "o" if quotient > _LOWEST else "<"
        ax.plot(max(quotient, _LOWEST), row, marker, color=colour, markersize=8)
        _beside_the_axes(ax, row, *texts)
    _beside_the_axes(ax, -0.9, "value", "limit", color=GREY)
    ax.text(1, -0.9, "limit", color=GREY, ha="center", va="center")
    ax.set_yticks(range(len(order)), order)
    ax.set(ylim=(len(order) - 0.5, -0.6), xlabel="value / limit (log scale)")
    ax.grid(axis="y", color=GREY, alpha=0.25)
    ax.set_title(title, pad=20)
    _canvas.tick_units(ax, "{:g}×".format)
    words = "; ".join(f"{key} {value}, limit {limit}" for key, (_, value, limit) in rows.items())
    _canvas.finish(ax, "Dot chart", f"a dashed line at 1×; {len(rows)} dots: {words}")


def _beside_the_axes(ax: Axes, row: float, *words: str, color: str = "black") -> None:
    """Write a row of a table to the right of the axes."""
    for column, word in enumerate(words):
        place = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
        place |= {"ha": "right", "va": "center", "annotation_clip": False}
        ax.annotate(word, (1, row), (75 + 45 * column, 0), color=color, **place)


def bar_columns(
    columns: Mapping[str, tuple[Mapping[str, float], _canvas.Unit]], *, title: str
) -> None:
    """Measures of the same things side by side: a column of bars each, the longest first on top.

    ``columns`` maps the name of a measure to its values, zero or more, and the function that
    prints one of them. All have the same keys, sorted here by the first measure, and each column
    has its own linear scale. A key may be marked by ``units.name``.
    """
    first = next(iter(columns.values()))[0]
    _input.filled("columns", first, what="bar")
    order = sorted(first, key=first.get, reverse=True)
    figure = _canvas.sheet(7.2, 0.8 + 0.32 * len(order))
    marks = []
    for index, (name, (values, unit)) in enumerate(columns.items()):
        lengths = [
            _input.not_negative(f"{name}[{key!r}]", values[key], what="a length") for key in order
        ]
        ax = figure.add_subplot(1, len(columns), index + 1)
        bars = ax.barh(range(len(order)), lengths, color=BLUE if index == 0 else GREY)
        ax.bar_label(bars, [unit(values[key]) for key in order], padding=4)
        ax.set_yticks(range(len(order)), [key.strip(units.NAME_MARK) for key in order])
        ax.set(xlim=(0, 1.4 * max(lengths) or 1), ylim=(len(order) - 0.4, -0.6), xticks=[])
        ax.tick_params(axis="y", length=0, labelleft=index == 0)
        ax.spines[["top", "right", "bottom"]].set_visible(False)
        ax.set_title(name, loc="left", fontsize=10)
        shown = [f"{key} {unit(value)}" for key, value in values.items()]
        marks.append(f"{name}: {', '.join(shown)}")
    figure.suptitle(title)
    kind = f"{len(columns)} columns of {len(order)} bars"
    _canvas.show(figure, f"{kind}. Title: {title}. {'; '.join(marks)}.")


def calls(seconds: Sequence[float], *, title: str) -> None:
    """The time of each call as a dot on a log axis, the first call on top.

    Dashed lines show the median and the 95th percentile.
    """
    times = _input.each(_input.positive, "seconds", seconds, what="a time on a log axis")
    median, slow = np.percentile(times, [50, 95]).tolist()
    ax = _canvas.canvas(height=2.6)
    ax.plot(times, range(1, len(times) + 1), ".", color=BLUE, alpha=0.6, markersize=7)
    marks = [f"{units.number(len(times))} dots"]
    for name, value, side in (("median", median, "right"), ("p95", slow, "left")):
        words = f"{name} {units.seconds(value)}"
        ax.axvline(value, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "ha": side}
        ax.annotate(words, (value, 1), (0, 2), **place)
        marks.append(f"a dashed line, {words}")
    ax.set(xscale="log", ylim=(len(times) + 1, 0), ylabel="call")
    ax.yaxis.set_major_locator(MaxNLocator(4, integer=True, prune="lower"))
    ax.set_xlabel("time of a call (log scale)")
    ax.set_title(title, pad=20)
    _canvas.tick_units(ax, units.seconds)
    _canvas.finish(ax, "Strip chart", "; ".join(marks))
