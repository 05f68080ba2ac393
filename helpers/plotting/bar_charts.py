"""Bars: of one measure, of several, and of parts that add up.

What maps names to values may also be a pandas Series, and a mapping of such a data frame. A
``unit`` is the function that prints a value, such as ``units.seconds`` or ``"{:,}".format``.
"""

import math
import textwrap
from collections.abc import Mapping

from matplotlib.ticker import MaxNLocator

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREEN, GREY, ORANGE, RED


def bars(
    values: Mapping[str, float],
    *,
    title: str,
    xlabel: str = "time",
    unit: _canvas.Unit = units.seconds,
    log: bool = False,
    intervals: Mapping[str, tuple[float, float]] | None = None,
    limit: tuple[str, float] | None = None,
) -> None:
    """One horizontal bar per entry of ``values``, first on top, with its value.

    On a log axis, which has no zero to begin at, a dot takes the bar's place. Values are in what
    ``unit`` prints: positive on a log axis, else zero or more. ``intervals`` maps some of the names
    to a lowest and a highest value, which a line joins. ``limit`` is the name and the value of a
    dashed line, an exact number.
    """
    values = dict(values)
    check = _input.positive if log else _input.not_negative
    lengths = _input.each(check, "values", values, what="the length of a bar")
    ax = _canvas.canvas(height=1.1 + (0.38 if len(lengths) < 9 else 0.27) * len(lengths))
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
        ax.set_xlim(0, max(*lengths, limit[1] if limit else 0, 0) * 1.25 or 1)
    ax.set(title=title, xlabel=f"{xlabel} (log scale)" if log else xlabel)
    _canvas.tick_units(ax, unit)
    if not log and max(lengths) < 10 and all(float(length).is_integer() for length in lengths):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))  # counts have no tick at a half
    if not log and len(unit(max(lengths))) > 6:  # the labels of the usual ticks would overlap
        ax.xaxis.set_major_locator(MaxNLocator(5))
    if limit is not None:
        ax.axvline(limit[1], color=RED, linestyle="--", linewidth=1.2, zorder=0)
        ax.set_title(title, pad=20)
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        ax.annotate(limit[0], (limit[1], 1), (0, 3), ha="center", color=RED, fontsize=9, **place)
    words = {key: f"{key} {unit(length)}" for key, length in values.items()}
    for key, (low, high) in (intervals or {}).items():
        words[key] += f" from {unit(low)} to {unit(high)}"
    marks = "; ".join(words.values())
    if limit is not None:
        marks += f"; a dashed line, {limit[0]}, at {unit(limit[1]).lstrip('~')}"
    kind, shape = ("Dot chart", "dots") if log else ("Bar chart", "bars")
    _canvas.finish(ax, kind, f"{len(lengths)} {shape}: {marks}")


def bar_rows(
    rows: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    unit: _canvas.Unit | Mapping[str, _canvas.Unit] = units.seconds,
    highlight: bool = True,
) -> None:
    """Several measures of the same things: a row of bars for each measure, one below the other.

    ``rows`` maps the name of a measure to its values, zero or more. All rows have the same keys,
    such as the layers of a model, in the same order; each row has its own linear scale, so only
    bars of the same row can be compared. ``unit`` prints the values of all rows, or maps each row's
    name to what prints its values. ``highlight``: the largest bar of a row is red.
    """
    measures = _measures("rows", rows)
    keys = list(next(iter(measures.values())))
    figure = _canvas.sheet(7.2, 0.7 + 0.8 * len(measures))
    marks = []
    for index, (name, values) in enumerate(measures.items()):
        heights = list(values.values())
        printed = unit[name] if isinstance(unit, Mapping) else unit
        words = {key: printed(value) for key, value in values.items()}
        ax = figure.add_subplot(len(measures), 1, index + 1)
        colours = [
            RED if highlight and min(heights) < 0.95 * max(heights) <= height else BLUE
            for height in heights
        ]
        drawn = ax.bar(keys, heights, color=colours, width=0.6)
        ax.bar_label(drawn, list(words.values()), padding=2)
        ax.set(ylim=(0, max(heights) * 1.45 or 1), yticks=[])
        ax.set_ylabel(name, rotation=0, ha="right", va="center")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="x", length=0, labelbottom=index == len(measures) - 1)
        marks.append(_listed(name, words))
    figure.suptitle(title)
    kind = f"{len(measures)} rows of {len(keys)} bars"
    _canvas.show(figure, f"{kind}. Title: {title}. {'; '.join(marks)}.")


def bar_columns(
    columns: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    unit: _canvas.Unit | Mapping[str, _canvas.Unit] = units.seconds,
    code: bool = False,
    longest_first: bool = False,
) -> None:
    """Measures of the same things side by side: a column of bars for each, first on top.

    ``columns`` maps the name of a measure to its values, zero or more, all with the same keys. If
    one ``unit`` prints all values, the columns have one scale, so all bars can be compared; if
    ``unit`` maps each column's name to what prints its values, each has its own. Scales begin at
    zero. ``code``: the keys are lines of source. ``longest_first``: the first measure says the
    order, but not that of the alt text, which does not depend on what was measured. A key may be
    marked by ``units.name``.
    """
    measures = _measures("columns", columns)
    first = next(iter(measures.values()))
    listed = list(first)
    keys = sorted(first, key=first.get, reverse=True) if longest_first else listed
    names = [key.strip(f" {units.NAME_MARK}") for key in keys]
    names = [textwrap.fill(name, 34, break_on_hyphens=False) for name in names]
    lines = 1 + sum(name.count("\n") for name in names) / len(names)
    figure = _canvas.sheet(7.2, 0.85 + 0.3 * lines * len(keys))
    font = {"family": "monospace", "size": 8} if code else {}
    longest = max(max(values.values()) for values in measures.values())
    marks = []
    for index, (name, values) in enumerate(measures.items()):
        lengths = [values[key] for key in keys]
        own = isinstance(unit, Mapping)
        words = {key: (unit[name] if own else unit)(values[key]) for key in listed}
        ax = figure.add_subplot(1, len(measures), index + 1)
        bars = ax.barh(range(len(keys)), lengths, color=GREY if own and index else BLUE, height=0.7)
        ax.bar_label(bars, [words[key] for key in keys], padding=4, fontsize=9)
        end = (1.15 + 0.15 * len(measures)) * (max(lengths) if own else longest) or 1
        ax.set(xlim=(0, end), ylim=(len(keys) - 0.4, -0.6), xticks=[])
        ax.set_yticks(range(len(keys)), names, **font)
        ax.tick_params(axis="y", length=0, labelleft=index == 0)
        ax.spines[["top", "right", "bottom"]].set_visible(False)
        ax.set_title(name, loc="left", fontsize=10)
        marks.append(_listed(name, words))
    figure.suptitle(title)
    kind = f"{len(measures)} columns of {len(keys)} bars"
    _canvas.show(figure, f"{kind}. Title: {title}. {'; '.join(marks)}.")


def _measures(argument: str, measures: Mapping) -> dict[str, dict[str, float]]:
    """Measures as dictionaries with the same keys and lengths that can be drawn."""
    _input.filled(argument, measures, what="measure")
    measures = {name: dict(values) for name, values in measures.items()}
    keys = list(next(iter(measures.values())))
    for name, values in measures.items():
        if list(values) != keys:
            raise ValueError(f"{argument}[{name!r}] must have the keys {keys}, not {list(values)}")
        _input.each(_input.not_negative, f"{argument}[{name!r}]", values, what="a length")
    return measures


def _listed(name: str, words: Mapping[str, str]) -> str:
    shown = [f"{key.strip(' ')} {word}" for key, word in words.items()]
    return f"{name}: {', '.join(shown)}".replace("\n", " ")


def stacked_bars(
    rows: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    xlabel: str = "time",
    unit: _canvas.Unit = units.seconds,
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
        beside = {"textcoords": "offset points", "va": "center"}
        beside["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # over the limit
        ax.annotate(unit(end), (end, place), (5, 0), **beside)
        shown = ", ".join(f"{part} {unit(size)}" for part, size in row.items())
        marks.append(f"{key}: {shown}; in all {unit(end)}")
    if limit is not None:
        ax.axvline(limit, color="black", zorder=0.5, linestyle="--", linewidth=1.2)
        marks.append(f"a dashed line at {unit(limit)}")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, ax.get_xlim()[1] * 1.1), xlabel=xlabel)
    ax.set_title(title, pad=10 + 16 * math.ceil(len(parts) / 4))
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.99)}
    ax.legend(frameon=False, ncols=min(len(parts), 4), fontsize=9, **place)
    _canvas.tick_units(ax, unit)
    _canvas.finish(ax, "Stacked bars", ". ".join(marks))
