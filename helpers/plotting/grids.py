"""Grids: coloured tables of errors, counts and outcomes, and images side by side."""

import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from torch import Tensor

from helpers import _input
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, RED

# Fills on which black letters can be read.
_PALE, _GREY, _STRONG = "#CFE4F2", "#ECECEC", ("#F0A97F", "#F3C766")


def errors(rows: Mapping[str, Mapping[str, float]], *, title: str, xlabel: str) -> None:
    """A table of relative errors as coloured cells: orange is too much, blue too little.

    ``rows`` maps the name of a row to its errors by column, in the same order in each row. An error
    is a fraction of the true value: 0.06 is written as "+6.0 %", and 0, which is no error at all,
    as "exact". Cells with errors of 50 % or more have the darkest colour.
    """
    columns = _columns(rows)
    ax = _canvas.canvas(height=1.1 + 0.36 * len(rows))
    for place, row in enumerate(rows.values()):
        for step, error in enumerate(row.values()):
            depth = min(1, abs(error) / 0.5) ** 0.5
            _cell(ax, step, place, _percent(error), RED if error > 0 else BLUE, 0.85 * depth)
    _frame(ax, rows, columns)
    ax.set(title=title, xlabel=xlabel)
    words = {key: {c: _percent(error) for c, error in row.items()} for key, row in rows.items()}
    _canvas.finish(ax, "Coloured table", _listed(words))


def _percent(error: float) -> str:
    if error == 0:
        return "exact"
    text = f"{100 * error:+.1f} %"
    return "about 0" if float(text[:-2]) == 0 else text.replace("-", "−")


def counts(rows: Mapping[str, Mapping[str, int]], *, out_of: int, title: str, xlabel: str) -> None:
    """A table of counts as coloured cells: the more of ``out_of``, the darker.

    ``rows`` maps the name of a row to its counts by column, in the same order in each row.
    """
    columns = _columns(rows)
    ax = _canvas.canvas(height=1.1 + 0.4 * len(rows))
    for place, row in enumerate(rows.values()):
        for step, count in enumerate(row.values()):
            _cell(ax, step, place, f"{count} of {out_of}", BLUE, 0.06 + 0.79 * count / out_of)
    _frame(ax, rows, columns)
    ax.set(title=title, xlabel=xlabel)
    _canvas.finish(ax, "Coloured table", f"of {out_of} each; {_listed(rows)}")


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
    width, size = (36, 9.5) if len(rows) <= 12 else (50, 8.5)  # many rows are to fit one view
    names = [textwrap.fill(key, width, break_on_hyphens=False) for key in rows]
    lines = max(name.count("\n") + 1 for name in names)
    ax = _canvas.canvas(height=0.8 + (0.12 + 0.13 * lines) * len(rows))
    for place, row in enumerate(rows.values()):
        for column, outcome in row.items():
            _cell(ax, columns.index(column), place, outcome, colours[outcome], 1, ink="black")
    _frame(ax, names, columns)
    ax.xaxis.tick_top()
    ax.tick_params(axis="y", labelsize=size, labelfontfamily="monospace")
    ax.set_title(title, pad=10)
    _canvas.show(ax.figure, f"Coloured table. Title: {title}. {_listed(rows)}.")


def _columns(rows: Mapping[str, Mapping]) -> list[str]:
    """The columns that all rows have; wrong input is refused."""
    _input.filled("rows", rows, what="row")
    columns = list(next(iter(rows.values())))
    for name, row in rows.items():
        if list(row) != columns:
            raise ValueError(f"rows[{name!r}] must have the columns {columns}, not {list(row)}")
    return columns


def _cell(
    ax: Axes, step: int, place: int, text: str, colour: str, depth: float, ink: str | None = None
) -> None:
    """One coloured cell with its text, black on a pale ground and white on a dark one."""
    ax.barh(place, 0.97, left=step - 0.485, height=0.9, color=colour, alpha=depth)
    ink = ink or ("white" if depth > 0.55 else "black")
    ax.text(step, place, text, ha="center", va="center", color=ink, fontsize=10.5)


def _frame(ax: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def _listed(rows: Mapping[str, Mapping]) -> str:
    return "; ".join(
        f"{name}: {', '.join(f'{column} {value}' for column, value in row.items())}"
        for name, row in rows.items()
    )


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
