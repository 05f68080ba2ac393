import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers import plotting, units
from helpers.plotting import distributions


def labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def test_histogram(ax: Axes) -> None:
    samples = [1e-3, 1e-3, 2e-3, 3e-3, 9e-3]
    text = plotting.histogram(samples, title="Calls", ax=ax)
    assert text == (
        "Histogram. Title: Calls. x axis: time of one call (log scale); y axis: number of samples "
        "(log scale). 5 samples in 40 bins: smallest ~1.00 ms, median ~2.00 ms, largest ~9.00 ms."
    )
    counts = [bar.get_height() for bar in ax.patches]
    assert (len(counts), counts[0], counts[-1], sum(counts)) == (40, 2, 1, 5)
    edges = [bar.get_x() for bar in ax.patches]
    assert edges == pytest.approx(np.geomspace(1e-3, 9e-3, 41)[:-1])
    assert ax.lines[0].get_xdata() == [2e-3, 2e-3]
    assert [(label.get_text(), label.xy[0]) for label in ax.texts] == [("median ~2.00 ms", 2e-3)]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert 0 < ax.get_ylim()[0] < 1
    assert ax.xaxis.get_major_formatter()(2e-3, 0) == "2.00 ms"


def test_bars_on_a_log_axis(ax: Axes) -> None:
    plotting.bars({"slow": 1.0, "fast": 0.5}, title="T", xlabel="time", ax=ax)
    assert [bar.get_width() for bar in ax.patches] == [1, 0.5]
    assert labels(ax.yaxis) == ["slow", "fast"]
    assert [label.get_text() for label in ax.texts] == ["~1.00 s", "~500 ms"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top
    low, high = ax.get_xlim()
    assert 0 < low < 0.5 < 1 < high
    assert ax.get_xscale() == "log"
    assert ax.xaxis.get_major_formatter()(2e-3, 0) == "2.00 ms"


def test_bars_on_a_linear_axis_may_be_of_no_length(ax: Axes) -> None:
    text = plotting.bars({"a": 0.0, "b": 2}, title="T", xlabel="time", log=False, ax=ax)
    assert text == "Bar chart. Title: T. x axis: time. 2 bars: a ~0 s; b ~2.00 s."
    assert ax.get_xscale() == "linear"
    assert ax.get_xlim() == (0, 2.5)
    plotting.bars({"a": 0}, title="T", xlabel="time", log=False, ax=ax)
    assert ax.get_xlim() == (0, 1)


def test_spread(ax: Axes) -> None:
    groups = {"itself": [0.9, 1.0, 1.1, 1.2, 3.0], "other": [2.0] * 40}
    text = plotting.spread(groups, title="Null", xlabel="ratio", reference=1, ax=ax)
    assert text == (
        "Strip chart. Title: Null. x axis: ratio (log scale). itself: 5 samples, median ~1.10×, "
        "middle half ~1.00× to ~1.20×; other: 40 samples, median ~2.00×, middle half ~2.00× to "
        "~2.00×; a dashed line at 1."
    )
    dots, half, median, others, *_, reference = ax.lines
    assert list(dots.get_xdata()) == groups["itself"]
    assert np.abs(dots.get_ydata()).max() < 0.3
    assert 0.2 < np.abs(others.get_ydata() - 1).max() < 0.3  # apart, and near their row
    assert [list(half.get_xdata()), list(half.get_ydata())] == [[1.0, 1.2], [0, 0]]
    assert [list(median.get_xdata()), list(median.get_ydata())] == [[1.1], [0]]
    assert [*reference.get_xdata(), reference.get_linestyle()] == [1, 1, "--"]
    assert [dots.get_marker(), median.get_marker()] == [".", "|"]
    assert labels(ax.yaxis) == ["itself", "other"]
    assert ax.get_ylim() == (1.6, -0.6)  # the first on top
    assert ax.get_xscale() == "log"
    assert ax.xaxis.get_major_formatter()(2, 0) == "2.00×"


def test_spread_without_a_reference(ax: Axes) -> None:
    text = plotting.spread({"a": [1.0]}, title="T", xlabel="time", unit=units.seconds, ax=ax)
    assert text.endswith("a: 1 samples, median ~1.00 s, middle half ~1.00 s to ~1.00 s.")
    assert len(ax.lines) == 3


def test_images(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[Figure, str]] = []
    monkeypatch.setattr(distributions, "show", lambda *arguments: drawn.append(arguments))
    grey = torch.tensor([[[0.25, 0.75, 0.5]]], requires_grad=True)
    pictures = {"grey": grey, "edges": grey * 8 - 4, "dark": grey - 1, "bright": grey.double() + 1}
    constants = {"five": torch.full((1, 2, 2), 5), "colour": torch.rand(3, 4, 6)}
    plotting.images({**pictures, **constants}, title="Six")
    ((figure, text),) = drawn
    assert text == (
        "6 pictures. Title: Six. grey, 1 × 3 pixels; edges, 1 × 3 pixels; dark, 1 × 3 pixels; "
        "bright, 1 × 3 pixels; five, 2 × 2 pixels; colour, 4 × 6 pixels."
    )
    shown = [ax.images[0] for ax in figure.axes]
    as_drawn = [picture.get_array() for picture in shown]
    assert as_drawn[0].tolist() == [[0.25, 0.75, 0.5]]  # as it is, not stretched
    assert [array.tolist() for array in as_drawn[1:4]] == [[[0, 1, 0.5]]] * 3
    assert as_drawn[4].tolist() == [[0, 0], [0, 0]]
    assert torch.equal(torch.tensor(as_drawn[5]).permute(2, 0, 1), constants["colour"])
    assert {picture.get_clim() for picture in shown[:5]} == {(0, 1)}
    assert {picture.get_cmap().name for picture in shown} == {"gray"}
    assert [ax.get_title() for ax in figure.axes] == [*pictures, *constants]
    assert [ax.get_subplotspec().colspan.start for ax in figure.axes] == [0, 1, 2, 3, 4, 5]
    assert {len(ax.get_xticks()) + len(ax.get_yticks()) for ax in figure.axes} == {0}
    assert figure.get_suptitle() == "Six"


def test_each_shows_a_figure_of_its_own(shown: list[dict]) -> None:
    plotting.histogram([1e-3, 2e-3], title="T")
    plotting.bars({"a": 1.0, "b": 2.0}, title="T", xlabel="x")
    plotting.spread({"a": [1.0], "b": [2.0]}, title="T", xlabel="x")
    plotting.images({"a": torch.rand(1, 2, 2), "b": torch.rand(3, 2, 2)}, title="T")
    assert [data["text/plain"].split(".")[0] for data in shown] == [
        "Histogram", "Bar chart", "Strip chart", "2 pictures",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.histogram([], title="T"), "samples must hold at least one value"),
        (lambda: plotting.histogram([1, -1], title="T"), r"samples\[1\] .* positive, but -1 came"),
        (lambda: plotting.bars({}, title="T", xlabel="x"), "values must hold at least one value"),
        (lambda: plotting.bars({"a": 0.0}, title="T", xlabel="x"), r"values\['a'\] .* positive"),
        (
            lambda: plotting.bars({"a": -1}, title="T", xlabel="x", log=False),
            r"values\['a'\] .* not negative, but -1 came",
        ),
        (lambda: plotting.spread({}, title="T", xlabel="x"), "groups must hold at least one group"),
        (lambda: plotting.spread({"a": []}, title="T", xlabel="x"), r"groups\['a'\] must hold"),
        (lambda: plotting.spread({"a": [0]}, title="T", xlabel="x"), r"'a'\]\[0\] .* 0 came"),
        (lambda: plotting.images({}, title="T"), "pictures must hold at least one picture"),
        (
            lambda: plotting.images({"a": torch.rand(2, 4, 4)}, title="T"),
            r"pictures\['a'\] must be \(1, H, W\) or \(3, H, W\), but \(2, 4, 4\) came",
        ),
        (lambda: plotting.images({"a": torch.rand(4, 4)}, title="T"), r"but \(4, 4\) came"),
        (lambda: plotting.images({"a": np.zeros(3)}, title="T"), "must be a tensor"),
    ],
)
def test_refused(call, message: str, shown: list[dict]) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()
    assert shown == []
