"""The pictures. Each function draws a figure of its own and shows it, or draws on a given ``ax``.

With every picture goes a sentence that says what it shows: title, axes, marks and values. It is
the picture's alt text, what a reader who cannot see it reads, and what the tests compare; measured
values in it carry the ``~`` mark of ``helpers.units``. A function that was given an ``ax`` shows
nothing and returns that sentence, for the caller to put together with others and ``show``.
"""

import base64
import html
import io
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from numbers import Real

import numpy as np
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator
from torch import Tensor

from helpers import units

# Okabe and Ito's palette, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#8C8C8C"
DOTS_PER_INCH = 144
SCREEN = 2 / 3  # shown at 96 dots an inch, so that a dense screen stays sharp
# Nesting levels from the outside in: the bar, and the ink that can be read on it.
_LEVELS = [(BLUE, "white"), (ORANGE, "black"), (GREEN, "black"), (RED, "black"), (GREY, "black")]

# The code of a line heat map: where it begins, in lengths of a full bar, its width, and what fits.
_CODE_LEFT, _CODE_WIDTH, _CODE_LETTERS = 1.45, 5.2, 84

Unit = Callable[[float], str]


def histogram(
    samples: Sequence[float],
    *,
    title: str,
    xlabel: str = "time of one call",
    unit: Unit = units.seconds,
    bins: int = 40,
    ax: Axes | None = None,
) -> str | None:
    """How many of the ``samples`` (positive) fall in each of ``bins`` equal steps of a log axis.

    The counts have a log axis too, so that a single outlier shows.
    """
    values = _numbers("samples", samples)
    figure, ax = _canvas(ax, height=2.8)
    low, high = min(values), max(values) * (1 + 1e-9)
    ax.hist(values, bins=np.geomspace(low, high, bins + 1), color=BLUE)
    median = statistics.median(values)
    ax.axvline(median, color=RED, linewidth=1.5)
    ax.annotate(
        f"median {unit(median)}", (median, 1), (4, -4), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", color=RED,
    )  # fmt: skip
    ax.set(xscale="log", yscale="log", ylim=(0.7, None), title=title)
    ax.set(xlabel=f"{xlabel} (log scale)", ylabel="number of samples (log scale)")
    _tick_units(ax, unit)
    marks = (
        f"{len(values)} samples in {bins} bins: smallest {unit(low)}, median {unit(median)}, "
        f"largest {unit(max(values))}"
    )
    return _finish(figure, ax, "Histogram", marks)


def bars(
    values: Mapping[str, float],
    *,
    title: str,
    xlabel: str,
    unit: Unit = units.seconds,
    log: bool = True,
    ax: Axes | None = None,
) -> str | None:
    """One horizontal bar per entry of ``values`` (positive), first on top, with its value."""
    lengths = _numbers("values", list(values.values()))
    figure, ax = _canvas(ax, height=1.1 + 0.38 * len(lengths))
    drawn = ax.barh(list(values), lengths, color=BLUE)
    ax.bar_label(drawn, [unit(length) for length in lengths], padding=4)
    ax.invert_yaxis()
    if log:
        ax.set(xscale="log", xlim=(min(lengths) / 3, max(lengths) * 6))
    else:
        ax.set_xlim(0, max(lengths) * 1.25)
    ax.set(title=title, xlabel=f"{xlabel} (log scale)" if log else xlabel)
    _tick_units(ax, unit)
    marks = "; ".join(f"{key} {unit(length)}" for key, length in values.items())
    return _finish(figure, ax, "Bar chart", f"{len(lengths)} bars: {marks}")


def spread(
    groups: Mapping[str, Sequence[float]],
    *,
    title: str,
    xlabel: str,
    unit: Unit = units.ratio,
    reference: float | None = None,
    ax: Axes | None = None,
) -> str | None:
    """Every sample of each group as a dot on a log axis, its middle half as a bar, its median.

    ``reference`` draws a dashed line, such as at 1 where the samples are ratios.
    """
    if not groups:
        raise ValueError("groups must hold at least one group of samples, but none came")
    samples = {key: _numbers(f"groups[{key!r}]", group) for key, group in groups.items()}
    figure, ax = _canvas(ax, height=1.3 + 0.55 * len(samples))
    marks = []
    for row, (key, values) in enumerate(samples.items()):
        low, median, high = np.percentile(values, [25, 50, 75]).tolist()
        jitter = np.random.default_rng(0).uniform(-0.28, 0.28, len(values))
        ax.plot(values, row + jitter, ".", color=BLUE, alpha=0.45, markersize=5)
        ax.plot([low, high], [row, row], color=ORANGE, linewidth=7, solid_capstyle="butt")
        ax.plot([median], [row], "|", color=RED, markersize=22, markeredgewidth=2.5)
        marks.append(
            f"{key}: {len(values)} samples, median {unit(median)}, "
            f"middle half {unit(low)} to {unit(high)}"
        )
    if reference is not None:
        ax.axvline(reference, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
        marks.append(f"a dashed line at {reference:g}")
    ax.set_yticks(range(len(samples)), list(samples))
    ax.set(ylim=(len(samples) - 0.4, -0.6), xscale="log", title=title)
    ax.set_xlabel(f"{xlabel} (log scale)")
    _tick_units(ax, unit)
    return _finish(figure, ax, "Strip chart", "; ".join(marks))


def timeline(
    tracks: Mapping[str, Sequence[tuple[float, float, str, int]]],
    *,
    title: str,
    xlabel: str = "time",
    unit: Unit = units.seconds,
    ax: Axes | None = None,
) -> str | None:
    """What ran when: a row for each track, first on top, time across, nested spans below.

    ``tracks`` maps the name of a track (a thread, a stream) to its spans, at least one, each
    ``(start, duration, label, depth)``: times in seconds from any common zero, depth 0 for the
    outermost. The picture's zero is the earliest start. As much of a label is written as fits; the
    text lists the outermost spans, the first twelve of each track, and counts the nested ones.
    """
    spans = {key: _spans(f"tracks[{key!r}]", track) for key, track in tracks.items()}
    if not spans:
        raise ValueError("tracks must hold at least one track, but none came")
    zero = min(start for track in spans.values() for start, *_ in track)
    end = max(start + duration for track in spans.values() for start, duration, *_ in track) - zero
    if not end > 0:
        raise ValueError("tracks must hold at least one span that lasts longer than 0 s")
    levels = [1 + max(depth for *_, depth in track) for track in spans.values()]
    figure, ax = _canvas(ax, height=1.0 + 0.3 * (sum(levels) + 0.6 * len(levels)))
    inches = ax.figure.get_figwidth() * 0.78  # what the track names leave for the time axis
    top, middles, marks = 0.0, [], []
    for (key, track), rows in zip(spans.items(), levels, strict=True):
        for index, (start, duration, label, depth) in enumerate(track):
            colour, ink = _LEVELS[depth % len(_LEVELS)]
            left, row = start - zero, top + depth
            # Every second span is a little lighter, so that neighbours can be told apart.
            alpha = 1 - 0.25 * (index % 2)
            ax.broken_barh([(left, duration)], (row, 0.9), color=colour, alpha=alpha, linewidth=0)
            letters = int((duration / end * inches - 0.06) / 0.066)
            if letters > 3:
                shown = label if len(label) <= letters else f"{label[: letters - 1]}…"
                middle = (left + duration / 2, row + 0.45)
                ax.text(*middle, shown, color=ink, fontsize=7.5, ha="center", va="center")
        outermost = [span for span in track if span[3] == 0]
        listed = ", ".join(
            f"{label} from {unit(start - zero)} for {unit(duration)}"
            for start, duration, label, _ in outermost[:12]
        )
        more = f", and {len(outermost) - 12} more" if len(outermost) > 12 else ""
        marks.append(
            f"{key}: {len(track)} span{'s' * (len(track) > 1)}, nested {rows} deep; "
            f"outermost: {listed or 'none'}{more}"
        )
        middles.append(top + rows / 2)
        top += rows + 0.6
        if len(middles) < len(spans):
            ax.axhline(top - 0.35, color=GREY, linewidth=0.6)
    ax.set_yticks(middles, list(spans))
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, end), ylim=(top - 0.5, -0.1), title=title, xlabel=xlabel)
    _tick_units(ax, unit)
    counted = f"{len(spans)} tracks over {unit(end)}"
    return _finish(figure, ax, "Timeline", f"{counted}. {'; '.join(marks)}")


def icicle(
    stacks: Mapping[tuple[str, ...], float],
    *,
    title: str,
    xlabel: str = "time",
    unit: Unit = units.seconds,
    rows: int = 10,
    ax: Axes | None = None,
) -> str | None:
    """Who called whom: each box is as wide as its whole time, with those it called below it.

    ``stacks`` maps each stack, outermost first (``("main", "forward", "conv2d")``), to its own
    ("self") weight, zero or more. The width of a box is its own weight plus all below it; the
    darker it is, the larger the part that is its own. Boxes stand in the order in which they first
    appear. ``rows`` limits the depth. A label is written where it fits; the text lists the first
    two rows, and follows the widest box down from the first.
    """
    if not isinstance(rows, int) or isinstance(rows, bool):
        raise TypeError(f"rows must be a whole number, but {rows!r} came")
    if rows < 1:
        raise ValueError(f"rows must be at least 1, but {rows} came")
    own, whole = _stack_weights(stacks)
    end = sum(weight for stack, weight in whole.items() if len(stack) == 1)
    depth = min(rows, max(map(len, whole)))
    figure, ax = _canvas(ax, height=1.1 + 0.32 * depth)
    inches = ax.figure.get_figwidth() * 0.94
    ends: dict[tuple[str, ...], float] = {}  # how far the boxes below each stack reach by now
    for stack, weight in whole.items():
        left = ends.get(stack[:-1], 0.0)
        ends[stack[:-1]], ends[stack] = left + weight, left
        if len(stack) > rows or weight < end / 5000:  # less than half a pixel
            continue
        share = own[stack] / weight
        colour = tuple(1 - (1 - np.array(to_rgb(BLUE))) * (0.12 + 0.88 * share))
        ax.add_patch(
            Rectangle((left, len(stack) - 1), weight, 1, facecolor=colour, edgecolor="white")
        )
        letters = int((weight / end * inches - 0.06) / 0.066)
        label = stack[-1] if len(stack[-1]) <= letters else f"{stack[-1][: letters - 1]}…"
        if letters > 3:
            ink = "white" if share > 0.85 else "black"
            middle = (left + weight / 2, len(stack) - 0.5)
            ax.text(*middle, label, color=ink, fontsize=7.5, ha="center", va="center")
    ax.set(xlim=(0, end), ylim=(depth, 0), title=title, xlabel=xlabel, ylabel="depth of call")
    ax.set_yticks(np.arange(depth) + 0.5, range(1, depth + 1))
    ax.tick_params(axis="y", length=0)
    _tick_units(ax, unit)
    return _finish(figure, ax, "Icicle chart", _icicle_marks(whole, depth, unit))


def line_heat_map(
    lines: Sequence[str],
    times: Mapping[int, float],
    *,
    title: str,
    first: int = 1,
    ax: Axes | None = None,
) -> str | None:
    """The source ``lines`` of a function, each on a ground the darker the more time it took.

    ``lines`` are numbered from ``first``; ``times`` maps line numbers to seconds, zero or more. A
    bar beside each line is its share of the sum. Lines without a time, such as comments, stay
    plain. Long lines are cut on the picture and whole in the text, which lists the timed ones.
    """
    total = _checked_lines(lines, times, first)
    figure, ax = _canvas(ax, height=0.75 + 0.19 * len(lines))
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    marks = []
    for row, line in enumerate(lines):
        code = line[indent:].rstrip()
        if first + row in times:
            share = times[first + row] / total
            colour = 1 - (1 - np.array(to_rgb(ORANGE))) * share
            ax.barh(row, _CODE_WIDTH, left=_CODE_LEFT, height=1, color=colour)
            ax.barh(row, share, height=0.7, color=BLUE)
            ax.text(_CODE_LEFT - 0.04, row, f"{share:.1%}", ha="right", va="center", size=7)
            marks.append(f"line {first + row}, {code.strip()}: {units.percent(share)}")
        shown = code if len(code) <= _CODE_LETTERS else f"{code[: _CODE_LETTERS - 1]}…"
        ax.text(_CODE_LEFT + 0.04, row, shown, va="center", family="monospace", size=7.5)
    ax.set(xlim=(0, _CODE_LEFT + _CODE_WIDTH), ylim=(len(lines) - 0.5, -0.5), title=title)
    ax.set_yticks(range(len(lines)), range(first, first + len(lines)))
    ax.tick_params(axis="y", length=0, labelsize=7.5)
    ax.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"], size=7.5)
    ax.spines["bottom"].set_bounds(0, 1)
    ax.set_xlabel("share of the time", loc="left")
    timed = f"{len(lines)} lines, of which {len(times)} with a time"
    return _finish(figure, ax, "Line heat map", f"{timed}: {'; '.join(marks)}")


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
    if not points:
        raise ValueError("points must hold at least one workload, but none came")
    for key, point in points.items():
        if len(point) != 2:
            raise ValueError(f"points[{key!r}] must be (intensity, rate), but {point!r} came")
        _numbers(f"points[{key!r}]", point)
    _numbers("compute", [compute])
    _numbers("bandwidth", [bandwidth])
    ridge = compute / bandwidth
    intensities = [intensity for intensity, _ in points.values()]
    low, high = min(ridge, *intensities) / 3, max(ridge, *intensities) * 5
    figure, ax = _canvas(ax, height=4.0)
    ax.plot([low, ridge, high], [low * bandwidth, compute, compute], color=RED, linewidth=2)
    ax.axvline(ridge, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
    ax.annotate(
        f"arithmetic: {units.rate(compute, 'FLOP')}", (high, compute), (-4, 16), color=RED,
        textcoords="offset points", ha="right", va="bottom",
    )  # fmt: skip
    ax.annotate(
        f"memory: {units.rate(bandwidth, 'B')}", (ridge / 3, compute / 3), (-10, 6), color=RED,
        textcoords="offset points", ha="right", va="bottom",
    )  # fmt: skip
    marks = [
        f"a roof that rises with {units.rate(bandwidth, 'B')} and is flat at "
        f"{units.rate(compute, 'FLOP')} from {units.number(ridge)} FLOP/B on"
    ]
    for key, (intensity, rate) in points.items():
        ax.plot([intensity], [rate], "o", color=BLUE, markersize=7)
        # A neighbour close by on the right takes the room there: write to the left, and higher.
        crowded = any(intensity < other < 2.5 * intensity for other in intensities)
        place = ((-6, 6), "right", "bottom") if crowded else ((8, -3), "left", "top")
        offset, side, height = place
        ax.annotate(
            key, (intensity, rate), offset, textcoords="offset points", ha=side, va=height,
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )  # fmt: skip
        share = rate / min(compute, intensity * bandwidth)
        marks.append(
            f"{key} at {intensity:.3g} FLOP/B: {units.rate(rate, 'FLOP')}, "
            f"{units.percent(share)} of the roof above it"
        )
    bottom = min(low * bandwidth, *(rate for _, rate in points.values())) / 3
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, compute * 3), title=title)
    ax.set(xlabel="arithmetic intensity in FLOP/B (log scale)", ylabel="rate (log scale)")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter("")
    ax.yaxis.set_major_formatter(lambda value, _: units.rate(value, "FLOP").lstrip("~"))
    ax.yaxis.set_minor_formatter("")
    return _finish(figure, ax, "Roofline", "; ".join(marks))


def memory(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    xlabel: str = "time",
    ylabel: str = "bytes in use",
    xunit: Unit = units.seconds,
    expected: Mapping[str, float] | None = None,
    where: str = "post",
    ax: Axes | None = None,
) -> str | None:
    """How many bytes were in use: a line per entry of ``curves``, which holds until it changes.

    A curve is a sequence of (x, bytes), at least two, with x increasing; x is in seconds, or in
    whatever ``xunit`` prints. A size holds until the next x (``where="post"``), or has held since
    the last (``"pre"``). ``expected`` names sizes, each drawn as a dashed line. What lies above the
    picture says which line is which, so that nothing covers a curve.
    """
    if not curves:
        raise ValueError("curves must hold at least one curve, but none came")
    if where not in ("post", "pre"):
        raise ValueError(f"where must be 'post' or 'pre', but {where!r} came")
    figure, ax = _canvas(ax, height=3.0)
    marks = []
    for index, (key, points) in enumerate(curves.items()):
        _check_curve(f"curves[{key!r}]", points)
        xs, sizes = zip(*points, strict=True)
        colour, dashes = ((BLUE, "-"), (RED, "--"), (GREEN, ":"))[index % 3]
        ax.step(xs, sizes, where=where, color=colour, linestyle=dashes, linewidth=1.8, label=key)
        ax.fill_between(xs, sizes, step=where, color=colour, alpha=0.12)
        values = units.size(sizes[0]), units.size(max(sizes)), units.size(sizes[-1])
        marks.append(f"{key}: first {values[0]}, highest {values[1]}, last {values[2]}")
    for key, size in (expected or {}).items():
        ax.axhline(size, color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label=key)
        marks.append(f"a dashed line, {key}, at {units.size(size)}")
    lines = len(ax.get_legend_handles_labels()[0])
    if lines > 1:
        ax.legend(
            frameon=False, loc="lower center", bbox_to_anchor=(0.5, 0.98), ncols=min(lines, 3)
        )
    ax.set_title(title, pad=6 if lines == 1 else 10 + 16 * math.ceil(lines / 3))
    ax.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, ax.get_ylim()[1] * 1.05))
    _tick_units(ax, xunit)
    ax.yaxis.set_major_formatter(lambda value, _: units.size(value).lstrip("~"))
    return _finish(figure, ax, "Memory curve", "; ".join(marks))


def images(pictures: Mapping[str, Tensor], *, title: str) -> None:
    """The ``pictures`` side by side: (1, H, W) in grey or (3, H, W) in colour.

    Values outside [0, 1], as a convolution gives, are stretched to fit for display.
    """
    if not pictures:
        raise ValueError("pictures must hold at least one picture, but none came")
    figure = Figure(figsize=(2.6 * len(pictures), 2.9), layout="constrained", dpi=DOTS_PER_INCH)
    marks = []
    for column, (key, picture) in enumerate(pictures.items()):
        if picture.dim() != 3 or picture.shape[0] not in (1, 3):
            shape = tuple(picture.shape)
            raise ValueError(f"pictures[{key!r}] must be (1, H, W) or (3, H, W), but {shape} came")
        pixels = picture.detach().float()
        if pixels.min() < 0 or pixels.max() > 1:
            pixels = (pixels - pixels.min()) / (pixels.max() - pixels.min())
        ax = figure.add_subplot(1, len(pictures), column + 1)
        ax.imshow(pixels.permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray")
        ax.set(title=key, xticks=[], yticks=[])
        marks.append(f"{key}, {picture.shape[1]} × {picture.shape[2]} pixels")
    figure.suptitle(title)
    show(figure, f"{len(pictures)} pictures. Title: {title}. {'; '.join(marks)}.")


def show(figure: Figure, description: str) -> None:
    """Display ``figure`` with ``description`` as its alt text and as its text form.

    As an HTML image, because JupyterLab gives a bare PNG output no alt text.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
    width = round(figure.get_figwidth() * DOTS_PER_INCH * SCREEN)
    picture = base64.b64encode(buffer.getvalue()).decode("ascii")
    tag = (
        f'<img alt="{html.escape(description)}" width="{width}" '
        f'src="data:image/png;base64,{picture}">'
    )
    display({"text/html": tag, "text/plain": description}, raw=True)


def _stack_weights(stacks: Mapping[tuple[str, ...], float]) -> tuple[dict, dict]:
    """Each stack's own weight, and its weight with all below it; callers before their callees."""
    if not stacks:
        raise ValueError("stacks must hold at least one stack, but none came")
    own: dict[tuple[str, ...], float] = {}
    whole: dict[tuple[str, ...], float] = {}
    for stack, weight in stacks.items():
        names = isinstance(stack, tuple) and all(isinstance(name, str) and name for name in stack)
        if not names or not stack:
            raise TypeError(
                f"a key of stacks must be a tuple of names, as ('main', 'forward'), "
                f"but {stack!r} came"
            )
        if isinstance(weight, bool) or not isinstance(weight, Real):
            raise TypeError(f"stacks[{stack!r}] must be a number, but {weight!r} came")
        if not 0 <= weight < math.inf:  # NaN neither
            raise ValueError(f"stacks[{stack!r}] must be a number, zero or more, but {weight} came")
        for end in range(1, len(stack) + 1):
            own.setdefault(stack[:end], 0.0)
            whole[stack[:end]] = whole.get(stack[:end], 0.0) + weight
        own[stack] += weight
    if not any(whole.values()):
        raise ValueError("stacks must hold at least one weight above zero")
    return own, whole


def _icicle_marks(whole: Mapping[tuple[str, ...], float], depth: int, unit: Unit) -> str:
    """The first two rows, which are the same everywhere, and the widest way down, which is not."""
    rows = [
        ", ".join(f"{stack[-1]} {unit(whole[stack])}" for stack in whole if len(stack) == row)
        for row in (1, 2)[:depth]
    ]
    path: tuple[str, ...] = ()
    while len(path) < depth:
        below = [stack for stack in whole if len(stack) == len(path) + 1 and stack[:-1] == path]
        if not below:
            break
        path = max(below, key=whole.__getitem__)
    way = units.name(" > ".join(path).replace("[", "(").replace("]", ")"))
    listed = "; ".join(f"row {number}: {boxes}" for number, boxes in enumerate(rows, 1))
    return f"{depth} rows; {listed}; the widest way down: {way}, its last box {unit(whole[path])}"


def _checked_lines(lines: Sequence[str], times: Mapping[int, float], first: int) -> float:
    """The sum of ``times``, or an error that says what is wrong with the three."""
    if isinstance(lines, str):
        raise TypeError("lines must be a list of lines, but one string came: use splitlines()")
    for line in lines:
        if not isinstance(line, str):
            raise TypeError(f"lines must be strings, but a {type(line).__name__} came: {line!r}")
    if not any(line.strip() for line in lines):
        raise ValueError("lines must hold at least one line of code, but none came")
    if not isinstance(first, int) or isinstance(first, bool):
        raise TypeError(f"first must be a line number, but {first!r} came")
    last = first + len(lines) - 1
    for number, seconds in times.items():
        if number not in range(first, last + 1):
            raise ValueError(
                f"times must be of the lines {first} to {last}, but a time of line {number!r} came"
            )
        if isinstance(seconds, bool) or not isinstance(seconds, Real):
            raise TypeError(f"times[{number}] must be a number, but {seconds!r} came")
        if not 0 <= seconds < math.inf:  # NaN neither
            raise ValueError(f"times[{number}] must be zero or more seconds, but {seconds} came")
    if not sum(times.values()) > 0:
        raise ValueError("times must hold at least one time above zero")
    return sum(times.values())


def _canvas(ax: Axes | None, height: float) -> tuple[Figure | None, Axes]:
    if ax is not None:
        return None, ax
    # Not through pyplot, whose notebook backend would show the figure a second time.
    figure = Figure(figsize=(7.2, height), layout="constrained", dpi=DOTS_PER_INCH)
    return figure, figure.add_subplot()


def _finish(figure: Figure | None, ax: Axes, kind: str, marks: str) -> str | None:
    ax.spines[["top", "right"]].set_visible(False)
    axes = [f"x axis: {ax.get_xlabel()}"] + ([f"y axis: {ax.get_ylabel()}"] * bool(ax.get_ylabel()))
    description = f"{kind}. Title: {ax.get_title()}. {'; '.join(axes)}. {marks}."
    if figure is None:
        return description
    show(figure, description)
    return None


def _tick_units(ax: Axes, unit: Unit) -> None:
    """Ticks in the unit of the values, without the mark: an axis is no measurement."""
    ax.xaxis.set_major_formatter(lambda value, _: unit(value).lstrip("~") if value >= 0 else "")
    ax.xaxis.set_minor_formatter("")
    low, high = ax.get_xlim()
    if ax.get_xscale() == "log" and high < 30 * low:  # else perhaps one power of ten
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))


def _check_curve(argument: str, points: Sequence[tuple[float, float]]) -> None:
    if len(points) < 2:
        raise ValueError(f"{argument} must hold at least two points, but {len(points)} came")
    for point in points:
        if len(point) != 2:
            raise ValueError(f"{argument} must hold (x, bytes), not {point!r}")
        if not (math.isfinite(point[0]) and 0 <= point[1] < math.inf):
            raise ValueError(
                f"{argument} must have a finite x and at least 0 bytes, but {point!r} came"
            )
    if any(after[0] < before[0] for before, after in pairwise(points)):
        raise ValueError(f"{argument} must be in order of x")


def _spans(
    argument: str, spans: Sequence[tuple[float, float, str, int]]
) -> list[tuple[float, float, str, int]]:
    if len(spans) == 0:
        raise ValueError(f"{argument} must hold at least one span, but none came")
    for span in spans:
        if len(span) != 4:
            raise ValueError(f"{argument} must hold (start, duration, label, depth), not {span!r}")
        start, duration, label, depth = span
        if not (np.isfinite(start) and np.isfinite(duration) and duration >= 0):
            raise ValueError(
                f"{argument} must have finite times and durations of at least 0 s, "
                f"but {label!r} starts at {start} and lasts {duration}"
            )
        if not isinstance(label, str):
            raise TypeError(f"{argument} must have strings as labels, but {label!r} came")
        if not isinstance(depth, int) or depth < 0:
            raise ValueError(
                f"{argument} must have whole depths from 0, but {label!r} has {depth!r}"
            )
    return sorted(spans, key=lambda span: (span[0], span[3]))


def _numbers(argument: str, values: Sequence[float]) -> list[float]:
    if len(values) == 0:
        raise ValueError(f"{argument} must hold at least one value, but none came")
    for value in values:
        if not value > 0:  # NaN too
            raise ValueError(f"{argument} must all be positive, for a log axis, but {value} came")
    return [float(value) for value in values]
