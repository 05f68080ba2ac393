"""A pretended GPU: code for CUDA runs on the CPU, so that its calls can be tested without one.

Python imports this file by itself where its folder is on PYTHONPATH, so programs that a test
starts get the same. It checks how code calls torch.cuda (a call that the real function would not
take is an error) and makes traces of the real shape. It says nothing of what a GPU would measure:
every time is the CPU's, and nothing is asynchronous.
"""

import functools
import gc
import importlib.machinery
import inspect
import json
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

NAME = "Pretended GPU"


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

    device = SimpleNamespace(
        name=NAME,
        total_memory=8 << 30,
        multi_processor_count=4,
        major=9,
        minor=0,
        L2_cache_size=1 << 20,
    )
    frames = [{"filename": "/home/ada/site-packages/torch/nn/f.py", "line": 1, "name": "forward"}]
    event = {"action": "alloc", "addr": 512, "size": 1024, "stream": 0, "frames": frames}
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": NAME,
        "get_device_capability": (9, 0),
        "get_device_properties": device,
        "is_bf16_supported": True,
        "mem_get_info": (4 << 30, 8 << 30),
        "init": None,
        "synchronize": None,
        "_sleep": None,
        "memory_stats": {"num_alloc_retries": 0},
        "empty_cache": None,
        "memory_allocated": live_bytes,
        "memory_reserved": live_bytes,
        "max_memory_allocated": peak,
        "reset_peak_memory_stats": reset,
        "memory._record_memory_history": None,
        "memory._snapshot": {"segments": [], "device_traces": [[event]]},
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
    torch.compile = lambda model, **options: model
    autocast = torch.autocast
    torch.autocast = lambda device_type, *args, **options: autocast("cpu", *args, **options)
    change_profiler(torch)
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

    def record(self) -> None:
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
            return function(*args, **kwargs)

    return OnTheCpu()


def change_profiler(torch: ModuleType) -> None:
    """torch.profiler without CUDA, and a kernel in the trace for every innermost operator."""
    profiler, activity = torch.profiler.profiler._KinetoProfile, torch.profiler.ProfilerActivity
    start, export = profiler.__init__, profiler.export_chrome_trace

    def __init__(self, *, activities=None, **options):
        self.on_gpu = activity.CUDA in (activities or [])
        start(self, activities=[activity.CPU] if activities else None, **options)

    def export_chrome_trace(self, path: str, *args: object, **options: object) -> None:
        export(self, path, *args, **options)
        if self.on_gpu and path.endswith(".json"):
            trace = json.loads(Path(path).read_text())
            trace["traceEvents"] += launches(trace["traceEvents"])
            Path(path).write_text(json.dumps(trace))

    profiler.__init__, profiler.export_chrome_trace = __init__, export_chrome_trace


def launches(events: list[dict]) -> list[dict]:
    """For each operator without one inside it: the launch, the kernel, and the arrow between."""
    operators = sorted(
        (event for event in events if event.get("cat") == "cpu_op"), key=lambda e: e["ts"]
    )
    made: list[dict] = []
    for number, (event, after) in enumerate(zip(operators, [*operators[1:], None], strict=True)):
        if after and after["ts"] < event["ts"] + event["dur"]:
            continue
        at, length = event["ts"], event["dur"]
        host = {"pid": event["pid"], "tid": event["tid"]}
        gpu = {"pid": 0, "tid": 7}
        args = {"correlation": number, "External id": event["args"]["External id"]}
        kernel = {
            "device": 0, "stream": 7, "grid": [1, 1, 1], "block": [32, 1, 1],
            "registers per thread": 8, "shared memory": 0, "est. achieved occupancy %": 1, **args,
        }  # fmt: skip
        name = f"void {event['name']}_kernel<float>(float*)"
        made += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at,
             "dur": length / 2, "args": {"cbid": 211, **args}, **host},
            {"ph": "X", "cat": "kernel", "name": name, "ts": at + length / 2,
             "dur": length / 2, "args": kernel, **gpu},
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": number, "ts": at, **host},
            {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": number, "ts": at + length / 2,
             "bp": "e", **gpu},
        ]  # fmt: skip
    return made


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
