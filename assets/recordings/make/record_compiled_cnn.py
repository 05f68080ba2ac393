"""Record which events torch.profiler reports of a compiled model, for lesson 05.

python assets/recordings/make/record_compiled_cnn.py; it needs a C++ compiler. A row is an
event: the version of the model, the event's name, its depth, and its duration in microseconds.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import recording
import torch
from torch._inductor import config
from torch.profiler import ProfilerActivity, profile

from helpers import machine, traces, workloads

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
torch.set_num_threads(1)
torch.manual_seed(0)
images, _ = workloads.synthetic_cifar(64)
model = workloads.SmallCNN().eval()


def events(version: str, run: Callable) -> list[tuple[str, str, int, float]]:
    with torch.inference_mode():
        for _ in range(3):
            run(images)
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            run(images)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        trace = traces.chrome_trace(path)
    spans = traces.spans(trace[trace.cat.isin(["cpu_op", "user_annotation"])])
    return [(version, name, depth, round(1e6 * time, 1)) for _, time, name, depth in spans]


with tempfile.TemporaryDirectory() as cache:
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
    rows = events("not compiled", model) + events("compiled", torch.compile(model))
    torch._dynamo.reset()
    config.cpp.enable_kernel_profile = True
    rows += events("compiled, with names", torch.compile(model))
table = pd.DataFrame(rows, columns=["version", "event", "depth", "microseconds"])
table.to_csv(recording.RECORDINGS / "compiled_cnn.csv", index=False, lineterminator="\n")
about = recording.provenance(
    __file__,
    f"{machine.describe()['processor']}, one of {os.cpu_count()} cores",
    "python assets/recordings/make/record_compiled_cnn.py",
    torch=torch.__version__,
)
recording.save("compiled_cnn", about)
