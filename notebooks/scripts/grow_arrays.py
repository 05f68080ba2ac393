"""Three ways to use memory, in NumPy: a program to be profiled.

Run it with ``python scripts/grow_arrays.py``. Each of the three functions makes its
arrays in one line.
"""

import numpy as np

MEGABYTE = 1_000_000 // 8  # in float64 elements


def once() -> np.ndarray:
    """Create one array of 80 MB, and keep it."""
    return np.ones(80 * MEGABYTE)


def churn() -> float:
    """Create ten arrays of 40 MB, and free each before the next."""
    total = 0.0
    for _ in range(10):
        total += np.ones(40 * MEGABYTE).sum()
    return total


def grow() -> list[np.ndarray]:
    """Create five arrays of 10 MB, and keep them all."""
    kept = []
    for _ in range(5):
        kept.append(np.ones(10 * MEGABYTE))
    return kept


if __name__ == "__main__":
    first = once()
    churn()
    rest = grow()
