import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from helpers import compare as comparing
from helpers.compare import BLOCKS, compare, conclude, log_ratios

RECORDINGS = Path(__file__).parents[2] / "assets" / "recordings"
VERSIONS = """
import os

def short():
    sum(range(300))

def long():
    print("printed by the work", end="")
    sum(range(3000))

def dies():
    os._exit(3)

def fails():
    raise ZeroDivisionError(os.environ["OMP_NUM_THREADS"] + " threads")
"""


@pytest.mark.parametrize("load", ["", "_crowded"])
def test_the_recorded_copies_do_not_differ_and_the_recorded_three_percent_are_found(
    load: str,
) -> None:
    table = pd.read_csv(RECORDINGS / f"timing_pairs{load}.csv.gz").query("how == 'ready'")
    logarithms = {}
    for name, series in table.groupby("series"):
        pairs = series[["old_ns", "new_ns"]].to_numpy().reshape(24, -1, 2, 2)
        rounds = pairs.transpose(0, 1, 3, 2).reshape(24, -1, 4)  # two pairs make a round
        logarithms[name] = np.array([log_ratios(process, varies=False) for process in rounds])
    logarithms["more"] = -logarithms["less"]
    rng = np.random.default_rng(0)
    drawn = [rng.choice(24, BLOCKS, replace=False) for _ in range(100)]
    verdicts = {
        name: [conclude(values[processes]).verdict.split()[-2] for processes in drawn]
        for name, values in logarithms.items()
    }
    for name in ("copy", "itself", "renamed"):
        assert verdicts[name] == ["%"] * 100  # "no difference larger than … % found"
    for name in ("less", "more"):  # "takes … % less time"
        assert verdicts[name].count(name) >= (50 if load else 90)
        assert set(verdicts[name]) <= {name, "%"}


def test_an_interval_and_a_verdict_by_hand() -> None:
    ratios, nulls = [0.11, 0.09, 0.10, 0.12, 0.08], [0.0] * BLOCKS
    slower = conclude(list(zip(ratios, nulls, strict=True)))
    margin = 2.776 * math.sqrt(0.00025) / math.sqrt(5)  # the variance of the ratios by hand
    assert slower.ratio == pytest.approx(math.exp(0.1))
    assert slower.interval == pytest.approx((math.exp(0.1 - margin), math.exp(0.1 + margin)))
    assert slower.null == (1, 1)
    assert slower.smallest == pytest.approx(1.01 * math.exp(margin) - 1)
    assert slower.verdict == "takes ~10.5 % more time"
    faster = conclude([[-ratio, 0] for ratio in ratios])
    assert str(faster) == (
        "takes ~9.52 % less time (~0.905× the time of old, 95 % confidence interval ~0.887× to "
        "~0.923×; each against itself ~1.00× to ~1.00×)"
    )
    biased = conclude([[ratio, 0.1] for ratio in ratios])  # old against itself shows as much
    assert biased.verdict == "no difference larger than ~12.7 % found"
    assert conclude([[0.009, 0]] * BLOCKS).verdict == "no difference larger than ~1.00 % found"


def test_minima_ignore_the_noise_of_others_and_medians_measure_work_that_varies() -> None:
    old = np.tile([100, 130, 160], 100)
    rounds = np.column_stack([old, old, 2 * old, 2 * old])
    rounds[::7, 1:] += 500  # a neighbour
    rounds[:2] = 1  # and one lucky moment
    assert log_ratios(rounds, varies=False) == pytest.approx([math.log(2), 0])
    new = np.where(old == 100, 100, 2 * old)
    varied = np.column_stack([old, old, new, new])
    assert log_ratios(varied, varies=False) == [0, 0]
    assert log_ratios(varied, varies=True) == pytest.approx([math.log(2), 0])


def test_every_order_is_drawn_and_first_calls_are_not_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls, rounds = [], []
    monkeypatch.setattr(comparing, "SAMPLE_NS", 0)
    monkeypatch.setattr(comparing, "log_ratios", lambda times, varies: rounds.append(times))
    old, new = (lambda: calls.append("o")), (lambda: calls.append("n"))
    repeats = comparing.calls_per_sample(old, new)
    assert "".join(calls) == "onon"  # the first calls, and how often to repeat
    comparing.measure_block(old, new, repeats, 0.1, False)
    measured = "".join(calls[4:])
    orders = [measured[start : start + 4] for start in range(0, len(measured), 4)]
    assert len(orders) == len(rounds[0])
    for order in ("oonn", "onon", "onno", "noon", "nono", "nnoo"):
        assert orders.count(order) > len(orders) / 12


def test_names_are_measured_in_processes_and_what_is_wrong_ends_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "versions.py").write_text(VERSIONS)
    monkeypatch.chdir(tmp_path)
    assert compare("versions:short", "versions:long", seconds=1).ratio > 3
    torch.set_num_threads(1)
    with pytest.raises(ValueError, match=r"could not be compared: ZeroDivisionError: 1 threads$"):
        compare("versions:short", "versions:fails")
    for name, reason in {
        "versions:nothing": "AttributeError: module 'versions' has no attribute 'nothing'",
        "nowhere:short": "ModuleNotFoundError: No module named 'nowhere'",
        "versions:dies": "the process ended with 3",
    }.items():
        command = [sys.executable, "-m", "helpers.compare", name, "versions:short"]
        done = subprocess.run(command, capture_output=True, text=True)
        expected = f"{name!r} and 'versions:short' could not be compared: {reason}\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


def test_wrong_arguments_end_in_one_sentence() -> None:
    with pytest.raises(TypeError, match=r"'module:function', but got 'a:b' and <built-in .*>"):
        compare("a:b", len)
    with pytest.raises(TypeError, match="names such as 'module:function', but got 'a:b' and ''"):
        compare("a:b", "")
    with pytest.raises(ValueError, match=r"seconds must be .*, finite and positive, but got 0"):
        compare(time.sleep, time.sleep, seconds=0)
    with pytest.raises(ZeroDivisionError):
        compare(lambda: 1 / 0, lambda: None)


def test_work_that_takes_longer_than_the_seconds_is_compared_nevertheless() -> None:
    result = compare(lambda: time.sleep(0.01), lambda: time.sleep(0.03), seconds=1e-3)
    assert result.verdict.endswith("more time")
