import pytest
import torch

from helpers import machine


def test_describe_has_the_same_rows_everywhere() -> None:
    about = machine.describe()
    assert list(about) == [
        "processor",
        "system",
        "physical cores",
        "logical cores",
        "memory",
        "Python",
        "torch",
        "torch threads",
        "vector instructions",
        "GPU",
    ]
    assert all(about.values())
    assert about["physical cores"] <= about["logical cores"]


def test_ceilings_are_rates_of_real_work_and_leave_the_threads_alone() -> None:
    before = torch.get_num_threads()
    found = machine.ceilings(threads=1, budget=0.001)
    assert found.threads == 1
    assert torch.get_num_threads() == before
    # A single core of any computer that runs torch lies far inside these bounds.
    assert 1e8 < found.matrix_product < 1e14
    assert 1e8 < found.convolution < 1e14
    assert 1e8 < found.copy < 1e13
    assert found.compute == max(found.matrix_product, found.convolution)


def test_the_rate_counts_two_operations_for_each_multiply_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "_fastest", lambda run, budget, least=3: 0.5)
    assert machine.matrix_product_rate(100) == 2 * 100**3 / 0.5
    assert machine.ceilings().convolution == 2 * 8 * 56 * 56 * 64 * 64 * 9 / 0.5
    assert machine.ceilings().copy == 2 * machine.COPY_BYTES / 0.5


def test_the_fastest_of_enough_runs_counts() -> None:
    runs: list[int] = []
    machine._fastest(lambda: runs.append(0), budget=1e-9, least=10)
    assert len(runs) == 11  # and a warm-up


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"threads": 0}, ValueError, "threads must be at least 1, but 0 came"),
        ({"threads": 1.5}, TypeError, "threads must be a whole number, but 1.5 came"),
        ({"budget": 0}, ValueError, "budget must be a positive time in seconds, but 0 came"),
    ],
)
def test_ceilings_refuse(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        machine.ceilings(**arguments)
