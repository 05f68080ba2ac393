"""Two measures of the same things: one along each axis."""

from collections.abc import Mapping

from helpers import _input
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREY


def points(
    values: Mapping[str, tuple[float, float]],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    joined: bool = False,
) -> None:
    """A labelled dot for each entry of ``values``, which maps a name to (x, y), zero or more.

    Both axes are linear and begin at zero. The values are printed as they are, without the mark of
    a measurement, so they come from a recording. ``joined``: a line joins the dots in their order.
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
    marks = "; ".join(f"{key} at ({x:,.1f}, {y:,.0f})" for key, (x, y) in values.items())
    kind = "Dots joined by a line" if joined else "Dots"
    _canvas.finish(ax, kind, f"{len(values)} dots: {marks}")
