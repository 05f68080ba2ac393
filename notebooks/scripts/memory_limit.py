"""Request more memory than the process is allowed to have.

Run it, on Linux, with ``python scripts/memory_limit.py numpy|torch|list``. It
allows itself 1 GiB of addresses more than it has after its imports, and then
requests an array of 8 GiB (with torch, 4 GiB). The limit comes after the imports
because the libraries of torch alone can have more than 3 GiB, with CUDA. Only a
program that requests a tensor imports torch, which takes a second.
"""

import resource
import sys

import numpy as np
import psutil

if sys.argv[1] == "torch":
    import torch

limit = psutil.Process().memory_info().vms + 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
if sys.argv[1] == "numpy":
    array = np.ones(2**30)
elif sys.argv[1] == "torch":
    array = torch.ones(2**30)
else:
    array = [0.0] * 2**30
