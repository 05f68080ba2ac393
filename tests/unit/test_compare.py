import asyncio
import hashlib
import itertools
import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader

from helpers import compare as comparing
from helpers.compare import Comparison, compare, conclude, differs, summary

CROWDED = Path(__file__).parents[2] / "assets" / "recordings" / "timing_pairs_crowded.csv.gz"
VERSIONS = """
import asyncio
import atexit
import os
import sys

def short():
    sum(range(300))

def long():
    print("printed by the work", end="")
    sum(range(3000))

def ends():
    os._exit(0)

def dies():
    os._exit(3)

def fails():
    raise ZeroDivisionError(os.environ["OMP_NUM_THREADS"] + " threads")

async def waits():
    await asyncio.sleep(1)

def yields():
    yield 1

def says_goodbye():
    atexit.register(print, "goodbye")
"""


def blocks_of(logarithms: list[float], nulls: list[float] | None = None) -> list:
    """Blocks whose ratios, by both clocks, have these logarithms."""
    nulls = nulls or [0.0] * len(logarithms)
    return [
        comparing.Block([change] * 2, [null] * 2, [1.0] * 2, [1.0] * 2, 0.0, 1.0)
        for change, null in zip(logarithms, nulls, strict=True)
    ]


def recorded_blocks() -> dict[str, list]:
    """For each series of the recording, the blocks of its 24 processes."""
    table = pd.read_csv(CROWDED)
    columns = ["old_cpu_ns", "old_ns", "new_cpu_ns", "new_ns"]
    blocks = {}
    for name, series in table.groupby("series"):
        pairs = series[columns].to_numpy().reshape(24, -1, 2, 2, 2)  # two pairs make a round
        rounds = pairs.transpose(0, 1, 3, 2, 4).reshape(24, -1, 4, 2)
        alone = np.zeros((*rounds.shape[:3], 1))
        rounds = np.concatenate([rounds, alone], axis=3)
        blocks[name] = [summary(process, 1) for process in rounds]
    return blocks


def test_recorded_copies_on_a_crowded_computer_do_not_differ_and_three_percent_are_found() -> None:
    blocks = recorded_blocks()
    rng = np.random.default_rng(0)
    drawn = [rng.choice(24, 10, replace=False) for _ in range(100)]
    intervals = {
        name: [conclude([of_series[i] for i in processes]).interval for processes in drawn]
        for name, of_series in blocks.items()
    }
    for name in ("copy", "itself", "renamed"):
        assert not any(map(differs, intervals[name]))
    faster = [high < 1 for low, high in intervals["less"] if differs((low, high))]
    assert all(faster)
    assert len(faster) >= 50


def test_an_interval_and_a_verdict_by_hand() -> None:
    logarithms = [0.11, 0.09, 0.10, 0.12, 0.08]
    slower = conclude(blocks_of(logarithms))
    margin = 2.776 * math.sqrt(0.00025) / math.sqrt(5)  # the variance of the logarithms by hand
    assert slower.ratio == pytest.approx(math.exp(0.1))
    assert slower.interval == pytest.approx((math.exp(0.1 - margin), math.exp(0.1 + margin)))
    assert slower.null == (1, 1)
    slowdown = 1.01 * math.exp(1.6 * margin)
    assert slower.limits == pytest.approx((1 / slowdown, slowdown))
    assert slower.verdict == "takes ~10.5 % more time"
    more = conclude(blocks_of([0.1] * 10)).interval
    assert more == pytest.approx((math.exp(0.1), math.exp(0.1)))


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (2.41, "takes ~2.41 times as long"),
        (1.042, "takes ~4.20 % more time"),
        (0.915, "takes ~8.50 % less time"),
        (1 / 91, "is ~91.0 times as fast"),
        (1.009, "no difference found, where one of ~1.00 % would be"),
    ],
)
def test_a_ratio_is_put_in_the_words_that_people_use(ratio: float, words: str) -> None:
    assert conclude(blocks_of([math.log(ratio)] * 5)).verdict == words


def test_a_difference_between_a_version_and_itself_closes_the_gate() -> None:
    noisy = conclude(blocks_of([0.1] * 5, [0.05] * 5))
    assert noisy.verdict == "not known: each version against itself takes ~1.05× to ~1.05× the time"


def test_a_comparison_that_would_only_find_a_large_difference_is_no_answer() -> None:
    noisy = conclude(blocks_of([-0.4, 0.1, 0.4, -0.2, 0.3]))
    assert noisy.verdict == "not known: only a difference above ~1.97× would be found"


def test_a_result_prints_both_times_both_limits_and_the_clock() -> None:
    result = Comparison("CPU time", 1.1, (1.09, 1.11), (0.999, 1.001), 1.2, 0.001, 0.0011)
    assert str(result) == (
        "takes ~10.0 % more time\n"
        "    CPU time: old ~1.00 ms, new ~1.10 ms, ratio ~1.10×, 95 % confidence interval ~1.09× "
        "to ~1.11×\n"
        "    ratio of wall times: ~1.20×\n"
        "    would be found in nine of ten cases: ~2.42 % less time, ~2.48 % more time"
    )


def test_the_median_of_the_rounds_ignores_the_noise_of_others() -> None:
    times = np.array([[100, 101, 200, 202]] * 99)
    times[::7, 1:] += 500  # a neighbour
    rounds = np.stack([times, 10 * times, np.zeros_like(times)], axis=2)
    block = summary(rounds, repeats=100)
    assert block.change == pytest.approx([math.log(2), math.log(2)])
    assert block.null == pytest.approx([math.log(1.01), math.log(1.01)])
    assert block.old == pytest.approx([100e-11, 100e-10])  # seconds of a call
    assert block.elsewhere == 0


def test_every_order_is_drawn_and_first_calls_are_not_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls, rounds, ticks = [], [], itertools.count()
    monkeypatch.setattr(comparing, "SAMPLE_NS", 0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))  # a round takes one second
    monkeypatch.setattr(comparing, "summary", lambda times, repeats: rounds.append(times))
    old, new = (lambda: calls.append("o")), (lambda: calls.append("n"))
    repeats = comparing.calls_per_sample(old, new)
    assert "".join(calls) == "onon"  # the first calls, and how often to repeat
    comparing.measure_block(old, new, repeats, seconds=1000)
    measured = "".join(calls[4:])
    orders = [measured[start : start + 4] for start in range(0, len(measured), 4)]
    assert len(orders) == len(rounds[0]) == 1000
    for order in ("oonn", "onon", "onno", "noon", "nono", "nnoo"):
        assert orders.count(order) > len(orders) / 12


def count(pieces: int) -> None:
    for _ in range(pieces):
        pass


def test_work_of_this_thread_is_judged_by_its_cpu_time() -> None:
    result = compare(partial(count, 30_000), partial(count, 120_000), seconds=1)
    assert result.ratio > 2
    assert result.clock == "CPU time" or not comparing.resource


@pytest.mark.parametrize(("of", "times"), [("a sleep", 10), ("a program", 4), ("threads", 40)])
def test_work_that_waits_or_is_done_elsewhere_is_judged_by_wall_time(of: str, times: int) -> None:
    def work(pieces: int) -> None:
        if of == "a sleep":
            time.sleep(0.002 * pieces)
        elif of == "a program":
            for _ in range(pieces):
                subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        else:  # not torch's, which splits work only as far as it sees fit
            with ThreadPoolExecutor(2) as threads:
                list(threads.map(hashlib.sha256, [bytes(300_000)] * 2 * pieces))

    result = compare(partial(work, 1), partial(work, times), seconds=0.2)
    assert result.clock == "wall time"
    assert result.ratio == result.wall_ratio > 1.5


@pytest.mark.parametrize(
    ("logarithms", "nulls", "exceeds", "sentence"),
    [
        ([0.09, 0.10, 0.11, 0.10, 0.10], None, True, "b exceeds the limit of 5 % more time: it"),
        ([0.03, 0.04, 0.02, 0.03, 0.03], None, False, "b keeps the limit of 5 % more time: it"),
        ([-0.5, -0.1, -0.4, -0.2, -0.3], None, False, "b keeps the limit of 5 % more time: it"),
        ([0.04, 0.06, 0.05, 0.07, 0.03], None, None, "It is not known whether b exceeds the limit"),
        ([0.1] * 5, [0.05] * 5, None, "5 % more time: each version against itself takes ~1.05×"),
    ],
)
def test_a_limit_is_exceeded_or_kept_only_if_the_interval_does_not_contain_it(
    logarithms: list[float], nulls: list[float] | None, exceeds: bool | None, sentence: str
) -> None:
    result = conclude(blocks_of(logarithms, nulls))
    assert result.exceeds(0.05) is exceeds
    words = comparing.about_limit("a", "b", 0.05, result)
    assert sentence in words
    assert words.endswith("(95 % confidence interval).")


@pytest.mark.parametrize(
    ("logarithm", "spread", "status"), [(0.1, 0, 3), (0.02, 0, 0), (0.05, 0.02, 4)]
)
def test_with_a_limit_the_command_ends_with_a_status(
    logarithm: float,
    spread: float,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = conclude(blocks_of([logarithm + step * spread for step in (-1, 0, 1, 0, 0)]))
    monkeypatch.setattr(comparing, "compare", lambda *_: result)
    monkeypatch.setattr(sys, "argv", ["compare", "m:a", "m:b", "--limit", "0.05"])
    with pytest.raises(SystemExit) as ended:
        comparing.main()
    assert ended.value.code == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("m:b, compared with m:a: ")
    assert lines[-1] == comparing.about_limit("m:a", "m:b", 0.05, result)


def test_a_limit_that_is_no_fraction_ends_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["compare", "m:a", "m:b", "--limit", "-5"])
    with pytest.raises(SystemExit, match=r"limit must be .* not negative, but got -5"):
        comparing.main()


def in_two_folders(folder: Path, old: str, new: str) -> None:
    """A module ``versions`` in the folders old and new, and in both a module that it imports."""
    for name, amount, text in (("old", 300, old), ("new", 30_000, new)):
        (folder / name).mkdir()
        (folder / name / "versions.py").write_text(text)
        (folder / name / "amount.py").write_text(f"number = {amount}")


WORKS = """
from pathlib import Path

folder = Path(__file__).parent

def work():
    import amount  # not before the first call
    sum(range(amount.number))
    print("printed by the work", end="")
    with open(folder.parent / "calls.txt", "a") as calls:
        print(folder.name, amount.number, file=calls)
"""


def test_a_module_in_two_folders_is_imported_from_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_two_folders(tmp_path, WORKS, WORKS)
    (tmp_path / "amount.py").write_text("number = 1")  # in the folder of the command
    monkeypatch.chdir(tmp_path)
    measured = comparing.measure_in_process("old/versions:work", "new/versions:work", 0.1)
    monkeypatch.chdir(tmp_path / "new")  # a folder may be missing, and one may be above another
    again = comparing.measure_in_process("../old/versions:work", "versions:work", 0.1)
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    assert set(calls) == {"old 300", "new 30000"}
    assert calls.count("old 300") == calls.count("new 30000")
    for block in (measured, again):
        assert math.exp(block.change[0]) > 2


@pytest.mark.everything
@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ("def work(): raise ZeroDivisionError('in new')", "ZeroDivisionError: in new$"),
        ("import os\ndef work(): os._exit(3)", "the process ended with 3$"),
        ("def works(): pass", "AttributeError: module 'versions' has no attribute 'work'"),
        ("def work(): yield", "TypeError: new must be .* only returned a generator"),
        ("import sys\nsys.path.insert(0, '../old')\nimport other\ndef work(): pass", "install"),
        (None, "ModuleNotFoundError: No module named 'versions'"),
    ],
)
def test_what_is_wrong_in_a_folder_ends_in_one_sentence(
    new: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_two_folders(tmp_path, WORKS, new or "")
    (tmp_path / "old" / "other.py").touch()
    if new is None:
        (tmp_path / "new" / "versions.py").unlink()
    monkeypatch.chdir(tmp_path)
    names = "'old/versions:work' and 'new/versions:work'"
    with pytest.raises(ValueError, match=f"{names} could not be compared: .*{reason}") as raised:
        compare("old/versions:work", "new/versions:work", seconds=0.1)
    assert "\n" not in str(raised.value)


@pytest.mark.everything
def test_a_data_loader_with_workers_is_judged_by_wall_time() -> None:
    images = torch.rand(64, 100)

    def load(workers: int) -> None:
        for _ in DataLoader(images, batch_size=8, num_workers=workers):
            pass

    assert compare(partial(load, 1), partial(load, 1), seconds=1).clock == "wall time"


def test_work_whose_threads_never_wait_is_judged_by_wall_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "process_time_ns", lambda: 2 * time.thread_time_ns())
    assert compare(partial(count, 1000), partial(count, 2000), seconds=0.1).clock == "wall time"


def test_a_gpu_is_judged_by_wall_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert compare(partial(count, 1000), partial(count, 2000), seconds=0.1).clock == "wall time"


def test_measuring_goes_on_until_the_difference_would_be_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)

    def noisy(*_: object) -> comparing.Block:
        (block,) = blocks_of([float(rng.normal(0, 0.03))])
        return comparing.Block(**{**vars(block), "spent": 0.05})

    monkeypatch.setattr(comparing, "measure_block", noisy)
    lines = []
    compare(int, int, seconds=1, difference=0.5, progress=lines.append)
    assert len(lines) == 5
    compare(int, int, seconds=1, difference=0.001, progress=lines.append)
    assert len(lines) == 25
    assert lines[-1] == "measured 20 of 20 blocks at most"


@pytest.mark.everything
def test_names_are_measured_in_processes_and_what_is_wrong_ends_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "versions.py").write_text(VERSIONS)
    monkeypatch.chdir(tmp_path)
    assert compare("versions:short", "versions:long", seconds=0.2, difference=9).ratio > 3
    torch.set_num_threads(1)
    with pytest.raises(ValueError, match=r"could not be compared: ZeroDivisionError: 1 threads$"):
        comparing.measure_in_process("versions:short", "versions:fails", 0.01)
    for name, reason in {
        "versions:nothing": "AttributeError: module 'versions' has no attribute 'nothing'",
        "nowhere:short": "ModuleNotFoundError: No module named 'nowhere'",
        "versions:dies": "the process ended with 3",
        "versions:ends": "the process ended before it had measured, with status 0",
        "versions:waits": "TypeError: old must be a function whose call does the work, but its "
        "call only returned a coroutine: give a function that runs it to its end",
    }.items():
        command = [sys.executable, "-m", "helpers.compare", name, "versions:short"]
        done = subprocess.run(command, capture_output=True, text=True)
        expected = f"{name!r} and 'versions:short' could not be compared: {reason}\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
    # A line that is printed when the process ends is no result.
    assert comparing.measure_in_process("versions:says_goodbye", "versions:short", 0.01).spent > 0


def test_a_package_of_the_readers_named_helpers_ends_in_one_sentence(tmp_path: Path) -> None:
    package = tmp_path / "helpers"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "units.py").write_text("mine = 1")
    (tmp_path / "versions.py").write_text("import helpers.units\nhelpers.units.mine\n")
    for folder in (tmp_path, Path(__file__).parents[2]):
        command = [sys.executable, "-m", "helpers.compare", "versions:one", "versions:two"]
        environment = {**comparing.terminal.os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
        assert done.returncode == 1
        assert f"another package named helpers, {package / '__init__.py'}" in done.stderr
        assert "Traceback" not in done.stderr


def test_wrong_arguments_end_in_one_sentence() -> None:
    with pytest.raises(TypeError, match=r"'module:function', but got 'a:b' and <built-in .*>"):
        compare("a:b", len)
    with pytest.raises(TypeError, match="names such as 'module:function', but got 'a:b' and ''"):
        compare("a:b", "")
    with pytest.raises(ValueError, match=r"seconds must be .*, finite and positive, but got 0"):
        compare(time.sleep, time.sleep, seconds=0)
    with pytest.raises(ValueError, match=r"difference must be .*, finite and positive"):
        compare(time.sleep, time.sleep, difference=0)
    with pytest.raises(ZeroDivisionError):
        compare(lambda: 1 / 0, lambda: None)


@pytest.mark.parametrize("kind", ["coroutine", "generator", "async_generator"])
def test_a_function_whose_call_does_not_run_it_is_refused(kind: str) -> None:
    async def waits() -> None:
        await asyncio.sleep(1)

    def yields() -> object:
        yield 1

    async def yields_later() -> object:
        yield 1

    work = {"coroutine": waits, "generator": yields, "async_generator": yields_later}[kind]
    with pytest.raises(TypeError, match=f"new must be .* only returned an? {kind.split('_')[0]}"):
        compare(lambda: None, work)


def test_work_that_takes_longer_than_the_seconds_is_compared_nevertheless() -> None:
    result = compare(lambda: time.sleep(0.01), lambda: time.sleep(0.03), seconds=1e-3)
    assert result.ratio > 1.5
