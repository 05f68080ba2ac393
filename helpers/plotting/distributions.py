"""Values side by side: a histogram, bars, every sample of several groups, pictures."""

import statistics
from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREEN, GREY, ORANGE, RED


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
    intervals: Mapping[str, tuple[float, float]] | None = None,
) -> None:
    """One horizontal bar per entry of ``values``, first on top, with its value.

    On a log axis, which has no zero to begin at, a dot takes the bar's place. Values are in what
    ``unit`` prints: positive on a log axis, else zero or more. ``intervals`` maps some of the names
    to a lowest and a highest value, which a line joins.
    """
    check = _input.positive if log else _input.not_negative
    lengths = _input.each(check, "values", values, what="the length of a bar")
    ax = _canvas.canvas(height=1.1 + 0.38 * len(lengths))
    if log:
        ax.plot(lengths, list(values), "o", color=BLUE, markersize=8)
        ax.set_ylim(-0.6, len(lengths) - 0.4)
        ax.grid(axis="y", color=GREY, alpha=0.25)
    else:
        ax.barh(list(values), lengths, color=BLUE)
    for key, (low, high) in (intervals or {}).items():
        ax.plot([low, high], [key, key], color=BLUE, linewidth=1.5)
    for key, length in values.items():
        end = max(length, *(intervals or {}).get(key, (length, length)))
        ax.annotate(unit(length), (end, key), (7, 0), textcoords="offset points", va="center")
    ax.invert_yaxis()
    if log:
        ax.set(xscale="log", xlim=(min(lengths) / 3, max(lengths) * 6))
    else:
        ax.set_xlim(0, max(lengths) * 1.25 or 1)
    ax.set(title=title, xlabel=f"{xlabel} (log scale)" if log else xlabel)
    _canvas.tick_units(ax, unit)
    words = {key: f"{key} {unit(length)}" for key, length in values.items()}
    for key, (low, high) in (intervals or {}).items():
        words[key] += f" from {unit(low)} to {unit(high)}"
    marks = "; ".join(words.values())
    kind, shape = ("Dot chart", "dots") if log else ("Bar chart", "bars")
    _canvas.finish(ax, kind, f"{len(lengths)} {shape}: {marks}")


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


def stacked_bars(
    rows: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    xlabel: str,
    unit: _canvas.Unit,
    limit: float | None = None,
) -> None:
    """A horizontal bar per row, made of its parts, with their sum after it.

    ``rows`` maps a name to its parts, zero or more each; a part has one colour in all rows.
    ``unit`` prints a value. A ``limit`` is drawn as a dashed line.
    """
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    colours = dict(zip(parts, [BLUE, ORANGE, GREEN, RED, GREY, "#CC79A7"], strict=False))
    ax = _canvas.canvas(height=1.5 + 0.38 * len(rows))
    marks, named = [], set()
    for place, (key, row) in enumerate(rows.items()):
        end = 0.0
        for part, size in row.items():
            _input.not_negative(f"rows[{key!r}][{part!r}]", size, what="the length of a part")
            label = None if part in named else part
            ax.barh(place, size, left=end, color=colours[part], edgecolor="white", label=label)
            named.add(part)
            end += size
        ax.annotate(unit(end), (end, place), (5, 0), textcoords="offset points", va="center")
        shown = ", ".join(f"{part} {unit(size)}" for part, size in row.items())
        marks.append(f"{key}: {shown}; in all {unit(end)}")
    if limit is not None:
        ax.axvline(limit, color=RED, linestyle="--", linewidth=1.2)
        marks.append(f"a dashed line at {unit(limit)}")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, ax.get_xlim()[1] * 1.1), xlabel=xlabel)
    ax.set_title(title, pad=10 + 16 * -(-len(parts) // 4))
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.99)}
    ax.legend(frameon=False, ncols=min(len(parts), 4), fontsize=9, **place)
    _canvas.tick_units(ax, unit)
    _canvas.finish(ax, "Stacked bars", ". ".join(marks))


def intervals(
    rows: Mapping[str, tuple[float, float, float]],
    *,
    floor: float,
    title: str,
    xlabel: str,
) -> None:
    """A forest plot: for each row a ratio and its confidence interval.

    ``rows`` maps a name to (ratio, lower end, upper end), all positive. A grey band around 1 shows
    the differences of at most ``floor``, a fraction, that are not reported. A row whose interval is
    outside of the band is blue if it is lower (faster) and red if it is higher (slower); all others
    are black.
    """
    ax = _canvas.canvas(height=1.2 + 0.45 * len(rows))
    low, high = 1 / (1 + floor), 1 + floor
    ax.axvspan(low, high, color=GREY, alpha=0.3, linewidth=0)
    ax.axvline(1, color=GREY, linestyle="--", linewidth=1.2)
    marks = [f"a grey band from {low:.3f} to {high:.3f}"]
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
    axis is logarithmic, so a line is longer, the farther the ratio, written next to it, is from 1.
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


def profiler_shares(
    rows: Mapping[str, Sequence[float]], *, without: float, title: str, xlabel: str
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
            ax.plot([without, own], [row, row], **effect, label="observer effect" * first or None)
            error = {"color": RED, "linewidth": 6, "zorder": 2, "solid_capstyle": "butt"}
            ax.plot([own, reported], [row, row], **error, label="error" * first or None)
            dot = {"color": "white", "markeredgecolor": BLUE, "markersize": 9, "zorder": 3}
            ax.plot(own, row, "o", **dot, label="in the profiled run" * first or None)
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
