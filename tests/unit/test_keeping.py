"""Each change of the drawn programs raises the counts of its kind, and no others."""

import random
import time

import pytest
import torch

from helpers import keeping
from helpers.exercises import WrongAnswer
from helpers.keeping import CHANGES, PROGRAM

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


def test_a_history_has_a_jump_in_a_drift_and_disturbed_commits() -> None:
    for number in range(30):
        ratios, jump = keeping.history(random.Random(number))
        y = torch.tensor(ratios, dtype=torch.float64)
        commits = torch.arange(200, dtype=torch.float64)
        columns = torch.stack([torch.ones(200), commits, commits >= jump], dim=1).double()
        level, slope, step = torch.linalg.lstsq(columns, y[:, None]).solution[:, 0].tolist()
        assert level == pytest.approx(1, abs=0.01)
        assert 0.0002 < abs(slope) < 0.0007
        assert 0.02 < step < 0.05
        assert 30 <= jump <= 170
        disturbed, same_jump = keeping.history(random.Random(number), disturbed=10)
        higher = [round(new - old, 6) for new, old in zip(disturbed, ratios, strict=True)]
        assert same_jump == jump
        assert higher.count(0) == 190
        assert all(difference == 0 or 0.0499 <= difference <= 0.1501 for difference in higher)
