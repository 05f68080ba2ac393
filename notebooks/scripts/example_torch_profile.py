"""Train SmallCNN on decoded photographs, with a mark around every phase: for nsys.

Run it with ``nsys profile -t nvtx,osrt -s none python
scripts/example_torch_profile.py``, or without nsys: the marks then cost next to
nothing. A second thread decodes the next batch while the main thread trains.
"""

import argparse
import json
import os
import queue
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

from helpers import units, workloads

try:
    import nvtx
except ModuleNotFoundError:  # macOS: nsys records nothing there either
    nvtx = None

cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
if cuda and "LOCAL_RANK" in os.environ:  # torchrun started it: each rank has a GPU
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def nvtx_range(name: str) -> AbstractContextManager:
    if torch.compiler.is_compiling():  # it would cut the graph
        return nullcontext()
    if cuda:  # one of the two: both would count every range twice
        return torch.cuda.nvtx.range(name)
    return nvtx.annotate(name) if nvtx else nullcontext()


@contextmanager
def mark(name: str) -> Iterator[None]:
    """Give a stretch of code a name that torch.profiler and nsys both show."""
    with record_function(name), nvtx_range(name):
        yield


@contextmanager
def capture() -> Iterator[None]:
    """What ``-c cudaProfilerApi`` records, or ``-c nvtx -p capture``."""
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
    try:
        with mark("capture"):
            yield
    finally:
        if cuda:
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


def load(batches: int, batch_size: int, shelf: queue.Queue) -> None:
    """Put ``batches`` batches on the shelf, every image decoded from the file."""
    labels = torch.arange(batch_size) % 10
    for _ in range(batches):
        with mark("decode"):
            images = [workloads.photograph(32, 32) for _ in range(batch_size)]
            batch = torch.stack(images), labels
        shelf.put(batch)


def train_step(
    model: nn.Module, optimiser: torch.optim.Optimizer, shelf: queue.Queue
) -> float:
    """Wait for a batch, learn from it; return how long that took in seconds."""
    start = time.perf_counter()
    with mark("step"):
        with mark("input"):
            images, labels = (tensor.to(device) for tensor in shelf.get())
        with mark("forward"):
            loss = F.cross_entropy(model(images), labels)
        with mark("backward"):
            loss.backward()
        with mark("optimiser"):
            optimiser.step()
            optimiser.zero_grad()
        # Inside the mark, which would else end when the last kernel is launched.
        if cuda:
            torch.cuda.synchronize()
    return time.perf_counter() - start


def bilinear() -> None:
    """Resize to twice the height and width, then backward."""
    images = torch.rand(10, 16, 64, 64, device=device, requires_grad=True)
    with mark("bilinear forward"):
        larger = F.interpolate(images, scale_factor=2, mode="bilinear")
    with mark("bilinear backward"):
        larger.sum().backward()


def run(batch_size: int, steps: int = 8, warm_up: int = 3) -> list[float]:
    """Train; return the time of every step after the warm-up, in seconds."""
    torch.manual_seed(0)
    model = workloads.SmallCNN().to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    shelf: queue.Queue = queue.Queue(maxsize=1)
    arguments = (warm_up + steps, batch_size, shelf)
    loader = threading.Thread(target=load, args=arguments, daemon=True)
    loader.start()
    with mark("warm-up"):  # the same work, in the same shapes, as what is measured
        for _ in range(warm_up):
            train_step(model, optimiser, shelf)
        bilinear()
    with capture():
        times = [train_step(model, optimiser, shelf) for _ in range(steps)]
        bilinear()
    loader.join()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description="Train SmallCNN, with marks.")
    parser.add_argument("--batch-size", type=int, default=16, help="16 by default")
    parser.add_argument("--kineto", action="store_true", help="torch.profiler too")
    parser.add_argument("--json", metavar="FILE", help="write Kineto's marks there")
    options = parser.parse_args()
    torch.set_num_threads(1)  # steady times: lesson 01 says why
    cpu = [ProfilerActivity.CPU]
    recorder = profile(activities=cpu) if options.kineto else nullcontext()
    with recorder as kineto:
        times = run(options.batch_size)
    print(f"{len(times)} steps, median {units.seconds(statistics.median(times))}")
    if options.json:
        events = kineto.events() if kineto else []
        marks = [event for event in events if event.is_user_annotation]
        spans = [[each.name, each.time_range.elapsed_us() / 1e6] for each in marks]
        Path(options.json).write_text(json.dumps({"kineto": spans}))


if __name__ == "__main__":
    main()
