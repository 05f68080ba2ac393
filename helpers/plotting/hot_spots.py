"""Where the time went: in which calls, and in which lines of source."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from helpers import units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, ORANGE

# A line heat map, in inches: a full bar, a bar with its number, the code, and how many letters fit.
_BAR, _PANEL, _CODE_WIDTH, _LETTERS_PER_INCH = 0.78, 1.3, 6.6, 13.0

Stack = tuple[str, ...]


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
    ax = _canvas.canvas(height=1.1 + 0.34 * depth)
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
        short = stack[-1].rpartition(".")[2]  # without its module or class, where that is too long
        name = stack[-1] if len(stack[-1]) * 0.08 < weight * inches / end else short
        _canvas.write_in_box(ax, name, (left, weight), row + 0.5, inches / end, ink, size=9)
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
        ax.text(code_left, row, fitting, va="center", family="monospace", size=9)
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
    if share >= 0.0005:  # "0.0 %" on most lines would hide the others
        words = f"{share:.1%}".replace("%", " %")
        ax.text(left + _PANEL - 0.1, row, words, ha="right", va="center", size=8.5)
