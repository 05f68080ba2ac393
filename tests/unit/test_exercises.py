import doctest
import json
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import torch

from helpers import exercises
from helpers.exercises import Device, Work, draw, expect, faster, one_of
from tools import values


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


def test_a_long_answer_is_cut() -> None:
    with pytest.raises(AssertionError) as raised:
        expect("it", "x" * 1000, 3)
    assert len(str(raised.value)) < 250


def test_a_choice_is_one_of_the_options(capsys: pytest.CaptureFixture) -> None:
    one_of("choice", "b", "abc")
    assert capsys.readouterr().out == "✓ choice: b was chosen\n"
    for came in ("d", "", "ab", ..., 2):
        with pytest.raises(AssertionError, match='choice: expected one of "a", "b", "c", but'):
            one_of("choice", came, "abc")


def add(seconds: float, extra: int, a: int, b: int) -> int:
    time.sleep(seconds)
    return a + b + extra


INPUTS = [(1, 2), (3, 4), (5, 6)]


def test_faster_wants_the_same_result_and_the_speed(capsys: pytest.CaptureFixture) -> None:
    slow = partial(add, 0.06, 0)
    faster("sum", partial(add, 0.01, 0), slow, INPUTS)
    assert capsys.readouterr().out.startswith("✓ sum: the same result, ~")
    with pytest.raises(AssertionError, match="a different result, so its speed"):
        faster("sum", partial(add, 0.0, 1), slow, INPUTS)
    with pytest.raises(AssertionError, match="expected at least 2 times as fast"):
        faster("sum", partial(add, 0.05, 0), slow, INPUTS)


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


def test_a_slow_moment_does_not_decide() -> None:
    delays = iter([0.05, 0.05, 0.0, 0.0, 0.0, 0.0])

    def mine(a: int, b: int) -> int:
        return add(next(delays), 0, a, b)

    faster("sum", mine, partial(add, 0.05, 0), INPUTS[:2])


def test_faster_lets_a_stand_in_bring_the_arguments_first() -> None:
    class StandIn:
        def prepared(self, *arguments: int) -> partial:
            time.sleep(0.06)  # the way there, which does not count
            return partial(add, 0.005, 0, *arguments)

    faster("sum", StandIn(), partial(add, 0.05, 0), INPUTS)


def test_work_takes_its_time() -> None:
    work = Work(seconds=[0.05, 0.0])
    start = time.perf_counter()
    assert work() == 1
    assert time.perf_counter() - start >= 0.05
    assert [work(), work()] == [2, 3]


def test_a_device_returns_at_once_and_works_off_its_queue() -> None:
    device = Device(seconds=[0.2, 0.1], waiting=0.2)
    start = time.perf_counter()
    assert [device(), device()] == [1, 2]
    assert time.perf_counter() - start < 0.2
    device.synchronize()
    assert time.perf_counter() - start >= 0.5
    start = time.perf_counter()
    assert device() == 3  # as the last, and behind nothing
    assert 0.1 <= device.free - start < 0.2


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


def test_the_examples_are_true() -> None:
    assert doctest.testmod(exercises).failed == 0
