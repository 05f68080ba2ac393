"""What bounds a program: the roof over its rate, and the memory that it takes."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from helpers import _input, units
from helpers.plotting._canvas import BLUE, GREEN, GREY, RED, canvas, finish, tick_units

_DASHES = (0, (4, 3))  # of what is expected: closer than those of a curve


def roofline(
    points: Mapping[str, tuple[float, float]],
    *,
    compute: float,
    bandwidth: float,
    title: str,
    ax: Axes | None = None,
) -> str | None:
    """How fast each workload ran, under the two ceilings of the computer.

    ``points`` maps a name to (intensity in FLOP/B, which is exact, and the rate it reached in
    FLOP/s). The roof is ``compute`` (FLOP/s) or intensity times ``bandwidth`` (B/s), whichever is
    lower. Both axes are logarithmic. Williams et al., "Roofline", 2009.
    """
    _input.filled("points", points, what="workload")
    for key, point in points.items():
        if len(point) != 2:
            raise ValueError(f"points[{key!r}] must be (intensity, rate), but {point!r} came")
        _input.each(_input.positive, f"points[{key!r}]", point, what="a rate or intensity")
    _input.positive("compute", compute, what="a rate in FLOP/s")
    _input.positive("bandwidth", bandwidth, what="a rate in B/s")
    ridge = compute / bandwidth
    # A neighbour close by on the right takes the room there: such a name stands on the left.
    crowded = {
        key
        for key, (intensity, rate) in points.items()
        for other, height in points.values()
        if intensity < other < 2.5 * intensity and rate / 4 < height < 4 * rate
    }
    room = {key: 8 if key in crowded else 3 for key in points}  # to the left, for the name
    low = min(ridge / 3, *(intensity / room[key] for key, (intensity, _) in points.items()))
    high = max(ridge, *(intensity for intensity, _ in points.values())) * 5
    bottom = min(low * bandwidth, *(rate for _, rate in points.values())) / 3
    written = max(ridge / 3, 3 * low)  # where there is room to the left
    figure, ax = canvas(ax, height=4.0)
    ax.plot([low, ridge, high], [low * bandwidth, compute, compute], color=RED, linewidth=2)
    ax.plot([ridge] * 2, [bottom, compute], color=GREY, linestyle="--", linewidth=1.2, zorder=0)
    ax.annotate(
        f"arithmetic: {units.rate(compute, 'FLOP')}", (high, compute), (-4, 16), color=RED,
        textcoords="offset points", ha="right", va="bottom",
    )  # fmt: skip
    ax.annotate(
        f"memory: {units.rate(bandwidth, 'B')}", (written, written * bandwidth), (-10, 6),
        color=RED, textcoords="offset points", ha="right", va="bottom",
    )  # fmt: skip
    marks = [
        f"a roof that rises with {units.rate(bandwidth, 'B')} and is flat at "
        f"{units.rate(compute, 'FLOP')} from {units.number(ridge)} FLOP/B on"
    ]
    for key, (intensity, rate) in points.items():
        ax.plot([intensity], [rate], "o", color=BLUE, markersize=7)
        share = rate / min(compute, intensity * bandwidth)
        # Beside its point, and off the roof where that is near.
        height = "top" if share > 0.5 else "center"
        if key in crowded and intensity < ridge:
            height = "bottom"
        ax.annotate(
            key, (intensity, rate), (-8 if key in crowded else 8, -3 * (height != "center")),
            textcoords="offset points", ha="right" if key in crowded else "left", va=height,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # over the dashes
        )  # fmt: skip
        marks.append(
            f"{key} at {intensity:.3g} FLOP/B: {units.rate(rate, 'FLOP')}, "
            f"{units.percent(share)} of the roof above it"
        )
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, compute * 3), title=title)
    ax.set(xlabel="arithmetic intensity in FLOP/B (log scale)", ylabel="rate (log scale)")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter("")
    ax.yaxis.set_major_formatter(lambda value, _: units.rate(value, "FLOP").lstrip("~"))
    ax.yaxis.set_minor_formatter("")
    return finish(figure, ax, "Roofline", "; ".join(marks))


def memory(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    xlabel: str = "time",
    ylabel: str = "bytes in use",
    expected: Mapping[str, float] | None = None,
    ax: Axes | None = None,
) -> str | None:
    """How many bytes were in use: a line per entry of ``curves``, which holds until it changes.

    A curve is a sequence of (seconds, bytes), at least two, in order of time. ``expected`` names
    sizes, each drawn as a dashed line. What lies above the picture says which line is which, so
    that nothing covers a curve.
    """
    _input.filled("curves", curves, what="curve")
    figure, ax = canvas(ax, height=3.0)
    marks = []
    for index, (key, points) in enumerate(curves.items()):
        xs, sizes = _curve(f"curves[{key!r}]", points)
        colour, dashes = ((BLUE, "-"), (RED, "--"), (GREEN, ":"))[index % 3]
        ax.step(xs, sizes, where="post", color=colour, linestyle=dashes, linewidth=1.8, label=key)
        ax.fill_between(xs, sizes, step="post", color=colour, alpha=0.12)
        values = units.size(sizes[0]), units.size(max(sizes)), units.size(sizes[-1])
        marks.append(f"{key}: first {values[0]}, highest {values[1]}, last {values[2]}")
    for key, size in (expected or {}).items():
        _input.not_negative(f"expected[{key!r}]", size, what="bytes")
        ax.axhline(size, color=GREY, linestyle=_DASHES, linewidth=1.2, label=key)
        marks.append(f"a dashed line, {key}, at {units.size(size)}")
    lines = len(ax.get_legend_handles_labels()[0])
    if lines > 1:
        ax.legend(
            frameon=False, loc="lower center", bbox_to_anchor=(0.5, 0.98), ncols=min(lines, 3)
        )
    ax.set_title(title, pad=6 if lines == 1 else 10 + 16 * math.ceil(lines / 3))
    ax.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, ax.get_ylim()[1] * 1.05))
    tick_units(ax, units.seconds)
    ax.yaxis.set_major_formatter(lambda value, _: units.size(value).lstrip("~"))
    return finish(figure, ax, "Memory curve", "; ".join(marks))


def _curve(argument: str, points: Sequence[tuple[float, float]]) -> tuple[list, list]:
    if len(points) < 2 or any(len(point) != 2 for point in points):
        raise ValueError(f"{argument} must hold two or more (seconds, bytes), but {points!r} came")
    xs, sizes = zip(*points, strict=True)
    xs = _input.each(_input.number, f"x of {argument}", xs, what="a time in seconds")
    if xs != sorted(xs):
        raise ValueError(f"{argument} must be in order of time, but {xs} came")
    return xs, _input.each(_input.not_negative, f"size of {argument}", sizes, what="bytes")
