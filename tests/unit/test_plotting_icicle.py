"""The icicle of ``helpers.plotting``: what its text says, what it draws, what it refuses."""

import math

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers import plotting, units
from tools import notebooks

STEP = {
    ("step",): 0.002,
    ("step", "forward"): 0.001,
    ("step", "forward", "conv2d"): 0.020,
    ("step", "forward", "max_pool2d"): 0.030,
    ("step", "backward", "run_backward"): 0.060,
}


@pytest.fixture
def ax() -> Axes:
    return Figure(figsize=(7.2, 3)).add_subplot()


def boxes(ax: Axes) -> list[tuple[float, float, float]]:
    """(left, row, width) of every box, in milliseconds."""
    return [
        (round(box.get_x() * 1e3, 6), box.get_y(), round(box.get_width() * 1e3, 6))
        for box in ax.patches
    ]


def test_the_text_says_what_the_picture_shows(ax: Axes) -> None:
    text = plotting.icicle(STEP, title="One step", ax=ax)

    assert text == (
        "Icicle chart. Title: One step. x axis: time; y axis: depth of call. 3 rows; "
        "row 1: step ~113 ms; row 2: forward ~51.0 ms, backward ~60.0 ms; "
        "the widest way down: ~[step > backward > run_backward], its last box ~60.0 ms."
    )


def test_a_box_is_as_wide_as_all_below_it_and_its_own(ax: Axes) -> None:
    plotting.icicle(STEP, title="t", ax=ax)

    assert boxes(ax) == [
        (0, 0, 113), (0, 1, 51), (0, 2, 20), (20, 2, 30), (51, 1, 60), (51, 2, 60),
    ]  # fmt: skip
    assert ax.get_xlim() == pytest.approx((0, 0.113))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "2", "3"]


def test_a_box_is_darker_the_more_of_it_is_its_own(ax: Axes) -> None:
    plotting.icicle({("a",): 1.0, ("a", "b"): 2.0}, title="t", ax=ax)
    a_third, all_of_it = (sum(box.get_facecolor()[:3]) for box in ax.patches)

    assert all_of_it < a_third


def test_a_stack_may_come_before_its_callers(ax: Axes) -> None:
    text = plotting.icicle({("a", "b"): 3, ("a",): 4}, title="t", unit=units.number, ax=ax)

    assert "row 1: a ~7.00; row 2: b ~3.00; the widest way down: ~[a > b]" in text
    assert boxes(ax)[0] == (0, 0, 7000)


def test_several_outermost_calls_stand_side_by_side(ax: Axes) -> None:
    text = plotting.icicle({("main", "a"): 1.0, ("loader", "b"): 2.0}, title="t", ax=ax)

    assert "row 1: main ~1.00 s, loader ~2.00 s; row 2: a ~1.00 s, b ~2.00 s" in text
    assert boxes(ax) == [(0, 0, 1000), (0, 1, 1000), (1000, 0, 2000), (1000, 1, 2000)]


def test_rows_limit_the_depth_but_not_the_widths(ax: Axes) -> None:
    text = plotting.icicle(STEP, title="t", rows=2, ax=ax)

    assert boxes(ax) == [(0, 0, 113), (0, 1, 51), (51, 1, 60)]
    assert "2 rows; row 1" in text
    assert "~[step > backward], its last box ~60.0 ms" in text
    assert plotting.icicle(STEP, title="t", rows=1, ax=ax).endswith(
        "~[step], its last box ~113 ms."
    )


def test_a_label_is_written_where_it_fits(ax: Axes) -> None:
    stacks = {("a",): 1.0, ("a", "a_rather_long_name"): 0.07, ("a", "b" * 200): 5.0}
    plotting.icicle(stacks, title="t", ax=ax)
    written = [text.get_text() for text in ax.texts]

    assert len(written) == 2
    assert written[0] == "a"
    assert written[1].endswith("b…")
    assert len(written[1]) < 100


def test_brackets_in_a_name_do_not_end_the_mark(ax: Axes) -> None:
    text = plotting.icicle({("a[0]", "b]"): 1.0}, title="t", ax=ax)

    assert "~[a(0) > b)]" in text
    assert notebooks.sanitised(text).endswith("the widest way down:~[name], its last box~#s.")


@pytest.mark.parametrize(
    ("stacks", "error", "message"),
    [
        ({}, ValueError, "stacks must hold at least one stack"),
        ({(): 1.0}, TypeError, r"tuple of names, as \('main', 'forward'\), but \(\) came"),
        ({"main": 1.0}, TypeError, "tuple of names.* but 'main' came"),
        ({("main", 3): 1.0}, TypeError, r"tuple of names.* but \('main', 3\) came"),
        ({("main", ""): 1.0}, TypeError, "tuple of names"),
        ({("main",): -1.0}, ValueError, r"stacks\[\('main',\)\] must be .* zero or more, but -1.0"),
        ({("main",): math.nan}, ValueError, "zero or more, but nan came"),
        ({("main",): math.inf}, ValueError, "zero or more, but inf came"),
        ({("main",): "1"}, TypeError, r"stacks\[\('main',\)\] must be a number.* but '1' came"),
        ({("main",): True}, TypeError, "must be a number.* but True came"),
        ({("main",): 0.0}, ValueError, "at least one weight above zero"),
    ],
)
def test_wrong_stacks_are_refused(stacks: dict, error: type, message: str, ax: Axes) -> None:
    with pytest.raises(error, match=message):
        plotting.icicle(stacks, title="t", ax=ax)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (0, ValueError, "rows must be at least 1, but 0 came"),
        (2.5, TypeError, "rows must be a whole number, but 2.5 came"),
        (True, TypeError, "rows must be a whole number, but True came"),
    ],
)
def test_wrong_rows_are_refused(rows: object, error: type, message: str, ax: Axes) -> None:
    with pytest.raises(error, match=message):
        plotting.icicle(STEP, title="t", rows=rows, ax=ax)
