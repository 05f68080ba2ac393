"""The charts of what tools report say in their alt texts what they show."""

import pytest

from helpers import plotting, units


def test_a_grid_of_bars_says_each_value(shown: list[dict]) -> None:
    columns = {"RSS": {"ones": 4e7, "empty": 0.0}, "profiler": {"ones": 4e7, "empty": 4e7}}
    plotting.bar_grid(columns, title="T", unit=units.size)
    assert shown[0]["text/plain"] == (
        "2 columns of 2 bars. Title: T. RSS: ones ~40.0 MB, empty ~0 B; "
        "profiler: ones ~40.0 MB, empty ~40.0 MB."
    )


def test_a_grid_counts_whole_things_and_shows_nothing_at_all(shown: list[dict]) -> None:
    plotting.bar_grid({"threads": {"    x = f(y)": 0}}, title="T", unit=units.number, code=True)
    assert "threads: x = f(y) ~0." in shown[0]["text/plain"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": {"x": 1.0}, "b": {"y": 1.0}}, r"columns\['b'\] must have the rows \['x'\]"),
        ({"a": {"x": -1.0}}, r"columns\['a'\]\['x'\] must be a length, finite and not negative"),
    ],
)
def test_a_grid_refuses_other_rows_and_negative_lengths(
    columns: dict, message: str, shown: list[dict]
) -> None:
    with pytest.raises(ValueError, match=message):
        plotting.bar_grid(columns, title="T", unit=units.size)
    assert shown == []


def test_outcomes_says_what_came_of_each_case(shown: list[dict]) -> None:
    rows = {
        "-w true": {"command 1": "accepted", "command 2": "accepted"},
        "--" + 60 * "x": {"command 2": "refused"},
    }
    plotting.outcomes(rows, title="T", wrong=["refused", "passed on"])
    assert shown[0]["text/plain"] == (
        "Coloured table. Title: T. -w true: command 1 accepted, command 2 accepted; "
        f"--{60 * 'x'}: command 2 refused."
    )
