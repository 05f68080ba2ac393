"""Lesson 06, and the data's lesson: the allocator, copies, and a loader's gaps."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import profile, record_function
from torch.utils.data import DataLoader, Dataset

from helpers import models, workloads
from recording import common, gpu, profiles

PACKAGES = ("torch", "helpers", "recording")  # whose files a stack names


def allocator(out: Path, small: bool) -> dict[str, Any]:
    """What training needs on the GPU, in bytes, beside what can be counted by hand.

    SmallCNN with 64 images of 32 × 32 and ResNet-50 with 32 of 224 × 224, float32.
    The snapshot is of one step of SmallCNN, forward and backward.
    """
    torch.manual_seed(0)
    images, labels = workloads.synthetic_cifar(64)
    found = {"SmallCNN": needs(workloads.SmallCNN, images, labels, out)}
    count = 1 if small else 32
    images, labels = torch.randn(count, 3, 224, 224), torch.arange(count)
    try:
        found["ResNet-50"] = needs(models.ResNet50, images, labels, None)
    except RuntimeError as error:
        found["ResNet-50"] = gpu.does_not_fit(error)
    return found


def needs(
    make: type[nn.Module], images: Tensor, labels: Tensor, snapshot: Path | None
) -> dict[str, Any]:
    """Parameters, saved tensors, peak and reserved memory of a training step."""
    gpu.free()
    start = torch.cuda.memory_allocated()
    model = make().cuda()
    row: dict[str, Any] = {
        "batch": len(images),
        "parameters": sum(p.nbytes for p in model.parameters()),
        "buffers": sum(b.nbytes for b in model.buffers()),
        "allocated for the model": torch.cuda.memory_allocated() - start,
    }
    batch, targets = images.cuda(), labels.cuda()

    def forward() -> Tensor:
        return F.cross_entropy(model(batch), targets)

    with gpu.tf32(False):
        forward().backward()  # the warm-up: libraries take their workspaces
        model.zero_grad()
        row["saved for backward"] = saved_bytes(forward, model, batch)
        gpu.free()
        before = torch.cuda.memory_allocated()
        row["allocated before the step"] = before
        loss = forward()
        row["kept after forward"] = torch.cuda.memory_allocated() - before
        loss.backward()
        row["peak of a step"] = torch.cuda.max_memory_allocated() - before
        row["reserved"] = torch.cuda.memory_reserved()
        row["allocated after the step"] = torch.cuda.memory_allocated()
        loss = None
        model.zero_grad()
        if snapshot is not None:
            record_snapshot(forward, snapshot / "memory.snapshot.json.gz")
            row["snapshot"] = "memory.snapshot.json.gz"
    batch = targets = model = None
    # What is left are the work spaces of cuBLAS and cuDNN.
    row["allocated when all is freed"] = torch.cuda.memory_allocated()
    row["reserved when all is freed"] = torch.cuda.memory_reserved()
    gpu.free()
    row["reserved after empty_cache"] = torch.cuda.memory_reserved()
    return row


def saved_bytes(forward: Any, model: nn.Module, batch: Tensor) -> int:
    """Bytes that autograd keeps, each storage once; not the weights, nor the input."""
    known = [*model.parameters(), *model.buffers(), batch]
    known_storages = {tensor.untyped_storage().data_ptr() for tensor in known}
    sizes: dict[int, int] = {}
    kept = []

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known_storages:
            sizes[storage.data_ptr()] = storage.nbytes()
            kept.append(tensor)  # so that no address is used twice
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return sum(sizes.values())


def record_snapshot(forward: Any, path: Path) -> None:
    """The allocator's history of one step, its stacks without folders."""
    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    try:
        forward().backward()
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    common.save(path, tidy(snapshot))


def tidy(value: Any) -> Any:
    """A snapshot as JSON can hold it; of a source file only its place in a package."""
    if isinstance(value, dict):
        kept = {key: tidy(item) for key, item in value.items()}
        if "filename" in kept:
            kept["filename"] = place(str(kept["filename"]))
        return kept
    if isinstance(value, list | tuple):
        return [tidy(item) for item in value]
    return value if isinstance(value, int | float | str | None) else str(value)


def place(filename: str) -> str:
    """``torch/nn/modules/conv.py`` of a longer path; a bare name for other files."""
    parts = PurePath(filename).parts
    packages = [n for n, part in enumerate(parts[:-1]) if part in PACKAGES]
    return "/".join(parts[packages[-1] if packages else -1 :])


def copies(out: Path, small: bool) -> dict[str, Any]:
    """Copies to and from the GPU, pinned and pageable, by size: 20 samples, seconds.

    ``returned`` is when the call came back, with non_blocking=True; ``blocking`` the same
    without; ``done`` is what lay between two CUDA events around it.
    """
    sizes = (4_096, 1 << 20) if small else [1 << n for n in (12, 16, 20, 24, 28)]
    rows = []
    for size in sizes:
        there = torch.empty(size, dtype=torch.uint8, device="cuda")
        for kind in ("pageable", "pinned"):
            here = torch.ones(size, dtype=torch.uint8)  # written, so really there
            here = here.pin_memory() if kind == "pinned" else here
            for direction, (target, source) in {
                "to the GPU": (there, here),
                "from the GPU": (here, there),
            }.items():
                row = {"bytes": size, "memory": kind, "direction": direction}
                rows.append(row | timed_copy(target, source, 3 if small else 20))
    return {"copies": rows}


def timed_copy(target: Tensor, source: Tensor, count: int) -> dict[str, Any]:
    def call() -> None:
        target.copy_(source, non_blocking=True)

    gpu.warm_up(call, 0.02)
    samples: dict[str, list[float]] = {"returned": [], "blocking": [], "done": []}
    for _ in range(count):
        samples["returned"].append(gpu.host_seconds(call, wait=False))
        torch.cuda.synchronize()
        samples["blocking"].append(gpu.host_seconds(lambda: target.copy_(source), wait=False))
        torch.cuda.synchronize()
        samples["done"].append(gpu.event_seconds(call))
    return samples


class Photographs(Dataset):
    """``count`` photographs, each decoded from the file when it is asked for."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return workloads.photograph(32, 32), index % 10


def loader(out: Path, small: bool) -> dict[str, Any]:
    """Twelve training steps fed by 0 and by 4 workers: when the GPU had work.

    ``on the GPU`` and ``marks`` are [name, start, duration] in µs of one clock.
    """
    batch, steps = (4, 3) if small else (64, 12)
    found: dict[str, Any] = {"batch": batch, "logical cores": os.cpu_count(), "runs": []}
    for workers in (0, 4):
        stock = 3 + 2 * workers  # what the workers fetch ahead, while the profiler starts
        data = DataLoader(
            Photographs(batch * (stock + steps)),
            batch_size=batch,
            num_workers=workers,
            pin_memory=True,
        )
        found["runs"].append({"workers": workers, **feed(data, stock, steps, out)})
    return found


def feed(
    data: Iterable[tuple[Tensor, Tensor]], stock: int, steps: int, out: Path
) -> dict[str, Any]:
    """Train SmallCNN on every batch; keep what the profiler saw after the first ``stock``."""
    torch.manual_seed(0)
    model = workloads.SmallCNN().cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train(images: Tensor, labels: Tensor) -> None:
        images = images.cuda(non_blocking=True)
        loss = F.cross_entropy(model(images), labels.cuda(non_blocking=True))
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()

    batches = iter(data)
    with profile(activities=profiles.BOTH) as prof:
        for _ in range(stock):
            train(*next(batches))
        torch.cuda.synchronize()
        for _ in range(steps):
            with record_function("data"):
                batch = next(batches)
            with record_function("train"):
                train(*batch)
        torch.cuda.synchronize()
    name = f"loader.{stock}.trace.json.gz"
    events = profiles.exported(prof, out, name)["traceEvents"]
    start = min(event["ts"] for event in events if event["name"] == "data")
    spans = {"on the GPU": profiles.ON_GPU, "marks": ("user_annotation",)}
    found = {
        title: [
            [event["name"], round(event["ts"] - start, 3), event["dur"]]
            for event in sorted(events, key=lambda event: event["ts"])
            if event.get("cat") in kinds and event["ts"] >= start
        ]
        for title, kinds in spans.items()
    }
    if not found["on the GPU"]:
        raise RuntimeError("torch.profiler saw nothing on the GPU: is CUPTI in use?")
    return found
