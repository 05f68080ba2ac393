"""A measurement of each commit, one after the other."""

from collections.abc import Mapping, Sequence

from helpers import _input, units
from helpers.plotting import _canvas
from helpers.plotting._canvas import BLUE, GREEN, RED


def history(
    panels: Mapping[str, Sequence[float]],
    *,
    title: str,
    limit: float | None = None,
    lines: Mapping[str, int] | None = None,
) -> None:
    """The ratio that was measured for each commit, a dot each, in panels one below the other.

    ``panels`` maps the label of a y axis to its ratios (1 means no change), one for each commit,
    counted from 0; all have the same number. In the first panel, a red dashed line is drawn at
    ``limit``, above which a test raises an alarm. ``lines`` maps names to commits, at which a
    vertical line is drawn through all panels, at most two.
    """
    _input.filled("panels", panels, what="panel")
    lines = lines or {}
    if len(lines) > 2:
        raise ValueError(f"lines must hold at most two commits, but got {len(lines)}")
    figure = _canvas.sheet(7.2, 0.9 + 1.7 * len(panels))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    marks = []
    for ax, (label, ratios) in zip(axes, panels.items(), strict=True):
        values = _input.each(_input.positive, f"panels[{label!r}]", ratios, what="a ratio")
        ax.plot(range(len(values)), values, ".", color=BLUE, markersize=4)
        for (_, commit), colour in zip(lines.items(), ["black", GREEN], strict=False):
            ax.axvline(commit, color=colour, linestyle="--", linewidth=1.2)
        ax.set_ylabel(label)
        ax.spines[["top", "right"]].set_visible(False)
        ax.yaxis.set_major_formatter(lambda value, _: _canvas.tick(units.ratio(value)))
        marks.append(
            f"{label}: {len(values)} commits, first {units.ratio(values[0])}, lowest "
            f"{units.ratio(min(values))}, highest {units.ratio(max(values))}, last "
            f"{units.ratio(values[-1])}"
        )
    if limit is not None:
        axes[0].axhline(limit, color=RED, linestyle="--", linewidth=1.2)
        marks.append(f"a dashed line in the first panel at {units.ratio(limit)}")
    axes[0].set_title(title, pad=22 if lines else None)
    for place, ((name, commit), colour) in enumerate(
        zip(lines.items(), ["black", GREEN], strict=False)
    ):
        side = {"ha": "right", "xytext": (-4, 6)} if place else {"ha": "left", "xytext": (4, 6)}
        top = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        axes[0].annotate(name, (commit, 1), color=colour, **side, **top)
        marks.append(f"a vertical line, {name}, at commit {commit}")
    axes[-1].set_xlabel("commit")
    _canvas.show(figure, f"Histories. Title: {title}. x axis: commit. {'; '.join(marks)}.")
