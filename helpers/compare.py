"""Compare an old and a new version of some work: did its time change, and by how much?

For work in a module: ``python -m helpers.compare module:old module:new``. For one function in two
folders with two versions of a program: ``python -m helpers.compare base/module:work
head/module:work``.
"""

import argparse
import contextlib
import dataclasses
import importlib.machinery
import inspect
import json
import math
import multiprocessing
import os
import pkgutil
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from helpers import _input, terminal, units

try:
    import resource
except ImportError:  # on Windows, whose CPU clocks tick only every 16 ms
    resource = None

# After so many blocks, look whether enough is known. With each number, the quantile of Student's t
# distribution that gives intervals of 95 %.
QUANTILES = {5: 2.776, 10: 2.262, 20: 2.093}
FLOOR = 0.01  # equal functions may differ by this, because they are stored at different addresses
REACH = 1.6  # a difference by so many half-widths above the floor is found in nine of ten cases
LARGEST_LIMIT = 1.5  # a comparison that would only find more than 50 % is no answer
SAMPLE_NS = 100_000  # shorter work is repeated in a sample, because reading the clocks takes 1 µs
RESULT = "helpers.compare: "  # what the line of a process begins with that holds its result
ABOVE_LIMIT, NOT_DECIDED = 3, 4  # statuses of the command with --limit; 1 and 2 are errors

Work = Callable[[], object]


@dataclass(frozen=True)
class Block:
    """What the rounds of one block gave. Each list has two values: by CPU time, by wall time."""

    change: list[float]  # the median of log(time of new / time of old)
    null: list[float]  # the same for each version against itself
    old: list[float]  # the median time of a call, in seconds
    new: list[float]
    elsewhere: float  # the fraction of samples in which CPU time does not show the work
    spent: float  # seconds


@dataclass(frozen=True, repr=False)
class Comparison:
    """What ``compare`` measured. Each ratio is a time of new divided by a time of old."""

    clock: str  # which the verdict rests on: "CPU time" or "wall time"
    ratio: float
    interval: tuple[float, float]  # 95 % confidence interval of the ratio
    null: tuple[float, float]  # the same for each version against itself
    wall_ratio: float  # the ratio of wall times, whatever the verdict rests on
    old: float  # the time of a call, in seconds, by the same clock as the ratio
    new: float

    @property
    def limits(self) -> tuple[float, float]:
        """The ratios of a speedup and of a slowdown that would be found in nine of ten cases."""
        half_width = math.log(self.interval[1] / self.interval[0]) / 2
        reach = math.log1p(FLOOR) + REACH * half_width
        return math.exp(-reach), math.exp(reach)

    @property
    def verdict(self) -> str:
        """In words, such as ``takes ~8.12 % less time``: new, compared with old."""
        if differs(self.null):
            low, high = map(units.ratio, self.null)
            return f"not known: each version against itself takes {low} to {high} the time"
        if differs(self.interval):
            return in_words(self.ratio)
        if self.limits[1] > LARGEST_LIMIT:
            return (
                f"not known: only a difference above {units.ratio(self.limits[1])} would be found"
            )
        return f"no difference found, where one of {units.percent(self.limits[1] - 1)} would be"

    def exceeds(self, limit: float) -> bool | None:
        """Whether new takes more than a fraction longer: 0.05 is 5 %. None if it is not known.

        It is known if the confidence interval lies on one side of the limit, and if each version
        does not differ from itself.
        """
        low, high = self.interval
        if differs(self.null) or low <= 1 + limit < high:
            return None
        return low > 1 + limit

    def __repr__(self) -> str:
        low, high = map(units.ratio, self.interval)
        speedup, slowdown = self.limits
        return (
            f"{self.verdict}\n"
            f"    {self.clock}: old {units.seconds(self.old)}, new {units.seconds(self.new)}, "
            f"ratio {units.ratio(self.ratio)}, 95 % confidence interval {low} to {high}\n"
            f"    ratio of wall times: {units.ratio(self.wall_ratio)}\n"
            f"    would be found in nine of ten cases: {units.percent(1 - speedup)} less time, "
            f"{units.percent(slowdown - 1)} more time"
        )


class WorkFailed(Exception):
    """Work in another process failed; the message is the reason as ``in_one_line`` has it."""


class WorkInFolder:
    """A function of a module in a folder: a process of its own imports it there, and measures it.

    One process could not import two modules of the same name, and each version must import its
    own version of all that it needs.
    """

    def __init__(self, role: str, name: str, other_name: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.connection, connection = spawn.Pipe()
        self.process = spawn.Process(target=serve, args=(connection, role, name, other_name))
        self.process.start()
        connection.close()  # or the end of the process would not be noticed

    def sample(self, repeats: int) -> tuple[int, int, int]:
        """What ``sample`` returns in the process. Raises WorkFailed with the reason."""
        try:
            with contextlib.suppress(ConnectionError):  # the reason may have been sent
                self.connection.send(repeats)
            answer = self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise WorkFailed(f"the process ended with {self.process.exitcode}") from None
        if isinstance(answer, str):
            raise WorkFailed(answer)
        return answer

    def close(self) -> None:
        """End the process, after the call that it is making."""
        with contextlib.suppress(ConnectionError):
            self.connection.send(None)
        self.connection.close()


def differs(interval: tuple[float, float]) -> bool:
    """Whether an interval of a ratio lies above or below 1, by more than the floor."""
    return interval[0] > 1 + FLOOR or interval[1] < 1 / (1 + FLOOR)


def in_words(ratio: float) -> str:
    """A ratio of times as people say it, such as ``takes ~4.20 % more time``."""
    if ratio >= 2:
        return f"takes {units.number(ratio)} times as long"
    if ratio > 0.5:
        return f"takes {units.percent(abs(ratio - 1))} {'more' if ratio > 1 else 'less'} time"
    return f"is {units.number(1 / ratio)} times as fast"


def compare(
    old: Work | str,
    new: Work | str,
    seconds: float = 10,
    difference: float = 0.05,
    progress: Callable[[str], object] = lambda line: None,
) -> Comparison:
    """Time old and new in turn, and return a ``Comparison``: print it, or read its ``verdict``.

    Two functions without arguments are measured in this process. Two names such as
    ``"module:function"`` are measured in new processes, one block in each, because a process can
    favour one version as long as it lives. If a name begins with a folder, as in
    ``"base/module:function"``, each version has a process of its own, which is started in its
    folder and imports from there, so two versions of the same modules can be compared.

    New is slower or faster if the 95 % confidence interval of the ratio of their times lies above
    or below 1 by more than 1 %. There is no verdict if either version differs from itself in the
    same way (an A/A test), or if no difference was found and only one of more than 50 % would be.
    The times are CPU times of this thread, which other programs disturb least. If old or new waits,
    or if other threads, processes or a GPU may work for them, they are wall times.

    Measuring ends as soon as a slowdown or speedup by the fraction ``difference`` would be found in
    nine of ten cases, or when ``seconds`` have been spent. One round of slow calls may take longer,
    and a process with torch takes one or two seconds to start. ``progress`` is called with a line
    after each of 5, 10 or 20 blocks of rounds.

    Check first that the results of both are equal, give both the same data, because arrays at two
    addresses can differ in speed, and synchronise a GPU inside both. First calls are not counted.
    What happens only in some calls is ignored: if the work varies, let old and new do the work of
    many calls.

    Raises TypeError if old or new is not such a function (the call of an ``async`` or generator
    function would not run its code), ValueError if a process fails, TimeoutExpired if it takes
    110 s more than its share, and what old and new raise here.
    """
    _input.positive("seconds", seconds)
    _input.positive("difference", difference)
    named = all(isinstance(work, str) and ":" in work for work in (old, new))
    if not named and not (callable(old) and callable(new)):
        expected = "two functions without arguments, or two names such as 'module:function'"
        raise TypeError(f"old and new must be {expected}, but got {old!r} and {new!r}")
    share = seconds / max(QUANTILES)
    if named:
        work, measure = (old, new), measure_in_process
    else:
        work, measure = (old, new, calls_per_sample(old, new)), measure_block
    blocks = []
    for count in QUANTILES:
        while len(blocks) < count:
            blocks.append(measure(*work, share))
            progress(f"measured {len(blocks)} of {max(QUANTILES)} blocks at most")
        result = conclude(blocks)
        spent = sum(block.spent for block in blocks)
        if result.limits[1] <= 1 + difference or 2 * spent > 1.2 * seconds:
            break  # enough is known, or the next look would be too late
    return result


def conclude(blocks: list[Block]) -> Comparison:
    """The result of 5, 10 or 20 blocks: the means of the logarithms of their ratios."""
    cpu_time_shows_the_work = np.median([block.elsewhere for block in blocks]) <= 0.1
    clock = 0 if cpu_time_shows_the_work else 1
    ratio, interval = mean_and_interval([block.change[clock] for block in blocks])
    wall_ratio, _ = mean_and_interval([block.change[1] for block in blocks])
    return Comparison(
        clock=("CPU time", "wall time")[clock],
        ratio=ratio,
        interval=interval,
        null=mean_and_interval([block.null[clock] for block in blocks])[1],
        wall_ratio=wall_ratio,
        old=float(np.median([block.old[clock] for block in blocks])),
        new=float(np.median([block.new[clock] for block in blocks])),
    )


def mean_and_interval(logarithms: list[float]) -> tuple[float, tuple[float, float]]:
    """The geometric mean of 5, 10 or 20 ratios, and its 95 % confidence interval."""
    count = len(logarithms)
    mean = np.mean(logarithms)
    margin = QUANTILES[count] * np.std(logarithms, ddof=1) / math.sqrt(count)
    ratio, low, high = np.exp([mean, mean - margin, mean + margin]).tolist()
    return ratio, (low, high)


def calls_per_sample(old: Work | WorkInFolder, new: Work | WorkInFolder) -> int:
    """How many calls of each version a sample needs, found after a warm-up."""
    for name, work in (("old", old), ("new", new)):  # these calls are the warm-up
        if isinstance(work, WorkInFolder):
            work.sample(1)  # after the first call, which its process makes
        else:
            first_call(name, work)
    repeats = 1
    while sample(old, repeats)[1] + sample(new, repeats)[1] < 2 * SAMPLE_NS:
        repeats *= 2
    return repeats


def first_call(name: str, work: Work) -> None:
    """Call old or new, and raise TypeError if this only returned what would do the work."""
    result = work()
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        kind = type(result).__name__.replace("_", " ")
        if inspect.iscoroutine(result):
            result.close()  # or Python warns that it was never awaited
        raise TypeError(
            f"{name} must be a function whose call does the work, but its call only returned a "
            f"{kind}: give a function that runs it to its end"
        )


def measure_block(
    old: Work | WorkInFolder, new: Work | WorkInFolder, repeats: int, seconds: float
) -> Block:
    """Time one round or more, for so many seconds: in each, both versions twice, in random order.

    By chance, this order makes a version differ from itself in at most about one of twenty
    comparisons. It does not show that a process favours one version; several processes show that.
    """
    versions = [old, old, new, new]
    rounds, order = [], random.Random()  # which leaves the caller's random numbers alone
    start = time.perf_counter()
    while not rounds or time.perf_counter() - start < seconds:
        samples = [(0, 0, 0)] * len(versions)
        for version in order.sample(range(len(versions)), len(versions)):
            samples[version] = sample(versions[version], repeats)
        rounds.append(samples)
    return summary(np.array(rounds), repeats)


def sample(work: Work | WorkInFolder, repeats: int) -> tuple[int, int, int]:
    """Of so many calls: nanoseconds of CPU time and of wall time, and whether to use wall time."""
    if isinstance(work, WorkInFolder):
        return work.sample(repeats)
    waits, process, thread = waits_of_thread(), time.process_time_ns(), time.thread_time_ns()
    start = time.perf_counter_ns()
    for _ in range(repeats):
        work()
    wall = time.perf_counter_ns() - start
    thread = time.thread_time_ns() - thread
    process = time.process_time_ns() - process
    waited = waits_of_thread() > waits and wall > 1.02 * thread
    elsewhere = resource is None or waited or process > 1.1 * thread or a_gpu_is_in_use()
    return max(1, thread), max(1, wall), int(elsewhere)


def waits_of_thread() -> int:
    """How often this thread (on macOS, this process) gave up its core because it had to wait."""
    if resource is None:
        return 0
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nvcsw


def a_gpu_is_in_use() -> bool:
    """Whether this process has used a GPU through torch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    used = torch.cuda.is_initialized() or torch.xpu.is_initialized()
    return used or (torch.backends.mps.is_available() and torch.mps.driver_allocated_memory() > 0)


def summary(rounds: np.ndarray, repeats: int) -> Block:
    """The medians of the rounds' ratios, each of the shorter time of new to that of old.

    ``rounds`` has the shape (rounds, [old, old again, new, new again], [CPU, wall, elsewhere]).
    """
    times = rounds[:, :, :2].astype(float)
    first, again = times[:, [0, 2]], times[:, [1, 3]]
    old, new = times[:, :2].min(axis=1), times[:, 2:].min(axis=1)
    change = np.log(new / old)
    null = np.log(again / first).mean(axis=1)
    per_call = [np.median(version, axis=0) / repeats / 1e9 for version in (old, new)]
    return Block(
        change=np.median(change, axis=0).tolist(),
        null=np.median(null, axis=0).tolist(),
        old=per_call[0].tolist(),
        new=per_call[1].tolist(),
        elsewhere=float(rounds[:, :, 2].mean()),
        spent=float(times[:, :, 1].sum() / 1e9),
    )


def measure_in_process(old: str, new: str, seconds: float) -> Block:
    """``measure_block`` in a new process, which is started in the current folder."""
    command = ["python", "-m", "helpers.compare", old, new, f"--block={seconds}"]
    torch = sys.modules.get("torch")
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # if both are set, the second one wins
    threads = {name: str(torch.get_num_threads()) for name in names} if torch else {}
    failed = f"{old!r} and {new!r} could not be compared"
    try:
        child = terminal.run(command, timeout=seconds + 110, **threads)
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.splitlines() or [f"the process ended with {error.returncode}"])[-1]
        raise ValueError(f"{failed}: {reason}") from error
    results = [line for line in child.stdout.splitlines() if line.startswith(RESULT)]
    if not results:
        raise ValueError(f"{failed}: the process ended before it had measured, with status 0")
    return Block(**json.loads(results[-1].removeprefix(RESULT)))


def serve(connection: Connection, role: str, name: str, other_name: str) -> None:
    """Import a function in its folder, and measure it as often as ``WorkInFolder`` asks."""
    try:
        folder, function = folder_and_function(name)
        other_folder, _ = folder_and_function(other_name)
        started_in, earlier = str(Path.cwd()), set(sys.modules)
        os.chdir(folder)  # where its modules are found, and not where the command was started
        sys.path[:] = [str(folder), *(entry for entry in sys.path if entry != started_in)]
        work = pkgutil.resolve_name(function)
        first_call(role, work)
        refuse_other_modules(function, folder, other_folder, set(sys.modules) - earlier)
        for repeats in iter(connection.recv, None):
            connection.send(sample(work, repeats))
    except (Exception, SystemExit) as error:
        connection.send(in_one_line(error))


def folder_and_function(name: str) -> tuple[Path, str]:
    """The folder and the rest of ``folder/module:function``, whose folder may be missing."""
    folder, _, function = name.rpartition("/")
    return Path(folder).resolve(), function


def refuse_other_modules(function: str, folder: Path, other_folder: Path, names: set[str]) -> None:
    """Raise ImportError if a version has imported, by these names, what is not its own.

    Then both versions would run the same code, and no difference would ever be found.
    """
    module = function.partition(":")[0]
    file = getattr(sys.modules[module], "__file__", None)
    if not file or not Path(file).resolve().is_relative_to(folder):
        raise ImportError(f"{folder} has no module {module}: Python found {file or 'its own'}")
    installed = Path(sys.prefix).resolve()
    for name in names:
        path = Path(getattr(sys.modules[name], "__file__", None) or folder).resolve()
        allowed = path.is_relative_to(folder) or path.is_relative_to(installed)
        if path.is_relative_to(other_folder) and not allowed:
            raise ImportError(
                f"the version in {folder} imports {name} from {other_folder}, which is the other "
                "version: install neither, and name the folder that contains the package"
            )


def in_one_line(error: BaseException) -> str:
    """The kind and the message of an error, and whether another package helpers is there."""
    if isinstance(error, WorkFailed):
        return str(error)
    message = " ".join(str(error).split())
    other = another_helpers() if isinstance(error, ImportError | AttributeError) else ""
    return f"{type(error).__name__}: {message or 'no message'}{other}"


def measure_named(old: str, new: str, seconds: float) -> Block:
    """``measure_block`` for two names, in this process or, if they have folders, in two others."""
    if "/" not in old + new:
        works = [pkgutil.resolve_name(name) for name in (old, new)]
        return measure_block(*works, calls_per_sample(*works), seconds)
    with contextlib.ExitStack() as stack:
        pairs = (("old", old, new), ("new", new, old))
        works = [stack.enter_context(contextlib.closing(WorkInFolder(*pair))) for pair in pairs]
        return measure_block(*works, calls_per_sample(*works), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="compare", description="Which version is faster?")
    parser.add_argument("old", help="a function without arguments, as [folder/]module:function")
    parser.add_argument("new", help="the same")
    parser.add_argument("--seconds", type=float, default=10, help="time for measuring, at most")
    words = "measure until a slowdown or speedup by this fraction would be found (0.05 is 5 %%)"
    parser.add_argument("--difference", type=float, default=0.05, help=words)
    words = "exit with %d if new takes more than this fraction longer, with %d if it is not known"
    parser.add_argument("--limit", type=float, help=words % (ABOVE_LIMIT, NOT_DECIDED))
    parser.add_argument("--block", type=float, help="measure one block of so many seconds")
    options = parser.parse_args()
    if options.block:
        try:
            block = measure_named(options.old, options.new, options.block)
        except (Exception, SystemExit) as error:
            sys.exit(in_one_line(error))
        # On a line that the work has not begun.
        print(f"\n{RESULT}{json.dumps(dataclasses.asdict(block))}", flush=True)
        return
    if Path(units.__file__).parent != Path(__file__).parent:
        sys.exit(f"This program needs the course's package helpers.{another_helpers()}")
    try:
        if options.limit is not None:
            _input.not_negative("limit", options.limit)
        result = compare(options.old, options.new, options.seconds, options.difference, show)
    except (TypeError, ValueError, subprocess.TimeoutExpired) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Interrupted: no verdict.")
    print(f"{options.new}, compared with {options.old}: {result}")
    if result.clock == "wall time" and result.limits[1] > LARGEST_LIMIT:
        print(
            "Other programs, or threads that wait for each other, may have disturbed this. With "
            "one thread, it may succeed: OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 before the command."
        )
    if options.limit is not None:
        exceeds = result.exceeds(options.limit)
        print(about_limit(options.old, options.new, options.limit, result))
        sys.exit({True: ABOVE_LIMIT, False: 0, None: NOT_DECIDED}[exceeds])


def about_limit(old: str, new: str, limit: float, result: Comparison) -> str:
    """A sentence that says whether new takes more than a fraction longer than old."""
    percent = f"the limit of {100 * limit:g} % more time"
    answer = {
        True: f"{new} exceeds {percent}",
        False: f"{new} keeps {percent}",
        None: f"It is not known whether {new} exceeds {percent}",
    }[result.exceeds(limit)]
    itself = differs(result.null)
    low, high = map(units.ratio, result.null if itself else result.interval)
    what = "each version against itself takes" if itself else "it takes"
    whose = "" if itself else f" of {old}"
    return f"{answer}: {what} {low} to {high} the time{whose} (95 % confidence interval)."


def another_helpers() -> str:
    """A sentence on a package of the reader's that is named helpers, too, if there is one."""
    for folder in sys.path:
        spec = importlib.machinery.PathFinder.find_spec("helpers", [folder or "."])
        if spec and spec.origin and Path(spec.origin).resolve().parent != Path(__file__).parent:
            return (
                f" (There is another package named helpers, {spec.origin}, and a process can "
                "import only one of the two: give yours another name.)"
            )
    return ""


def show(line: str) -> None:
    """A line of progress; in a terminal, the next one is written over it."""
    terminal_end = "\r" if sys.stderr.isatty() else "\n"
    print(line, end=terminal_end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
