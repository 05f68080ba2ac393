"""Values side by side: a histogram, bars, every sample of several groups, pictures."""

import statistics
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from torch import Tensor

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
        (4, -4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        color=RED,
    )
    ax.set(xscale="log", yscale="log", ylim=(0.7, None), title=title)
    ax.set(xlabel="time of one call (log scale)", ylabel="number of samples (log scale)")
    _canvas.tick_units(ax, units.seconds)
    smallest, middle, largest = map(units.seconds, (low, median, high))
    marks = f"{len(values)} samples in 40 bins: "
    marks += f"smallest {smallest}, median {middle}, largest {largest}"
    _canvas.finish(ax, "Histogram", marks)


def bars(
    values: Mapping[str, float],
    *,
    title: str,
    xlabel: str,
    unit: _canvas.Unit = units.seconds,
    log: bool = True,
    ax: Axes | None = None,
) -> str | None:
    """One horizontal bar per entry of ``values``, first on top, with its value.

    On a log axis, which has no zero to begin at, a dot takes the bar's place. Values are in what
    ``unit`` prints: positive on a log axis, else zero or more. If an ``ax`` is
    given, nothing is shown: the alt text is returned, for the caller to ``show`` with the figure.
    """
    check = _input.positive if log else _input.not_negative
    lengths = _input.each(check, "values", values, what="the length of a bar")
    panel = ax or _canvas.canvas(height=1.1 + 0.38 * len(lengths))
    if log:
        panel.plot(lengths, list(values), "o", color=BLUE, markersize=8)
        panel.set_ylim(-0.6, len(lengths) - 0.4)
        panel.grid(axis="y", color=GREY, alpha=0.25)
    else:
        panel.barh(list(values), lengths, color=BLUE)
    for key, length in values.items():
        panel.annotate(unit(length), (length, key), (7, 0), textcoords="offset points", va="center")
    panel.invert_yaxis()
    if log:
        panel.set(xscale="log", xlim=(min(lengths) / 3, max(lengths) * 6))
    else:
        panel.set_xlim(0, max(lengths) * 1.25 or 1)
    panel.set(title=title, xlabel=f"{xlabel} (log scale)" if log else xlabel)
    _canvas.tick_units(panel, unit)
    marks = "; ".join(f"{key} {unit(length)}" for key, length in values.items())
    kind, shape = ("Dot chart", "dots") if log else ("Bar chart", "bars")
    description = _canvas.describe(panel, kind, f"{len(lengths)} {shape}: {marks}")
    return description if ax else _canvas.show(panel.figure, description)


def bar_rows(
    rows: Mapping[str, tuple[Mapping[str, float], _canvas.Unit]],
    *,
    title: str,
) -> None:
    """Several measures of the same things: a row of bars for each measure, one below the other.

    ``rows`` maps the name of a measure to its values, zero or more, and the function that prints
    one of them. All rows have the same keys, such as the layers of a model, in the same order; each
    row has its own linear scale, so only bars of the same row can be compared.
    """
    keys = list(next(iter(rows.values()))[0])
    figure = _canvas.sheet(7.2, 0.6 + 1.05 * len(rows))
    marks = []
    for index, (name, (values, unit)) in enumerate(rows.items()):
        heights = list(values.values())
        ax = figure.add_subplot(len(rows), 1, index + 1)
        colours = [BLUE if height < max(heights) else RED for height in heights]
        drawn = ax.bar(keys, heights, color=colours, width=0.6)
        ax.bar_label(drawn, [unit(height) for height in heights], padding=2, fontsize=9)
        ax.set(ylim=(0, max(heights) * 1.45 or 1), yticks=[])
        ax.set_ylabel(name, rotation=0, ha="right", va="center")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="x", length=0, labelbottom=index == len(rows) - 1)
        shown = [f"{key} {unit(height)}" for key, height in values.items()]
        marks.append(f"{name}: {', '.join(shown)}")
    figure.suptitle(title)
    _canvas.show(
        figure, f"{len(rows)} rows of {len(keys)} bars. Title: {title}. {'; '.join(marks)}."
    )


def intervals(
    rows: Mapping[str, tuple[float, float, float]],
    *,
    null: tuple[float, float],
    title: str,
    xlabel: str,
) -> None:
    """A forest plot: for each row a ratio and its confidence interval, beside an A/A test's.

    ``rows`` maps a name to (ratio, lower end, upper end), all positive. ``null`` is the interval
    that the same procedure gave where nothing had changed; it is drawn as a grey band. A row whose
    interval is outside of the band is blue if it is lower (faster) and red if it is higher
    (slower); all others are grey.
    """
    ax = _canvas.canvas(height=1.2 + 0.45 * len(rows))
    low, high = null
    ax.axvspan(low, high, color=GREY, alpha=0.3, linewidth=0)
    ax.axvline(1, color=GREY, linestyle="--", linewidth=1.2)
    marks = [f"a grey band, the A/A test, from {low:.3f} to {high:.3f}"]
    for row, (name, (ratio, start, end)) in enumerate(rows.items()):
        verdict = "faster" if end < low else "slower" if start > high else "no difference found"
        colour = {"faster": BLUE, "slower": RED}.get(verdict, "black")
        ax.plot([start, end], [row, row], color=colour, linewidth=2.5, solid_capstyle="butt")
        ax.plot([ratio], [row], "o", color=colour, markersize=8)
        ax.annotate(
            verdict, (ratio, row), (0, 9), textcoords="offset points", ha="center", color=colour
        )
        marks.append(f"{name}: {ratio:.3f}, from {start:.3f} to {end:.3f}, {verdict}")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(ylim=(len(rows) - 0.4, -0.8), title=title, xlabel=xlabel)
    ax.margins(x=0.08)
    _canvas.finish(ax, "Forest plot", "; ".join(marks))


def spread(
    groups: Mapping[str, Sequence[float]], *, title: str, xlabel: str, reference: float
) -> None:
    """Every ratio of each group as a dot on a log axis, its middle half as a bar, its median.

    Ratios are positive. A dashed line is drawn at ``reference``, such as at 1.
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


def dumbbells(
    rows: Mapping[str, tuple[float, float]], *, ends: tuple[str, str], title: str, xlabel: str
) -> None:
    """Two times of the same thing, such as with and without a profiler, joined by a line.

    ``rows`` maps a name to its two times in seconds, both positive; ``ends`` names the two. The
    axis is logarithmic, so a line is the longer the larger the ratio, which is written next to it.
    """
    _input.filled("rows", rows, what="pair of times")
    ax = _canvas.canvas(height=1.4 + 0.42 * len(rows))
    marks = []
    for row, (name, pair) in enumerate(rows.items()):
        first, second = _input.each(_input.positive, f"rows[{name!r}]", pair, what="a time")
        ax.plot([first, second], [row, row], color=GREY, linewidth=3, zorder=1)
        ax.plot(first, row, "o", color=BLUE, markersize=9, label=ends[0] if row == 0 else None)
        ax.plot(second, row, "D", color=RED, markersize=8, label=ends[1] if row == 0 else None)
        ratio = units.ratio(second / first)
        ax.annotate(
            ratio, (max(first, second), row), (9, 0), textcoords="offset points", va="center"
        )
        marks.append(f"{name}: {units.seconds(first)} to {units.seconds(second)}, {ratio}")
    ax.set_yticks(range(len(rows)), list(rows))
    low, high = min(map(min, rows.values())), max(map(max, rows.values()))
    ax.set(ylim=(len(rows) - 0.5, -0.5), xscale="log", xlim=(low / 1.5, high * 2.2))
    ax.set_title(title, pad=24)
    ax.set_xlabel(f"{xlabel} (log scale)")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 0.98), ncols=2, frameon=False)
    _canvas.tick_units(ax, units.seconds)
    _canvas.finish(ax, "Dumbbell chart", f"from {ends[0]} to {ends[1]}; {'; '.join(marks)}")


def images(pictures: Mapping[str, Tensor], *, title: str) -> None:
    """The ``pictures`` side by side: (1, H, W) in grey or (3, H, W) in colour.

    0 is black and 1 is white. A picture with values outside [0, 1], as a convolution gives, is
    stretched: its smallest value becomes black and its largest white.
    """
    figure = _canvas.sheet(2.6 * len(pictures), 2.9)
    marks = []
    for column, (key, picture) in enumerate(pictures.items()):
        pixels = picture.detach().float()
        low, high = pixels.min().item(), pixels.max().item()
        if low < 0 or high > 1:
            pixels = (pixels - low) / (high - low or 1)
        ax = figure.add_subplot(1, len(pictures), column + 1)
        ax.imshow(pixels.permute(1, 2, 0).numpy(), cmap="gray", vmin=0, vmax=1)
        ax.set(title=key, xticks=[], yticks=[])
        marks.append(f"{key}, {picture.shape[1]} × {picture.shape[2]} pixels")
    figure.suptitle(title)
    kind = "Picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    description = f"{kind}. Title: {title}. {'; '.join(marks)}."
    _canvas.show(figure, description, photograph=True)
