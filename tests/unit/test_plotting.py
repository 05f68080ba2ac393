import re

import pytest
import torch
from matplotlib.figure import Figure

from helpers import plotting, units
from tools import notebooks


def test_a_figure_carries_its_description_as_alt_text(shown: list[dict]) -> None:
    plotting.bars({"loops": 0.25, "F.conv2d": 6e-5}, title="The ladder", xlabel="median time")
    (data,) = shown
    assert data["text/plain"] == (
        "Bar chart. Title: The ladder. x axis: median time (log scale). "
        "2 bars: loops ~250 ms; F.conv2d ~60.0 µs."
    )
    alt, width = re.search(r'<img alt="([^"]*)" width="(\d+)" src=', data["text/html"]).groups()
    assert alt == data["text/plain"]
    assert 300 < int(width) < 900


def test_quotes_and_signs_in_a_title_do_not_end_the_alt_text(shown: list[dict]) -> None:
    plotting.bars({"a": 1.0}, title='"a" < b & c', xlabel="time")
    assert "&quot;a&quot; &lt; b &amp; c" in shown[0]["text/html"]


def test_histogram_describes_its_samples(shown: list[dict]) -> None:
    plotting.histogram([1e-3, 2e-3, 9e-3], title="Calls", bins=10)
    expected = "3 samples in 10 bins: smallest ~1.00 ms, median ~2.00 ms, largest ~9.00 ms."
    assert shown[0]["text/plain"].endswith(expected)


def test_spread_describes_each_group(shown: list[dict]) -> None:
    plotting.spread({"itself": [0.9, 1.0, 1.1]}, title="Null", xlabel="ratio", reference=1)
    assert "itself: 3 samples, median ~1.00×, middle half" in shown[0]["text/plain"]


@pytest.mark.parametrize("samples", [[0.8, 1.0, 2.2], [0.5, 1.0, 9.0], [1.0, 30.0, 900.0]])
def test_a_log_axis_has_several_labels(samples: list[float]) -> None:
    ax = Figure().add_subplot()
    plotting.spread({"itself": samples}, title="T", xlabel="ratio", ax=ax)
    low, high = ax.get_xlim()
    assert sum(low <= tick <= high for tick in ax.get_xticks()) >= 2


def test_images_take_grey_and_colour(shown: list[dict]) -> None:
    plotting.images({"grey": torch.rand(1, 4, 6), "edges": torch.randn(3, 4, 6)}, title="Two")
    assert "2 pictures. Title: Two. grey, 4 × 6 pixels; edges" in shown[0]["text/plain"]


def test_on_a_given_axes_nothing_is_shown(shown: list[dict]) -> None:
    ax = Figure().add_subplot()
    description = plotting.bars({"a": 1.0, "b": 2.0}, title="T", xlabel="time", ax=ax)
    assert description.startswith("Bar chart. Title: T.")
    assert len(ax.patches) == 2
    assert shown == []


def test_the_picture_itself_is_not_compared(shown: list[dict]) -> None:
    plotting.bars({"a": 1.0}, title="T", xlabel="time")
    plotting.bars({"a": 3.0}, title="T", xlabel="time")
    plotting.bars({"a": 3.0}, title="T", xlabel="time", unit=units.ratio)
    first, second, other = (notebooks.sanitised(data["text/html"]) for data in shown)
    assert first == second != other


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.histogram([], title="T"), "samples must hold at least one value"),
        (lambda: plotting.histogram([1.0, -1.0], title="T"), "samples must all be positive.*-1.0"),
        (lambda: plotting.bars({}, title="T", xlabel="x"), "values must hold at least one value"),
        (lambda: plotting.bars({"a": 0.0}, title="T", xlabel="x"), "values must all be positive"),
        (
            lambda: plotting.bars({"a": float("nan")}, title="T", xlabel="x"),
            "values must all be positive, for a log axis, but nan came",
        ),
        (lambda: plotting.spread({}, title="T", xlabel="x"), "groups must hold at least one group"),
        (lambda: plotting.spread({"a": []}, title="T", xlabel="x"), r"groups\['a'\] must hold"),
        (lambda: plotting.images({}, title="T"), "pictures must hold at least one picture"),
        (
            lambda: plotting.images({"a": torch.rand(2, 4, 4)}, title="T"),
            r"pictures\['a'\] must be \(1, H, W\) or \(3, H, W\), but \(2, 4, 4\) came",
        ),
    ],
)
def test_refused(call, message: str, shown: list[dict]) -> None:
    with pytest.raises(ValueError, match=message):
        call()
    assert shown == []
