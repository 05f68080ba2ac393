"""How often a limit on a measured slowdown raises an alarm, rightly or falsely.

An automatic test may measure some pairs of calls, and raise an alarm if the median of their ratios
is above a limit. With pairs from a recording, its chance is computed exactly, without a simulation.
"""

import math
from collections.abc import Mapping, Sequence

from helpers import _input

Rates = dict[tuple[float, int], float]


def chance(ratios: Sequence[float], limit: float, pairs: int) -> float:
    """The chance that the median of so many ``pairs`` is above 1 + ``limit`` (0.05 is 5 %).

    Each pair is drawn from ``ratios``, the recorded times of new / times of old, independently of
    the others. The median of an odd number is above the limit if more than half of the pairs are,
    and how many are follows the binomial distribution. Pairs of one process are not independent,
    so there a larger part of the errors remains.
    """
    values = _input.each(_input.positive, "ratios", ratios, what="a ratio of times")
    _input.not_negative("limit", limit, what="a fraction")
    if _input.whole("pairs", pairs) % 2 == 0:
        raise ValueError(f"pairs must be odd, so that there is a middle one, but got {pairs}")
    above = sum(value > 1 + limit for value in values) / len(values)
    return math.fsum(
        math.comb(pairs, k) * above**k * (1 - above) ** (pairs - k)
        for k in range((pairs + 1) // 2, pairs + 1)
    )


def rates(
    kinds: Mapping[str, Sequence[float]], limits: Sequence[float], pairs: Sequence[int]
) -> dict[str, Rates]:
    """For each kind of ``ratios``: the chance of an alarm by (limit, number of pairs)."""
    return {
        kind: {(limit, count): chance(ratios, limit, count) for limit in limits for count in pairs}
        for kind, ratios in kinds.items()
    }
