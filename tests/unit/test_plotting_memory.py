"""The memory curve of ``helpers.plotting``: what its text says, what it draws, what it refuses."""

import re

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers import plotting

STEP = [(0.0, 0.0), (0.001, 4e6), (0.002, 12e6), (0.003, 1e6)]


@pytest.fixture
def ax() -> Axes:
    return Figure(figsize=(7.2, 3)).add_subplot()


def test_the_text_says_what_the_picture_shows(ax: Axes) -> None:
    text = plotting.memory({"one step": STEP}, title="A step", expected={"by hand": 11e6}, ax=ax)

    assert text == (
        "Memory curve. Title: A step. x axis: time; y axis: bytes in use. "
        "one step: first ~0 B, highest ~12.0 MB, last ~1.00 MB; "
        "a dashed line, by hand, at ~11.0 MB."
    )


def test_a_size_holds_until_it_changes(ax: Axes) -> None:
    plotting.memory({"one step": STEP}, title="t", ax=ax)

    (line,) = ax.lines
    assert line.get_drawstyle() == "steps-post"
    assert line.get_xydata().tolist() == [list(point) for point in STEP]
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > 12e6
    assert ax.yaxis.get_major_formatter()(4e6, 0) == "4.00 MB"


def test_several_curves_differ_in_colour_and_dashes_and_are_named(ax: Axes) -> None:
    curves = {"keeps": STEP, "mended": [(0.0, 1e6), (0.003, 1e6)]}

    plotting.memory(curves, title="t", xlabel="step", xunit=lambda x: f"{x:g}", ax=ax)

    keeps, mended = ax.lines
    assert keeps.get_color() != mended.get_color()
    assert keeps.get_linestyle() != mended.get_linestyle()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["keeps", "mended"]
    assert ax.xaxis.get_major_formatter()(2, 0) == "2"


def test_what_is_expected_is_named_above_the_picture_and_covers_no_curve(ax: Axes) -> None:
    plotting.memory({"one step": STEP}, title="t", expected={"by hand": 11e6}, ax=ax)

    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one step", "by hand"]
    assert not ax.texts
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().y0 >= ax.bbox.y1 - 1
    assert ax.title.get_window_extent().y0 >= ax.get_legend().get_window_extent().y1 - 8


def test_one_curve_alone_needs_no_legend(ax: Axes) -> None:
    plotting.memory({"one step": STEP}, title="t", ax=ax)

    assert ax.get_legend() is None


def test_a_size_may_have_held_since_the_last_x(ax: Axes) -> None:
    text = plotting.memory({"steps": STEP}, title="t", ylabel="RSS", where="pre", ax=ax)

    assert ax.lines[0].get_drawstyle() == "steps-pre"
    assert "y axis: RSS." in text
    with pytest.raises(ValueError, match="where must be 'post' or 'pre', but 'mid' came"):
        plotting.memory({"steps": STEP}, title="t", where="mid", ax=ax)


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ({}, "curves must hold at least one curve, but none came"),
        ({"a": [(0.0, 1.0)]}, "curves['a'] must hold at least two points, but 1 came"),
        ({"a": [(0.0, 1.0), (1.0,)]}, "curves['a'] must hold (x, bytes), not (1.0,)"),
        ({"a": [(0.0, 1.0), (1.0, -1.0)]}, "a finite x and at least 0 bytes, but (1.0, -1.0)"),
        ({"a": [(0.0, 1.0), (float("nan"), 1.0)]}, "a finite x and at least 0 bytes"),
        ({"a": [(0.0, 1.0), (1.0, float("inf"))]}, "a finite x and at least 0 bytes"),
        ({"a": [(1.0, 1.0), (0.0, 1.0)]}, "curves['a'] must be in order of x"),
    ],
)
def test_wrong_input_is_refused_by_name(ax: Axes, curves: dict, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        plotting.memory(curves, title="t", ax=ax)
