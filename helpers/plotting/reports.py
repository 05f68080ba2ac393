"""The charts of a report on a model: what to look at first, its layers, and its single calls."""

from collections.abc import Mapping, Sequence

import numpy as np
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
    order, cells = sorted(rows, key=lambda key: -rows[key][0]), []
    for row, key in enumerate(order):
        quotient, *texts = rows[key]
        colour, marker = RED if quotient > 1 else BLUE, "o" if quotient > _LOWEST else "<"
        ax.plot(max(quotient, _LOWEST), row, marker, color=colour, markersize=8)
        cells.append(texts)
    _canvas.write_columns(ax, ["value", "limit"], cells, ["black", GREY])
    ax.text(1, -0.8, "limit", color=GREY, ha="center", va="bottom")
    ax.set_yticks(range(len(order)), order)
    ax.set(ylim=(len(order) - 0.5, -0.6), xlabel="value / limit (log scale)")
    ax.grid(axis="y", color=GREY, alpha=0.25)
    ax.set_title(title, pad=20)
    _canvas.tick_units(ax, "{:g}×".format)
    words = "; ".join(f"{key} {value}, limit {limit}" for key, (_, value, limit) in rows.items())
    _canvas.finish(ax, "Dot chart", f"a dashed line at 1×; {len(rows)} dots: {words}")


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
