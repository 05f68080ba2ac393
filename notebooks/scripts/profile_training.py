"""Run and time programs like ``train_slow.py``, for lesson 15, Make it fast."""

import io
import random
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

from helpers import faults
from helpers.compare import Comparison

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

    They run in random order, each until its runs have taken so many seconds.
    """
    times = {name: [] for name in programs}
    run([*programs.values()][-1], count=3)  # a warm-up
    names = list(programs)
    while names:
        for name in random.sample(names, len(names)):
            times[name].append(run(programs[name]).seconds)
        names = [n for n in names if sum(times[n]) < seconds]
    return {name: min(runs) for name, runs in times.items()}


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


def fractions_of(programs: dict[str, ModuleType]) -> dict[str, dict[str, float]]:
    """Each part's fraction of the time of each program, from one run of each."""
    parts = {
        name: time_of_parts(program, repeats=1)
        for name, program in programs.items()
    }
    return {name: fractions(seconds) for name, seconds in parts.items()}


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
        label = f"after round {number}"
        times[label] = seconds
        seconds /= comparison.ratio  # the time before this round
        intervals[label] = [seconds * bound for bound in comparison.interval]
    times["all nine faults"] = seconds
    return dict(reversed(times.items())), intervals


def effects_of_faults(
    slow: ModuleType, fast: ModuleType, folder: Path
) -> tuple[pd.DataFrame, dict[str, float]]:
    """What each fault except ``thread`` costs, and each program's shortest seconds.

    Columns: the speedup of the slow program without this fault, and the slowdown of
    the fast program with it. The programs are written into ``folder``.
    """
    names = [name for name in faults.FAULTS if name != "thread"]
    programs = {f"slow {number}": slow for number in range(4)} | {"fast": fast}
    for name in names:
        others = set(faults.FAULTS) - {name}
        programs[f"fixed {name}"] = faults.load(others, folder / f"fixed_{name}.py")
        with_it = {"thread", name}
        programs[f"with {name}"] = faults.load(with_it, folder / f"with_{name}.py")
    seconds = fastest(programs, seconds=0.05)
    seconds["slow"] = min(seconds.pop(f"slow {number}") for number in range(4))
    speedups = [seconds["slow"] / seconds[f"fixed {name}"] for name in names]
    slowdowns = [seconds[f"with {name}"] / seconds["fast"] for name in names]
    columns = {
        "slow program: speedup if fixed": speedups,
        "fast program: slowdown if put back": slowdowns,
    }
    return pd.DataFrame(columns, index=names), seconds


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


def before_and_after(before: pd.DataFrame, after: pd.DataFrame) -> dict:
    """Two tables of ``saved_tensors`` as rows for ``plotting.bar_rows``."""
    rows = {}
    for column in before.columns:
        bars = {}
        for function in before.index:
            bars[f"{function}, before"] = int(before.loc[function, column])
            bars[f"{function}, after"] = int(after.loc[function, column])
        rows[column] = bars
    return rows


def function_of(program: ModuleType, frame: FrameType) -> str:
    """The name of the program's innermost function on the stack."""
    while frame.f_code.co_filename != program.__file__:
        frame = frame.f_back
    return frame.f_code.co_name
