"""Ask tracemalloc, RSS and torch.profiler how much memory an array takes.

Run it with ``python scripts/memory_meters.py``. It makes six arrays of 40 million
bytes and keeps all of them. The output is one line of JSON: for each array, the
bytes that each of the three tools reports. It uses the class inside torch.profiler,
because torch.profiler itself first imports PyTorch's compiler, which takes long.
"""

import json
import tracemalloc

import numpy as np
import psutil
import torch
from torch.autograd.profiler import profile

COUNT = 10_000_000  # values of four bytes
WAYS = {
    "a list": lambda: [0.0] * (COUNT // 2),  # pointers of eight bytes each
    "np.ones": lambda: np.ones(COUNT, np.float32),
    "np.zeros": lambda: np.zeros(COUNT, np.float32),
    "torch.ones": lambda: torch.ones(COUNT),
    "torch.empty": lambda: torch.empty(COUNT),
    "torch.from_numpy": lambda: torch.from_numpy(np.ones(COUNT, np.float32)),
}


def main() -> None:
    process = psutil.Process()
    with profile(use_kineto=True, profile_memory=True):  # first calls load code
        torch.from_numpy(np.ones(1000)).sqrt()
    tracemalloc.start()
    arrays, report = [], {}
    for name, make in WAYS.items():
        with profile(use_kineto=True, profile_memory=True) as prof:
            traced = tracemalloc.get_traced_memory()[0]
            resident = process.memory_info().rss
            arrays.append(make())
            resident = process.memory_info().rss - resident
            traced = tracemalloc.get_traced_memory()[0] - traced
        by_torch = sum(row.self_cpu_memory_usage for row in prof.key_averages())
        report[name] = traced, resident, by_torch
    print(json.dumps(report))


if __name__ == "__main__":
    main()
