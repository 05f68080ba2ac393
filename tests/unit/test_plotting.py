"""Each picture says in its alt text what it shows, and wrong input is refused by name."""

import base64
import io
import re

import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.text import Text
from PIL import Image

from helpers import plotting, units
from helpers.plotting import bar_charts, limits

TRACK = [(10.0, 0.008, "forward", 0), (10.001, 0.004, "conv2d", 1), (10.008, 0.012, "backward", 0)]
STACKS = {
    ("step", "forward", "conv2d"): 0.020,  # comes before its caller
    ("step", "forward"): 0.001,
    ("step", "back[0]"): 0.060,
    ("loader",): 0.01,
}
LINES = [
    "    def erase(images):",
    "        # a comment",
    "        images.zero_()",
    "    " + 90 * "x",
]
ROOF = {"compute": 100e9, "bandwidth": 20e9}

PICTURES = {  # the arguments of a picture, and its alt text
    "spread": [
        ([{"it": [0.9, 1.0, 1.1, 1.2, 3.0]}], {"xlabel": "ratio", "reference": 1}),
        "Strip chart. Title: T. x axis: ratio (log scale). it: 5 samples, median ~1.10×, middle "
        "half ~1.00× to ~1.20×; a dashed line at 1.",
    ],
    "stacked_bars": [
        (
            [{"one": {"used": 2.0, "free": 1.0}, "two": {"free": 4.0}}],
            {"xlabel": "GiB", "unit": "{:.1f}".format, "limit": 3.0},
        ),
        "Stacked bars. Title: T. x axis: GiB. one: used 2.0, free 1.0; in all 3.0. two: free 4.0; "
        "in all 4.0. a dashed line at 3.0.",
    ],
    "profiler_shares": [
        ([{"new": [0.5, 0.4], "old": [0.2]}], {"without": 0.1, "xlabel": "share of it"}),
        "Dot chart. Title: T. x axis: share of it. a dashed line, without a profiler, at ~10.0 %; "
        "new: in the profile ~50.0 %, in the profiled run ~40.0 %; old: in the profile "
        "~20.0 %.",
    ],
    "points": [
        (
            [{"naive": (9.6, 97), "vectorised": (2.1, 71)}],
            {"xlabel": "time in ms", "ylabel": "throughput in %", "joined": True},
        ),
        "Dots joined by a line. Title: T. x axis: time in ms; y axis: throughput in %. 2 dots: "
        "naive at (9.6, 97); vectorised at (2.1, 71).",
    ],
    "roofline": [
        ([{"add": (1 / 12, 1e9), "ReLU": (1 / 8, 2e9), "product": (50, 80e9)}], ROOF),
        "Roofline. Title: T. x axis: arithmetic intensity in FLOP/B (log scale); y axis: rate "
        "(log scale). a roof that rises with ~20.0 GB/s and is flat at ~100 GFLOP/s from ~5.00 "
        "FLOP/B on; add at 0.0833 FLOP/B: ~1.00 GFLOP/s, ~60.0 % of the roof; ReLU at "
        "0.125 FLOP/B: ~2.00 GFLOP/s, ~80.0 % of the roof; product at 50 FLOP/B: ~80.0 "
        "GFLOP/s, ~80.0 % of the roof.",
    ],
    "against_limits": [
        ([{"far": (20.0, "~60.0×", "3×"), "none": (0.0, "~0 %", "50 %")}], {}),
        "Dot chart. Title: T. x axis: value / limit (log scale). a dashed line at 1×; 2 dots: far "
        "~60.0×, limit 3×; none ~0 %, limit 50 %.",
    ],
    "bars": [
        ([{"a": 2, "b": 12_345_678}], {"unit": "{:,}".format, "limit": ("true", 3)}),
        "Bar chart. Title: T. x axis: time. 2 bars: a 2; b 12,345,678; a dashed line, true, at 3.",
    ],
    "bar_rows": [
        (
            [pd.DataFrame({"MACs": [5, 5], "time": [1e-3, 0.0]}, index=["64,\n56", "b"])],
            {"unit": {"MACs": "{:,}".format, "time": units.seconds}},
        ),
        "2 rows of 2 bars. Title: T. MACs: 64, 56 5, b 5; time: 64, 56 ~1.00 ms, b ~0 s.",
    ],
    "bar_columns": [
        (
            [
                {
                    "time": {"conv": 0.2, "\u2060relu\u2060": 0.8},
                    "MACs": {"conv": 7, "\u2060relu\u2060": 0},
                }
            ],
            {"unit": {"time": units.percent, "MACs": "{:,}".format}},
        ),
        "2 columns of 2 bars. Title: T. time: conv ~20.0 %, \u2060relu\u2060 ~80.0 %; MACs: "
        "conv 7, \u2060relu\u2060 0.",
    ],
    "intervals": [
        ([{"new": (0.9, (0.8, 0.95))}], {"floor": 0.01}),
        "Forest plot. Title: T. x axis: CPU time of new / CPU time of old. a grey band from "
        "0.990 to 1.010; new: 0.900, from 0.800 to 0.950, faster.",
    ],
    "counts": [
        ([{"busy": {"mean": 2, "min": 18}}], {"out_of": 24, "xlabel": "right"}),
        "Coloured table. Title: T. x axis: right. of 24 each; busy: mean 2, min 18.",
    ],
    "outcomes": [
        (
            [{"-w": {"one": "accepted", "two": "accepted"}, "--" + 60 * "x": {"two": "refused"}}],
            {"wrong": ["refused", "passed on"]},
        ),
        f"Coloured table. Title: T. -w: one accepted, two accepted; --{60 * 'x'}: two refused.",
    ],
    "calls": [
        ([[0.002, 0.001, 0.001, 0.001]], {}),
        "Strip chart. Title: T. x axis: time of a call (log scale); y axis: call. ~4 dots; a "
        "dashed line, median ~1.00 ms; a dashed line, p95 ~1.85 ms.",
    ],
    "timeline": [
        ([{"main": TRACK, "loader": [(10.002, 0.003, "next batch", 0)]}], {}),
        "Timeline. Title: T. x axis: time. 2 tracks over ~20.0 ms. main: 3 spans, nested 2 deep; "
        "outermost: forward from ~0 s for ~8.00 ms, backward from ~8.00 ms for ~12.0 ms; loader: "
        "1 span, nested 1 deep; outermost: next batch from ~2.00 ms for ~3.00 ms.",
    ],
    "icicle": [
        ([STACKS], {"rows": 2}),
        "Icicle chart. Title: T. x axis: time; y axis: depth of call. 2 rows; row 1: step ~81.0 "
        "ms, loader ~10.0 ms; row 2: forward ~21.0 ms, back[0] ~60.0 ms; the widest way down: "
        "\u2060step > back[0]\u2060, its last box ~60.0 ms.",
    ],
    "errors": [
        (
            [{"conv": {"A": 0.0, "B": -1.0}, "net": {"A": 0.0594, "B": 0.0001}}],
            {"xlabel": "tool"},
        ),
        "Coloured table. Title: T. x axis: tool. conv: A exact, B −100.0 %; net: A +5.9 %, B "
        "about 0.",
    ],
    "line_heat_map": [
        ([LINES, {"old": {"images.zero_()": 0.003, 90 * "x": 0.001}, "new": {90 * "x": 0.1}}], {}),
        "Line heat map. Title: T. x axis: share of the time. 4 lines. "
        f"old, 2 with a time: images.zero_(): ~75.0 %; {90 * 'x'}: ~25.0 %. "
        f"new, 1 with a time: {90 * 'x'}: ~100 %.",
    ],
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_what_it_shows(name: str, shown: list[dict]) -> None:
    (arguments, options), text = PICTURES[name]
    getattr(plotting, name)(*arguments, title="T", **options)
    assert [data["text/plain"] for data in shown] == [text]


def test_a_picture_is_an_image_with_alt_text_whatever_a_reader_s_settings(
    shown: list[dict],
) -> None:
    with rc_context({"savefig.format": "svg", "savefig.facecolor": "black"}):
        plotting.bars({"a": 1.0, "b": 3.0}, title='"a" < b & c', xlabel="time")
    pattern = r'<style>.*?</style><img class="course-chart" alt="([^"]*)" width="691" '
    pattern += r'src="data:image/png;base64,(.*)">'
    alt, encoded = re.fullmatch(pattern, shown[0]["text/html"]).groups()
    assert "&quot;a&quot; &lt; b &amp; c" in alt
    png = base64.b64decode(encoded)
    picture = Image.open(io.BytesIO(png))
    assert picture.getpixel((0, 0))[:3] == (255, 255, 255)
    assert picture.getcolors(10**6)[0][0] < picture.width * picture.height  # not all white
    assert b"Software" not in png  # which would name a version


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("histogram", [[1, -1]], {}, "samples[1] must be a sample on a log axis, finite and posi"),
        ("bars", [{"a": 0.0}], {"log": True}, "values['a'] must be the length of a bar, finite"),
        ("strip", [{"a": ["x"], "b": []}], {"xlabel": "x"}, "['b'] must hold 1 labels, but got 0"),
        ("spread", [{"a": []}], {"xlabel": "x", "reference": 1}, "groups['a'] must hold at least"),
        (
            "profiler_shares",
            [{"a": [0.5, -0.1]}],
            {"without": 0.1, "xlabel": "x"},
            "rows['a'][1] must be a share, finite and not negative",
        ),
        ("roofline", [{"a": (1.0,)}], ROOF, "points['a'] must be (intensity, rate), but got (1"),
        ("against_limits", [{"a": (-1.0, "", "")}], {}, "rows['a'] must be a quotient, finite and"),
        ("bar_columns", [{"time": {}}], {}, "columns['time'] must hold at least one value"),
        (
            "bar_columns",
            [{"a": {"x": 1.0}, "b": {"y": 1.0}}],
            {},
            "columns['b'] must have the keys",
        ),
        ("bar_rows", [{"a": {"x": -1.0}}], {}, "rows['a']['x'] must be a length, finite and not"),
        (
            "counts",
            [{"a": {"x": 1}, "b": {"y": 1}}],
            {"out_of": 2, "xlabel": "x"},
            "rows['b'] must have the columns ['x'], not ['y']",
        ),
        ("calls", [[1.0, 0.0]], {}, "seconds[1] must be a time on a log axis, finite and positive"),
        ("memory", [{"a": [(1, 1), (0, 1)]}], {}, "curves['a'] must be in order of time"),
        ("timeline", [{"m": []}], {}, "tracks['m'] must hold at least one span, but got none"),
        ("timeline", [{"m": [(3, 0, "f", 0)]}], {}, "at least one span that lasts longer than 0 s"),
        ("icicle", [{("main",): 0.0}], {}, "stacks must hold at least one weight above zero"),
        ("line_heat_map", [["x"], {"old": {"x": 0.0}}], {}, "times['old'] must hold at least one"),
        ("line_heat_map", [["x", "x"], {"old": {"x": 1.0}}], {}, "hold 'x' of 'old' once, but"),
    ],
)
def test_wrong_input_is_refused_by_name(
    name: str, arguments: list, options: dict, message: str, shown: list[dict]
) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        getattr(plotting, name)(*arguments, title="T", **options)
    assert shown == []


CLOSE = {"Linear": (57, 250e9), "MultiheadAttention": (97, 200e9), "the model": (38, 242e9)}


@pytest.mark.parametrize("points", [CLOSE, {"one": (0.5, 3e9), "the model": (0.48, 2.5e9)}])
def test_no_text_of_a_roofline_covers_another_or_leaves_the_picture(
    points: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list = []
    monkeypatch.setattr(limits, "finish", lambda ax, *_: drawn.append(ax))
    limits.roofline(points, compute=384e9, bandwidth=27e9, title="T")
    (ax,) = drawn
    ax.figure.draw_without_rendering()
    boxes = {text.get_text(): Text.get_window_extent(text) for text in ax.texts}  # without leaders
    for name, box in boxes.items():
        assert all(ax.bbox.contains(*corner) for corner in (box.min, box.max)), name
        if not name.startswith("memory:"):  # it is rotated, and its box holds more than the text
            others = [
                other for key, other in boxes.items() if key not in (name, "memory: ~27.0 GB/s")
            ]
            assert not box.count_overlaps(others), name


def test_no_tick_of_counts_is_written_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a count, rounded, would repeat the count next to it."""
    figures = []
    monkeypatch.setattr(bar_charts._canvas, "show", lambda figure, *_, **__: figures.append(figure))
    plotting.bars({"one": 1, "three": 3}, title="T", xlabel="graphs", unit="{:.0f}".format)
    (figure,) = figures
    figure.canvas.draw()
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert len(set(ticks)) == len(ticks) > 2
