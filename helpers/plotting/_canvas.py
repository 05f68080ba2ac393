"""What all pictures share: a canvas, the alt text, ticks with units, and labels in boxes."""

import base64
import html
import io
import re
import textwrap
from collections.abc import Callable, Sequence

from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

# Okabe and Ito's palette, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#8C8C8C"
DOTS_PER_INCH = 144
SCREEN = 2 / 3  # shown at 96 dots an inch, so that a dense screen stays sharp

# JupyterLab's dark theme turns a chart's white ground dark, and keeps its hues.
_DARK = (
    '<style>[data-jp-theme-light="false"] .course-chart '
    "{filter: invert(0.89) hue-rotate(180deg)}</style>"
)

Unit = Callable[[float], str]


def show(figure: Figure, description: str, *, photograph: bool = False) -> None:
    """Display ``figure`` with ``description`` as its alt text and as its text form.

    As an HTML image, because JupyterLab gives a bare PNG output no alt text. In a dark theme it is
    dark, unless it is a ``photograph``.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
    width = round(figure.get_figwidth() * DOTS_PER_INCH * SCREEN)
    picture = base64.b64encode(buffer.getvalue()).decode()
    tag = (
        f'<img alt="{html.escape(description)}" width="{width}" '
        f'src="data:image/png;base64,{picture}">'
    )
    if not photograph:
        tag = _DARK + tag.replace("<img ", '<img class="course-chart" ')
    display({"text/html": tag, "text/plain": description}, raw=True)


def sheet(width: float, height: float) -> Figure:
    """An empty figure, in inches. Not through pyplot, which would show it a second time."""
    figure = Figure(figsize=(width, height), layout="constrained", dpi=DOTS_PER_INCH)
    FigureCanvasAgg(figure)  # without it, each measurement of a text would start to save the figure
    return figure


def canvas(height: float) -> Axes:
    """The axes of an empty figure as wide as a notebook's page."""
    return sheet(7.2, height).add_subplot()


def describe(ax: Axes, kind: str, marks: str) -> str:
    """The alt text of a finished picture: its kind, title and axes, and its marks."""
    ax.spines[["top", "right"]].set_visible(False)
    axes = f"x axis: {ax.get_xlabel()}"
    if ax.get_ylabel():
        axes += f"; y axis: {ax.get_ylabel()}"
    return f"{kind}. Title: {ax.get_title()}. {axes}. {marks}."


def finish(ax: Axes, kind: str, marks: str) -> None:
    """Show the figure that holds ``ax`` with its alt text."""
    show(ax.figure, describe(ax, kind, marks))


def tick_units(ax: Axes, unit: Unit) -> None:
    """Ticks in the unit of the values, without the mark: an axis is no measurement."""
    ax.xaxis.set_major_formatter(lambda value, _: tick(unit(value)) if value >= 0 else "")
    ax.xaxis.set_minor_formatter("")
    low, high = ax.get_xlim()
    if ax.get_xscale() == "log" and high < 6 * low:  # where a power of ten may be the only tick
        ax.xaxis.set_major_locator(MaxNLocator(5))
    elif ax.get_xscale() == "log" and high < 30 * low:
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    elif ax.get_xscale() == "log" and high < 100 * low:
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))


def tick(text: str) -> str:
    """A value as a tick: "~1.00 ms" becomes "1 ms", and "~0.500×" becomes "0.5×"."""
    return re.sub(r"\.0+(?!\d)|(\.\d*[1-9])0+(?!\d)", r"\1", text.lstrip("~"))


def write_in_box(
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
    if letters > 6 or len(label) <= letters:
        fitting = label if len(label) <= letters else f"{label[: letters - 1]}…"
        middle = left + width / 2
        ax.text(middle, row, fitting, color=ink, fontsize=size, ha="center", va="center")


def write_columns(
    ax: Axes, heads: Sequence[str], rows: Sequence[Sequence[str]], colours: Sequence[str]
) -> None:
    """Write a table to the right of the axes, each row at its height."""
    right = 0.0
    for column, head in enumerate(heads):
        wrapped = textwrap.fill(head, 12, break_long_words=False)
        words = [row[column] for row in rows]
        right += 16 + 5.6 * max(map(len, [*words, *wrapped.splitlines()]))  # points
        for place, word in enumerate([wrapped, *words], start=-1):
            style = {"va": "center" if place >= 0 else "bottom", "color": colours[column]}
            style |= {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
            height = place if place >= 0 else -0.8
            ax.annotate(
                word, (1, height), (right, 0), ha="right", size=9.5, annotation_clip=False, **style
            )
