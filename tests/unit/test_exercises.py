import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from helpers import exercises
from helpers.exercises import draw, expect, faster, fits, one_of
from helpers.simulated import Work
from tools.notebooks import ROOT


def test_a_draw_depends_on_the_student_and_the_task_only() -> None:
    assert draw(" ada ", "03, a block").random() == 0.855109341830307
    assert draw("grace", "03, a block").random() != 0.855109341830307
    assert draw("ada", "03, another").random() != 0.855109341830307
    one_character, two_characters = "Zo\u00eb", "Zoe\u0308"
    assert draw(one_character, "03, a").random() == draw(two_characters, "03, a").random()
    for student in ("", "  ", ..., 3):
        with pytest.raises(ValueError, match=r"^student must be your id, .* first code cell, run"):
            draw(student, "03, a")


def test_a_set_without_tensors_does_not_wait_for_torch() -> None:
    line = "import sys; from helpers import exercises; exercises.expect('it', 3, 3.0); "
    line += "sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", line], cwd=exercises.RECORDINGS, check=True)


inf, nan = float("inf"), float("nan")
RIGHT = [
    (3.0, 3, 0),
    (inf, inf, 0),
    (inf, inf, 0.1),
    (nan, nan, 0),
    (10**400, 10**400, 0),
    (torch.tensor([inf, nan, 1.05]), torch.tensor([inf, nan, 1.0]), 0.1),
    (np.array([1.5, 2]), [1.5, 2], 0),
    (torch.tensor([[1, 2], [3, 4]]), [[1, 2], [3, 4]], 0),
    ([np.array([1, 2]), torch.tensor(3)], [[1, 2], 3], 0),
    (np.float64(1.04), 1.0, 0.05),
    ((1, 2), [1, 2], 0),
    ({"a": 1.0}, {"a": 1.01}, 0.02),
    (torch.ones(2, 2), torch.ones(2, 2) * 1.001, 0.01),
]
WRONG = [
    (1234, 12345, 0, r"expected 12,345, but got 1,234"),
    (1.06, 1.0, 0.05, r"expected 1, within 5%, but got 1\.06"),
    (-1.0, 1.0, 0.5, "got -1$"),
    (True, 1, 0, "expected 1, but got True"),
    (1, True, 0, "expected True, but got 1"),
    (nan, 1.0, 0.5, "expected 1, within 50%, but got nan$"),
    (5, inf, 0.1, "expected inf, within 10%, but got 5$"),
    (inf, 5, 0.1, "expected 5, within 10%, but got inf$"),
    (-inf, inf, 0.1, "expected inf, within 10%, but got -inf$"),
    (10**400, 3.0, 0, "expected 3, but got 10,000,"),
    (torch.tensor([5.0, 1]), torch.tensor([inf, 1]), 0.1, "two values differ by inf$"),
    (torch.tensor([inf, 1]), torch.tensor([inf, 9]), 0.1, "two values differ by 8$"),
    (torch.tensor([nan]), torch.tensor([1.0]), 0, r"got tensor\(\[nan\]\)$"),
    (np.array([1.5, 2]), [1, 2], 0, r"expected \[1, 2\], but got array\(\[1.5, 2. \]\)$"),
    (np.arange(9), [1, 2], 0, r"got an array of shape \(9,\), sum 36$"),
    ([np.float64(1.5)], [2], 0, r"got \[1\.5\]$"),
    (np.array(["a"]), ["a"], 0, r"got array\(\['a'\]"),  # no data for a grader
    (pd.Series([1, 2]), [1, 2], 0, "got a Series of pandas$"),
    (torch.zeros(3, 1), 3, 0, "^[^\\n]+$"),
    ([1, 2], [1, 2, 3], 0, r"got \[1, 2\]"),
    ({"a": 1}, {"a": 2}, 0, "but got"),
    (None, 0, 0, "expected 0, but got None"),
    (torch.ones(4), torch.ones(2, 2), 0, "but got"),
    (torch.tensor([1, 2]), torch.tensor([1, 3]), 0.9, "but got"),
    (torch.zeros(9), torch.ones(9), 0, r"got a tensor of shape \(9,\), sum 0; .* differ by 1$"),
    ("x" * 200, 3, 0, "got 'x{159}…$"),
    (..., 3, 0, "^it: not answered yet$"),
]


def test_a_right_answer_is_marked_and_a_wrong_one_ends_in_a_sentence(
    capsys: pytest.CaptureFixture,
) -> None:
    for result, expected, within in RIGHT:
        expect("it", result, expected, within)
        assert capsys.readouterr().out == "✓ it\n"
    for result, expected, within, sentence in WRONG:
        with pytest.raises(AssertionError, match=sentence):
            expect("it", result, expected, within)
    for result in ("d", "ab", 2):
        with pytest.raises(AssertionError, match='it: expected one of "a", "b", "c", but'):
            one_of("it", result, "abc")
    with pytest.raises(AssertionError, match=r"^it: not answered yet$"):
        one_of("it", ..., "abc")
    assert capsys.readouterr().out == ""


def test_a_condition_shows_the_value_that_does_not_meet_it(capsys: pytest.CaptureFixture) -> None:
    fits("hot", 12, "a line of the table", True)
    assert capsys.readouterr().out == "✓ hot is a line of the table\n"
    with pytest.raises(AssertionError, match=r"^hot: expected a line of the table, but got 26$"):
        fits("hot", 26, "a line of the table", False)
    with pytest.raises(AssertionError, match=r"^hot: not answered yet$"):
        fits("hot", ..., "a line of the table", False)


FAILING = {
    "exercises.fits('hot', 26, 'a line', False)": "hot: expected a line, but got 26",
    "exercises.expect('a', 'x\\ny', 3)": r"a: expected 3, but got 'x\ny'",
    "exercises.expect('a', torch.ones(2, 2), 3)": "got tensor([[1., 1.], [1., 1.]])",
    "exercises.draw('', 'a task')": "student must be your id",
}


@pytest.mark.everything
def test_a_failed_check_is_one_line_in_a_notebook_and_the_cell_has_failed() -> None:
    setup = "import torch\nfrom helpers import exercises"
    notebook = new_notebook(cells=[new_code_cell(source) for source in (setup, *FAILING)])
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute(cwd=ROOT)
    for cell, sentence in zip(notebook.cells[1:], FAILING.values(), strict=True):
        (output,) = cell.outputs
        assert (output.output_type, output.ename in ("WrongAnswer", "MissingId")) == ("error", True)
        assert sentence in output.evalue
        (line,) = output.traceback
        assert line == f"\x1b[31m✗\x1b[0m {output.evalue}"
        assert "\n" not in line


def test_a_failed_check_in_a_program_ends_in_its_sentence() -> None:
    source, sentence = next(iter(FAILING.items()))
    line = [sys.executable, "-c", f"from helpers import exercises\n{source}"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True)
    assert sentence in done.stderr.decode().splitlines()[-1]


def test_an_answer_has_a_kind() -> None:
    table = {"first": float, "half": [float] * 2}
    exercises.answer("it", {"first": np.float32(1), "half": (2, torch.tensor(3))}, table)
    exercises.answer("it", {"a": [1, "x"], "b": [2.0, "y"]}, {str: [int, str]})
    exercises.answer("it", ["a", "b", "c"], [str, ...])
    for value, kind, plain in [
        (np.array([1.5, 2]), [float] * 2, [1.5, 2.0]),
        (torch.tensor([[1, 2], [3, 4]]), [[int, ...], ...], [[1, 2], [3, 4]]),
        ({"half": np.arange(2), "more": None}, {"half": [int] * 2}, {"half": [0, 1], "more": None}),
        ([np.array([1, 2])], [list, ...], [[1, 2]]),
        (np.float32(2), int, 2.0),
    ]:
        answered = exercises.answer("it", value, kind)
        assert (answered, type(answered)) == (plain, type(plain))
    rows = exercises.answer("it", torch.ones(2, 3), [torch.Tensor] * 2)
    assert [row.shape for row in rows] == [(3,), (3,)]
    for value, kind, sentence in [
        (True, int, "a whole number, but got True"),
        (float("nan"), int, "a whole number, but got nan"),
        ("xy", [float] * 2, "a list of 2, each a number, but got 'xy'"),
        ([], [str, ...], r"a list, each a string, but got \[\]"),
        (["a", 1], [str, float, str], "a list of 3: a string, a number, a string, but"),
        ({"first": 1}, table, "a dictionary with 'first': a number, 'half': a list of 2"),
        ({1: 2}, {str: int}, "a dictionary, but got {1: 2}"),
        (inf, int, "a whole number, but got inf"),
        (np.arange(3), [float] * 2, r"a list of 2, each a number, but got array\(\[0, 1, 2\]\)"),
    ]:
        with pytest.raises(AssertionError, match=f"^it: expected {sentence}"):
            exercises.answer("it", value, kind)


def test_a_function_returns_its_kind() -> None:
    double = exercises.function("double", lambda n: 2 * n, float)
    assert exercises.function("double", double, float)(2) == 4
    with pytest.raises(AssertionError, match=r"^what double returns: .* a number, but got .aa."):
        double("a")
    with pytest.raises(AssertionError, match=r"^double: expected a function, but got 3$"):
        exercises.function("double", 3)


CALLS = [(), (), ()]


def test_faster_wants_the_same_result_and_the_speed_in_three_goes(clock) -> None:
    faster("it", Work([0.125]), Work([0.25]), CALLS)  # the least that is asked
    faster("it", Work([0.25, 0.25, 0.125]), Work([0.25]), CALLS[:2])  # a slow moment
    with pytest.raises(AssertionError, match="a different result, so its speed"):
        faster("it", Work([0.0625], calls=1), Work([0.25]), CALLS)
    start = clock.now
    with pytest.raises(AssertionError, match="expected at least 2 times as fast"):
        faster("it", Work([0.25]), Work([0.25]), CALLS)
    assert clock.now - start == 3 * len(CALLS) * 0.5


def test_a_check_of_a_time_has_three_goes_and_prints_once(capsys: pytest.CaptureFixture) -> None:
    goes = []

    def check() -> None:
        goes.append(1)
        print("go", len(goes))
        assert len(goes) == 3

    exercises.patiently(check)
    assert capsys.readouterr().out == "go 3\n"
    with pytest.raises(AssertionError):
        exercises.patiently(check)
    assert len(goes) == 6


def test_a_functions_text_is_asked_of_it_and_can_be_run() -> None:
    def twice(number: int) -> int:
        return 2 * number

    names: dict = {}
    exec(exercises.source("twice", twice), names)
    assert names["twice"](4) == 8
    assert exercises.apart(twice) == [twice]
    for answer, why in ((len, "its text was not found"), (3, "expected a function, but got 3")):
        with pytest.raises(exercises.WrongAnswer, match=why):
            exercises.source("twice", answer)
