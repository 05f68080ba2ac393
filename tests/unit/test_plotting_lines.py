"""The line heat map of ``helpers.plotting``: what its text says, what it draws, what it refuses."""

import re

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from helpers import plotting

LINES = [
    "    def erase(images):",
    "        # a comment",
    "        for image in images:",
    "            image.zero_()",
]
TIMES = {12: 0.001, 13: 0.003}


@pytest.fixture
def ax() -> Axes:
    return Figure(figsize=(7.2, 3)).add_subplot()


def test_the_text_lists_the_timed_lines_and_their_shares(ax: Axes) -> None:
    text = plotting.line_heat_map(LINES, TIMES, first=10, title="Erasing", ax=ax)

    assert text == (
        "Line heat map. Title: Erasing. x axis: share of the time. "
        "4 lines, of which 2 with a time: "
        "line 12, for image in images:: ~25.0 %; line 13, image.zero_(): ~75.0 %."
    )


def test_every_line_is_shown_under_its_number_without_the_common_indent(ax: Axes) -> None:
    plotting.line_heat_map(LINES, TIMES, first=10, title="t", ax=ax)

    assert [label.get_text() for label in ax.get_yticklabels()] == ["10", "11", "12", "13"]
    written = [text.get_text() for text in ax.texts]
    assert [text for text in written if "%" not in text] == [line[4:] for line in LINES]
    assert [text for text in written if "%" in text] == ["25.0%", "75.0%"]


def test_the_first_line_is_on_top_and_bars_are_shares(ax: Axes) -> None:
    plotting.line_heat_map(LINES, TIMES, first=10, title="t", ax=ax)

    bottom, top = ax.get_ylim()
    assert bottom > top
    bars = [patch for patch in ax.patches if patch.get_x() == 0]
    assert [bar.get_width() for bar in bars] == pytest.approx([0.25, 0.75])
    assert [bar.get_y() + bar.get_height() / 2 for bar in bars] == pytest.approx([2, 3])


def test_the_ground_is_darker_the_more_time_a_line_took(ax: Axes) -> None:
    plotting.line_heat_map(["cheap", "dear", "free"], {1: 1.0, 2: 9.0, 3: 0.0}, title="t", ax=ax)

    grounds = [sum(p.get_facecolor()[:3]) for p in ax.patches if p.get_x() > 0]
    assert grounds[1] < grounds[0] < grounds[2] == pytest.approx(3)  # white


def test_one_line_alone_has_all_the_time_and_the_full_colour(ax: Axes) -> None:
    text = plotting.line_heat_map(["work()"], {1: 0.5}, title="t", ax=ax)

    assert "line 1, work(): ~100 %" in text
    assert ax.patches[0].get_facecolor()[:3] == pytest.approx(to_rgb(plotting.ORANGE))


def test_a_long_line_is_cut_on_the_picture_and_whole_in_the_text(ax: Axes) -> None:
    line = "x = " + " + ".join(["value"] * 30)

    text = plotting.line_heat_map([line], {1: 1.0}, title="t", ax=ax)

    assert line in text
    assert any(shown.get_text().endswith("…") for shown in ax.texts)


def test_blank_lines_do_not_count_for_the_indent(ax: Axes) -> None:
    plotting.line_heat_map(["    a", "", "    b"], {1: 1.0}, title="t", ax=ax)

    assert [text.get_text() for text in ax.texts if "%" not in text.get_text()] == ["a", "", "b"]


@pytest.mark.parametrize(
    ("lines", "times", "first", "error", "message"),
    [
        ("a\nb", {1: 1.0}, 1, TypeError, "one string came: use splitlines()"),
        (["a", 7], {1: 1.0}, 1, TypeError, "lines must be strings, but a int came: 7"),
        ([], {1: 1.0}, 1, ValueError, "lines must hold at least one line of code, but none came"),
        (["", "  "], {1: 1.0}, 1, ValueError, "at least one line of code, but none came"),
        (["a"], {1: 1.0}, "1", TypeError, "first must be a line number, but '1' came"),
        (["a"], {1: 1.0}, True, TypeError, "first must be a line number, but True came"),
        (["a", "b"], {3: 1.0}, 1, ValueError, "of the lines 1 to 2, but a time of line 3 came"),
        (["a", "b"], {9: 1.0}, 10, ValueError, "of the lines 10 to 11, but a time of line 9 came"),
        (["a"], {1: "0.5"}, 1, TypeError, "times[1] must be a number, but '0.5' came"),
        (["a"], {1: True}, 1, TypeError, "times[1] must be a number, but True came"),
        (["a"], {1: -1.0}, 1, ValueError, "times[1] must be zero or more seconds, but -1.0 came"),
        (["a"], {1: float("nan")}, 1, ValueError, "zero or more seconds, but nan came"),
        (["a"], {1: float("inf")}, 1, ValueError, "zero or more seconds, but inf came"),
        (["a"], {1: 0.0}, 1, ValueError, "times must hold at least one time above zero"),
        (["a"], {}, 1, ValueError, "times must hold at least one time above zero"),
    ],
)
def test_wrong_input_is_refused_by_name(
    ax: Axes, lines: object, times: dict, first: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        plotting.line_heat_map(lines, times, first=first, title="t", ax=ax)
