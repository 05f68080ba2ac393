"""A pretended GPU: code for CUDA runs on the CPU, so that its calls can be tested without one.

Python imports this file by itself where its folder is on PYTHONPATH, so programs that a cell
starts get the same. It checks how code calls torch.cuda: a call that the real function would not
take is an error. It says nothing of what a GPU would measure: every time is the CPU's, nothing is
asynchronous, memory never changes, and of a large batch only the first image is convolved.
"""

import time
from unittest import mock

import torch

MOST_IMAGES = 32
ANSWERS = {
    "is_available": True,
    "get_device_name": "Pretended GPU",
    "init": None,
    "synchronize": None,
    "empty_cache": None,
    "memory_allocated": 1 << 30,
    "memory_reserved": 2 << 30,
    "max_memory_allocated": 2 << 30,
    "reset_peak_memory_stats": None,
    "memory._record_memory_history": None,
    "memory._dump_snapshot": None,
}


class Event:
    """torch.cuda.Event by the host's clock: right, as nothing here is asynchronous."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.timed, self.at = enable_timing, None

    def record(self, stream: object = None) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: "Event") -> float:
        if not (self.timed and end.timed):
            raise ValueError("both events must have enable_timing=True")
        return 1e3 * (end.at - self.at)


def place(value: object) -> object:
    named = isinstance(value, str | torch.device) and str(value).startswith("cuda")
    return "cpu" if named else value


class OnTheCpu(torch.overrides.TorchFunctionMode):
    """A mode in which "cuda" means "cpu" for every function of torch."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0].clone()
        args = [place(value) for value in args]
        kwargs = {key: place(value) for key, value in (kwargs or {}).items()}
        if function is torch.nn.functional.conv2d and len(args[0]) > MOST_IMAGES:
            one = function(args[0][:1], *args[1:], **kwargs)
            return one.repeat(len(args[0]), 1, 1, 1)
        return function(*args, **kwargs)


for name, answer in ANSWERS.items():
    mock.patch(f"torch.cuda.{name}", autospec=True, return_value=answer).start()
torch.cuda.Event = Event
OnTheCpu().__enter__()
