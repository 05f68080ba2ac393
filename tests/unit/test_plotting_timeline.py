"""The timeline of ``helpers.plotting``: what its text says, what it draws, what it refuses."""

import re

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers import plotting

STEP = [
    (10.0, 0.008, "forward", 0),
    (10.001, 0.004, "conv2d", 1),
    (10.008, 0.012, "backward", 0),
]
LOADER = [(10.002, 0.003, "next batch", 0)]


@pytest.fixture
def ax() -> Axes:
    return Figure(figsize=(7.2, 3)).add_subplot()


def test_the_text_says_what_the_picture_shows(ax: Axes) -> None:
    text = plotting.timeline({"main": STEP, "loader": LOADER}, title="One step", ax=ax)

    assert text == (
        "Timeline. Title: One step. x axis: time. 2 tracks over ~20.0 ms. "
        "main: 3 spans, nested 2 deep; "
        "outermost: forward from ~0 s for ~8.00 ms, backward from ~8.00 ms for ~12.0 ms; "
        "loader: 1 span, nested 1 deep; outermost: next batch from ~2.00 ms for ~3.00 ms."
    )


def test_time_starts_at_the_earliest_span_and_ends_with_the_last(ax: Axes) -> None:
    plotting.timeline({"main": STEP, "loader": LOADER}, title="t", ax=ax)

    assert ax.get_xlim() == pytest.approx((0, 0.020))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["main", "loader"]


def test_the_first_track_is_on_top_and_nested_spans_lie_below(ax: Axes) -> None:
    plotting.timeline({"main": STEP, "loader": LOADER}, title="t", ax=ax)

    bottom, top = ax.get_ylim()
    assert bottom > top
    forward, conv2d, backward, loader = (bar.get_paths()[0].vertices for bar in ax.collections)
    assert forward[:, 1].max() < conv2d[:, 1].min()
    assert forward[:, 1].tolist() == backward[:, 1].tolist()
    assert conv2d[:, 1].max() < loader[:, 1].min()
    assert conv2d[:, 0].min() == pytest.approx(0.001)
    assert conv2d[:, 0].max() == pytest.approx(0.005)


def test_as_much_of_a_label_is_written_as_fits(ax: Axes) -> None:
    spans = [(0.0, 8.0, "wide", 0), (8.0, 1.0, "too long to fit", 0), (9.0, 0.001, "no room", 0)]

    plotting.timeline({"main": spans}, title="t", ax=ax)

    wide, cut = (text.get_text() for text in ax.texts)
    assert wide == "wide"
    assert cut in [f"{'too long to fit'[:letters]}…" for letters in range(3, 14)]


def test_a_long_track_lists_twelve_spans_and_counts_the_others(ax: Axes) -> None:
    spans = [(float(i), 0.5, f"step {i}", 0) for i in range(15)]

    text = plotting.timeline({"main": spans}, title="t", ax=ax)

    assert "step 11 from" in text
    assert "step 12 from" not in text
    assert ", and 3 more" in text


def test_spans_may_come_in_any_order_and_depths_beyond_the_palette(ax: Axes) -> None:
    spans = [(float(depth), 1.0, f"level {depth}", depth) for depth in reversed(range(8))]

    text = plotting.timeline({"main": spans}, title="t", ax=ax)

    assert "8 spans, nested 8 deep; outermost: level 0 from ~0 s" in text


@pytest.mark.parametrize(
    ("tracks", "error", "message"),
    [
        ({}, ValueError, "tracks must hold at least one track, but none came"),
        ({"main": []}, ValueError, "tracks['main'] must hold at least one span, but none came"),
        (
            {"main": [(0.0, 1.0, "forward")]},
            ValueError,
            "tracks['main'] must hold (start, duration, label, depth), not (0.0, 1.0, 'forward')",
        ),
        (
            {"main": [(0.0, -1.0, "forward", 0)]},
            ValueError,
            "durations of at least 0 s, but 'forward' starts at 0.0 and lasts -1.0",
        ),
        ({"main": [(float("nan"), 1.0, "forward", 0)]}, ValueError, "must have finite times"),
        ({"main": [(0.0, float("inf"), "forward", 0)]}, ValueError, "must have finite times"),
        ({"main": [(0.0, 1.0, 7, 0)]}, TypeError, "must have strings as labels, but 7 came"),
        ({"main": [(0.0, 1.0, "forward", -1)]}, ValueError, "'forward' has -1"),
        ({"main": [(0.0, 1.0, "forward", 0.5)]}, ValueError, "'forward' has 0.5"),
        (
            {"main": [(3.0, 0.0, "instant", 0)]},
            ValueError,
            "tracks must hold at least one span that lasts longer than 0 s",
        ),
    ],
)
def test_wrong_input_is_refused_by_name(
    ax: Axes, tracks: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        plotting.timeline(tracks, title="t", ax=ax)
