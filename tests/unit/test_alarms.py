"""False alarms and found slowdowns: a few chances by hand."""

import pytest

from helpers import alarms


@pytest.mark.parametrize(
    ("ratios", "limit", "pairs", "expected"),
    [
        ([0.98, 1.0, 1.02, 1.06], 0.05, 1, 1 / 4),
        ([0.98, 1.0, 1.02, 1.06], 0.05, 3, 10 / 64),  # two of three: 3 * 1/16 * 3/4; three: 1/64
        ([0.98, 1.0, 1.02, 1.06], 0.01, 101, 1 / 2),  # half are above: as many as below
        ([0.98, 1.0], 0, 5, 0),  # a ratio at the limit is not above it
        ([1.06, 1.07], 0.05, 5, 1),
    ],
)
def test_the_median_is_above_the_limit_if_most_pairs_are(ratios, limit, pairs, expected) -> None:
    assert alarms.chance(ratios, limit, pairs) == pytest.approx(expected)


def test_more_pairs_help_on_both_sides_of_a_limit_between_the_two() -> None:
    noise = [0.9, 0.97, 1.0, 1.03, 1.1]
    kinds = {"equal": noise, "slower": [1.05 * ratio for ratio in noise]}
    rates = alarms.rates(kinds, [0.025], [1, 11, 101])
    equal, slower = ([rates[kind][0.025, pairs] for pairs in (1, 11, 101)] for kind in kinds)
    assert equal == sorted(equal, reverse=True)
    assert slower == sorted(slower)
    assert equal[-1] < 0.05
    assert slower[-1] > 0.95


def test_wrong_input_is_named() -> None:
    with pytest.raises(ValueError, match="pairs must be odd, so that there is a middle one"):
        alarms.chance([1.0], 0.05, 2)
    with pytest.raises(ValueError, match="ratios must hold at least one value"):
        alarms.chance([], 0.05, 1)
    with pytest.raises(ValueError, match="limit must be a fraction"):
        alarms.chance([1.0], -0.05, 1)
