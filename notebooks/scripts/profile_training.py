"""Run and profile programs like ``train_slow.py``, for lesson 15, Make it fast."""

import cProfile
import io
import multiprocessing
import pstats
import random
import runpy
import sys
import time
import weakref
from collections import Counter
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import NamedTuple
from unittest.mock import patch

import pandas as pd
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from helpers import units
from helpers.compare import Comparison
from helpers.terminal import SECONDS

IMAGES = 4


class Run(NamedTuple):
    """What one training gave."""

    seconds: float
    losses: list[float]  # of the steps
    final: float  # the loss of what was not used for training
    log_lines: int


@cache
def png_files(program: ModuleType, count: int) -> tuple[list[bytes], Tensor]:
    """The files and labels, made once, so that comparisons time only training."""
    return program.png_files(count)


def run(
    program: ModuleType, seed: int = 0, count: int = IMAGES, epochs: int = 2
) -> Run:
    """Train with so many images."""
    files, labels = png_files(program, count)
    threads, log = torch.get_num_threads(), io.StringIO()
    start = time.perf_counter()
    losses, final = program.train(files, labels, epochs, log, seed)
    seconds = time.perf_counter() - start
    torch.set_num_threads(threads)  # whatever the program did
    numbers = [loss.item() for loss in losses]
    return Run(seconds, numbers, final.item(), log.getvalue().count("\n"))


def fastest(programs: dict[str, ModuleType], seconds: float) -> dict[str, float]:
    """The shortest time of each program, in seconds.

    Each program runs twice or more, in random order, until its runs have taken so
    many seconds.
    """
    times = {name: [] for name in programs}
    first, *_, last = [*programs.values()] * 2
    for program in (first, last):  # a warm-up
        run(program, count=3)
    names = list(programs)
    while names:
        for name in random.sample(names, len(names)):
            times[name].append(run(programs[name]).seconds)
        names = [n for n in names if len(times[n]) < 2 or sum(times[n]) < seconds]
    return {name: min(runs) for name, runs in times.items()}


@cache
def processes() -> multiprocessing.context.BaseContext:
    """How to start processes: on Linux, as copies of one that has loaded torch."""
    if sys.platform != "linux":  # macOS may crash in a copy, and Windows makes none
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "torch._dynamo"])
    return context


def profiled(program: ModuleType) -> pstats.Stats:
    """Profile the training with cProfile, in a separate process.

    From Python 3.12 on, cProfile also measures the other threads of its process,
    and a notebook has several.
    """
    file = str(Path(program.__file__).with_suffix(".prof"))
    arguments = program.__file__, file
    process = processes().Process(target=write_profile, args=arguments, daemon=True)
    process.start()
    process.join(SECONDS)
    if process.exitcode != 0:
        process.kill()
        raise RuntimeError(f"{program.__name__} could not be profiled (see above)")
    return pstats.Stats(file)


def write_profile(program_file: str, profile_file: str) -> None:
    """Train, measured by cProfile, and write the profile into a file."""
    program = runpy.run_path(program_file)
    train, new_files = program["train"], program["png_files"]
    train(*new_files(IMAGES), epochs=1, log=io.StringIO())  # a warm-up
    files, labels = new_files(IMAGES)
    with cProfile.Profile() as profile:
        train(files, labels, log=io.StringIO())
    profile.dump_stats(profile_file)


def time_of_parts(
    program: ModuleType, count: int = IMAGES, repeats: int = 4, epochs: int = 2
) -> dict[str, float]:
    """The seconds of each part of a training run: each part's shortest."""
    times = [_time_of_parts(program, count, epochs) for _ in range(repeats)]
    return {part: min(seconds[part] for seconds in times) for part in times[0]}


def _time_of_parts(
    program: ModuleType, count: int, epochs: int
) -> dict[str, float]:
    """The seconds of each part of one training, by clocks around the functions."""
    parts = {
        "reading": [(program, "read")],
        "log": [(program, "report")],
        "steps": [(program, "step")],
        "evaluation": [(program, "evaluate")],
        "set-up": [(torch, "manual_seed"), (program.workloads, "SmallCNN")],
    }
    seconds = dict.fromkeys(parts, 0.0)

    def timed(function, part):
        def call(*arguments):
            start = time.perf_counter()
            result = function(*arguments)
            seconds[part] += time.perf_counter() - start
            return result

        return call

    with ExitStack() as patches:
        for part, functions in parts.items():
            for owner, name in functions:
                clock = timed(getattr(owner, name), part)
                patches.enter_context(patch.object(owner, name, clock))
        whole = run(program, count=count, epochs=epochs).seconds
    return seconds | {"batches and the rest": whole - sum(seconds.values())}


def fractions(seconds: dict[str, float]) -> dict[str, float]:
    """Each part's fraction of the whole time."""
    whole = sum(seconds.values())
    return {part: time / whole for part, time in seconds.items()}


def times_of_rounds(
    comparisons: list[Comparison], last_seconds: float
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Times after each round, and bounds of these times, in seconds.

    A comparison's ratio is the time after its round divided by the time before it,
    so all times follow from ``last_seconds``, the time after the last round. The
    bounds come from the 95 % confidence interval of this round's ratio alone.
    """
    times, intervals = {}, {}
    seconds = last_seconds
    for number, comparison in reversed(list(enumerate(comparisons, start=1))):
        speedup = units.ratio(1 / comparison.ratio)
        label = f"after round {number} (speedup {speedup})"
        times[label] = seconds
        seconds /= comparison.ratio  # the time before this round
        intervals[label] = [seconds * bound for bound in comparison.interval]
    times["all nine faults"] = seconds
    return dict(reversed(times.items())), intervals


class Saved:
    """A tensor that autograd saved: it lives as long as autograd keeps it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach()  # its graph would keep this object


def saved_tensors(program: ModuleType, count: int = IMAGES) -> pd.DataFrame:
    """By function: how often autograd saved tensors, and bytes that losses keep.

    The bytes count each storage once, and leave out those of the model itself.
    """
    alive, saves, models = weakref.WeakKeyDictionary(), Counter(), []
    small_cnn = program.workloads.SmallCNN

    def model() -> nn.Module:
        models.append(small_cnn())
        return models[-1]

    def pack(tensor: Tensor) -> Saved:
        saved, function = Saved(tensor), function_of(program, sys._getframe())
        alive[saved] = function
        saves[function] += 1
        return saved

    hooks = saved_tensors_hooks(pack, lambda saved: saved.tensor)
    with hooks, patch.object(program.workloads, "SmallCNN", model):
        files, labels = png_files(program, count)
        threads = torch.get_num_threads()
        # As long as the losses live, so does what they refer to.
        losses = program.train(files, labels, epochs=2, log=io.StringIO(), seed=0)
        torch.set_num_threads(threads)
    own = models[0].state_dict().values()
    own = {tensor.untyped_storage().data_ptr() for tensor in own}
    kept = {}
    for saved, function in alive.items():
        storage = saved.tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = function, storage.nbytes()
    del losses
    bytes_kept = Counter()
    for function, size in kept.values():
        bytes_kept[function] += size
    table = {"tensors saved": saves, "bytes kept at the end": bytes_kept}
    return pd.DataFrame(table, index=["step", "evaluate"]).fillna(0).astype(int)


def function_of(program: ModuleType, frame: FrameType) -> str:
    """The name of the program's innermost function on the stack."""
    while frame.f_code.co_filename != program.__file__:
        frame = frame.f_back
    return frame.f_code.co_name
