"""Make an array of 100 MB, delete its name, and see what is still reported.

Run it with ``python scripts/memory_after_del.py [NAMES]``, where NAMES is the
number of other names that the array has. The output is one line of JSON: what
tracemalloc and RSS still report, as multiples of the array's bytes.
"""

import json
import sys
import tracemalloc

import numpy as np
import psutil

other_names = int(sys.argv[1]) if sys.argv[1:] else 0
process = psutil.Process()
tracemalloc.start()
before = process.memory_info().rss
array = np.ones(12_500_000)
size = array.nbytes
history = [array] * other_names
del array
resident = process.memory_info().rss - before
print(json.dumps([tracemalloc.get_traced_memory()[0] / size, resident / size]))
