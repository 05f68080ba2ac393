"""Each change of the drawn programs raises the counts of its kind, and no others."""

import random
import time
from itertools import pairwise
from statistics import median

import numpy as np
import pytest
import torch

from helpers import keeping
from helpers.exercises import WrongAnswer
from helpers.keeping import CHANGES, PROGRAM
from tools import notebooks

# The counts of each kind, written once more than in the solution of the set.
COUNTS = """
def counts(work):
    import sys
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.flop_counter import FlopCounterMode

    lines = []
    def trace(frame, event, argument):
        if event == "line":
            lines.append(frame.f_lineno)
        return trace

    before = sys.gettrace()  # of a tool that measures the tests' coverage
    sys.settrace(trace)
    work()
    sys.settrace(before)
    with FlopCounterMode(display=False) as flop:
        work()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        work()
    calls = [call for call in prof.events() if call.name.startswith("aten::")]
    return {
        "arithmetic": flop.get_total_flops(),
        "operators": len(calls),
        "Python": len(lines),
        "bytes": sum(max(0, call.self_cpu_memory_usage) for call in calls),
    }
"""


@pytest.fixture(params=[0, 1])
def program(request: pytest.FixtureRequest) -> str:
    return keeping.program(random.Random(request.param))


def test_a_change_raises_only_the_count_of_its_kind(program: str) -> None:
    programs = [program, program, *(keeping.changed(program, name) for name in CHANGES)]
    (base, again, *others), errors = keeping.count_programs(COUNTS, programs, [0] * len(programs))
    assert (again, errors) == (base, [])
    for (name, change), counts in zip(CHANGES.items(), others, strict=True):
        kind = [] if change.kind == "harmless" else [change.kind]
        assert keeping.raised(base, counts) == kind, name
        assert all(counts[other] <= base[other] for other in counts if other not in kind), name


def test_a_change_does_not_change_the_result(program: str) -> None:
    expected = keeping.loaded(program)()
    for name in CHANGES:
        result = keeping.loaded(keeping.changed(program, name))()
        assert result == pytest.approx(expected, rel=1e-4), name


def test_a_program_without_the_lines_of_a_change_is_refused() -> None:
    with pytest.raises(ValueError, match="lines that the change 'clamp' replaces"):
        keeping.changed(PROGRAM.replace("sub_", "add_"), "clamp")


def test_three_changes_are_of_three_kinds_and_leave_one_of_each_for_later() -> None:
    for number in range(30):
        names = keeping.one_of_each(random.Random(number))
        assert [CHANGES[name].kind for name in names] == ["arithmetic", "operators", "Python"]
        left = {CHANGES[name].kind for name in CHANGES if name not in names}
        assert left == {change.kind for change in CHANGES.values()}


def test_each_work_waits_and_is_called_once_before_it_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    text = "results = []\ndef counts(work):\n    results.append(work()[0])\n    return results[:]"
    programs = ["count = 0\ndef work():\n    global count\n    count += 1\n    return [count]"] * 2
    results, errors = keeping.count_programs(text, programs, [0, 3])
    # First a result that is dropped, then the second call of each work.
    assert (results, errors) == ([[1, 2], [1, 2, 2]], [])
    assert slept == [0, 0, 3, 3]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def counts(work): return nothing", "NameError: name 'nothing' is not defined"),
        ("def others(work): return {}", "KeyError: 'counts'"),
        ("def counts(work) return {}", "SyntaxError: expected ':' (<string>, line 1)"),
    ],
)
def test_an_error_in_the_counts_is_a_sentence(text: str, error: str) -> None:
    assert keeping.count_programs(text, ["def work(): pass"], [0]) == [[], [error]]


def test_a_count_raises_an_alarm_only_more_than_a_hundredth_above_the_base() -> None:
    base = {"a": 1000, "b": 1000, "c": 0, "d": 1000, "e": 5}
    new = {"a": 1010, "b": 1011, "c": 1, "d": 900, "f": 9}
    assert keeping.raised(base, new) == ["b", "c"]


def test_checks_of_alarms_find_a_missed_regression_and_a_false_alarm(program: str) -> None:
    def count(text: str, programs: list[str], waits: list[float]) -> list:
        """As many as the programs have characters, and as a ``text`` asks for, or their waits."""
        if text == "waits":
            return [[{"s": 1 + wait} for wait in waits], []]
        return [[{"n": len(each) if text == "length" else 1} for each in programs], []]

    keeping.check_alarms(count, "length", program, ["features"])
    with pytest.raises(
        WrongAnswer, match=r"alarms where columns of zeros .* at least 1, but got 0"
    ):
        keeping.check_alarms(count, "constant", program, ["features"])
    with pytest.raises(WrongAnswer, match=r"another name: expected \[\], but got \['n'\]"):
        keeping.check_alarms(count, "length", program, ["name"])
    with pytest.raises(WrongAnswer, match=r"computer is busy: expected \[\], but got \['s'\]"):
        keeping.check_alarms(count, "waits", program, [])
    with pytest.raises(WrongAnswer, match="errors of counts"):
        keeping.check_alarms(lambda *_: [[], ["an error"]], "", program, [])


@pytest.mark.parametrize(("counts", "message"), [(None, "got None"), ({}, "at least 1, but got 0")])
def test_an_empty_function_of_counts_gets_no_tick(
    counts: dict | None, message: str, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def count(text: str, programs: list[str], waits: list[float]) -> list:
        return [[counts for _ in programs], []]

    with pytest.raises(WrongAnswer, match=message):
        keeping.check_alarms(count, "", program, ["features"])
    assert "✓" not in capsys.readouterr().out


def test_a_history_has_a_step_in_a_drift_and_disturbed_commits() -> None:
    for number in range(30):
        ratios, step = keeping.history(random.Random(number))
        y = torch.tensor(ratios, dtype=torch.float64)
        commits = torch.arange(200, dtype=torch.float64)
        columns = torch.stack([torch.ones(200), commits, commits >= step], dim=1).double()
        level, slope, size = torch.linalg.lstsq(columns, y[:, None]).solution[:, 0].tolist()
        assert level == pytest.approx(1, abs=0.01)
        assert 0.0002 < abs(slope) < 0.0007
        assert 0.02 < size < 0.05
        assert 30 <= step <= 170
        disturbed, same_step = keeping.history(random.Random(number), disturbed=10)
        higher = [round(new - old, 6) for new, old in zip(disturbed, ratios, strict=True)]
        places = [commit for commit, difference in enumerate(higher) if difference != 0]
        assert same_step == step
        assert len(places) == 10
        assert min(after - before for before, after in pairwise(places)) >= 6
        assert all(0.1999 <= higher[place] <= 0.6001 for place in places)


def test_disturbed_commits_reach_from_the_first_to_the_last() -> None:
    full, _ = keeping.history(random.Random(0), disturbed=34)
    assert sum(ratio > 1.15 for ratio in full) == 34
    firsts_and_lasts = set()
    for number in range(100):
        ratios, _ = keeping.history(random.Random(number), disturbed=33)
        firsts_and_lasts |= {commit for commit in (0, 199) if ratios[commit] > 1.15}
    assert firsts_and_lasts == {0, 199}
    with pytest.raises(ValueError, match="from 0 to 34, but got 35"):
        keeping.history(random.Random(0), disturbed=35)


def test_the_lessons_fit_finds_the_step_only_in_undisturbed_histories() -> None:
    lesson = notebooks.read(notebooks.NOTEBOOKS / "17_keep_it_fast.ipynb")
    names: dict[str, object] = {"np": np}
    exec(next(cell.source for cell in lesson.cells if cell.id == "history-fit"), names)
    change_point = names["change_point"]

    def after_a_running_median(ratios: list[float]) -> int:
        return change_point([median(ratios[max(0, at - 2) : at + 3]) for at in range(200)])

    found = {}
    for disturbed in (0, 10):
        histories = [keeping.history(random.Random(seed), disturbed) for seed in range(30)]
        for fit in (change_point, after_a_running_median):
            near = [abs(fit(ratios) - step) <= 5 for ratios, step in histories]
            found[fit, disturbed] = sum(near)
    assert found[change_point, 0] >= 28
    assert found[change_point, 10] < 18
    assert found[after_a_running_median, 0] >= 28
    assert found[after_a_running_median, 10] >= 28
