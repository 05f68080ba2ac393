"""The chart of lanes says in its alt text what each lane did, and draws it where it says."""

import base64
import io
import re

import pytest
from PIL import Image

from helpers import plotting

ROWS = {
    "V100: launches": {"launch": [(0.0, 0.0), (0.010, 0.0)]},
    "V100: GPU": {"GPU operation": [(0.030, 0.020), (0.060, 0.015)], "end of a step": [(0.05, 0)]},
    "loader": {"loading": [], "resting": [(0.0, 0.1)]},
}


def test_the_text_says_what_each_lane_did(shown: list[dict]) -> None:
    link = ("V100: launches", 0.0), ("V100: GPU", 0.030)
    plotting.activity(ROWS, title="T", links=[link], notes={"V100: GPU": "35 %\nbusy"})
    assert shown[0]["text/plain"] == (
        "Lanes. Title: T. x axis: time. 3 lanes over ~100 ms. V100: launches: 2 moments of launch; "
        "V100: GPU: GPU operation for ~35.0 ms, 1 moments of end of a step, 35 % busy; "
        "loader: loading for ~0 s, resting for ~100 ms; 1 line joins two lanes."
    )


def blue_columns(data: dict) -> float:
    """How much of the middle row of a chart of one lane is blue, in shares of a full blue."""
    png = base64.b64decode(re.search(r'base64,([^"]*)"', data["text/html"])[1])
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    row = [picture.getpixel((x, round(picture.height * 0.45))) for x in range(picture.width)]
    return sum(1 - red / 230 for red, _, blue in row if blue > red)


@pytest.mark.parametrize("number", [10, 1000])
def test_half_of_a_lane_is_blue_if_it_is_busy_for_half_of_the_time(
    number: int, shown: list[dict]
) -> None:
    for busy in (0.5, 1.0):
        pairs = [(place / number, busy / number) for place in range(number)]
        plotting.activity({"GPU": {"GPU operation": pairs}}, title="T", length=1.0)
    half, full = map(blue_columns, shown)
    assert half / full == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "rows must hold at least one lane, but got none"),
        ({"GPU": {"launch": [(0.0, 0.0)]}}, "length must be the end of the axis, finite and posit"),
    ],
)
def test_lanes_without_a_length_are_refused(rows: dict, message: str, shown: list[dict]) -> None:
    with pytest.raises(ValueError, match=message):
        plotting.activity(rows, title="T")
    assert shown == []
