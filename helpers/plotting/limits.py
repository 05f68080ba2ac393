"""What bounds a program: the roof over its rate, and the memory that it takes."""

import math
from collections.abc import Mapping, Sequence

from helpers import _input, units
from helpers.plotting._canvas import BLUE, GREEN, GREY, RED, canvas, finish, tick_units

_DASHES = (0, (4, 3))  # for expected sizes: closer than those of a curve


def roofline(
    points: Mapping[str, tuple[float, float]], *, compute: float, bandwidth: float, title: str
) -> None:
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
    # A close neighbour on the right leaves no room there: such a name is written on the left.
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
    slope = max(ridge / 3, 3 * low)  # where there is room for the slope's name on the left

    ax = canvas(height=4.0)
    above = {"textcoords": "offset points", "color": RED, "ha": "right", "va": "bottom"}
    flat_name, slope_name = units.rate(compute, "FLOP"), units.rate(bandwidth, "B")
    ax.plot([low, ridge, high], [low * bandwidth, compute, compute], color=RED, linewidth=2)
    ax.plot([ridge] * 2, [bottom, compute], color=GREY, linestyle="--", linewidth=1.2, zorder=0)
    ax.annotate(f"arithmetic: {flat_name}", (high, compute), (-4, 16), **above)
    ax.annotate(f"memory: {slope_name}", (slope, slope * bandwidth), (-10, 6), **above)
    marks = [
        f"a roof that rises with {slope_name} and is flat at {flat_name} "
        f"from {units.number(ridge)} FLOP/B on"
    ]
    for key, (intensity, rate) in points.items():
        share = rate / min(compute, intensity * bandwidth)
        ax.plot([intensity], [rate], "o", color=BLUE, markersize=7)
        # The name is level with its point, but keeps clear of a roof that is near.
        height = "top" if share > 0.5 else "center"
        if key in crowded and intensity < ridge:
            height = "bottom"
        ax.annotate(
            key,
            (intensity, rate),
            (-8 if key in crowded else 8, 0 if height == "center" else -3),
            textcoords="offset points",
            ha="right" if key in crowded else "left",
            va=height,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # over the dashes
        )
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
    finish(ax, "Roofline", "; ".join(marks))


def memory(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    xlabel: str = "time",
    ylabel: str = "bytes in use",
    expected: Mapping[str, float] | None = None,
) -> None:
    """How many bytes were in use: a line per entry of ``curves``, which holds until it changes.

    A curve is a sequence of (seconds, bytes), at least two, in order of time. ``expected`` names
    sizes in bytes, each drawn as a dashed line. The legend is above the picture, where it covers
    no curve.
    """
    _input.filled("curves", curves, what="curve")
    ax = canvas(height=3.0)
    marks = []
    for index, (key, points) in enumerate(curves.items()):
        times, sizes = _curve(f"curves[{key!r}]", points)
        colour, dashes = ((BLUE, "-"), (RED, "--"), (GREEN, ":"))[index % 3]
        ax.step(
            times, sizes, where="post", color=colour, linestyle=dashes, linewidth=1.8, label=key
        )
        ax.fill_between(times, sizes, step="post", color=colour, alpha=0.12)
        first, highest, last = map(units.size, (sizes[0], max(sizes), sizes[-1]))
        marks.append(f"{key}: first {first}, highest {highest}, last {last}")
    for key, size in (expected or {}).items():
        _input.not_negative(f"expected[{key!r}]", size, what="bytes")
        ax.axhline(size, color=GREY, linestyle=_DASHES, linewidth=1.2, label=key)
        marks.append(f"a dashed line, {key}, at {units.size(size)}")
    lines = len(ax.get_legend_handles_labels()[0])
    if lines > 1:
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.98)}
        ax.legend(frameon=False, ncols=min(lines, 3), **place)
    ax.set_title(title, pad=6 if lines == 1 else 10 + 16 * math.ceil(lines / 3))
    ax.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, ax.get_ylim()[1] * 1.05))
    tick_units(ax, units.seconds)
    ax.yaxis.set_major_formatter(lambda value, _: units.size(value).lstrip("~"))
    finish(ax, "Memory curve", "; ".join(marks))


def _curve(argument: str, points: Sequence[tuple[float, float]]) -> tuple[list, list]:
    if len(points) < 2 or any(len(point) != 2 for point in points):
        raise ValueError(f"{argument} must hold two or more (seconds, bytes), but {points!r} came")
    times, sizes = zip(*points, strict=True)
    times = _input.each(_input.number, f"time of {argument}", times, what="a time in seconds")
    if times != sorted(times):
        raise ValueError(f"{argument} must be in order of time, but {times} came")
    return times, _input.each(_input.not_negative, f"size of {argument}", sizes, what="bytes")
