"""Two ranks, of which one has a batch less: a job that hangs until its timeout.

Lesson 10 starts ``run`` in a process for each rank. To search for your own hang,
you need three of its lines: ``timeout``, ``dump_traceback_later``, and the level of
debugging, which torchrun's ranks read from the variable TORCH_DISTRIBUTED_DEBUG.
"""

import faulthandler
import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace_json

BATCHES = [3, 2]  # of rank 0, and of rank 1


def train(rank: int) -> None:
    gradients = torch.ones(4)
    for _ in range(BATCHES[rank]):
        dist.all_reduce(gradients)
    dist.barrier()


def run(rank: int, folder: Path, level: str) -> None:
    """Train, and write into the folder where this rank waited and how it failed."""
    if sys.platform == "linux":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the network inside this computer
    dist.set_debug_level(dist.DebugLevel.__members__[level])
    store = dist.FileStore(str(folder / f"{level}.store"), 2)  # how the ranks meet
    store.set(f"rank {rank}", "ready")
    store.wait([f"rank {number}" for number in range(2)])
    group = {"store": store, "rank": rank, "world_size": 2}
    dist.init_process_group("gloo", timeout=timedelta(seconds=1), **group)
    stack = folder / f"{level}, rank {rank}.stack"
    with stack.open("w") as file:
        faulthandler.dump_traceback_later(0.7, file=file)
        error = ""
        try:
            train(rank)
        except RuntimeError as raised:
            error = str(raised)
        faulthandler.cancel_dump_traceback_later()
    # The Flight Recorder of gloo. NCCL has one of its own.
    entries = json.loads(_dump_fr_trace_json())["entries"]
    calls = [entry["profiling_name"].removeprefix("gloo:") for entry in entries]
    report = {"stack": stack.read_text(), "calls": calls, "error": error}
    stack.with_suffix(".json").write_text(json.dumps(report))
    os._exit(
        0
    )  # a thread of gloo that still runs could end this process with an error
