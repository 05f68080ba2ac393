"""The harnesses of the assignment: each trial runs apart, and each cheat fools what it is for."""

import inspect
import itertools
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch

from helpers import exercises, harnesses
from tools import exercise_sets

WORK = harnesses.draw_work(random.Random(1)) | {"side": 64}
SETS = [path for path in exercise_sets.all_sets() if path.stem == "fool_and_repair"]
needs_solutions = pytest.mark.skipif(not SETS, reason="a student's copy of the course")
BELIEVED = 10.0  # the speedup from which a harness is fooled


@pytest.fixture(autouse=True)
def one_thread_and_no_graph() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        yield
    torch.set_num_threads(threads)


def test_every_drawn_function_is_deterministic_and_keeps_an_input_of_zeros() -> None:
    for number in range(20):
        work = harnesses.draw_work(random.Random(number))
        slow, make_input = harnesses.workload(work)
        again, _ = harnesses.workload(work)
        x = make_input()
        assert slow(x).shape == x.shape == (1, 3, work["side"], work["side"])
        assert slow(x).equal(again(x))
        assert slow(x).abs().max() > 0.5  # far above the largest error that check allows
        assert slow(torch.zeros_like(x)).abs().max() == 0


def test_examples_are_computed_at_once_and_a_function_may_change_its_input() -> None:
    calls = []
    pairs = harnesses.examples(lambda x: calls.append(1) or x.add_(1), lambda: torch.zeros(2), 3)
    assert len(calls) == 3
    assert all(x.sum() == 0 and right.sum() == 2 for x, right in pairs)


@pytest.mark.parametrize(
    "result",
    [
        torch.ones(3),
        torch.ones(2, 1),
        torch.tensor([1.0, float("nan")]),
        torch.tensor([1.0, 1.001]),
        torch.ones(2).as_subclass(type("Later", (torch.Tensor,), {})),
        [1.0, 1.0],
        None,
    ],
)
def test_check_refuses_what_is_not_the_right_tensor(result: object) -> None:
    harnesses.check(torch.tensor([1.0, 1.00001]), torch.ones(2))
    with pytest.raises(ValueError, match=r"no plain tensor|differs by"):
        harnesses.check(result, torch.ones(2))


TRUSTING = """def trusting(f, slow, make_input):
    seconds = []
    for x, _ in examples(slow, make_input, 5):
        start = time.perf_counter()
        f(x)
        seconds.append(time.perf_counter() - start)
    return median(seconds)
"""


def believed(cheat: str, seconds: float = 20.0) -> dict:
    text = f"def cheat(slow):\n    {cheat}\n"
    return harnesses.believed([["trusting", TRUSTING, "cheat", text]], WORK, seconds)[0]


def test_a_harness_that_checks_nothing_believes_in_what_does_nothing() -> None:
    result = believed("return lambda x: x")
    assert result["errors"] == []
    assert result["speedup"] > BELIEVED
    honest = believed("return slow")
    assert honest["errors"] == []
    assert 0.2 < honest["speedup"] < 5


@pytest.mark.parametrize(
    ("cheat", "sentence"),
    [
        ("...", "cheat must return a function, but it returned None"),
        ("return 3", "cheat must return a function, but it returned 3"),
        ("raise KeyError('a')", "KeyError: 'a'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os; os._exit(0)", "its process ended without an answer"),
        ("time.perf_counter = lambda: 0.0; return slow", "reports 0 s"),
        ("return lambda x: print('text') or undefined", "NameError"),
    ],
)
def test_what_goes_wrong_in_a_trial_ends_in_one_sentence(cheat: str, sentence: str) -> None:
    clock = time.perf_counter
    result = believed(cheat, 5.0)
    assert result["speedup"] == 0
    (error,) = result["errors"]
    assert sentence in error
    assert "\n" not in error
    assert time.perf_counter is clock  # here, nothing was replaced
    assert believed("return slow")["errors"] == []  # and the next trial runs


def test_a_trial_that_takes_too_long_ends_in_one_sentence() -> None:
    assert believed("return lambda x: time.sleep(60)", 1.0)["errors"] == ["it took more than 1 s"]


def test_a_thread_that_never_ends_does_not_keep_a_trial_from_ending() -> None:
    cheat = "threading.Thread(target=threading.Event().wait).start(); return slow"
    assert believed(cheat)["errors"] == []


MEASURE = """def measure(f, reference, make_input, clock=time.perf_counter):
    x, seconds = make_input(), []
    if not torch.equal(f(x.clone()), reference(x)):
        raise ValueError("a wrong result")
    for _ in range(9):
        start = clock()
        f(x)
        seconds.append(clock() - start)
    return median(seconds)
"""
PROGRAM = """
def itself(slow):
    return slow

def ten_times(slow):
    return lambda x: [slow(x) for _ in range(10)][-1]

def other(slow):
    return lambda x: x

def slower_later(slow):
    calls = []

    def f(x):
        calls.append(x)
        return slow(x) if len(calls) <= 10 else ten_times(ten_times(slow))(x)

    return f
"""


def tried(measure: str, name: str, reference: str = "", **options: float) -> dict:
    return harnesses.tried(measure, [[PROGRAM, name, reference]], WORK, **options)[0]


def test_the_course_measures_the_function_and_the_reference_beside_the_harness() -> None:
    result = tried(MEASURE, "itself", "ten_times", goes=5)
    assert result["errors"] == result["refused"] == []
    assert 1 / 2 < result["seconds"] / result["own"] < 2
    assert 5 < result["reference"] / result["own"] < 20


def test_a_harness_is_judged_by_the_calls_that_it_makes_with_whole_inputs() -> None:
    """On a busy computer, calls of the same function a moment later may take much longer."""
    result = tried(MEASURE, "slower_later")
    assert 1 / 2 < result["seconds"] / result["own"] < 2
    corner = MEASURE.replace("make_input(),", "make_input()[:, :, :8, :8],")
    result = tried(corner, "slower_later")
    assert result["errors"] == result["refused"] == []
    assert result["seconds"] / result["own"] < 1 / 5


@pytest.mark.everything
def test_an_error_of_measure_is_a_refusal_and_anything_but_seconds_an_error() -> None:
    assert tried(MEASURE, "other")["refused"] == ["ValueError: a wrong result"]
    for wrong in ("None", "'0.1'", "True", "0", "-1.0", "float('nan')"):
        result = tried(f"def measure(*_):\n    return {wrong}\n", "itself")
        assert result["refused"] == []
        assert "measure must return seconds" in result["errors"][0]
    result = tried("def measure(*_):\n    while True: pass\n", "itself", seconds=1.0)
    assert result["errors"] == ["it took more than 1 s"]


class Assignment:
    """The cells of the assignment, run for one student, with the texts of its functions."""

    def __init__(self) -> None:
        which = exercise_sets.Set(SETS[0])
        self.names: dict = {"student": "ada", "__name__": "fool_and_repair"}
        for cell in which.of(""):
            if cell.id != "student":
                exercise_sets.run_cell(cell.source, self.names)
        for task in which.tasks:
            for cell in [*which.of(task, "given"), *which.of(task, "answer")]:
                exercise_sets.run_cell(cell.source, self.names)
        self.checks = {cell.id: cell.source for cell in which.of("repair", "check")}
        self.work = self.names["work"]
        self.cheats = {
            name.removeprefix("fool_"): value
            for name, value in self.names.items()
            if name.startswith("fool_") and name != "fool_trusting"
        }
        self.harnesses = {name: self.names[name] for name in self.cheats}

    def case(self, harness: str, cheat: str) -> list[str]:
        texts = inspect.getsource(self.names[harness]), inspect.getsource(self.cheats[cheat])
        return [harness, texts[0], self.cheats[cheat].__name__, texts[1]]

    def programs(self) -> tuple[dict[str, list], dict[str, list]]:
        """The attacks and the accepted programs of the checks of ``measure``, by name."""
        attacks, accepted = {}, {}

        def record(_: str, programs: list, __: dict, *goes: object) -> list[dict]:
            (accepted if goes else attacks).update({"/".join(p[1:]): p for p in programs})
            return [{"errors": [], "refused": [], "seconds": 1, "own": 1, "reference": 1}] * len(
                programs
            )

        for source in self.checks.values():
            with patch.object(exercises, "elsewhere", lambda _: [record]):
                exercise_sets.run_cell(source, dict(self.names))
        return attacks, accepted


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    clock = time.perf_counter
    with torch.no_grad():  # the set-up switches gradients off, here for a while only
        made = Assignment()
    assert time.perf_counter is clock
    return made


@needs_solutions
@pytest.mark.everything
def test_each_cheat_fools_its_own_harness_and_at_most_two_others(assignment: Assignment) -> None:
    """The faults differ, so that thirteen harnesses need at least ten ideas."""
    assert len(assignment.cheats) == 13
    fooled = {}
    for cheat in assignment.cheats:
        for harness in [*assignment.harnesses, "strict"]:
            case = assignment.case(harness, cheat)
            result = harnesses.believed([case], assignment.work)[0]
            if harness == cheat and result["speedup"] < BELIEVED:  # a busy computer
                result = harnesses.believed([case], assignment.work)[0]
            if result["speedup"] >= BELIEVED:
                fooled.setdefault(cheat, set()).add(harness)
    assert all(name in fooled.get(name, ()) for name in assignment.cheats), fooled
    assert all(len(names) <= 3 for names in fooled.values()), fooled
    assert all("strict" not in names for names in fooled.values()), fooled
    assert sum(len(names) == 1 for names in fooled.values()) >= 10, fooled


DOES_THE_WORK = {"converted_later", "cooled_down", "any_clock", "cpu_seconds", "noted_on_f"}


@pytest.mark.everything
@needs_solutions
def test_a_cheat_does_all_the_work_elsewhere_or_its_results_are_wrong_or_old(
    assignment: Assignment,
) -> None:
    """Nothing is really faster: what fools a harness is never a better function."""
    slow, make_input = harnesses.workload(assignment.work)
    for name, fool in assignment.cheats.items():
        calls = itertools.count()

        def counted(x: torch.Tensor, calls: Iterator[int] = calls) -> torch.Tensor:
            next(calls)
            return slow(x)

        with clocks_stay():
            f = fool(counted)
            f.seconds = []
            inputs = [make_input() for _ in range(24)]
            rights = [slow(x.clone()) for x in inputs]
            results = [f(x) for x in inputs]
        if name in DOES_THE_WORK:
            for result, right in zip(results, rights, strict=True):
                assert arrives(lambda r=result, w=right: (r - w).abs().max() < 1e-4), name
            assert next(calls) >= 24, name
        elif name not in ("one_input", "warm_inputs", "new_each_time"):
            wrong = [not same(*pair) for pair in zip(results, rights, strict=True)]
            assert any(wrong), name
        else:  # these replay: a changed input gets the old result, or new ones cost as ever
            old = f(inputs[-1].mul_(2)) if name == "one_input" else None
            assert old is None or not same(old, slow(inputs[-1])), name
            assert next(calls) >= 24, name


def same(result: torch.Tensor, right: torch.Tensor) -> bool:
    return bool((result - right).abs().max() < 1e-4)


def arrives(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether a condition holds, now or soon, because a thread may still be working."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


@contextmanager
def clocks_stay() -> Iterator[None]:
    """Give modules their clocks, and PyTorch its random numbers, back at the end."""
    clock, state = time.perf_counter, torch.get_rng_state()
    try:
        yield
    finally:
        time.perf_counter = clock
        torch.set_rng_state(state)


CARELESS = [  # together, they believe in every attack
    """def measure(f, reference, make_input, seconds=[]):
    x = make_input()
    for _ in range(12):
        start = time.perf_counter()
        result = f(x)
        seconds.append(time.perf_counter() - start)
    return min(seconds)
""",
    """def measure(f, reference, make_input):
    seconds = []
    for _ in range(12):
        start = thread_time()
        f(make_input())
        seconds.append(thread_time() - start)
    return max(min(seconds), 1e-9)
""",
]


def withstands(measure: str, attack: list[str], work: dict[str, int]) -> bool:
    (result,) = harnesses.tried(measure, [attack], work)
    assert result["errors"] == [], (attack[1], result)
    return bool(result["refused"]) or result["seconds"] >= result["reference"] / 3


@needs_solutions
@pytest.mark.everything
def test_every_attack_fools_a_careless_harness_and_the_solution_withstands_it(
    assignment: Assignment,
) -> None:
    attacks, accepted = assignment.programs()
    assert len(attacks) >= 20
    assert len(accepted) >= 14
    solution = inspect.getsource(assignment.names["measure"])
    for name, attack in attacks.items():
        trials = range(3)  # a busy computer can spoil one
        careless = (withstands(text, attack, assignment.work) for text in CARELESS)
        assert not all(careless), f"{name} fools nobody"
        assert any(withstands(solution, attack, assignment.work) for _ in trials), name
