"""What bounds a program: the roof over its rate, and the memory that it takes."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from helpers import _input, units
from helpers.plotting._canvas import BLUE, GREEN, GREY, RED, canvas, finish, tick_units

_DASHES = (0, (4, 3))  # for expected sizes: closer than those of a curve


def roofline(
    points: Mapping[str, tuple[float, float]],
    *,
    compute: float | Mapping[str, float],
    bandwidth: float | Mapping[str, float] | None = None,
    title: str,
) -> None:
    """How fast each workload ran, under the limits of the computer.

    ``points`` maps a name to (intensity in FLOP/B, which is exact, and the rate it reached in
    FLOP/s). The roof is ``compute`` (FLOP/s) or intensity times ``bandwidth`` (B/s), whichever is
    lower; without a bandwidth it is flat. Each of the two may also map names to rates, such as
    those of several dtypes or caches: the first one makes the roof, the others are thin lines.
    The two sides of the ridge are shaded, and a line joins each point to the roof at its intensity.
    Both axes are logarithmic. Williams et al., "Roofline", 2009.
    """
    _input.filled("points", points, what="workload")
    for key, point in points.items():
        if len(point) != 2:
            raise ValueError(f"points[{key!r}] must be (intensity, rate), but got {point!r}")
        _input.each(_input.positive, f"points[{key!r}]", point, what="a rate or intensity")
    flats = _rates("compute", compute, "peak", "FLOP")
    slopes = _rates("bandwidth", bandwidth, "memory", "B") if bandwidth else {}
    peak, memory = next(iter(flats.values())), next(iter(slopes.values()), math.inf)
    ridge = peak / memory
    # A close neighbour on the right leaves no room there: such a name is written on the left.
    crowded = {
        key
        for key, (intensity, rate) in points.items()
        for other, height in points.values()
        if intensity < other < 2.5 * intensity and rate / 4 < height < 4 * rate
    }
    room = {key: 40 if key in crowded else 3 for key in points}  # to the left, for the name
    low = min(intensity / room[key] for key, (intensity, _) in points.items())
    low = min(low, ridge / 3) if slopes else low
    high = max(12 * ridge, *(40 * intensity for intensity, _ in points.values()))
    bottom = min(rate for _, rate in points.values()) / 3
    bottom = min(bottom, low * memory / 3)

    ax = canvas(height=4.0)
    for index, (key, rate) in enumerate(flats.items()):
        style = {"color": RED, "linewidth": 1 if index else 2, "linestyle": "--" if index else "-"}
        ax.plot([rate / memory if slopes else low, high], [rate] * 2, **style)
        words = f"{key}: {units.rate(rate, 'FLOP')}"
        ax.annotate(words, (high, rate), (-4, 3), textcoords="offset points", color=RED, ha="right")
    top = max(flats.values())
    for index, (key, rate) in enumerate(slopes.items()):
        style = {"color": RED, "linewidth": 1 if index else 2, "linestyle": "--" if index else "-"}
        ax.plot([low, top / rate], [low * rate, top], **style)
        words = f"{key}: {units.rate(rate, 'B')}"
        # Several names have to keep apart: the first is on the right of its line, the others left.
        right = len(slopes) > 1 and not index
        start = ridge / 20 if right else max(top / rate / 3, 3 * low)
        place = {"ha": "left", "va": "top"} if right else {"ha": "right", "va": "bottom"}
        shift = (8, -4) if right else (-10, 6)
        place |= {"textcoords": "offset points", "color": RED}
        ax.annotate(words, (start, start * rate), shift, **place)
    marks = [_roof_words(flats, slopes, ridge)]
    if slopes:
        ax.axvspan(low, ridge, color=BLUE, alpha=0.07, linewidth=0)
        ax.axvspan(ridge, high, color=GREEN, alpha=0.07, linewidth=0)
        ax.plot([ridge] * 2, [bottom, peak], color=GREY, linestyle="--", linewidth=1.2, zorder=0)
        for words, side, shift in (("memory-bound", "right", -5), ("compute-bound", "left", 5)):
            place = {"textcoords": "offset points", "ha": side, "va": "bottom", "color": GREY}
            ax.annotate(words, (ridge, bottom), (shift, 4), **place)
        words = f"ridge: {units.number(ridge)} FLOP/B"
        place = {"textcoords": "offset points", "ha": "left", "va": "bottom", "color": GREY}
        ax.annotate(words, (ridge, bottom), (5, 20), **place)
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, top * 3), title=title)
    drops = _drops(points, ax)
    for key, (intensity, rate) in points.items():
        roof = min(peak, intensity * memory)
        share = units.percent(rate / roof)
        ax.plot([intensity] * 2, [rate, roof], color=GREY, linewidth=1, zorder=1)
        ax.plot([intensity], [rate], "o", color=BLUE, markersize=7)
        # The name is level with its point, but keeps clear of a roof that is near.
        height = "top" if rate > 0.5 * roof else "center"
        if key in crowded and intensity < ridge:
            height = "bottom"
        ax.annotate(
            f"{key}, {share.lstrip('~')}" if slopes else key,
            (intensity, rate),
            (-8 if key in crowded else 8, (0 if height == "center" else -3) - drops[key]),
            textcoords="offset points",
            ha="right" if key in crowded else "left",
            va=height,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.7},
        )
        marks.append(
            f"{key} at {intensity:.3g} FLOP/B: {units.rate(rate, 'FLOP')}, {share} of the roof"
        )
    ax.set(xlabel="arithmetic intensity in FLOP/B (log scale)", ylabel="rate (log scale)")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter("")
    ax.yaxis.set_major_formatter(lambda value, _: units.rate(value, "FLOP").lstrip("~"))
    ax.yaxis.set_minor_formatter("")
    finish(ax, "Roofline", "; ".join(marks))


def _drops(points: Mapping[str, tuple[float, float]], ax: Axes) -> dict[str, float]:
    """How far below its point each name goes, in typographic points, to clear the one above it."""
    drops, written = {}, []
    for key, point in sorted(points.items(), key=lambda item: -item[1][1]):
        height = ax.transData.transform(point)[1] * 72 / ax.figure.dpi
        level = min([height, *(y - 12 for x, y in written if 0.8 < point[0] / x < 1.25)])
        drops[key] = height - level
        written.append((point[0], level))
    return drops


def _rates(argument: str, rates: float | Mapping[str, float], name: str, unit: str) -> dict:
    """``rates`` as a mapping, in which a single one has the ``name``."""
    named = rates if isinstance(rates, Mapping) else {name: rates}
    values = _input.each(_input.positive, argument, named, what=f"a rate in {unit}/s")
    return dict(zip(named, values, strict=True))


def _roof_words(flats: Mapping[str, float], slopes: Mapping[str, float], ridge: float) -> str:
    flat, *lower = (units.rate(rate, "FLOP") for rate in flats.values())
    if not slopes:
        return f"a roof that is flat at {flat}"
    slope, *steeper = (units.rate(rate, "B") for rate in slopes.values())
    words = (
        f"a roof that rises with {slope} and is flat at {flat} from {units.number(ridge)} FLOP/B on"
    )
    others = zip([*flats][1:] + [*slopes][1:], lower + steeper, strict=True)
    return "; ".join([words, *(f"a thin line, {key}, of {rate}" for key, rate in others)])


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
        raise ValueError(f"{argument} must hold two or more (seconds, bytes), but got {points!r}")
    times, sizes = zip(*points, strict=True)
    times = _input.each(_input.number, f"time of {argument}", times, what="a time in seconds")
    if times != sorted(times):
        raise ValueError(f"{argument} must be in order of time, but got {times}")
    return times, _input.each(_input.not_negative, f"size of {argument}", sizes, what="bytes")
