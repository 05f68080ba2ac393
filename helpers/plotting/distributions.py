"""How much values vary: a histogram, every sample of several groups, confidence intervals."""

import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREY, ORANGE, RED


def histogram(samples: Sequence[float], *, title: str) -> None:
    """How many of the ``samples`` (positive, in seconds) fall in each of 40 steps of a log axis.

    The counts have a log axis too, so that a single outlier shows.
    """
    values = _input.each(_input.positive, "samples", samples, what="a sample on a log axis")
    ax = _canvas.canvas(height=2.8)
    low, median, high = min(values), statistics.median(values), max(values)
    ax.hist(values, bins=np.geomspace(low, high * (1 + 1e-9), 41), color=BLUE)
    ax.axvline(median, color=RED, linewidth=1.5)
    ax.annotate(
        f"median {units.seconds(median)}",
        (median, 1),
        (0, 3),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        color=RED,
    )
    ax.set(xscale="log", yscale="log", ylim=(0.7, None))
    ax.set_title(title, pad=20)
    ax.set(xlabel="time of one call (log scale)", ylabel="number of samples (log scale)")
    _canvas.tick_units(ax, units.seconds)
    smallest, middle, largest = map(units.seconds, (low, median, high))
    marks = f"{len(values)} samples in 40 bins: "
    marks += f"smallest {smallest}, median {middle}, largest {largest}"
    _canvas.finish(ax, "Histogram", marks)


def spread(
    groups: Mapping[str, Sequence[float]],
    *,
    title: str,
    xlabel: str = "time of new / time of old",
    reference: float = 1,
) -> None:
    """Every ratio of each group as a dot on a log axis, its middle half as a bar, its median.

    Ratios are positive. A dashed line is drawn at ``reference``, such as at 1 for equal times.
    """
    samples = {
        key: _input.each(_input.positive, f"groups[{key!r}]", group, what="a sample on a log axis")
        for key, group in groups.items()
    }
    ax = _canvas.canvas(height=1.3 + 0.55 * len(samples))
    marks = []
    for row, (key, values) in enumerate(samples.items()):
        low, median, high = np.percentile(values, [25, 50, 75]).tolist()
        jitter = np.random.default_rng(0).uniform(-0.28, 0.28, len(values))
        ax.plot(values, row + jitter, ".", color=BLUE, alpha=0.45, markersize=5)
        ax.plot([low, high], [row, row], color=ORANGE, linewidth=7, solid_capstyle="butt")
        ax.plot([median], [row], "|", color=RED, markersize=22, markeredgewidth=2.5)
        marks.append(
            f"{key}: {len(values)} samples, median {units.ratio(median)}, "
            f"middle half {units.ratio(low)} to {units.ratio(high)}"
        )
    ax.axvline(reference, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
    marks.append(f"a dashed line at {reference:g}")
    ax.set_yticks(range(len(samples)), list(samples))
    ax.set(ylim=(len(samples) - 0.4, -0.6), xscale="log", title=title)
    ax.set_xlabel(f"{xlabel} (log scale)")
    _canvas.tick_units(ax, units.ratio)
    _canvas.finish(ax, "Strip chart", "; ".join(marks))


def intervals(
    rows: Mapping[str, tuple[float, tuple[float, float]]],
    *,
    floor: float,
    title: str,
    xlabel: str = "CPU time of new / CPU time of old",
) -> None:
    """A forest plot: for each row a ratio and its confidence interval.

    ``rows`` maps a name to what ``compare.mean_and_interval`` returns: a ratio and the two ends of
    its interval, all positive. A grey band around 1 shows
    the differences of at most ``floor``, a fraction, that are not reported. A row whose interval is
    outside of the band is blue if it is lower (faster) and red if it is higher (slower); all others
    are black.
    """
    ax = _canvas.canvas(height=1.2 + 0.45 * len(rows))
    low, high = 1 / (1 + floor), 1 + floor
    ax.axvspan(low, high, color=GREY, alpha=0.3, linewidth=0)
    ax.axvline(1, color=GREY, linestyle="--", linewidth=1.2)
    marks = [f"a grey band from {low:.3f} to {high:.3f}"]
    for row, (name, (ratio, (start, end))) in enumerate(rows.items()):
        verdict = "faster" if end < low else "slower" if start > high else "no difference found"
        colour = {"faster": BLUE, "slower": RED}.get(verdict, "black")
        ax.plot([start, end], [row, row], color=colour, linewidth=2.5, solid_capstyle="butt")
        ax.plot([ratio], [row], "o", color=colour, markersize=8)
        right = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        ax.annotate(verdict, (1, row), (5, 0), va="center", color=colour, **right)
        marks.append(f"{name}: {ratio:.3f}, from {start:.3f} to {end:.3f}, {verdict}")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(ylim=(len(rows) - 0.4, -0.8), title=title, xlabel=xlabel)
    ax.margins(x=0.08)
    _canvas.finish(ax, "Forest plot", "; ".join(marks))
