import math
import re

import pytest
from matplotlib.axes import Axes

from helpers import plotting

ROOF = {"compute": 100e9, "bandwidth": 20e9, "title": "T"}
STEP = [(0.0, 0.0), (0.001, 4e6), (0.002, 12e6), (0.003, 1e6)]


def test_the_roofline_s_text_says_where_every_point_lies(ax: Axes) -> None:
    text = plotting.roofline({"add": (1 / 12, 1e9), "product": (50, 80e9)}, ax=ax, **ROOF)
    assert text == (
        "Roofline. Title: T. x axis: arithmetic intensity in FLOP/B (log scale); "
        "y axis: rate (log scale). "
        "a roof that rises with ~20.0 GB/s and is flat at ~100 GFLOP/s from ~5.00 FLOP/B on; "
        "add at 0.0833 FLOP/B: ~1.00 GFLOP/s, ~60.0 % of the roof above it; "
        "product at 50 FLOP/B: ~80.0 GFLOP/s, ~80.0 % of the roof above it."
    )


@pytest.mark.parametrize(
    "points",
    [{"here": (5, 1e9)}, {"left": (1e-3, 1e6), "low": (1, 1e3)}, {"right": (1e4, 90e9)},
     {"left": (1e-3, 1e6), "above": (1e4, 150e9)}],
)  # fmt: skip
def test_every_point_and_the_roof_are_inside_the_picture(points: dict, ax: Axes) -> None:
    plotting.roofline(points, ax=ax, **ROOF)
    roof, ridge, *dots = ax.lines
    for intensity, rate in zip(*roof.get_data(), strict=True):
        assert rate == pytest.approx(min(100e9, intensity * 20e9))
    assert list(roof.get_xdata())[1] == ridge.get_xdata()[0] == 5
    assert [(dot.get_xdata()[0], dot.get_ydata()[0]) for dot in dots] == list(points.values())
    assert [dot.get_marker() for dot in dots] == ["o"] * len(points)
    assert (roof.get_linestyle(), ridge.get_linestyle()) == ("-", "--")
    xs, ys = ([5, *values] for values in zip(*points.values(), strict=True))
    lowest = min(*ys[1:], *roof.get_ydata())
    assert ax.get_xlim() == pytest.approx((min(xs) / 3, max(xs) * 5))  # room for names on the right
    assert ax.get_ylim() == pytest.approx((lowest / 3, 300e9))
    assert roof.get_xdata()[::2] == pytest.approx(ax.get_xlim())


def test_both_axes_of_the_roofline_are_logarithmic_with_units(ax: Axes) -> None:
    plotting.roofline({"a": (2, 1e9), "b": (3, 2e9)}, ax=ax, **ROOF)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.xaxis.get_major_formatter()(0.1, 0) == "0.1"
    assert ax.yaxis.get_major_formatter()(1e9, 0) == "1.00 GFLOP/s"
    assert ax.xaxis.get_minor_formatter()(1, 0) == ax.yaxis.get_minor_formatter()(1, 0) == ""
    named = {label.get_text(): label.xy for label in ax.texts}
    assert {"arithmetic: ~100 GFLOP/s", "memory: ~20.0 GB/s"} < set(named)
    assert (named["a"], named["b"]) == ((2, 1e9), (3, 2e9))


@pytest.mark.parametrize(
    ("right", "side"), [(1 / 8, "right"), (2.4 / 12, "right"), (2.6 / 12, "left")]
)
def test_labels_of_neighbours_are_written_to_both_sides(right: float, side: str, ax: Axes) -> None:
    plotting.roofline({"add": (1 / 12, 1e9), "ReLU": (right, 1e9)}, ax=ax, **ROOF)
    sides = {text.get_text(): text.get_ha() for text in ax.texts}
    assert (sides["add"], sides["ReLU"]) == (side, "left")


def test_a_label_to_the_left_is_written_off_the_roof(ax: Axes) -> None:
    points = {
        "add": (1 / 12, 1e9),
        "ReLU": (1 / 8, 1e9),
        "3 × 3": (90, 6e10),
        "product": (100, 9e10),
    }
    plotting.roofline(points, ax=ax, **ROOF)
    heights = {text.get_text(): text.get_va() for text in ax.texts}
    assert (heights["add"], heights["3 × 3"]) == ("bottom", "top")


def test_no_name_crosses_the_y_axis_and_the_ridge_ends_at_the_roof(ax: Axes) -> None:
    plotting.roofline({"ReLU": (1 / 8, 1.5e9), "addition": (1 / 12, 1e9)}, ax=ax, **ROOF)
    ax.figure.draw_without_rendering()
    (name,) = (text for text in ax.texts if text.get_text() == "addition")
    assert name.get_ha() == "right"
    assert name.get_window_extent().x0 > ax.bbox.x0
    _, ridge, *_ = ax.lines
    assert list(ridge.get_ydata()) == [pytest.approx(ax.get_ylim()[0]), 100e9]


def test_a_name_is_level_with_its_point_unless_the_roof_is_near(ax: Axes) -> None:
    points = {"slow": (300, 6e9), "less slow": (300, 1e10), "fast": (300, 9e10), "row": (4, 6e10)}
    plotting.roofline(points, ax=ax, **ROOF)
    ax.figure.draw_without_rendering()
    named = {text.get_text(): text for text in ax.texts}
    for key, dot in zip(points, ax.lines[2:], strict=True):
        box = named[key].get_window_extent()
        middle = ax.transData.transform(dot.get_xydata()[0])[1]
        level = (box.y0 + box.y1) / 2 == pytest.approx(middle, abs=3)
        assert level == ("slow" in key)
        assert box.y1 < middle or level
    assert named["row"].get_bbox_patch().get_facecolor()[:3] == (1, 1, 1)  # it hides the dashes


def test_the_memory_s_text_says_what_the_picture_shows(ax: Axes) -> None:
    text = plotting.memory({"one step": STEP}, title="A step", expected={"by hand": 11e6}, ax=ax)
    assert text == (
        "Memory curve. Title: A step. x axis: time; y axis: bytes in use. "
        "one step: first ~0 B, highest ~12.0 MB, last ~1.00 MB; "
        "a dashed line, by hand, at ~11.0 MB."
    )
    assert [*ax.lines[1].get_ydata(), ax.lines[1].get_linestyle()] == [11e6, 11e6, "--"]


def test_a_size_holds_until_it_changes(ax: Axes) -> None:
    plotting.memory({"one step": STEP}, title="t", ax=ax)
    (line,) = ax.lines
    assert line.get_drawstyle() == "steps-post"
    assert line.get_xydata().tolist() == [list(point) for point in STEP]
    filled = ax.collections[0].get_paths()[0].vertices.tolist()
    assert [0.002, 4e6] in filled
    assert [0.001, 12e6] not in filled
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > 12e6
    assert ax.yaxis.get_major_formatter()(4e6, 0) == "4.00 MB"
    assert ax.xaxis.get_major_formatter()(2e-3, 0) == "2.00 ms"
    assert ax.get_legend() is None


def test_several_curves_differ_in_colour_and_dashes_and_are_named(ax: Axes) -> None:
    curves = {name: [(0.0, size), (0.003, 1e6)] for size, name in enumerate("abcd")}
    plotting.memory(curves, title="t", ax=ax)
    looks = [(line.get_color(), line.get_linestyle()) for line in ax.lines]
    assert len({colour for colour, _ in looks}) == len({dashes for _, dashes in looks}) == 3
    assert looks[3] == looks[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("expected", [{"by hand": 11e6}, {"1": 1e6, "2": 2e6, "3": 3e6}])
def test_what_is_expected_is_named_above_the_picture_and_covers_no_curve(
    expected: dict, ax: Axes
) -> None:
    plotting.memory({"one step": STEP}, title="t", expected=expected, ax=ax)
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["one step", *expected]
    ax.figure.draw_without_rendering()
    assert legend.get_window_extent().y0 >= ax.bbox.y1 - 1
    assert ax.title.get_window_extent().y0 >= legend.get_window_extent().y1 - 8


def test_each_shows_a_figure_of_its_own(shown: list[dict]) -> None:
    plotting.roofline({"a": (1, 1e9), "b": (9, 1e9)}, **ROOF)
    plotting.memory({"a": STEP, "b": STEP}, title="t")
    kinds = [data["text/plain"].split(".")[0] for data in shown]
    assert kinds == ["Roofline", "Memory curve"]


@pytest.mark.parametrize(
    ("points", "ceilings", "message"),
    [
        ({}, {}, "points must hold at least one workload, but none came"),
        ({"a": (1.0,)}, {}, "points['a'] must be (intensity, rate), but (1.0,) came"),
        ({"a": (0.0, 1e9)}, {}, "points['a'][0] must be a rate or intensity, finite and positive"),
        ({"a": (1.0, 1e9)}, {"compute": -1.0}, "compute must be a rate in FLOP/s, finite and pos"),
        ({"a": (1.0, 1e9)}, {"bandwidth": 0}, "bandwidth must be a rate in B/s, finite and pos"),
    ],
)
def test_a_wrong_roofline(points: dict, ceilings: dict, message: str, ax: Axes) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        plotting.roofline(points, ax=ax, **{**ROOF, **ceilings})


@pytest.mark.parametrize(
    ("curves", "more", "message"),
    [
        ({}, {}, "curves must hold at least one curve, but none came"),
        ({"a": [(0.0, 1.0)]}, {}, "curves['a'] must hold two or more (seconds, bytes), but [(0"),
        (
            {"a": [(0.0, 1.0), (1.0,)]},
            {},
            "two or more (seconds, bytes), but [(0.0, 1.0), (1.0,)] c",
        ),
        ({"a": [(0.0, 1.0), (1.0, -1.0)]}, {}, "size of curves['a'][1] must be bytes, finite and"),
        (
            {"a": [(0.0, 1.0), (math.nan, 1.0)]},
            {},
            "x of curves['a'][1] must be a time in seconds, fin",
        ),
        ({"a": [(0, 1), (2, 1), (1, 1), (3, 1)]}, {}, "curves['a'] must be in order of time"),
        ({"a": STEP}, {"expected": {"b": -1}}, "expected['b'] must be bytes, finite and not neg"),
    ],
)
def test_wrong_memory(curves: dict, more: dict, message: str, ax: Axes) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        plotting.memory(curves, title="t", ax=ax, **more)
