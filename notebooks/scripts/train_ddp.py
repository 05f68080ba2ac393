"""Train SmallCNN in several processes, a profiler in each. torchrun starts them:

torchrun --standalone --nproc-per-node=2 scripts/train_ddp.py --out folder

Each rank writes a trace of every case into the folder. If there is a GPU for each
rank, each of them takes one. On many nodes: submit
assets/jobs/slurm/train_ddp.sbatch.
"""

import argparse
import gc
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function

from helpers import workloads

# images per rank; megabytes per bucket of gradients; seconds that rank 1 is late
CASES = {
    "2 images": (2, 25, 0),
    "64 images": (64, 25, 0),
    "small buckets": (2, 0.02, 0),
    "rank 1 late": (2, 25, 0.1),
}
STEPS = 4
ACTIVITIES = {
    "cpu": [ProfilerActivity.CPU],
    "cuda": [ProfilerActivity.CPU, ProfilerActivity.CUDA],
}


def run(
    batch: int, bucket: float, late: float, device: torch.device, trace: Path
) -> float:
    """Profile some steps into a trace; return the sum of the final weights."""
    torch.manual_seed(0)
    model = workloads.SmallCNN().to(device)
    # By default each forward pass would also send batch norm's statistics.
    ranks = DistributedDataParallel(
        model, bucket_cap_mb=bucket, forward_sync_buffers=False
    )
    optimiser = torch.optim.SGD(ranks.parameters(), lr=0.01)
    # Each rank has its own images.
    data = workloads.synthetic_cifar(batch, seed=dist.get_rank())
    images, labels = (tensor.to(device) for tensor in data)

    def step(late: float = 0) -> None:
        with record_function("step"):
            time.sleep(late if dist.get_rank() == 1 else 0)
            F.cross_entropy(ranks(images), labels).backward()
            optimiser.step()
            optimiser.zero_grad()
            if device.type == "cuda":  # so that the step contains its kernels
                torch.cuda.synchronize()

    for _ in range(2):  # a warm-up; the second step sorts the buckets anew
        step()
    with profile(activities=ACTIVITIES[device.type], record_shapes=True) as prof:
        for _ in range(STEPS):
            step(late)
    prof.export_chrome_trace(str(trace))
    return sum(p.double().sum().item() for p in model.parameters())


def main() -> None:
    parser = argparse.ArgumentParser(description="Profile training in each rank.")
    parser.add_argument("--out", type=Path, required=True, help="folder for traces")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    gc.disable()  # so that no garbage collection falls into a step
    local = int(os.environ["LOCAL_RANK"])  # this process's number on its node
    # NCCL refuses two ranks on one GPU, so with too few GPUs all ranks use the CPU.
    gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    if int(os.environ["WORLD_SIZE"]) < 2:
        raise SystemExit("start at least two ranks: one has nobody to wait for")
    device = torch.device("cuda", local) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")
    rank = dist.get_rank()
    traces = {name: folder / f"{name}, rank {rank}.json" for name in CASES}
    weights = {name: run(*CASES[name], device, traces[name]) for name in CASES}
    result = {"rank": rank, "threads": torch.get_num_threads(), "weights": weights}
    (folder / f"{rank}.json").write_text(json.dumps(result), encoding="utf-8")
    dist.destroy_process_group()
    gc.freeze()  # so that Python ends without searching all of PyTorch's objects


if __name__ == "__main__":
    main()
