"""Add up the memory of a process and of two forked workers, which share an array.

Run it, on Linux, with ``python scripts/memory_family.py``. The output is one line
of JSON, in bytes: the array, and the sums of RSS and of PSS over the three
processes.
"""

import json
import multiprocessing

import numpy as np
import psutil

array = np.ones(25_000_000)
with multiprocessing.get_context("fork").Pool(2):
    parent = psutil.Process()
    sizes = [process.memory_full_info() for process in [parent, *parent.children()]]
rss, pss = sum(size.rss for size in sizes), sum(size.pss for size in sizes)
print(json.dumps({"array": array.nbytes, "RSS": rss, "PSS": pss}))
