from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from helpers import machine


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """What is timed: its FLOPs, and the number of threads."""
    workloads: list[SimpleNamespace] = []

    def half_a_second(run, least=3):
        with torch.inference_mode(False), FlopCounterMode(display=False) as counter:
            run()
        flop, threads = counter.get_total_flops(), torch.get_num_threads()
        workloads.append(SimpleNamespace(flop=flop, threads=threads))
        return 0.5

    monkeypatch.setattr(machine, "_fastest", half_a_second)
    return workloads


def test_a_ceiling_counts_the_work_that_was_timed(timed: list[SimpleNamespace]) -> None:
    state = torch.get_rng_state()
    rates = machine.ceilings(threads=1)
    assert torch.equal(torch.get_rng_state(), state)  # a lesson's own random numbers stay
    *products, convolution, _ = timed
    assert [product.flop for product in products] == [2 * size**3 for size in (256, 512, 1024)]
    assert rates.matrix_product == products[-1].flop / 0.5
    assert rates.convolution == convolution.flop / 0.5
    assert rates.copy == 2 * machine.COPY_BYTES / 0.5


def test_the_threads_are_restored_even_after_an_error(
    timed: list[SimpleNamespace], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_num_threads()
    machine.ceilings()
    monkeypatch.setattr(machine, "_copy_rate", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        machine.ceilings(threads=before + 1)
    assert [workload.threads for workload in timed] == 5 * [before] + 4 * [before + 1]
    assert torch.get_num_threads() == before


def test_the_fastest_of_several_runs_after_a_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now, durations = [0.0], [0.5, 8.0, 2.0, 4.0, 1.0, 9.0, 7.0]
    monkeypatch.setattr(machine, "time", SimpleNamespace(perf_counter=lambda: sum(now)))
    assert machine._fastest(lambda: now.append(durations[len(now) - 1]), least=5) == 1.0
    assert len(now) - 1 == 6


@pytest.mark.parametrize(
    ("known", "float32", "float64"),
    [
        ({"avx2": True, "avx512_f": True, "avx512_bf16": True}, 16, 8),
        ({"avx2": True, "avx512_f": False}, 8, 4),
        ({"neon": True, "bf16": True}, 4, 2),
        ({"architecture": "riscv"}, None, None),
    ],
)
def test_the_peak_is_a_multiplication(
    known: dict, float32: int | None, float64: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known)
    monkeypatch.setattr(psutil, "cpu_freq", lambda: SimpleNamespace(current=2e3, max=3e3))
    assert (machine.lanes(), machine.lanes(torch.float64)) == (float32, float64)
    assert machine.peak(threads=2) == (float32 and 2 * float32 * 2 * 2 * 3e9)
    bfloat16 = [name for name in known if name.endswith("bf16")]
    assert machine.describe()["vector instructions"].split(", ")[1:] == bfloat16


@pytest.mark.parametrize("reported", [None, SimpleNamespace(current=4, max=4), OSError])
def test_an_unknown_clock_is_none(reported: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_freq", Mock(side_effect=[reported, reported]))
    assert machine.clock() is machine.peak() is None
