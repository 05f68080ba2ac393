"""What ran when, along time or along numbered steps."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREEN, GREY, RED

# Fills of a timeline on which black letters can be read: spans of one name have one of them.
_FILLS = ["#8CC5E8", "#F3C766", "#7FD0B5", "#F0A97F", "#E3B6D2", "#F4EC8E", "#C4C4C4"]

Span = tuple[float, float, str, int]
Moment = tuple[str, float]


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
        number = "1 span" if len(track) == 1 else f"{len(track)} spans"
        marks.append(f"{key}: {number}, nested {rows} deep; outermost: {listed or 'none'}{more}")
        middles.append(top + rows / 2)
        top += rows + 0.6
        if len(middles) < len(spans):
            ax.axhline(top - 0.35, color=GREY, linewidth=0.6)
    for (upper, called), (lower, begun) in links:
        heights = (tops[upper] + 0.9, tops[lower])
        ax.plot((called - zero, begun - zero), heights, color="black", linewidth=0.9)
    inches = dict.fromkeys(colours, 0.0)  # of the longest span of each label
    for _, duration, label, _ in (span for track in spans.values() for span in track):
        inches[label] = max(inches[label], duration * scale)
    unnamed = [
        label
        for label, wide in inches.items()
        if len(label) > (wide - 0.06) / 0.088 and not any(label in key for key in spans)
    ]
    if 2 <= len(unnamed) <= 4:
        boxes = [ax.barh(0, 0, color=colours[label]) for label in unnamed]
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.98)}
        ax.legend(boxes, unnamed, ncols=4, frameon=False, **place)
    ax.set_yticks(middles, list(spans))
    ax.tick_params(axis="y", length=0, labelsize=10)
    ax.set(xlim=(0, 1.01 * end), ylim=(top - 0.5, -0.1), xlabel="time")
    ax.set_title(title, pad=26 if 2 <= len(unnamed) <= 4 else None)
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
        _canvas.write_in_box(ax, label, (left, duration), row + 0.45, scale, "black", size=10)


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
                ax.text(step, place, label, ha="center", va="center", size=7.5)
        shown = ", ".join(f"{step} {label}" for step, label in enumerate(row) if label)
        marks.append(f"{key}: {shown or 'nothing'}")
    ax.set(xlim=(-0.5, count - 0.5), ylim=(len(rows) - 0.5, -0.5), title=title, xlabel=xlabel)
    ax.set_xticks(range(count))
    ax.set_yticks(range(len(rows)), list(rows))
    ax.tick_params(axis="y", length=0)
    _canvas.finish(ax, "Strip", "; ".join(marks))
