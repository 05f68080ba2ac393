"""Profile the loops convolution three times, and write each profile to a file."""

import cProfile

import torch

from helpers import workloads

image = workloads.photograph(32, 32)
kernel = torch.randn(8, 3, 3, 3)
for number in range(3):
    cProfile.run("workloads.conv2d_loops(image, kernel)", f"loops{number}.prof")
