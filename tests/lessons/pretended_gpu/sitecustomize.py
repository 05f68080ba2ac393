"""A pretended GPU: code for CUDA runs on the CPU, so that its calls can be tested without one.

Python imports this file by itself where its folder is on PYTHONPATH, so programs that a cell
starts get the same. It checks how code calls torch.cuda: a call that the real function would not
take is an error. It says nothing of what a GPU would measure: every time is the CPU's, nothing is
asynchronous, and of a large batch only the first image is convolved.
"""

import functools
import gc
import importlib.machinery
import inspect
import sys
import time
from types import ModuleType

NAME = "Pretended GPU"
MOST_IMAGES = 32


def pretend(torch: ModuleType) -> None:
    """Replace what needs a GPU in ``torch`` by something that runs on the CPU."""
    cuda, highest = torch.cuda, [0]

    def live_bytes() -> int:
        """Every storage that a tensor holds, once: the CPU's tensors stand for the GPU's."""
        found = {}
        for thing in gc.get_objects():
            if issubclass(type(thing), torch.Tensor) and thing.device.type == "cpu":
                storage = thing.untyped_storage()
                found[storage.data_ptr()] = storage.nbytes()
        highest[0] = max(highest[0], sum(found.values()))
        return sum(found.values())

    def peak() -> int:
        live_bytes()
        return highest[0]

    def reset() -> None:
        highest[0] = 0

    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": NAME,
        "get_device_capability": (9, 0),
        "mem_get_info": (4 << 30, 8 << 30),
        "init": None,
        "synchronize": None,
        "empty_cache": None,
        "memory_allocated": live_bytes,
        "memory_reserved": live_bytes,
        "max_memory_allocated": peak,
        "reset_peak_memory_stats": reset,
        "memory._record_memory_history": None,
        "memory._dump_snapshot": None,
        "profiler.start": None,
        "profiler.stop": None,
        "nvtx.range_push": 0,
        "nvtx.range_pop": 0,
    }
    for name, answer in answers.items():
        *modules, last = name.split(".")
        home = functools.reduce(getattr, modules, cuda)
        setattr(home, last, like(getattr(home, last), answer))
        if modules == ["memory"] and hasattr(cuda, last):
            setattr(cuda, last, getattr(home, last))
    for name in ("memory_allocated", "memory_reserved", "max_memory_allocated"):
        setattr(cuda.memory, name, getattr(cuda, name))
    cuda.Event = Event
    profiler, activity = torch.profiler.profiler._KinetoProfile, torch.profiler.ProfilerActivity
    start = profiler.__init__

    def start_on_cpu(self: object, *, activities: object = None, **options: object) -> None:
        start(self, activities=[activity.CPU] if activities else None, **options)

    profiler.__init__ = start_on_cpu
    on_the_cpu(torch).__enter__()


def like(real: object, answer: object) -> object:
    """A function that gives ``answer`` to the calls that ``real`` would take."""
    signature = inspect.signature(real)

    @functools.wraps(real)
    def function(*args: object, **options: object) -> object:
        signature.bind(*args, **options)
        return answer() if inspect.isfunction(answer) else answer

    return function


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


def on_the_cpu(torch: ModuleType) -> object:
    """A mode in which "cuda" means "cpu" for every function of torch."""

    def place(value: object) -> object:
        named = isinstance(value, str | torch.device) and str(value).startswith("cuda")
        return "cpu" if named else value

    class OnTheCpu(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function in (torch.Tensor.cuda, torch.Tensor.pin_memory):
                return args[0].clone()
            args = [place(value) for value in args]
            kwargs = {key: place(value) for key, value in (kwargs or {}).items()}
            if function is torch.nn.functional.conv2d and len(args[0]) > MOST_IMAGES:
                one = function(args[0][:1], *args[1:], **kwargs)
                return one.repeat(len(args[0]), 1, 1, 1)
            return function(*args, **kwargs)

    return OnTheCpu()


class Watch:
    """Finds nothing itself; changes torch as soon as somebody has imported it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            pretend(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Watch())
