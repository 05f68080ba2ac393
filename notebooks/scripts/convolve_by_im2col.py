"""Convolve a photograph by im2col, as an example for memory profilers.

Run it with ``python scripts/convolve_by_im2col.py photograph.npy``: the file holds
a (3, H, W) float32 array in [0, 1]. Lesson 08, Memory of a program, profiles it.
"""

import builtins
import sys

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float32]

# memory_profiler puts ``profile`` among the builtins. Without it, do nothing.
profile = getattr(builtins, "profile", lambda function: function)


def linearise(srgb: Array) -> Array:
    """Convert the stored pixel values into amounts of light."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def unfold(image: Array, k: int) -> Array:
    """Return each K × K neighbourhood as a column: (C_in·K·K, H·W)."""
    edges = (k // 2, k // 2)
    padded = np.pad(image, ((0, 0), edges, edges))
    windows = sliding_window_view(padded, (k, k), (1, 2))
    windows = windows.transpose(0, 3, 4, 1, 2)
    return windows.reshape(len(image) * k * k, -1)


@profile
def convolve(image: Array, kernel: Array) -> Array:
    shape = len(kernel), *image.shape[1:]
    output = np.empty(shape, np.float32)
    columns = unfold(image, kernel.shape[-1])
    columns = linearise(columns)
    for channel, weights in enumerate(kernel):
        output[channel].flat = weights.ravel() @ columns
    del columns
    return output


def main() -> None:
    image = np.load(sys.argv[1])
    kernel = np.random.default_rng(0).standard_normal((16, 3, 3, 3), np.float32)
    print("output", convolve(image, kernel).shape)


if __name__ == "__main__":
    main()
