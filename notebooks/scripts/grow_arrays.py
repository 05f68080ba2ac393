"""Three ways to use memory, in NumPy: a program to be profiled.

Run it with ``python scripts/grow_arrays.py``. Each of the three functions makes its
arrays in one line.
"""

import numpy as np

MEGABYTE = 1_000_000 // 8  # in float64 elements


def once() -> np.ndarray:
    """One array of 80 MB, kept."""
    return np.ones(80 * MEGABYTE)


def churn() -> float:
    """Ten arrays of 40 MB, each dropped before the next."""
    total = 0.0
    for _ in range(10):
        total += np.ones(40 * MEGABYTE).sum()
    return total


def grow() -> list[np.ndarray]:
    """Five arrays of 10 MB, all kept."""
    kept = []
    for _ in range(5):
        kept.append(np.ones(10 * MEGABYTE))
    return kept


if __name__ == "__main__":
    first = once()
    churn()
    rest = grow()
