"""Run one depthwise convolution on a CPU.

Run it with ``python scripts/convolve_depthwise.py channels_last`` (or
``contiguous_format``), the memory format of the images and the weights.
"""

import sys

import torch
import torch.nn.functional as F

memory_format = getattr(torch, sys.argv[1])
images = torch.rand(16, 64, 56, 56).contiguous(memory_format=memory_format)
weights = torch.rand(64, 1, 3, 3).contiguous(memory_format=memory_format)
with torch.no_grad():
    F.conv2d(images, weights, padding=1, groups=64)
