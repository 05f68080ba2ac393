import base64
import io
import re

import pytest
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator
from PIL import Image

from helpers import plotting, units
from helpers.plotting import _canvas
from tools import notebooks


def test_a_figure_carries_its_description_as_alt_text(shown: list[dict]) -> None:
    with rc_context({"savefig.format": "svg", "savefig.facecolor": "black"}):  # a reader's own
        plotting.bars({"loops": 0.25, "F.conv2d": 6e-5}, title="The ladder", xlabel="median time")
    (data,) = shown
    assert data["text/plain"] == (
        "Bar chart. Title: The ladder. x axis: median time (log scale). "
        "2 bars: loops ~250 ms; F.conv2d ~60.0 µs."
    )
    tag = re.fullmatch(
        r'<img alt="([^"]*)" width="(\d+)" src="data:image/png;base64,(.*)">', data["text/html"]
    )
    alt, width, encoded = tag.groups()
    assert alt == data["text/plain"]
    png = base64.b64decode(encoded)
    picture = Image.open(io.BytesIO(png))
    assert int(width) == 691  # 7.2 inches of 96 dots
    assert picture.width / int(width) == pytest.approx(1.5, rel=0.01)
    assert picture.getpixel((0, 0))[:3] == (255, 255, 255)
    assert picture.getcolors(10**6)[0][0] < picture.width * picture.height  # and not all white
    assert b"Software" not in png  # which would name a version


def test_quotes_and_signs_in_a_title_do_not_end_the_alt_text(shown: list[dict]) -> None:
    plotting.bars({"a": 1.0}, title='"a" < b & c', xlabel="time")
    assert "&quot;a&quot; &lt; b &amp; c" in shown[0]["text/html"]


def test_on_a_given_axes_nothing_is_shown(ax: Axes, shown: list[dict]) -> None:
    ax.set_ylabel("bytes")
    text = plotting.bars({"a": 1.0, "b": 2.0}, title="T", xlabel="time", ax=ax)
    assert text.startswith("Bar chart. Title: T. x axis: time (log scale); y axis: bytes. 2 bars")
    assert [ax.spines[side].get_visible() for side in ("top", "right", "left")] == [0, 0, 1]
    assert shown == []


def test_the_picture_itself_is_not_compared(shown: list[dict]) -> None:
    plotting.bars({"a": 1.0}, title="T", xlabel="time")
    plotting.bars({"a": 3.0}, title="T", xlabel="time")
    plotting.bars({"a": 3.0}, title="T", xlabel="time", unit=units.ratio)
    first, second, other = (notebooks.sanitised(data["text/html"]) for data in shown)
    assert first == second != other


@pytest.mark.parametrize(
    ("limits", "few"), [((0.8, 2.2), 1), ((0.5, 14.9), 1), ((1, 30), 0), ((0.1, 9), 0)]
)
def test_a_narrow_log_axis_has_more_labels(ax: Axes, limits: tuple, few: bool) -> None:
    ax.set(xscale="log", xlim=limits)
    _canvas.tick_units(ax, units.ratio)
    ticks = {float(f"{tick:.3g}") for tick in ax.get_xticks()}
    assert {1, 2, 5} & ticks == ({1, 2, 5} if few else {1})
    ax.figure.draw_without_rendering()
    assert {label.get_text() for label in ax.get_xticklabels(minor=True)} <= {""}


def test_ticks_have_units_and_no_mark(ax: Axes) -> None:
    _canvas.tick_units(ax, units.seconds)
    ticks = ax.xaxis.get_major_formatter()
    assert [ticks(value, 0) for value in (2e-3, 0, -1)] == ["2.00 ms", "0 s", ""]
    assert ax.xaxis.get_minor_formatter()(2e-3, 0) == ""
    assert not isinstance(ax.xaxis.get_major_locator(), LogLocator)
