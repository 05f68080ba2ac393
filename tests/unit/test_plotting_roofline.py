import pytest
from matplotlib.figure import Figure

from helpers import plotting

ROOF = {"compute": 100e9, "bandwidth": 20e9, "title": "T"}


def test_the_description_says_where_every_point_lies(shown: list[dict]) -> None:
    plotting.roofline({"add": (1 / 12, 1e9), "product": (50, 80e9)}, **ROOF)
    assert shown[0]["text/plain"] == (
        "Roofline. Title: T. x axis: arithmetic intensity in FLOP/B (log scale); "
        "y axis: rate (log scale). "
        "a roof that rises with ~20.0 GB/s and is flat at ~100 GFLOP/s from ~5.00 FLOP/B on; "
        "add at 0.0833 FLOP/B: ~1.00 GFLOP/s, ~60.0 % of the roof above it; "
        "product at 50 FLOP/B: ~80.0 GFLOP/s, ~80.0 % of the roof above it."
    )


def test_the_roof_is_the_lower_of_the_two_ceilings() -> None:
    ax = Figure().add_subplot()
    description = plotting.roofline({"here": (5.0, 1e9)}, ax=ax, **ROOF)
    assert description.startswith("Roofline.")
    (intensities, rates) = ax.lines[0].get_data()
    for intensity, rate in zip(intensities, rates, strict=True):
        assert rate == pytest.approx(min(100e9, intensity * 20e9))
    low, high = ax.get_xlim()
    assert low < 5 < high


def test_on_a_given_axes_nothing_is_shown(shown: list[dict]) -> None:
    plotting.roofline({"a": (1, 1e9)}, ax=Figure().add_subplot(), **ROOF)
    assert shown == []


def test_labels_of_neighbours_are_written_to_both_sides() -> None:
    ax = Figure().add_subplot()
    plotting.roofline({"add": (1 / 12, 1e9), "ReLU": (1 / 8, 1e9)}, ax=ax, **ROOF)
    sides = {text.get_text(): text.get_ha() for text in ax.texts}
    assert (sides["add"], sides["ReLU"]) == ("right", "left")


@pytest.mark.parametrize(
    ("points", "ceilings", "message"),
    [
        ({}, {}, "points must hold at least one workload, but none came"),
        ({"a": (1.0,)}, {}, r"points\['a'\] must be \(intensity, rate\), but \(1.0,\) came"),
        ({"a": (0.0, 1e9)}, {}, r"points\['a'\] must all be positive.* but 0.0 came"),
        ({"a": (1.0, float("nan"))}, {}, r"points\['a'\] must all be positive.* but nan came"),
        ({"a": (1.0, 1e9)}, {"compute": -1.0}, "compute must all be positive.* but -1.0 came"),
        ({"a": (1.0, 1e9)}, {"bandwidth": 0}, "bandwidth must all be positive.* but 0 came"),
    ],
)
def test_refused(points: dict, ceilings: dict, message: str, shown: list[dict]) -> None:
    with pytest.raises(ValueError, match=message):
        plotting.roofline(points, **{**ROOF, **ceilings})
    assert shown == []
