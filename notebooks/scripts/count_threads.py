"""Count the threads of this process.

Run it with ``python scripts/count_threads.py``. It prints how many threads PyTorch
uses. Then it sets this number to one, as a DataLoader does in each worker, and
prints how many threads the process has: the main thread and those of NumPy.
"""

import os

import numpy  # noqa: F401 - starts its threads when it is imported
import psutil
import torch

print(torch.get_num_threads())
torch.set_num_threads(1)
print(psutil.Process().num_threads(), flush=True)

os._exit(0)  # so that Python ends without deleting all objects of PyTorch
