"""What tools report about the same things, in place of tables of one unit or of few words."""

import textwrap
from collections.abc import Mapping, Sequence

from helpers import _input
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE

# Fills on which black letters can be read.
_PALE, _GREY, _STRONG = "#CFE4F2", "#ECECEC", ("#F0A97F", "#F3C766")


def bar_grid(
    columns: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    unit: _canvas.Unit,
    code: bool = False,
) -> None:
    """One measure of the same things in several columns of bars, such as one column per tool.

    ``columns`` maps the name of a column to its values, zero or more, in what ``unit`` prints. All
    columns have the same keys, the first on top, and the same scale, which begins at zero, so all
    bars can be compared. ``code``: the keys are lines of source. Raises ValueError if a column has
    other keys than the first one.
    """
    keys = list(next(iter(columns.values())))
    lengths = {
        name: _input.each(_input.not_negative, f"columns[{name!r}]", values, what="a length")
        for name, values in columns.items()
    }
    longest = max(map(max, lengths.values())) or 1
    names = [textwrap.fill(key.strip(), 34, break_on_hyphens=False) for key in keys]
    lines = 1 + sum(name.count("\n") for name in names) / len(names)
    figure = _canvas.sheet(7.2, 0.85 + 0.3 * lines * len(keys))
    font = {"family": "monospace", "size": 8} if code else {}
    marks = []
    for index, (name, values) in enumerate(columns.items()):
        if list(values) != keys:
            raise ValueError(f"columns[{name!r}] must have the rows {keys}, not {list(values)}")
        ax = figure.add_subplot(1, len(columns), index + 1)
        bars = ax.barh(range(len(keys)), lengths[name], color=BLUE, height=0.7)
        ax.bar_label(bars, [unit(value) for value in values.values()], padding=4, fontsize=9)
        ax.set(xlim=(0, (1.15 + 0.15 * len(columns)) * longest), ylim=(len(keys) - 0.4, -0.6))
        ax.set_yticks(range(len(keys)), names, **font)
        ax.set_xticks([])
        ax.tick_params(axis="y", length=0, labelleft=index == 0)
        ax.spines[["top", "right", "bottom"]].set_visible(False)
        ax.set_title(name, loc="left", fontsize=10)
        shown = [f"{key.strip()} {unit(value)}" for key, value in values.items()]
        marks.append(f"{name}: {', '.join(shown)}")
    figure.suptitle(title)
    kind = f"{len(columns)} columns of {len(keys)} bars"
    _canvas.show(figure, f"{kind}. Title: {title}. {'; '.join(marks)}.")


def outcomes(
    rows: Mapping[str, Mapping[str, str]], *, title: str, wrong: Sequence[str] = ()
) -> None:
    """What came of each thing in each case: a table whose cells have one colour per outcome.

    ``rows`` maps a command, a flag or another piece of code to its outcomes by column; a row may
    lack a column, whose cell stays empty. The columns are in the order in which they appear. The
    first outcome that is not ``wrong`` is pale blue and others are pale grey; up to two that are
    wrong have strong colours.
    """
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    kinds = [outcome for row in rows.values() for outcome in row.values()]
    first = next((kind for kind in kinds if kind not in wrong), None)
    colours = dict.fromkeys(kinds, _GREY) | {first: _PALE} | dict(zip(wrong, _STRONG, strict=False))
    names = [textwrap.fill(key, 36, break_on_hyphens=False) for key in rows]
    lines = max(name.count("\n") + 1 for name in names)
    ax = _canvas.canvas(height=0.8 + (0.12 + 0.13 * lines) * len(rows))
    marks = []
    for place, (key, row) in enumerate(rows.items()):
        for column, outcome in row.items():
            step = columns.index(column)
            ax.barh(place, 0.96, left=step - 0.48, height=0.88, color=colours[outcome])
            ax.text(step, place, outcome, ha="center", va="center", size=10)
        marks.append(f"{key}: {', '.join(f'{column} {row[column]}' for column in row)}")
    ax.set_xticks(range(len(columns)), columns)
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(rows)), names, family="monospace", size=9.5)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    ax.set_title(title, pad=10)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    _canvas.show(ax.figure, f"Coloured table. Title: {title}. {'; '.join(marks)}.")
