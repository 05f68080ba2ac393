"""Each picture of ``comparisons`` says in its alt text what it shows."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import pytest

from helpers import plotting, units
from helpers.plotting import _canvas


def same(function: Callable) -> Callable:
    return function


@same
def erase(image):
    """Not a line of the body."""
    image[0] = 0
    image[1] = 1


FIRST = erase.__code__.co_firstlineno  # the decorator's
SAMPLES = pd.Series({FIRST + 3: 3, FIRST + 4: 1})
TIMES = pd.DataFrame({"without": [1e-3], "with": [5e-3]}, index=["many"])
PICTURES = {  # a picture, and its alt text
    "dots": (
        partial(
            plotting.dots,
            {"py-spy": {"sleeps": 0.0, "computes": 1.5}, "Scalene": {"computes": 1.0}, "none": {}},
            xlabel="time",
            unit=units.percent,
            reference=(1, "correct"),
        ),
        "Dot chart. Title: T. x axis: time. py-spy: sleeps ~0 %, computes ~150 %; Scalene: "
        "computes ~100 %; none: nothing; a dashed line, correct, at 100 %.",
    ),
    "dots with their ratio": (
        partial(plotting.dots, TIMES, log=True, ratio=True),
        "Dot chart. Title: T. x axis: time (log scale). many: without ~1.00 ms, with ~5.00 ms, "
        "~5.00×.",
    ),
    "function_lines": (
        partial(plotting.function_lines, erase, {"py-spy": SAMPLES}),
        "Line heat map. Title: T. x axis: share of the time. 5 lines. py-spy, 2 with a time: "
        "image[0] = 0: ~75.0 %; image[1] = 1: ~25.0 %.",
    ),
    "compared": (
        partial(
            plotting.compared,
            {
                "MACs": ({"small": 4_000, "large": 16_000}, "{:,}".format),
                "time": ({"small": 2e-3, "large": 1e-3}, units.seconds),
            },
        ),
        "Dot chart. Title: T. x axis: large divided by small (log scale). small and large; MACs: "
        "4,000 and 16,000; time: ~2.00 ms and ~1.00 ms; a dashed line, equal, at 1×.",
    ),
    "curves": (
        partial(
            plotting.curves,
            {
                "requests": ({"running": [(0, 1), (1, 3)], "waiting": [(0, 0), (1, 9)]}, str),
                "cache": ({"used": [(0, 0.5), (1, 1)]}, "{:.0%}".format),
            },
            xlabel="seconds",
        ),
        "Curves. Title: T. x axis: seconds; y axis: requests and cache. running: first 1, highest "
        "3, last 3; waiting: first 0, highest 9, last 9; used: first 50%, highest 100%, last 100%.",
    ),
    "ladder": (
        partial(
            plotting.ladder,
            {"slow": 8e-3, "round 1": 2e-3, "round 2": None},
            bounds={"round 1": (1e-3, 3e-3)},
            parts={"slow": {"read": 0.75, "rest": 0.25}},
        ),
        "Ladder. Title: T. x axis: time (log scale). slow: ~8.00 ms; round 1: ~2.00 ms from ~1.00 "
        "ms to ~3.00 ms, a speedup of ~4.00×; round 2: not measured yet; parts: slow: read "
        "~75.0 %, rest ~25.0 %.",
    ),
    "requests": (
        partial(plotting.requests, {"one": [(0, 1, 1.5, 4), (1, 4, 4.5, 6), (2, 6, 7, 8)]}),
        "Requests. Title: T. x axis: seconds after the first request. one: 3 requests; medians: in "
        "the queue 3.00 s, prompt 0.50 s, answer 1.50 s.",
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_what_it_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, text = PICTURES[name]
    shown = []
    monkeypatch.setattr(_canvas, "display", lambda data, **_: shown.append(data))
    draw(title="T")
    assert [data["text/plain"] for data in shown] == [text]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (partial(plotting.dots, {"a": {"b": 0.0}}, xlabel="x", log=True), "positive"),
        (partial(plotting.dots, {}, xlabel="x"), "row"),
        (partial(plotting.compared, {"a": ({"b": 0, "c": 1}, str)}), "positive"),
        (partial(plotting.ladder, {"a": 0.0}), "positive"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: partial, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(title="T")


def test_a_profiler_that_did_not_run_is_named(capsys: pytest.CaptureFixture) -> None:
    plotting.function_lines(erase, {"Scalene": None}, title="T")
    assert "Scalene did not run" in capsys.readouterr().out
