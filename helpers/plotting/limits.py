"""What bounds a program: the roof over its rate, and the memory that it takes."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from helpers import _input, units
from helpers.plotting._canvas import BLUE, GREEN, GREY, RED, canvas, finish, tick, tick_units

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
    low = min(intensity / 4 for intensity, _ in points.values())
    low = min(low, ridge / 10) if slopes else low
    high = max(12 * ridge, *(12 * intensity for intensity, _ in points.values()))
    bottom = min(rate for _, rate in points.values()) / (5 if slopes else 3)
    bottom = min(bottom, low * memory / 3)

    ax = canvas(height=4.0)
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, max(flats.values()) * 3))
    ax.set(xlabel="arithmetic intensity in FLOP/B (log scale)", ylabel="rate (log scale)")
    ax.set_title(title)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_major_formatter(lambda value, _: tick(units.rate(value, "FLOP")))
    ax.tick_params(which="minor", labelbottom=False, labelleft=False)
    ax.figure.draw_without_rendering()  # from now on, the place of a text is known,
    ax.figure.set_layout_engine("none")  # and stays

    grey = {"textcoords": "offset points", "va": "bottom", "color": GREY}
    written, drawn = [], []  # texts, and points in pixels, which no other text is to cover
    for index, (key, rate) in enumerate(flats.items()):
        drawn.append(_roof(ax, [rate / memory if slopes else low, high], [rate] * 2, index))
        words, place = f"{key}: {units.rate(rate, 'FLOP')}", grey | {"color": RED, "ha": "right"}
        written.append(ax.annotate(words, (high, rate), (-4, 3), **place))
    for index, (key, rate) in enumerate(slopes.items()):
        end = max(flats.values()) / rate
        line = _roof(ax, [low, end], [low * rate, end * rate], index)
        # Of several lines, the first has its name below it.
        side = -1 if len(slopes) > 1 and not index else 1
        dots = ax.transData.transform(list(points.values()))
        drawn += [line, _write_along(ax, f"{key}: {units.rate(rate, 'B')}", line, side, dots)]
    if slopes:
        ax.axvspan(low, ridge, color=BLUE, alpha=0.07, linewidth=0)
        ax.axvspan(ridge, high, color=GREEN, alpha=0.07, linewidth=0)
        (line,) = ax.plot(
            [ridge] * 2, [bottom, peak], color=GREY, linestyle="--", linewidth=1.2, zorder=0
        )
        drawn.append(_pixels(ax, line))
        words = f"ridge: {units.number(ridge)} FLOP/B"
        written += [
            ax.annotate("memory-bound", (ridge, bottom), (-5, 4), ha="right", **grey),
            ax.annotate("compute-bound", (ridge, bottom), (5, 4), ha="left", **grey),
            ax.annotate(words, (ridge, bottom), (5, 20), ha="left", **grey),
        ]
    marks, names = [_roof_words(flats, slopes, ridge)], {}
    for key, (intensity, rate) in points.items():
        roof = min(peak, intensity * memory)
        share = units.percent(rate / roof)
        (drop,) = ax.plot([intensity] * 2, [rate, roof], color=GREY, linewidth=1, zorder=1)
        drawn.append(_pixels(ax, drop))
        ax.plot([intensity], [rate], "o", color=BLUE, markersize=7)
        names[f"{key}, {share.lstrip('~')}" if slopes else key] = intensity, rate
        place = f"{float(f'{intensity:.3g}'):,g} FLOP/B"
        marks.append(f"{key} at {place}: {units.rate(rate, 'FLOP')}, {share} of the roof")
    _write_beside(ax, names, written, drawn)
    finish(ax, "Roofline", "; ".join(marks))


def _roof(ax: Axes, x: list, y: list, index: int) -> np.ndarray:
    """Draw a line of the roof: the first one thick, the others thin. Returns its ``_pixels``."""
    style = {"linewidth": 1, "linestyle": "--"} if index else {"linewidth": 2}
    return _pixels(ax, *ax.plot(x, y, color=RED, **style))


def _pixels(ax: Axes, line: Line2D) -> np.ndarray:
    """A hundred points along a straight line of a chart with two log axes, in pixels."""
    return ax.transData.transform(np.geomspace(*line.get_xydata(), 100))


def _write_along(ax: Axes, words: str, line: np.ndarray, side: int, dots: np.ndarray) -> np.ndarray:
    """Write on a line, or below it with ``side`` -1, where no dot is near; all in pixels.

    Returns points along the text.
    """
    text = ax.text(0, 0, words, color=RED, ha="center", va="center", transform=None)
    text.set(rotation_mode="anchor")
    length = text.get_window_extent().width
    direction = (line[-1] - line[0]) / np.linalg.norm(line[-1] - line[0])
    offset = side * 17 * np.array([-direction[1], direction[0]])
    middle = max(
        (line[place] + offset for place in (50, 35, 65)),
        key=lambda point: min(np.linalg.norm(dots - point, axis=1)),
    )
    text.set(position=middle, rotation=np.degrees(np.arctan2(direction[1], direction[0])))
    return middle + np.linspace(-length / 2, length / 2, 50)[:, None] * direction


def _write_beside(
    ax: Axes, names: Mapping[str, tuple[float, float]], written: list[Text], drawn: list[np.ndarray]
) -> None:
    """Write each name beside its point, where it covers no other text, no point and no line.

    If there is no such place, it covers as little as possible. A line joins a point to a name that
    is farther away.
    """
    dots = {name: ax.transData.transform(point) for name, point in names.items()}
    taken = [text.get_window_extent() for text in written]
    taken += [Bbox.from_extents(*(dot - 9), *(dot + 9)) for dot in dots.values()]
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.7}
    place = {"textcoords": "offset points", "va": "center", "bbox": white}
    sides = {10: "left", -10: "right", 0: "center"}
    offsets = [*itertools.product((10, -10), (0, -12, 12, -26, 26, -40, 40)), (0, -14), (0, 14)]
    for name, point in sorted(names.items(), key=lambda item: -item[1][1]):
        costs = {}
        for x, y in offsets:
            text = ax.annotate(name, point, (x, y), ha=sides[x], **place)
            box = text.get_window_extent()
            text.remove()
            away = {
                key: np.linalg.norm(dot.clip(*box.get_points()) - dot) for key, dot in dots.items()
            }
            unclear = abs(y) < 26 and min(away, key=away.get) != name
            outside = not (ax.bbox.contains(*box.min) and ax.bbox.contains(*box.max))
            crossed = sum(box.padded(4).count_contains(points) > 0 for points in drawn)
            cost = 100 * outside + 60 * box.count_overlaps(taken) + 15 * unclear + 14 * crossed
            costs[x, y] = cost + 0.3 * abs(y), box
        x, y = min(costs, key=lambda offset: costs[offset][0])
        taken.append(costs[x, y][1])
        leader = {"arrowstyle": "-", "color": GREY, "relpos": (0 if x > 0 else 1, 0.5)}
        far = {"arrowprops": leader} if abs(y) >= 26 else {}
        ax.annotate(name, point, (x, y), ha=sides[x], **place, **far)


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
        if len(curves) == 1:
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
    ax.yaxis.set_major_formatter(lambda value, _: tick(units.size(value)))
    finish(ax, "Memory curve", "; ".join(marks))


def _curve(argument: str, points: Sequence[tuple[float, float]]) -> tuple[list, list]:
    if len(points) < 2 or any(len(point) != 2 for point in points):
        raise ValueError(f"{argument} must hold two or more (seconds, bytes), but got {points!r}")
    times, sizes = zip(*points, strict=True)
    times = _input.each(_input.number, f"time of {argument}", times, what="a time in seconds")
    if times != sorted(times):
        raise ValueError(f"{argument} must be in order of time, but got {times}")
    return times, _input.each(_input.not_negative, f"size of {argument}", sizes, what="bytes")
