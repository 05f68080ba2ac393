"""Profile programs like ``train_slow.py`` in a separate process, for lesson 15.

From Python 3.12 on, cProfile also measures the other threads of its process, and a
notebook has several.
"""

import cProfile
import importlib
import io
import multiprocessing
import pstats
import runpy
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from helpers.terminal import SECONDS


@cache
def processes() -> multiprocessing.context.BaseContext:
    """How to start processes: on Linux, as copies of one that has loaded torch."""
    if sys.platform != "linux":  # macOS may crash in a copy, and Windows makes none
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch._dynamo"])
    return context


def prepare() -> None:
    """Let the process that will be copied load torch, while this one goes on."""
    if processes().get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running  # not on Windows

        ensure_running()


def profiled(program: ModuleType, images: int) -> pstats.Stats:
    """Profile the training with so many images in a separate process."""
    # The first optimiser of this process would load it: better now, while the other
    # process may still do the same, than while the training is profiled or timed.
    importlib.import_module("torch._dynamo")
    file = str(Path(program.__file__).with_suffix(".prof"))
    arguments = program.__file__, file, images
    process = processes().Process(target=write_profile, args=arguments, daemon=True)
    process.start()
    process.join(SECONDS)
    if process.exitcode != 0:
        process.kill()
        raise RuntimeError(f"{program.__name__} could not be profiled (see above)")
    return pstats.Stats(file)


def write_profile(program_file: str, profile_file: str, images: int) -> None:
    """Train, measured by cProfile, and write the profile into a file."""
    program = runpy.run_path(program_file)
    train, new_files = program["train"], program["png_files"]
    train(*new_files(images), epochs=1, log=io.StringIO())  # a warm-up
    files, labels = new_files(images)
    with cProfile.Profile() as profile:
        train(files, labels, log=io.StringIO())
    profile.dump_stats(profile_file)
