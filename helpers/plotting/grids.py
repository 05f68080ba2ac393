"""Side by side: a table of errors as coloured cells, and images."""

from collections.abc import Mapping

from torch import Tensor

from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, RED


def errors(rows: Mapping[str, Mapping[str, float]], *, title: str, xlabel: str) -> None:
    """A table of relative errors as coloured cells: orange is too much, blue too little.

    ``rows`` maps the name of a row to its errors by column, in the same order in each row. An error
    is a fraction of the true value: 0.06 is written as "+6.0 %", and 0, which is no error at all,
    as "exact". Cells with errors of 50 % or more have the darkest colour.
    """
    names, columns = list(rows), list(next(iter(rows.values())))
    ax = _canvas.canvas(height=1.1 + 0.36 * len(names))
    marks = []
    for y, (name, row) in enumerate(rows.items()):
        if list(row) != columns:
            raise ValueError(f"rows[{name!r}] must have the columns {columns}, not {list(row)}")
        for x, error in enumerate(row.values()):
            colour, depth = RED if error > 0 else BLUE, min(1, abs(error) / 0.5) ** 0.5
            ax.barh(y, 0.97, left=x - 0.485, height=0.92, color=colour, alpha=0.85 * depth)
            ax.text(
                x,
                y,
                _percent(error),
                ha="center",
                va="center",
                color="white" if depth > 0.7 else "black",
                fontsize=11,
            )
        cells = [f"{column} {_percent(error)}" for column, error in row.items()]
        marks.append(f"{name}: {', '.join(cells)}")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(names) - 0.5, -0.5))
    ax.set(title=title, xlabel=xlabel)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    _canvas.finish(ax, "Coloured table", "; ".join(marks))


def _percent(error: float) -> str:
    if error == 0:
        return "exact"
    text = f"{100 * error:+.1f} %"
    return "about 0" if float(text[:-2]) == 0 else text.replace("-", "−")


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
