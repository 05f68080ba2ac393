"""Who worked when: lanes for threads, streams and parts of a program, busy and idle."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREEN, GREY, ORANGE, RED

# What a lane can hold, and its colour in every chart; other kinds get the remaining colours.
_COLOURS = {
    "launch": RED,
    "GPU operation": BLUE,
    "NCCL": ORANGE,
    "loading": GREEN,
    "copy call": "#CC79A7",
    "end of a step": "black",
    "operator": "#7A5195",
    "rest of the step": "#C4C4C4",
    "short kernels": "#56B4E9",
    "long kernels": BLUE,
}
_OTHERS = ["#56B4E9", "#F0E442"]
_IDLE = "#E6E6E6"

Interval = tuple[float, float]
Moment = tuple[str, float]


def activity(
    rows: Mapping[str, Mapping[str, Sequence[Interval]]],
    *,
    title: str,
    xlabel: str = "time",
    unit: _canvas.Unit = units.seconds,
    length: float | None = None,
    links: Sequence[tuple[Moment, Moment]] = (),
    notes: Mapping[str, str] | None = None,
) -> None:
    """What each lane did when; a lane with GPU operations is light grey where it was idle.

    ``rows`` maps the name of a lane to what it did: each kind of work with its intervals,
    ``(start, duration)``, in what ``unit`` prints, such as seconds from a common zero. An interval
    of no duration is a moment, drawn as a thin line. Among 150 intervals or more of one kind, none
    may overlap: their shade says how much they cover. Lanes whose names begin with the same words
    and a colon belong together. The axis ends at ``length``, or after the last interval. ``links``
    joins moments, each ``(lane, time)``, such as a launch and the start of its kernel. ``notes``
    are written to the right of a lane.
    """
    _input.filled("rows", rows, what="lane")
    every = [pair for row in rows.values() for pairs in row.values() for pair in pairs]
    end = length or max((start + duration for start, duration in every), default=0.0)
    _input.positive("length", end, what="the end of the axis")
    present = dict.fromkeys(kind for row in rows.values() for kind in row)
    kinds = [kind for kind in _COLOURS if kind in present]
    kinds += [kind for kind in present if kind not in _COLOURS]
    others = iter(_OTHERS)
    colours = {kind: _COLOURS.get(kind) or next(others, GREY) for kind in kinds}
    places = _places(list(rows), 1.5 if links else 1.0)
    ax = _canvas.canvas(height=1.35 + 0.42 * (max(places.values()) + 1))
    marks = []
    for name, row in rows.items():
        place = places[name]
        ax.axhline(place, color=_IDLE, zorder=0)
        if "GPU operation" in row:
            ax.broken_barh([(0, end)], (place - 0.35, 0.7), facecolor=_IDLE)
        words = []
        for kind, pairs in row.items():
            long = [pair for pair in pairs if pair[1] > 0]
            _draw(ax, long, place, end, colours[kind])
            moments = [start for start, duration in pairs if duration == 0]
            thick = {"colors": colours[kind], "linewidths": 0.7 if len(moments) > 20 else 1.6}
            ax.vlines(moments, place - 0.35, place + 0.35, **thick)
            if moments:
                words.append(f"{len(moments)} moments of {kind}")
            if long or not moments:
                words.append(f"{kind} for {unit(sum(duration for _, duration in long))}")
        if note := (notes or {}).get(name):
            right = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
            ax.annotate(note, (1, place), (5, 0), va="center", fontsize=10, **right)
            words.append(note.replace("\n", " "))
        marks.append(f"{name}: {', '.join(words) or 'nothing'}")
    for (upper, first), (lower, second) in links:
        heights = (places[upper] + 0.35, places[lower] - 0.35)
        ax.plot([first, second], heights, color="black", linewidth=0.7)
    if links:
        marks.append("1 line joins" if len(links) == 1 else f"{len(links)} lines join")
        marks[-1] += " two lanes"
    ax.set_yticks(list(places.values()), list(rows))
    ax.tick_params(axis="y", length=0, labelsize=10)
    ax.spines["left"].set_visible(False)
    ax.set(xlim=(0, end), ylim=(max(places.values()) + 0.5, -0.5), xlabel=xlabel)
    ax.figure.suptitle(title, fontsize=12)
    if len(kinds) > 1:
        boxes = [Rectangle((0, 0), 1, 1, color=colours[kind]) for kind in kinds]
        if "GPU operation" in kinds:
            boxes.append(Rectangle((0, 0), 1, 1, color=_IDLE))
        words = [*kinds, "GPU idle"][: len(boxes)]
        legend = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False}
        ax.legend(boxes, words, ncols=len(boxes), fontsize=9, **legend)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    _canvas.tick_units(ax, unit)
    ax.spines[["top", "right"]].set_visible(False)
    description = f"Lanes. Title: {title}. x axis: {xlabel}. {len(rows)} lanes over {unit(end)}. "
    _canvas.show(ax.figure, description + "; ".join(marks) + ".")


def _draw(ax: Axes, pairs: list[Interval], place: float, end: float, colour: str) -> None:
    """The intervals of a kind: each of a few is visible, many are shades of how much they cover."""
    if len(pairs) < 150:
        style = {"facecolor": colour, "edgecolor": colour, "linewidth": 0.6}
        ax.broken_barh(pairs, (place - 0.35, 0.7), **style)
        return
    starts, durations = np.array(sorted(pairs)).T
    edges = np.linspace(0, end, 801)
    moments = np.ravel([starts, starts + durations], order="F")
    so_far = np.cumsum(durations)
    covered = np.interp(edges, moments, np.ravel([so_far - durations, so_far], order="F"))
    shades = np.clip(np.diff(covered) / edges[1], 0, 1)
    colours = [[(*to_rgb(colour), shade) for shade in shades]]
    ax.pcolormesh(edges, [place - 0.35, place + 0.35], colours)


def _places(names: list[str], step: float) -> dict[str, float]:
    """How far down each lane is, ``step`` below the one above, if they belong together."""
    places, place, group = {}, 0.0, None
    for name in names:
        own = name.split(":")[0] if ":" in name else None
        if places:
            place += step if own == group else 1.5
        places[name], group = place, own
    return places
