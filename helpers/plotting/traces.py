"""What a profiler recorded: spans along time, stacks of calls, lines of source."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREEN, GREY, ORANGE, RED

# Fills of a timeline on which black letters can be read: spans of one name have one of them.
_FILLS = ["#8CC5E8", "#F3C766", "#7FD0B5", "#F0A97F", "#E3B6D2", "#F4EC8E", "#C4C4C4"]

# A line heat map, in inches: a full bar, a bar with its number, the code, and how many letters fit.
_BAR, _PANEL, _CODE_WIDTH, _LETTERS_PER_INCH = 0.78, 1.3, 6.6, 15.6

Span = tuple[float, float, str, int]
Moment = tuple[str, float]
Stack = tuple[str, ...]


def timeline(
    tracks: Mapping[str, Sequence[Span]],
    *,
    title: str,
    unit: _canvas.Unit = units.seconds,
    links: Sequence[tuple[Moment, Moment]] = (),
) -> None:
    """What ran when: a row for each track, first on top, time across, nested spans below.

    ``tracks`` maps the name of a track (a thread, a stream) to its spans, at least one, each
    ``(start, duration, label, depth)``: times in seconds from any common zero, depth 0 for the
    outermost. The picture's zero is the earliest start. Spans of one label have one colour. As much
    of a label is written as fits; the text lists the outermost spans, the first twelve of each
    track, and counts the nested ones. ``links`` joins moments, each ``(track, time)``, by lines,
    for example the start of a launch and the start of its kernel.
    """
    spans = {}
    for key, track in tracks.items():
        _input.filled(f"tracks[{key!r}]", track, what="span")
        spans[key] = sorted(track, key=lambda span: (span[0], span[3]))
    zero = min(start for track in spans.values() for start, *_ in track)
    end = max(start + duration for track in spans.values() for start, duration, *_ in track) - zero
    if not end > 0:
        raise ValueError("tracks must hold at least one span that lasts longer than 0 s")
    levels = [1 + max(depth for *_, depth in track) for track in spans.values()]
    ax = _canvas.canvas(height=1.1 + 0.4 * (sum(levels) + 0.6 * len(levels)))
    scale = ax.figure.get_figwidth() * 0.76 / end  # inches: what the track names leave for time
    labels = dict.fromkeys(label for track in spans.values() for *_, label, _ in track)
    colours = {label: _FILLS[place % len(_FILLS)] for place, label in enumerate(labels)}
    top, middles, marks, tops = 0.0, [], [], {}
    for (key, track), rows in zip(spans.items(), levels, strict=True):
        tops[key] = top
        _draw_track(ax, track, top, zero, scale, colours)
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
    for (upper, called), (lower, begun) in links:
        heights = (tops[upper] + 0.9, tops[lower])
        ax.plot((called - zero, begun - zero), heights, color="black", linewidth=0.9)
    ax.set_yticks(middles, list(spans))
    ax.tick_params(axis="y", length=0, labelsize=10)
    ax.set(xlim=(0, 1.01 * end), ylim=(top - 0.5, -0.1), title=title, xlabel="time")
    _canvas.tick_units(ax, unit)
    _canvas.finish(ax, "Timeline", f"{len(spans)} tracks over {unit(end)}. {'; '.join(marks)}")


def _draw_track(
    ax: Axes,
    track: list[Span],
    top: float,
    zero: float,
    scale: float,
    colours: Mapping[str, str],
) -> None:
    """The spans of one track, ``scale`` inches per second wide, in rows from ``top`` downwards."""
    for start, duration, label, depth in track:
        left, row = start - zero, top + depth
        edge = 0.8 if duration * scale > 0.03 else 0  # it would hide a span of a pixel or two
        style = {"facecolor": colours[label], "edgecolor": "black", "linewidth": 0.5 * edge}
        ax.broken_barh([(left, duration)], (row, 0.9), **style)
        _write(ax, label, (left, duration), row + 0.45, scale, "black", size=10)


def launch_queues(
    recordings: Mapping[str, tuple[Sequence[float], Sequence[tuple[float, float]], Sequence[int]]],
    *,
    title: str,
    duration: float,
) -> None:
    """When the CPU launched work, when the GPU ran it, and how much was waiting in between.

    ``recordings`` maps a name to three sequences, in seconds from the start of the window: the
    times of the launches, the work of the GPU as ``(start, duration)``, and how many operations
    were waiting at each launch. The window lasts ``duration`` seconds in all of them.
    """
    figure = _canvas.sheet(7.2, 0.6 + 2.1 * len(recordings))
    heights = [1.0, 1.0] * len(recordings)
    panels = figure.subplots(2 * len(recordings), 1, sharex=True, height_ratios=heights)
    most = max(max(queue) for _, _, queue in recordings.values())
    marks = []
    for place, (name, (launches, work, queue)) in enumerate(recordings.items()):
        rows, depth = panels[2 * place : 2 * place + 2]
        rows.eventplot([launches], lineoffsets=1, linelengths=0.7, colors=RED, linewidths=0.6)
        rows.broken_barh([(0, duration)], (-0.35, 0.7), facecolor="#E6E6E6")
        rows.broken_barh(list(work), (-0.35, 0.7), facecolor=BLUE)
        rows.set_yticks([1, 0], [f"{name}: launches", f"{name}: GPU"])
        rows.tick_params(axis="both", length=0, labelsize=10)
        depth.step(launches, queue, where="post", color=GREEN, linewidth=1.6)
        depth.set(ylim=(-0.05 * most, 1.15 * most), ylabel="waiting")
        for ax in (rows, depth):
            ax.spines[["top", "right"]].set_visible(False)
        marks.append(
            f"{name}: {len(launches)} launches, {len(work)} operations on the GPU, from "
            f"{min(queue)} to {max(queue)} waiting"
        )
    panels[0].set_title(title)
    panels[-1].set(xlim=(0, duration), xlabel="time (GPU: blue is busy, grey is idle)")
    _canvas.tick_units(panels[-1], units.seconds)
    description = f"Launches, GPU and queue. Title: {title}. x axis: time. {'; '.join(marks)}."
    _canvas.show(figure, description)


def strip(rows: Mapping[str, Sequence[str]], *, title: str, xlabel: str) -> None:
    """Numbered steps from left to right: a row of boxes for each key, with a label in each box.

    ``rows`` maps a name to the labels of steps 0, 1, 2 and so on; all rows are equally long. Equal
    labels have the same colour, and an empty label leaves its place empty.
    """
    count = len(next(iter(rows.values())))
    labels = dict.fromkeys(label for row in rows.values() for label in row if label)
    colours = dict(zip(labels, [_FILLS[-1], *_FILLS], strict=False))  # grey for the first
    ax = _canvas.canvas(height=0.9 + 0.4 * len(rows))
    marks = []
    for place, (key, row) in enumerate(rows.items()):
        if len(row) != count:
            raise ValueError(f"rows[{key!r}] must hold {count} labels, but got {len(row)}")
        for step, label in enumerate(row):
            if label:
                box = {"left": step - 0.5, "height": 0.8, "edgecolor": "white"}
                ax.barh(place, 1, color=colours[label], **box)
                ax.text(step, place, label, ha="center", va="center", size=8.5)
        shown = ", ".join(f"{step} {label}" for step, label in enumerate(row) if label)
        marks.append(f"{key}: {shown or 'nothing'}")
    ax.set(xlim=(-0.5, count - 0.5), ylim=(len(rows) - 0.5, -0.5), title=title, xlabel=xlabel)
    ax.set_xticks(range(count))
    ax.set_yticks(range(len(rows)), list(rows))
    ax.tick_params(axis="y", length=0)
    _canvas.finish(ax, "Strip", "; ".join(marks))


def icicle(
    stacks: Mapping[Stack, float],
    *,
    title: str,
    xlabel: str = "time",
    unit: _canvas.Unit = units.seconds,
    rows: int = 10,
) -> None:
    """Who called whom: each box is as wide as its whole time, with those it called below it.

    ``stacks`` maps each stack, outermost first (``("main", "forward", "conv2d")``), to its own
    ("self") weight, zero or more. The width of a box is its own weight plus all below it; the
    darker it is, the larger the part that is its own. Boxes are in the order in which they first
    appear. ``rows`` limits the depth. A label is written where it fits; the text lists the first
    two rows, and follows the widest box down from the first.
    """
    own, whole = _stack_weights(stacks)
    end = sum(weight for stack, weight in whole.items() if len(stack) == 1)
    depth = min(rows, max(map(len, whole)))
    ax = _canvas.canvas(height=1.1 + 0.32 * depth)
    inches = ax.figure.get_figwidth() * 0.94
    ends: dict[Stack, float] = {}  # how far the boxes drawn below each stack reach
    for stack, weight in whole.items():
        left = ends.get(stack[:-1], 0.0)
        ends[stack[:-1]], ends[stack] = left + weight, left
        if len(stack) > rows or weight < end / 5000:  # less than half a pixel
            continue
        share = own[stack] / weight
        colour = tuple(1 - (1 - np.array(to_rgb(BLUE))) * (0.12 + 0.88 * share))
        row = len(stack) - 1
        ax.add_patch(Rectangle((left, row), weight, 1, facecolor=colour, edgecolor="white"))
        ink = "white" if share > 0.85 else "black"
        _write(ax, stack[-1], (left, weight), row + 0.5, inches / end, ink)
    ax.set(xlim=(0, end), ylim=(depth, 0), title=title, xlabel=xlabel, ylabel="depth of call")
    ax.set_yticks(np.arange(depth) + 0.5, range(1, depth + 1))
    ax.tick_params(axis="y", length=0)
    _canvas.tick_units(ax, unit)
    _canvas.finish(ax, "Icicle chart", _icicle_marks(whole, depth, unit))


def _stack_weights(stacks: Mapping[Stack, float]) -> tuple[dict, dict]:
    """Each stack's own weight, and its weight with all below it; callers before their callees."""
    own: dict[Stack, float] = {}
    whole: dict[Stack, float] = {}
    for stack, weight in stacks.items():
        for end in range(1, len(stack) + 1):
            own.setdefault(stack[:end], 0.0)
            whole[stack[:end]] = whole.get(stack[:end], 0.0) + weight
        own[stack] += weight
    if not any(whole.values()):
        raise ValueError("stacks must hold at least one weight above zero")
    return own, whole


def _icicle_marks(whole: Mapping[Stack, float], depth: int, unit: _canvas.Unit) -> str:
    """The first two rows, which are the same everywhere, and the widest way down, which is not."""
    rows = [
        ", ".join(f"{stack[-1]} {unit(whole[stack])}" for stack in whole if len(stack) == row)
        for row in (1, 2)[:depth]
    ]
    path: Stack = ()
    while below := [stack for stack in whole if stack[:-1] == path and len(stack) <= depth]:
        path = max(below, key=whole.__getitem__)
    way = units.name(" > ".join(path))
    listed = "; ".join(f"row {number}: {boxes}" for number, boxes in enumerate(rows, 1))
    return f"{depth} rows; {listed}; the widest way down: {way}, its last box {unit(whole[path])}"


def line_heat_map(
    lines: Sequence[str], times: Mapping[str, Mapping[str, float]], *, title: str
) -> None:
    """One or more profiles of the source ``lines``, next to each other: the share of each line.

    ``times`` maps the name of each profile, such as ``before``, to the seconds of its lines, zero
    or more, by their source without indentation. Each line has a bar per profile, which is its
    share of that profile's sum, on a ground the darker the larger it is. A line that a profile does
    not have, such as a comment or a line of another version, stays plain there. Long lines are cut
    on the picture and whole in the text, which lists the timed ones. Raises ValueError if a profile
    has no time above zero, or times a line that is not in ``lines`` exactly once.
    """
    stripped = [line.strip() for line in lines]
    for name, seconds in times.items():
        if not sum(seconds.values()) > 0:
            raise ValueError(f"times[{name!r}] must hold at least one time above zero")
        for line in seconds:
            if stripped.count(line) != 1:
                found = stripped.count(line)
                raise ValueError(f"lines must hold {line!r} of {name!r} once, but hold it {found}×")
    ax = _canvas.canvas(height=0.95 + 0.19 * len(lines))
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    code_left = _PANEL * len(times)
    letters = int((_CODE_WIDTH - code_left) * _LETTERS_PER_INCH)
    for row, line in enumerate(lines):
        code = line[indent:].rstrip()
        fitting = code if len(code) <= letters else f"{code[: letters - 1]}…"
        ax.text(code_left, row, fitting, va="center", family="monospace", size=7.5)
    marks = []
    for panel, (name, seconds) in enumerate(times.items()):
        shares = {line: value / sum(seconds.values()) for line, value in seconds.items()}
        for line, share in shares.items():
            _draw_share(ax, _PANEL * panel, stripped.index(line), share)
        ax.text(_PANEL * panel, -0.8, name, va="bottom", weight="bold", size=8)
        listed = [f"{line}: {units.percent(shares[line])}" for line in stripped if line in shares]
        marks.append(f"{name}, {len(shares)} with a time: {'; '.join(listed)}")
    ax.set(xlim=(0, _CODE_WIDTH), ylim=(len(lines) - 0.5, -1.9), title=title, yticks=[])
    ticks = [_PANEL * panel + end for panel in range(len(times)) for end in (0, _BAR)]
    ax.set_xticks(ticks, ["0", "100 %"] * len(times), size=7.5)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xlabel("share of the time", loc="left")
    _canvas.finish(ax, "Line heat map", f"{len(lines)} lines. {'. '.join(marks)}")


def _draw_share(ax: Axes, left: float, row: int, share: float) -> None:
    """One bar of a line heat map, from ``left`` on, its ground and its number."""
    colour = 1 - (1 - np.array(to_rgb(ORANGE))) * (0.08 + 0.92 * share)
    ax.barh(row, _PANEL - 0.06, left=left, height=0.92, align="center", color=colour)
    ax.barh(row, _BAR * share, left=left, height=0.55, color=BLUE)
    ax.text(
        left + _PANEL - 0.1, row, f"{share:.1%}".replace("%", " %"), ha="right", va="center", size=7
    )


def _write(
    ax: Axes,
    label: str,
    box: tuple[float, float],
    row: float,
    scale: float,
    ink: str,
    size: float = 7.5,
) -> None:
    """As much of ``label`` as fits ``box``, (left, width) at ``scale`` inches a unit, in a row."""
    left, width = box
    letters = int((width * scale - 0.06) / (0.0088 * size))
    if letters > 3 or len(label) <= letters:
        fitting = label if len(label) <= letters else f"{label[: letters - 1]}…"
        middle = left + width / 2
        ax.text(middle, row, fitting, color=ink, fontsize=size, ha="center", va="center")
