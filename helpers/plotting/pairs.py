"""Two values of each thing: before and after, reported and true, or one along each axis."""

from collections.abc import Mapping, Sequence

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREY, RED


def profiler_shares(
    rows: Mapping[str, Sequence[float]],
    *,
    without: float,
    title: str,
    xlabel: str = "share of the time",
) -> None:
    """The share that each profiler gives to one function, compared with the share without one.

    ``rows`` maps a profiler to the share in its profile and, if known, the share in the run that it
    watched. The line from the first to the second is the profiler's error, and the line from there
    to ``without``, the share in a run without a profiler, its observer effect.
    """
    _input.filled("rows", rows, what="profiler")
    ax = _canvas.canvas(height=1.5 + 0.42 * len(rows))
    ax.axvline(without, color="black", linestyle="--", linewidth=1.2, label="without a profiler")
    marks = [f"a dashed line, without a profiler, at {units.percent(without)}"]
    for row, (name, shares) in enumerate(rows.items()):
        reported, *watched = _input.each(
            _input.not_negative, f"rows[{name!r}]", shares, what="a share"
        )
        first = row == 0
        words = [f"in the profile {units.percent(reported)}"]
        for own in watched:
            effect = {"color": GREY, "linewidth": 3, "zorder": 1}
            ax.plot(
                [without, own], [row, row], **effect, label="observer effect" if first else None
            )
            error = {"color": RED, "linewidth": 6, "zorder": 2, "solid_capstyle": "butt"}
            ax.plot([own, reported], [row, row], **error, label="error" if first else None)
            dot = {"color": "white", "markeredgecolor": BLUE, "markersize": 9, "zorder": 3}
            ax.plot(own, row, "o", **dot, label="in the profiled run" if first else None)
            words.append(f"in the profiled run {units.percent(own)}")
        ax.plot(reported, row, "D", color=BLUE, markersize=7, zorder=4)
        if first:
            ax.plot([], [], "D", color=BLUE, markersize=7, label="in the profile")
        ax.annotate(
            units.percent(reported),
            (max(reported, without, *watched), row),
            (10, 0),
            textcoords="offset points",
            va="center",
        )
        marks.append(f"{name}: {', '.join(words)}")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, 1.25 * max(map(max, rows.values()))))
    ax.set_title(title, pad=42)
    ax.set_xlabel(xlabel)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    _canvas.tick_units(ax, units.percent)
    _canvas.finish(ax, "Dot chart", "; ".join(marks))


def points(
    values: Mapping[str, tuple[float, float]],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    joined: bool = False,
    printed: tuple[_canvas.Unit, _canvas.Unit] | None = None,
) -> None:
    """A labelled dot for each entry of ``values``, which maps a name to (x, y), zero or more.

    Both axes are linear and begin at zero. ``printed`` holds the functions that print an x and a y;
    without it, the values are printed as they are, without the mark of a measurement, so they come
    from a recording. ``joined``: a line joins the dots in their order.
    """
    _input.filled("values", values, what="point")
    for key, pair in values.items():
        _input.each(_input.not_negative, f"values[{key!r}]", pair, what="a coordinate")
    ax = _canvas.canvas(height=3.4)
    if joined:
        ax.plot(*zip(*values.values(), strict=True), color=GREY, linewidth=1.2, zorder=1)
    for key, (x, y) in values.items():
        ax.plot(x, y, "o", color=BLUE, markersize=9)
        beside = (7, -9) if joined else (9, 0)  # below a line that rises
        ax.annotate(key, (x, y), beside, textcoords="offset points", va="center", fontsize=10)
    highest = [max(axis) for axis in zip(*values.values(), strict=True)]
    ax.set(xlim=(0, 1.2 * highest[0]), ylim=(0, 1.1 * highest[1]))
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    x_unit, y_unit = printed or ("{:,.1f}".format, "{:,.0f}".format)
    if printed:
        _canvas.tick_units(ax, x_unit)
        ax.yaxis.set_major_formatter(lambda value, _: _canvas.tick(y_unit(value)))
    marks = "; ".join(f"{key} at ({x_unit(x)}, {y_unit(y)})" for key, (x, y) in values.items())
    kind = "Dots joined by a line" if joined else "Dots"
    _canvas.finish(ax, kind, f"{len(values)} dots: {marks}")
