import math
import re
from functools import partial

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from helpers import units
from helpers.plotting import _canvas, icicle, line_heat_map, timeline
from tools import notebooks

TRACK = [(10.0, 0.008, "forward", 0), (10.001, 0.004, "conv2d", 1), (10.008, 0.012, "backward", 0)]
LOADER = [(10.002, 0.003, "next batch", 0)]
STEP = {
    ("step",): 0.002,
    ("step", "forward"): 0.001,
    ("step", "forward", "conv2d"): 0.020,
    ("step", "forward", "max_pool2d"): 0.030,
    ("step", "backward", "run_backward"): 0.060,
}
LINES = """
    def erase(images):
        # a comment
        for image in images:
            image.zero_()""".splitlines()[1:]
TIMES = {12: 0.001, 13: 0.003}


def yticks(ax: Axes) -> list[tuple[float, str]]:
    texts = [label.get_text() for label in ax.get_yticklabels()]
    return list(zip(ax.get_yticks().tolist(), texts, strict=True))


def spans(ax: Axes) -> list[tuple[float, float, float, float]]:
    """(left, right, top, bottom) of every span of a timeline, in ms and rows."""
    corners = [bar.get_paths()[0].vertices for bar in ax.collections]
    ends = [(*(1e3 * c[:, 0]).round(6), *c[:, 1].round(6)) for c in corners]
    return [(min(e[:4]), max(e[:4]), min(e[5:]), max(e[5:])) for e in ends]


def boxes(ax: Axes) -> list[tuple[float, float, float]]:
    """(left, row, width) of every box of an icicle, in milliseconds."""
    return [
        (round(box.get_x() * 1e3, 6), box.get_y(), round(box.get_width() * 1e3, 6))
        for box in ax.patches
    ]


def fits(text: Text, left: float, right: float) -> bool:
    """Whether a label stays between two x of its axes, as drawn."""
    text.figure.draw_without_rendering()
    box = text.get_window_extent().transformed(text.axes.transData.inverted())
    return left <= box.x0 and box.x1 <= right


def test_the_timeline_s_text_says_what_the_picture_shows(ax: Axes) -> None:
    text = timeline({"main": TRACK, "loader": LOADER}, title="One step", ax=ax)
    assert text == (
        "Timeline. Title: One step. x axis: time. 2 tracks over ~20.0 ms. "
        "main: 3 spans, nested 2 deep; "
        "outermost: forward from ~0 s for ~8.00 ms, backward from ~8.00 ms for ~12.0 ms; "
        "loader: 1 span, nested 1 deep; outermost: next batch from ~2.00 ms for ~3.00 ms."
    )


def test_a_span_lies_where_it_ran_in_a_row_of_its_track_and_depth(ax: Axes) -> None:
    timeline({"main": TRACK, "loader": LOADER, "last": LOADER}, title="t", ax=ax)
    assert spans(ax) == [
        (0, 8, 0, 0.9), (1, 5, 1, 1.9), (8, 20, 0, 0.9), (2, 5, 2.6, 3.5), (2, 5, 4.2, 5.1),
    ]  # fmt: skip
    assert ax.get_xlim() == pytest.approx((0, 0.020))
    assert ax.get_ylim() == pytest.approx((5.3, -0.1))  # the first on top
    assert yticks(ax) == [(1, "main"), (pytest.approx(3.1), "loader"), (pytest.approx(4.7), "last")]
    assert [line.get_ydata()[0] for line in ax.lines] == pytest.approx([2.25, 3.85])  # between
    assert ax.xaxis.get_major_formatter()(2e-3, 0) == "2.00 ms"
    assert max(tick.tick1line.get_markersize() for tick in ax.yaxis.get_major_ticks()) == 0


def test_depths_differ_in_colour_and_neighbours_in_lightness(ax: Axes) -> None:
    several = [(float(depth), 9.0, f"level {depth}", depth) for depth in reversed(range(8))]
    text = timeline({"main": [*several, (9.0, 1.0, "next", 0)]}, title="t", ax=ax)
    assert "9 spans, nested 8 deep; outermost: level 0 from ~0 s" in text
    colours = [tuple(bar.get_facecolor()[0][:3]) for bar in ax.collections]
    assert len(set(colours)) == 5
    assert colours[0] == colours[5] == colours[8]
    alphas = [bar.get_facecolor()[0][3] for bar in ax.collections]
    assert alphas == [1] * 8 + [0.75]  # "next" follows on level 0
    dark = {to_rgb("white"): "white", to_rgb("black"): "black"}
    inks = [dark[to_rgb(text.get_color())] for text in ax.texts]
    assert inks[:6] == ["white", "black", "black", "black", "black", "white"]


def test_of_two_spans_that_touch_one_is_lighter_and_those_apart_look_alike(ax: Axes) -> None:
    touching = [(0.0, 3.0, "a", 0), (1.0, 1.0, "in a", 1), (3.0, 3.0, "b", 0), (6.0, 1.0, "c", 0)]
    apart = [(8.0, 0.5, "d", 0), (9.0, 0.5, "e", 0), (9.6, 0.005, "a tick", 0)]
    timeline({"main": [*touching, *apart], "loader": [(7.0, 1.0, "f", 0)]}, title="t", ax=ax)
    alphas = [bar.get_facecolor()[0][3] for bar in ax.collections]
    assert alphas == [1, 1, 0.75, 1, 1, 1, 1, 1]
    edges = [bar.get_linewidth()[0] for bar in ax.collections]
    assert edges == [0.5] * 6 + [0, 0.5]  # none on a tick, which it would hide
    assert to_rgb(ax.collections[0].get_edgecolor()[0][:3]) == to_rgb("white")


def test_as_much_of_a_label_is_written_as_fits(ax: Axes) -> None:
    several = [(0.0, 8.0, "wide", 0), (8.0, 1.0, "too long to fit", 0), (9.0, 0.001, "no room", 0)]
    timeline({"main": several}, title="t", ax=ax)
    wide, cut = ax.texts
    assert (wide.get_text(), wide.get_position()) == ("wide", (4, 0.45))
    assert cut.get_text() in [f"{'too long to fit'[:letters]}…" for letters in range(3, 14)]
    assert cut.get_position() == (8.5, 0.45)
    assert fits(cut, 8, 9)


def test_a_short_label_is_written_whole_where_its_beginning_would_say_nothing(ax: Axes) -> None:
    timeline({"main": [(0.0, 0.4, "7", 0), (5.0, 0.4, "seven", 0), (9.6, 0.4, "", 0)]},
             title="t", ax=ax)  # fmt: skip
    assert [label.get_text() for label in ax.texts if label.get_text()] == ["7"]
    assert fits(ax.texts[0], 0, 0.4)


def test_a_long_track_lists_twelve_spans_and_counts_the_others(ax: Axes) -> None:
    several = [(float(i), 0.5, f"step {i}", 0) for i in range(15)]
    text = timeline({"main": several}, title="t", ax=ax)
    assert "step 11 from ~11.0 s for ~500 ms, and 3 more." in text
    assert timeline({"a": several[:12]}, title="t", ax=ax).endswith("for ~500 ms.")
    assert "outermost: none." in timeline({"a": [(0, 1, "b", 1)]}, title="t", ax=ax)


def test_the_icicle_s_text_says_what_the_picture_shows(ax: Axes) -> None:
    text = icicle(STEP, title="One step", ax=ax)
    assert text == (
        "Icicle chart. Title: One step. x axis: time; y axis: depth of call. 3 rows; "
        "row 1: step ~113 ms; row 2: forward ~51.0 ms, backward ~60.0 ms; "
        "the widest way down: ~[step > backward > run_backward], its last box ~60.0 ms."
    )


def test_a_box_is_as_wide_as_all_below_it_and_its_own(ax: Axes) -> None:
    icicle(STEP, title="t", ax=ax)
    assert boxes(ax) == [
        (0, 0, 113), (0, 1, 51), (0, 2, 20), (20, 2, 30), (51, 1, 60), (51, 2, 60),
    ]  # fmt: skip
    assert {box.get_height() for box in ax.patches} == {1}
    assert ax.get_xlim() == pytest.approx((0, 0.113))
    assert ax.get_ylim() == (3, 0)
    assert yticks(ax) == [(0.5, "1"), (1.5, "2"), (2.5, "3")]
    assert ax.xaxis.get_major_formatter()(2e-3, 0) == "2.00 ms"
    assert max(tick.tick1line.get_markersize() for tick in ax.yaxis.get_major_ticks()) == 0


def test_a_label_stands_in_the_middle_of_its_box(ax: Axes) -> None:
    icicle(STEP, title="t", ax=ax)
    places = {text.get_text(): text.get_position() for text in ax.texts}
    for (left, row, width), (*_, name) in zip(
        boxes(ax), [*list(STEP)[:4], ("backward",), ("run_backward",)], strict=True
    ):
        assert places[name] == pytest.approx(((left + width / 2) / 1e3, row + 0.5))
    assert all(fits(text, 0, 0.113) for text in ax.texts)


def test_a_box_is_darker_the_more_of_it_is_its_own(ax: Axes) -> None:
    icicle({("a",): 1.0, ("a", "bbbb"): 8.0, ("a", "cccc", "dddd"): 2}, title="t", ax=ax)
    shades = [sum(box.get_facecolor()[:3]) for box in ax.patches]
    assert [shades[1], shades[3]] == [pytest.approx(sum(to_rgb(_canvas.BLUE)))] * 2
    assert 3 - shades[2] == pytest.approx(0.12 * (3 - shades[1]))
    assert shades[2] > shades[0] > shades[1]  # c has nothing of its own, b all
    inks = {text.get_text(): text.get_color() for text in ax.texts}
    assert inks == {"bbbb": "white", "cccc": "black", "dddd": "white", "a": "black"}


def test_a_stack_may_come_before_its_callers(ax: Axes) -> None:
    text = icicle({("a", "b"): 3, ("a",): 4}, title="t", unit=units.number, ax=ax)
    assert "row 1: a ~7.00; row 2: b ~3.00; the widest way down: ~[a > b]" in text
    assert boxes(ax)[0] == (0, 0, 7000)


def test_several_outermost_calls_stand_side_by_side(ax: Axes) -> None:
    text = icicle({("main", "a"): 1.0, ("loader", "b"): 2.0}, title="t", ax=ax)
    assert "row 1: main ~1.00 s, loader ~2.00 s; row 2: a ~1.00 s, b ~2.00 s" in text
    assert "~[loader > b], its last box ~2.00 s" in text
    assert boxes(ax) == [(0, 0, 1000), (0, 1, 1000), (1000, 0, 2000), (1000, 1, 2000)]


def test_rows_limit_the_depth_but_not_the_widths(ax: Axes) -> None:
    text = icicle(STEP, title="t", rows=2, ax=ax)
    assert boxes(ax) == [(0, 0, 113), (0, 1, 51), (51, 1, 60)]
    assert ". 2 rows; row 1" in text
    assert "~[step > backward], its last box ~60.0 ms" in text
    text = icicle(STEP, title="t", rows=1, ax=ax)
    assert text.endswith(
        "1 rows; row 1: step ~113 ms; the widest way down: ~[step], its last box ~113 ms."
    )
    text = icicle({tuple("abcdefghijkl"): 1}, title="t", ax=ax)
    assert ". 10 rows; " in text


def test_a_label_is_written_where_it_fits_and_a_box_where_it_can_be_seen(ax: Axes) -> None:
    stacks = {("a",): 1, ("a", "long_name"): 0.07, ("a", "b" * 200): 5, ("a", "c"): 1e-4}
    text = icicle(stacks, title="t", ax=ax)
    assert "c ~100 µs" in text
    assert len(boxes(ax)) == 3
    whole, cut = ax.texts
    assert (whole.get_text(), cut.get_text()) == ("a", f"{'b' * (len(cut.get_text()) - 1)}…")
    assert 60 < len(cut.get_text()) < 100
    assert fits(cut, 0.07, 5.07)


def test_brackets_in_a_name_do_not_end_the_mark(ax: Axes) -> None:
    text = icicle({("a[0]", "b]"): 1.0}, title="t", ax=ax)
    assert "~[a(0) > b)]" in text
    assert notebooks.sanitised(text).endswith("the widest way down:~[name], its last box~#s.")


def test_the_heat_map_s_text_lists_the_timed_lines_and_their_shares(ax: Axes) -> None:
    text = line_heat_map(LINES, TIMES, first=10, title="Erasing", ax=ax)
    assert text == (
        "Line heat map. Title: Erasing. x axis: share of the time. "
        "4 lines, of which 2 with a time: "
        "line 12, for image in images:: ~25.0 %; line 13, image.zero_(): ~75.0 %."
    )


def test_every_line_is_shown_under_its_number_without_the_common_indent(ax: Axes) -> None:
    lines = [*LINES, "", "    " + "x" * 84, "    " + "y" * 85]
    text = line_heat_map(lines, {**TIMES, 16: 0}, first=10, title="t", ax=ax)
    assert f"; line 16, {'y' * 85}: ~0 %." in text  # cut on the picture and whole in the text
    assert yticks(ax) == [(row, str(10 + row)) for row in range(7)]
    assert ax.get_ylim() == (6.5, -0.5)  # the first on top
    written = [(text.get_text(), text.get_position()[1]) for text in ax.texts]
    code = [line[4:] for line in LINES]
    assert [pair for pair in written if "%" not in pair[0]] == [
        *zip([*code, "", "x" * 84, "y" * 83 + "…"], range(7), strict=True)
    ]
    assert [pair for pair in written if "%" in pair[0]] == [("25.0%", 2), ("75.0%", 3), ("0.0%", 6)]
    assert {text.get_family()[0] for text in ax.texts if "%" not in text.get_text()} == {
        "monospace"
    }


def test_bars_are_shares_and_the_code_stands_beside_them(ax: Axes) -> None:
    line_heat_map(LINES, TIMES, first=10, title="t", ax=ax)
    bars = [patch for patch in ax.patches if patch.get_x() == 0]
    assert [bar.get_width() for bar in bars] == pytest.approx([0.25, 0.75])
    assert [bar.get_y() + bar.get_height() / 2 for bar in bars] == pytest.approx([2, 3])
    grounds = [patch for patch in ax.patches if patch.get_x() > 1]
    assert [ground.get_y() + ground.get_height() / 2 for ground in grounds] == pytest.approx([2, 3])
    assert {ground.get_x() + ground.get_width() for ground in grounds} == {ax.get_xlim()[1]}
    code = [text.get_position()[0] for text in ax.texts if "%" not in text.get_text()]
    assert min(code) > grounds[0].get_x()
    assert max(t.get_position()[0] for t in ax.texts if "%" in t.get_text()) < grounds[0].get_x()
    assert ax.get_xlim()[0] == 0
    ticks = [label.get_text() for label in ax.get_xticklabels()]
    assert [*zip(ax.get_xticks(), ticks, strict=True)] == [(0, "0"), (0.5, "50 %"), (1, "100 %")]
    assert ax.spines["bottom"].get_bounds() == (0, 1)
    assert ax.xaxis.label.get_horizontalalignment() == "left"
    assert max(tick.tick1line.get_markersize() for tick in ax.yaxis.get_major_ticks()) == 0


def test_the_ground_is_darker_the_more_time_a_line_took(ax: Axes) -> None:
    line_heat_map(["cheap", "dear", "free"], {1: 1.0, 2: 9.0, 3: 0.0}, title="t", ax=ax)
    grounds = [sum(p.get_facecolor()[:3]) for p in ax.patches if p.get_x() > 0]
    orange = sum(to_rgb(_canvas.ORANGE))
    assert grounds == pytest.approx([3 - (3 - orange) * share for share in (0.1, 0.9, 0)])


def test_each_shows_a_figure_of_its_own(shown: list[dict]) -> None:
    timeline({"main": TRACK, "loader": LOADER}, title="t")
    icicle(STEP, title="t")
    line_heat_map(LINES, TIMES, first=10, title="t")
    kinds = [data["text/plain"].split(".")[0] for data in shown]
    assert kinds == ["Timeline", "Icicle chart", "Line heat map"]


@pytest.mark.parametrize(
    ("chart", "arguments", "message"),
    [
        (timeline, [{}], "tracks must hold at least one track, but none came"),
        (timeline, [{"m": []}], "tracks['m'] must hold at least one span, but none came"),
        (timeline, [{"m": [(0, 1, "f")]}], "must hold (start, duration, label, depth), not (0"),
        (timeline, [{"m": [(0, -1, "f", 0)]}], "duration of 'f' of tracks['m'] must be"),
        (timeline, [{"m": [(math.nan, 1, "f", 0)]}], "start of 'f' of tracks['m'] must be"),
        (timeline, [{"m": [(0, 1, 7, 0)]}], "tracks['m'] must have strings as labels, but 7 came"),
        (timeline, [{"m": [(0, 1, "f", -1)]}], "depth of 'f' of tracks['m'] must be"),
        (timeline, [{"m": [(3, 0, "f", 0)]}], "at least one span that lasts longer than 0 s"),
        (icicle, [{}], "stacks must hold at least one stack"),
        (icicle, [{(): 1.0}], "tuple of names, as ('main', 'forward'), but () came"),
        (icicle, [{"main": 1.0}], "a key of stacks must be a tuple of names"),
        (icicle, [{("main", 3): 1.0}], "but ('main', 3) came"),
        (icicle, [{("main", ""): 1.0}], "a key of stacks must be a tuple of names"),
        (icicle, [{("main",): -1.0}], "stacks[('main',)] must be a number, finite and"),
        (icicle, [{("main",): 0.0}], "stacks must hold at least one weight above zero"),
        (partial(icicle, rows=0), [STEP], "rows must be a whole number, at least 1, but 0 came"),
        (line_heat_map, ["a\nb", {1: 1.0}], "one string came: use splitlines()"),
        (line_heat_map, [["a", 7], {1: 1.0}], "lines must be strings, but a int came: 7"),
        (line_heat_map, [["", "  "], {1: 1.0}], "at least one line of code, but none came"),
        (partial(line_heat_map, first=-1), [["a"], {}], "first must be a line number, at least 0"),
        (line_heat_map, [["a", "b"], {3: 1.0}], "of the lines 1 to 2, but a time of line 3 came"),
        (partial(line_heat_map, first=10), [["a", "b"], {9: 1}], "of the lines 10 to 11, but"),
        (line_heat_map, [["a"], {1: -1.0}], "times[1] must be a time in seconds, finite and not"),
        (line_heat_map, [["a"], {1: 0.0}], "times must hold at least one time above zero"),
    ],
)
def test_wrong_input_is_refused_by_name(chart, arguments: list, message: str, ax: Axes) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        chart(*arguments, title="t", ax=ax)
