"""Profile one call of the loops convolution, and write it to loops.prof."""

import cProfile

import torch

from helpers import workloads

image = workloads.photograph(32, 32)
kernel = torch.randn(8, 3, 3, 3)
cProfile.run("workloads.conv2d_loops(image, kernel)", "loops.prof")
