"""What the assignment on benchmarks uses: a slow function, and trials of harnesses and functions.

A harness is a function that measures another one. A trial gets the texts of both, and runs them in
a new process: a function that changes a clock or starts a thread must not disturb the notebook, and
one that never ends must end the trial.
"""

import contextlib
import functools
import io
import json
import math
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Real
from pathlib import Path
from statistics import median, median_low
from time import perf_counter, thread_time
from types import FunctionType, ModuleType

import torch
from torch import Tensor

from helpers.compiling import sentence

LARGEST_ERROR = 1e-4  # of an output whose elements are between -1 and 1
CAN_FORK = sys.platform == "linux"  # a fork needs no import of torch, but is not safe elsewhere
START_SECONDS = 60.0  # for a process and its imports

# Bound early, so that a function under trial cannot replace them.
_exactly_tensor, _subtract, _absolute = Tensor, torch.sub, torch.abs


def draw_work(rng: random.Random) -> dict[str, int]:
    """The numbers of a slow function: its size, its seed, and how many calls are checked."""
    return {
        "channels": rng.randint(18, 22),
        "layers": rng.randint(4, 5),
        "side": rng.randint(92, 100),
        "seed": rng.randint(1, 10**6),
        "checked": rng.randint(2, 5),
    }


def workload(work: dict[str, int]) -> tuple[Callable[[Tensor], Tensor], Callable[[], Tensor]]:
    """A slow function and what makes its inputs, both for images of 1 × 3 × ``side`` × ``side``.

    The function applies ``layers`` pairs of a 3 × 3 convolution without bias and a tanh, so that no
    part of an output follows from another one without computing it.
    """
    start = torch.Generator().manual_seed(work["seed"])
    channels = [3, *[work["channels"]] * (work["layers"] - 1), 3]
    weights = []
    for inputs, outputs in pairwise(channels):
        weight = torch.randn(outputs, inputs, 3, 3, generator=start)
        weights.append(weight * 1.6 / math.sqrt(9 * inputs))

    def slow(x: Tensor) -> Tensor:
        for weight in weights:
            x = torch.tanh(torch.nn.functional.conv2d(x, weight, padding=1))
        return x

    def make_input() -> Tensor:
        return torch.rand(1, 3, work["side"], work["side"])

    return slow, make_input


def examples(
    function: Callable[[Tensor], Tensor], make_input: Callable[[], Tensor], count: int
) -> list[tuple[Tensor, Tensor]]:
    """``count`` pairs of an input and the right output; all are made before this returns."""
    inputs = [make_input() for _ in range(count)]
    return [(x, function(x.clone())) for x in inputs]


def check(result: object, right: Tensor) -> None:
    """Raise a ValueError unless ``result`` is a plain tensor that equals ``right``.

    A difference of at most ``LARGEST_ERROR`` is rounding, and no error; a NaN is an error.
    """
    if type(result) is not _exactly_tensor or result.shape != right.shape:
        raise ValueError(f"the result is no plain tensor of shape {tuple(right.shape)}")
    largest = _absolute(_subtract(result, right)).max().item()
    if not largest <= LARGEST_ERROR:
        raise ValueError(f"an element of the result differs by {largest:.2g}")


def believed(
    cases: Sequence[Sequence[str]], work: dict[str, int], seconds: float = 20.0
) -> list[dict]:
    """The speedup that each harness believes a cheat to have.

    A case has four strings: the name and the text of a harness, and of a function that is called
    with the slow function and returns the cheat. A result has the "speedup", which is the time that
    the harness reports for the slow function over the one that it reports for the cheat, or 0 after
    an error, and "errors", a list with a sentence if there was one. Each case may take ``seconds``.
    """
    results = []
    for harness, harness_text, cheat, cheat_text in cases:
        arguments = [harness, harness_text, cheat, cheat_text, work]
        answer = _in_new_process("_speedup", arguments, seconds)
        results.append({"speedup": answer.get("speedup", 0.0), "errors": answer["errors"]})
    return results


def tried(
    measure: str,
    programs: Sequence[Sequence[str]],
    work: dict[str, int],
    goes: int = 1,
    seconds: float = 15.0,
) -> list[dict]:
    """What the function ``measure`` of a text says of the function of each program.

    A program has three strings: a text, the name of the function in it that is called with the slow
    function and returns the function to be measured, and the name of one that returns the reference
    in the same way, or "" if that is the slow function. The text of ``measure`` runs first. Each
    program may take ``seconds``, and its result has

    - "seconds", the median of what ``measure`` returned in ``goes`` calls, or 0;
    - "own" and "reference", the seconds of a call of the function and of the reference, which this
      module measured in the same process: the reference before ``measure`` was called, and the
      function in the calls that ``measure`` made of it, and in more after them if these were few;
    - "refused", a list with the sentence of the error that ``measure`` raised, or an empty one;
    - "errors", a list with a sentence if there was no answer, for example after ``seconds``.
    """
    empty = {"seconds": 0.0, "own": 0.0, "reference": 0.0, "refused": []}
    return [
        empty | _in_new_process("_measured", [measure, *program, work, goes], seconds)
        for program in programs
    ]


def _in_new_process(function: str, arguments: list, seconds: float) -> dict:
    """What a function of this module answers in a new process, with "errors", a list."""
    request = json.dumps([function, arguments, seconds]) + "\n"
    try:
        if CAN_FORK:
            server = _server()
            server.stdin.write(request)
            server.stdin.flush()
            answer = server.stdout.readline()
        else:
            with _started() as child:
                answer, _ = child.communicate(request, timeout=seconds + START_SECONDS)
        return json.loads(answer)
    except subprocess.TimeoutExpired:
        return {"errors": [_too_long(seconds)]}
    except (OSError, ValueError):
        _server.cache_clear()
        return {"errors": ["its process ended without an answer"]}


def _started() -> subprocess.Popen:
    """A process that runs ``main``; it ends when its standard input is closed."""
    return subprocess.Popen(
        [sys.executable, "-m", "helpers.harnesses"],
        cwd=Path(__file__).resolve().parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


@functools.cache
def _server() -> subprocess.Popen:
    """A process that has imported torch, and forks for each request."""
    return _started()


def main() -> None:
    """Answer requests, one per line: each in a fork, or, where there is none, in this process."""
    for line in sys.stdin:
        function, arguments, seconds = json.loads(line)
        if not CAN_FORK:
            print(_answer(function, arguments), flush=True)
            os._exit(0)  # without waiting for threads
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()  # so that all that it starts can be killed
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nothing, stream)
            os.write(writer, _answer(function, arguments).encode() + b"\n")
            os._exit(0)
        os.close(writer)
        answer = _line_from(reader, seconds) or json.dumps({"errors": [_too_long(seconds)]})
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        print(answer, flush=True)


def _line_from(reader: int, seconds: float) -> str:
    """The line that comes through a pipe, or "" if none comes in time."""
    end, content = perf_counter() + seconds, b""
    while not content.endswith(b"\n"):
        ready, _, _ = select.select([reader], [], [], max(0.0, end - perf_counter()))
        if not ready:
            return ""
        part = os.read(reader, 65_536)
        if not part:
            return json.dumps({"errors": ["its process ended without an answer"]})
        content += part
    return content.decode().strip()


def _too_long(seconds: float) -> str:
    return f"it took more than {seconds:g} s"


def _answer(function: str, arguments: list) -> str:
    """The answer of a function of this module as JSON; what it prints is lost."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            answer = {"errors": []} | globals()[function](*arguments)
        except BaseException as error:  # also an exit
            answer = {"errors": [sentence(error)]}
    return json.dumps(answer)


def _module(name: str, text: str, **more: object) -> ModuleType:
    """A new module ``name`` that has run ``text``."""
    module = ModuleType(name)
    names = {"torch": torch, "time": time, "threading": threading, "median": median}
    names |= {"perf_counter": perf_counter, "thread_time": thread_time, **more}
    module.__dict__.update(names)
    sys.modules[name] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def _speedup(harness: str, harness_text: str, cheat: str, cheat_text: str, work: dict) -> dict:
    slow, make_input = workload(work)
    known = {"examples": examples, "check": check, "checked": work["checked"]}
    run_harness = getattr(_module("harness", harness_text, **known), harness)
    honest = run_harness(slow, slow, make_input)
    function = getattr(_module("cheat", cheat_text), cheat)(slow)
    if not callable(function):
        raise ValueError(f"{cheat} must return a function, but it returned {function!r}")
    cheated = run_harness(function, slow, make_input)
    if not cheated > 0:
        raise ValueError(f"{harness} reports {cheated:g} s; nobody believes a time that is not > 0")
    return {"speedup": honest / cheated}


def _measured(
    measure_text: str, text: str, name: str, reference_name: str, work: dict, goes: int
) -> dict:
    slow, make_input = workload(work)
    measure = _module("harness", measure_text).measure
    program = _module("program", text)
    reference = getattr(program, reference_name)(slow) if reference_name else slow
    of_reference = _seconds(*_timed(reference, work), make_input)
    function = getattr(program, name)(slow)
    answers, own = [], []
    for _ in range(goes):
        timed, seconds = _timed(function, work)
        try:
            answer = measure(timed, reference, make_input)
        except Exception as error:
            return {"refused": [sentence(error)], "reference": of_reference}
        if not isinstance(answer, Real) or isinstance(answer, bool) or not 0 < answer < 1e6:
            got = repr(answer)[:100]
            raise ValueError(
                f"measure must return seconds, a number above 0, but it returned {got}"
            )
        answers.append(float(answer))
        own.append(_seconds(timed, seconds, make_input))
    return {"seconds": median(answers), "own": median(own), "reference": of_reference}


def _timed(function: Callable, work: dict[str, int]) -> tuple[Callable, list[float]]:
    """``function``, and a list that gets the seconds of each of its calls with a whole input.

    A harness is judged by the calls that it makes. On a busy computer, calls that follow them may
    take three times as long, because the process waits for its turn after every few milliseconds.
    """
    seconds, shape = [], (1, 3, work["side"], work["side"])

    def timed(x: Tensor) -> object:
        start = perf_counter()
        result = function(x)
        end = perf_counter()
        if getattr(x, "shape", ()) == shape:
            seconds.append(end - start)
        return result

    if isinstance(function, FunctionType):
        timed.__dict__ = function.__dict__  # where an attack finds what a harness notes on it
    return timed, seconds


def _seconds(timed: Callable, seconds: list[float], make_input: Callable[[], Tensor]) -> float:
    """The median of a function's ``seconds``, for which it is called until they are ten at least.

    Of two in the middle it is the lower: where some calls wait for a turn, a mean is like neither.
    """
    while len(seconds) < 10:
        result = timed(make_input())
        _absolute(result).max().item()  # as a harness does that compares it
    return median_low(seconds)


if __name__ == "__main__":
    main()
