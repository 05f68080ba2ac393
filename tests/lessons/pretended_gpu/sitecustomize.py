"""A pretended GPU: code for CUDA runs on the CPU, so that its calls can be tested without one.

Python imports this file by itself where its folder is on PYTHONPATH, so programs that a cell
starts get the same. It checks how code calls torch.cuda: a call that the real function would not
take is an error, and so is each mistake below that a real GPU would answer with a wrong number, a
long wait or memory that another program misses (``Refused``). It says nothing of what a GPU would
measure: every time is the CPU's, nothing is asynchronous, and of large work only a part is done.
"""

import os
import time
from types import SimpleNamespace
from unittest import mock

import torch
import torch.profiler
from torch.utils.weak import WeakIdKeyDictionary

GPUS = int(os.environ.get("PRETENDED_GPUS", "1"))
MEMORY = 4 << 30
MOST_IMAGES, MOST_ROWS = 32, 1024  # of larger work, only the first image or row is computed
MATMULS = (torch.matmul, torch.mm, torch.Tensor.matmul, torch.Tensor.mm, torch.Tensor.__matmul__)

current, used = 0, 0  # the current device, and the one that worked last
on_gpu = WeakIdKeyDictionary()  # the tensors and the modules that were moved there, and are alive


class Refused(RuntimeError):
    """The real function would take this call, and its caller would regret it."""


def index_of(device: object) -> int:
    """The number of ``device``: a number, a name, a torch.device, or None for the current one."""
    if device is not None and not isinstance(device, int):
        device = torch.device(device).index
    number = current if device is None else device
    if number >= GPUS:
        raise RuntimeError(f"CUDA error: invalid device ordinal ({number} of {GPUS})")
    return number


def set_device(device: object) -> None:
    global current
    current = index_of(device)


def synchronize(device: object = None) -> None:
    waits = index_of(device)
    if waits != used:
        raise Refused(f"the work is on cuda:{used}, but synchronize() waits for cuda:{waits}")
    Event.now = time.perf_counter()


def memory_allocated(device: object = None) -> int:
    """The bytes of what was moved here: modules with their gradients, and tensors."""
    index_of(device)
    tensors = []
    for thing in list(on_gpu):
        tensors += [thing] if isinstance(thing, torch.Tensor) else [*thing.parameters()]
    gradients = [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
    return sum(-(-tensor.nbytes // 512) * 512 for tensor in tensors + gradients)


def record_history(enabled: str | None = "all", stacks: str = "all", **others: object) -> None:
    if enabled and stacks != "python":
        raise Refused("C++ stacks take minutes: pass stacks='python'")


FRAMES = [{"filename": "step.py", "name": "step", "line": 1}]
BLOCK = {"action": "alloc", "addr": 512, "size": 1024, "frames": FRAMES}
ANSWERS = {
    "is_available": True,
    "device_count": GPUS,
    "current_device": lambda: current,
    "set_device": set_device,
    "get_device_name": "Pretended GPU",
    "get_device_capability": (8, 0),
    "get_device_properties": SimpleNamespace(total_memory=MEMORY, multi_processor_count=1),
    "is_bf16_supported": True,
    "init": None,
    "synchronize": synchronize,
    "empty_cache": None,
    "mem_get_info": (MEMORY // 2, MEMORY),
    "memory_allocated": memory_allocated,
    "memory_reserved": MEMORY // 2,
    "max_memory_allocated": MEMORY // 2,
    "reset_peak_memory_stats": None,
    "memory._record_memory_history": record_history,
    "memory._dump_snapshot": None,
    "memory._snapshot": {"segments": [], "device_traces": [[BLOCK]] * GPUS},
}


class Event:
    """torch.cuda.Event by the host's clock: right, as nothing here is asynchronous."""

    now = 0.0  # of the last synchronisation

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.timed, self.at = enable_timing, None

    def record(self, stream: object = None) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        Event.now = time.perf_counter()

    def elapsed_time(self, end: "Event") -> float:
        if not (self.timed and end.timed):
            raise ValueError("both events must have enable_timing=True")
        if end.at > Event.now:
            raise RuntimeError("both events must be completed: synchronise before elapsed_time")
        return 1e3 * (end.at - self.at)


def place(value: object) -> object:
    """The CPU instead of a GPU, and any other value as it is."""
    global used
    if isinstance(value, str | torch.device) and str(value).startswith("cuda"):
        used = index_of(value)
        return "cpu"
    return value


class OnTheCpu(torch.overrides.TorchFunctionMode):
    """A mode in which "cuda" means "cpu" for every function of torch."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.pin_memory:
            return args[0].clone()
        if function is torch.Tensor.cuda:
            place(torch.device("cuda", *args[1:2]))
            on_gpu[copy := args[0].clone()] = True
            return copy
        if function in MATMULS and args[0].dim() == 2 and len(args[0]) > MOST_ROWS:
            return function(args[0][:1], *args[1:]).expand(len(args[0]), -1)
        args = [place(value) for value in args]
        kwargs = {key: place(value) for key, value in (kwargs or {}).items()}
        if function is torch.nn.functional.conv2d and len(args[0]) > MOST_IMAGES:
            one = function(args[0][:1], *args[1:], **kwargs)
            return one.repeat(len(args[0]), 1, 1, 1)
        return function(*args, **kwargs)


def module_to_gpu(module: torch.nn.Module, device: object = None) -> torch.nn.Module:
    place(torch.device("cuda", index_of(device)))
    on_gpu[module] = True
    return module


class Profile(torch.profiler.profile):
    """torch.profiler.profile, which starts CUDA by default, and CUPTI in its first active step."""

    def __init__(self, *, activities=None, schedule=None, profile_memory=False, **options) -> None:
        self.asked, self.timed, self.plan = activities, not profile_memory, schedule
        options |= {"schedule": schedule, "profile_memory": profile_memory}
        super().__init__(activities=activities, **options)

    def start(self) -> None:
        if self.asked is None:
            raise Refused("profile() without activities starts CUDA, also for work on the CPU")
        begins_active = self.plan is None or self.plan(0).name.startswith("RECORD")
        if torch.profiler.ProfilerActivity.CUDA in self.asked and self.timed and begins_active:
            raise Refused("the start of CUPTI fills this profile: begin with a step of warm-up")
        super().start()


for name, answer in ANSWERS.items():
    does = {"side_effect": answer} if callable(answer) else {"return_value": answer}
    mock.patch(f"torch.cuda.{name}", autospec=True, **does).start()
torch.cuda.Event = Event
torch.nn.Module.cuda = module_to_gpu
torch.profiler.profile = Profile
OnTheCpu().__enter__()
