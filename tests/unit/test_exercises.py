import doctest
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
import torch

from grading import values
from helpers import exercises
from helpers.exercises import Device, Work, draw, expect, faster, one_of


def test_a_draw_is_the_same_on_every_computer() -> None:
    assert draw("ada", "03, a block").random() == 0.855109341830307


def test_a_draw_depends_on_the_student_and_the_task() -> None:
    first = [draw(who, task).random() for who in ("ada", "grace") for task in ("03, a", "03, b")]
    assert len(set(first)) == 4
    assert draw(" ada ", "03, a").random() == first[0]


@pytest.mark.parametrize("student", ["", "  ", ..., 3])
def test_a_draw_asks_for_the_id(student: object) -> None:
    with pytest.raises(ValueError, match="student must be your id"):
        draw(student, "03, a")


def test_a_set_without_tensors_does_not_wait_for_torch() -> None:
    line = "import sys; from helpers import exercises; exercises.expect('it', 3, 3.0); "
    line += "sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", line], cwd=exercises.RECORDINGS, check=True)


RIGHT = [
    (3, 3, 0),
    (3.0, 3, 0),
    (np.float64(1.04), 1.0, 0.05),
    (torch.tensor(7), 7, 0),
    ((1, 2), [1, 2], 0),
    ({"a": 1.0}, {"a": 1.01}, 0.02),
    (torch.ones(2, 2), torch.ones(2, 2) * 1.001, 0.01),
    (torch.arange(3), torch.arange(3), 0),
    ("b", "b", 0),
    (True, True, 0),
    (None, None, 0),
    (0.0, 0, 0.5),
]


@pytest.mark.parametrize(("came", "expected", "within"), RIGHT)
def test_what_is_right(came, expected, within, capsys: pytest.CaptureFixture) -> None:
    expect("it", came, expected, within)
    assert capsys.readouterr().out == "✓ it\n"


WRONG = [
    (4, 3, 0, r"expected 3, but 4 came"),
    (1234, 12345, 0, r"expected 12,345, but 1,234 came"),
    (1.06, 1.0, 0.05, r"expected 1, within 5%, but 1\.06 came"),
    (0.94, 1.0, 0.05, "0.94 came"),
    (-1.0, 1.0, 0.5, "-1 came"),
    (True, 1, 0, "expected 1, but True came"),
    (1, True, 0, "expected True, but 1 came"),
    (float("nan"), 1.0, 0.5, "nan came"),
    ("3", 3, 0, "'3' came"),
    ([1, 2], [1, 2, 3], 0, r"\[1, 2\] came"),
    ([1, 2, 4], [1, 2, 3], 0, "came"),
    ([2, 1], {1, 2}, 0, "came"),
    ({"a": 1}, {"b": 1}, 0, "came"),
    ({"a": 1}, {"a": 2}, 0, "came"),
    (None, 0, 0, "expected 0, but None came"),
    (0, None, 0, "expected None, but 0 came"),
    (torch.ones(4), torch.ones(2, 2), 0, "came"),
    (torch.tensor([1, 2]), torch.tensor([1, 3]), 0.9, "came"),
    (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]), 0.01, "came"),
    ([1.0], torch.ones(1), 0, "came"),
    (torch.zeros(9), torch.ones(9), 0, r"a tensor of shape \(9,\), sum 0 came"),
    (..., 3, 0, "^it: not answered yet$"),
]


@pytest.mark.parametrize(("came", "expected", "within", "sentence"), WRONG)
def test_what_is_wrong(came, expected, within, sentence, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(AssertionError, match=sentence):
        expect("it", came, expected, within)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("came", "shown"),
    [
        ("x" * 158, repr("x" * 158)),
        ("x" * 159, repr("x" * 159)[:160] + "…"),
        (torch.zeros(6), repr(torch.zeros(6))),
        (torch.zeros(7), "a tensor of shape (7,), sum 0"),
    ],
)
def test_a_long_answer_is_cut(came: object, shown: str) -> None:
    with pytest.raises(AssertionError) as raised:
        expect("it", came, 3)
    assert str(raised.value) == f"it: expected 3, but {shown} came"


def test_a_choice_is_one_of_the_options(capsys: pytest.CaptureFixture) -> None:
    one_of("choice", "b", "abc")
    assert capsys.readouterr().out == "✓ choice: b was chosen\n"
    for came, shown in [("d", "'d'"), ("", "''"), ("ab", "'ab'"), (..., "..."), (2, "2")]:
        with pytest.raises(AssertionError) as raised:
            one_of("choice", came, "abc")
        said = f'choice: expected one of "a", "b", "c", but {shown} came'
        assert str(raised.value) == said


LIST, TABLE = [float] * 2, {"first": float, "half": [float] * 2}
KINDS = [
    (3, float, ""),
    (np.float32(3), int, ""),
    (torch.tensor(2.5), float, ""),
    ((1, 2.5), LIST, ""),
    (np.ones(2).tolist(), LIST, ""),
    (["a", "b", "c"], [str, ...], ""),
    ({"first": 1, "half": [2, 3], "more": None}, TABLE, ""),
    ({"a": [1, "x"]}, {str: [int, object]}, ""),
    (None, float, "expected a number, but None came"),
    (True, int, "expected a whole number, but True came"),
    (2.5, int, "expected a whole number, but 2.5 came"),
    (float("nan"), int, "expected a whole number, but nan came"),
    (3, str, "expected a string, but 3 came"),
    ("xy", LIST, "expected a list of 2, each a number, but 'xy' came"),
    ([1], LIST, "came"),
    ([], [str, ...], r"expected a list, each a string, but \[\] came"),
    (["a", 1], [str, float, str], "expected a list of 3: a string, a number, a string, but"),
    ({"first": 1}, TABLE, "expected a dictionary with 'first': a number, 'half': a list of 2"),
    ({1: [1, "x"]}, {str: [int, object]}, "expected a dictionary, but"),
    (..., float, "not answered yet"),
]


@pytest.mark.parametrize(("value", "kind", "sentence"), KINDS)
def test_an_answer_has_a_kind(value: object, kind: object, sentence: str) -> None:
    if not sentence:
        exercises.answer("it", value, kind)
        return
    with pytest.raises(AssertionError, match=f"^it: .*{sentence}"):
        exercises.answer("it", value, kind)


def test_a_function_returns_its_kind() -> None:
    double = exercises.function("double", lambda n: 2 * n, float)
    assert exercises.function("double", double, float)(2) == 4
    with pytest.raises(AssertionError, match=r"^what double returns: expected a number, but .aa."):
        double("a")
    with pytest.raises(AssertionError, match=r"^double: expected a function, but 3 came$"):
        exercises.function("double", 3)
    with pytest.raises(ZeroDivisionError):  # the student's own
        exercises.function("inverse", lambda n: 1 / n)(0)


class Clock:
    """Stands for the module ``time``: no other work on this computer moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    it = Clock()
    monkeypatch.setattr(exercises, "time", it)
    return it


def add(clock: Clock, seconds: Sequence[float], extra: int = 0) -> Callable[[int, int], int]:
    """A sum whose n-th call takes ``seconds[n]``, and further ones as long as the last."""
    left = list(seconds)

    def total(a: int, b: int) -> int:
        clock.sleep(left.pop(0) if len(left) > 1 else left[0])
        return a + b + extra

    return total


INPUTS = [(1, 2), (3, 4), (5, 6)]


def test_faster_wants_the_same_result_and_the_speed(
    clock: Clock, capsys: pytest.CaptureFixture
) -> None:
    slow = add(clock, [0.25])
    faster("sum", add(clock, [0.125]), slow, INPUTS)  # the least that is asked
    assert capsys.readouterr().out.startswith("✓ sum: the same result, ~2")
    with pytest.raises(AssertionError, match="a different result, so its speed"):
        faster("sum", add(clock, [0.0625], extra=1), slow, INPUTS)
    with pytest.raises(AssertionError, match="expected at least 2 times as fast"):
        faster("sum", add(clock, [0.1875]), slow, INPUTS)


@pytest.mark.parametrize(("most", "goes"), [(1, 1), (5, 3)])
def test_faster_has_three_goes_or_fewer(
    most: int, goes: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exercises, "most_goes", most)
    start = clock.now
    with pytest.raises(AssertionError):
        faster("sum", add(clock, [0.25]), add(clock, [0.25]), INPUTS)
    assert clock.now - start == goes * len(INPUTS) * 0.5


def test_a_check_of_a_time_has_three_goes() -> None:
    goes = []

    def check() -> None:
        goes.append(1)
        assert len(goes) == 3

    exercises.patiently(check)
    assert len(goes) == 3
    goes += [1]
    with pytest.raises(AssertionError):
        exercises.patiently(check, times=2)
    assert len(goes) == 6
    with pytest.raises(AssertionError):
        exercises.patiently(check)
    assert len(goes) == 9


def test_a_slow_moment_does_not_decide(clock: Clock) -> None:
    mine = add(clock, [0.25, 0.25, 0.125])
    faster("sum", mine, add(clock, [0.25]), INPUTS[:2])


def test_faster_lets_a_stand_in_bring_the_arguments_first(clock: Clock) -> None:
    class StandIn:
        def prepared(self, *arguments: int) -> partial:
            clock.sleep(0.5)  # the way there, which does not count
            return partial(add(clock, [0.125]), *arguments)

    faster("sum", StandIn(), add(clock, [0.25]), INPUTS)


def test_work_takes_its_time(clock: Clock) -> None:
    work, begun = Work(seconds=[0.5, 0.25, 0.125]), []
    for number in (1, 2, 3, 4):
        begun.append(clock.now)
        assert work() == number
    assert np.diff([*begun, clock.now]).tolist() == [0.5, 0.25, 0.125, 0.125]


def test_a_device_returns_at_once_and_works_off_its_queue(clock: Clock) -> None:
    device, start = Device(seconds=[0.25, 0.125], waiting=0.5), clock.now
    assert [device(), device()] == [1, 2]
    assert clock.now == start
    device.synchronize()
    assert clock.now == start + 0.875
    clock.sleep(1)
    assert device() == 3  # as the last, and behind nothing
    device.synchronize()
    device.synchronize()
    assert clock.now == start + 2.0
    idle = Device(seconds=[0.25])
    idle()
    assert idle.free == clock.now + 0.25


PLAIN = [
    *(None, True, 3, 2.5, "ö", [1, [2, "x"]], {"a": 1, 2: [None]}, {}, [], ...),
    *(torch.ones(2, 3), torch.zeros(0, 2), torch.tensor([True]), torch.tensor(3), Work([0.1], 2)),
    *(float("inf"), {"float": "x"}, {"tensor": 1}),
]


@pytest.mark.parametrize("value", PLAIN, ids=str)
def test_data_comes_back_as_it_was(value: object) -> None:
    back = values.unpack(json.loads(json.dumps(values.pack(value), allow_nan=False)))
    if isinstance(value, torch.Tensor):
        assert back.dtype == value.dtype
        assert torch.equal(back, value)
    else:
        assert back == value
        assert type(back) is type(value)


def test_arrays_and_numpy_s_numbers_are_data_too() -> None:
    back = values.unpack(values.pack(np.arange(3.0)))
    assert torch.equal(back, torch.arange(3.0, dtype=torch.float64))
    assert values.pack(np.float32(2)) == 2.0
    assert values.pack(np.bool_(True)) is True
    assert values.unpack(values.pack({np.int64(1): 2})) == {1: 2}
    assert values.unpack(values.pack(np.arange(3)[::-1])).tolist() == [2, 1, 0]
    assert values.unpack(values.pack((1, 2))) == [1, 2]
    assert values.unpack(values.pack(torch.ones(2, dtype=torch.bfloat16))).dtype == torch.float32


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (len, "a builtin_function_or_method came; expected numbers"),
        ({1.5: 2}, "keys are neither strings nor whole numbers"),
        (torch.zeros(5_000_000), "a tensor of 20,000,000 bytes came"),
        (torch.zeros(2, dtype=torch.complex64), "a tensor of complex64 came"),
        ("x" * 17_000_000, "a string of 17,000,000 characters"),
        (object(), "a object came"),
        (np.array(["a"]), "an array of <U1 came; expected numbers"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_not_data_is_refused(value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        values.pack(value)


@pytest.mark.parametrize(
    "packed",
    [
        {},
        {"given": "Path", "fields": {}},
        {"given": "draw", "fields": {}},
        {"tensor": "", "shape": [1], "dtype": "complex64"},
        {"tensor": "!!", "shape": [1], "dtype": "int8"},
        {"tensor": "AAAA", "shape": [9], "dtype": "int8"},
    ],
)
def test_what_pack_does_not_write_is_refused(packed: dict) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        values.unpack(packed)


@pytest.mark.parametrize(
    ("value", "is_data"),
    [
        (np.bool_(True), True),
        ({np.int64(1): 2}, True),
        (np.arange(3.0), True),
        ([np.float32(1), (2, None)], True),
        ({1.5: 2}, False),
        ({1, 2}, False),
        (range(3), False),
        (b"x", False),
    ],
    ids=str,
)
def test_the_notebook_and_the_grader_agree_on_what_is_data(value: object, is_data: bool) -> None:
    if is_data:
        expect("it", value, value)
        expect("it", values.unpack(values.pack(value)), value)
        return
    with pytest.raises(AssertionError):
        expect("it", value, value)
    with pytest.raises(ValueError, match="came"):
        values.pack(value)


def test_the_examples_are_true() -> None:
    assert doctest.testmod(exercises).failed == 0
