import platform
import subprocess
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, call

import psutil
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from helpers import machine


class Seen(TorchDispatchMode):
    """What is timed: its FLOPs, the tensors it takes, and under which conditions."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.inputs = [value for value in args if isinstance(value, torch.Tensor)]
        self.given = kwargs or {}
        return func(*args, **self.given)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[Seen]:
    seen: list[Seen] = []

    def fastest(run, budget=machine.BUDGET, least=3):
        with torch.inference_mode(False), FlopCounterMode(display=False) as counter, Seen() as mode:
            run()
        mode.flop, mode.least, mode.budget = counter.get_total_flops(), least, budget
        mode.threads = torch.get_num_threads()
        seen.append(mode)
        return 0.5

    monkeypatch.setattr(machine, "_fastest", fastest)
    return seen


def test_describe_has_the_same_rows_everywhere() -> None:
    about = machine.describe()
    assert list(about) == [
        "processor", "system", "physical cores", "logical cores", "memory", "Python", "torch",
        "torch threads", "vector instructions", "GPU",
    ]  # fmt: skip
    assert all(about.values())
    assert about["physical cores"] <= about["logical cores"]
    assert about["GPU"] == (torch.cuda.get_device_name() if torch.cuda.is_available() else "none")
    assert about["vector instructions"].startswith(torch.backends.cpu.get_cpu_capability())


def test_ceilings_are_rates_of_real_work() -> None:
    found = machine.ceilings(threads=1)
    # A single core of any computer that runs torch lies far inside these bounds.
    assert all(1e8 < rate < 1e14 for rate in (found.matrix_product, found.convolution, found.copy))


def test_a_ceiling_counts_the_work_that_was_timed(timed: list[Seen]) -> None:
    state = torch.get_rng_state()
    found = machine.ceilings(threads=1)
    assert torch.equal(torch.get_rng_state(), state)  # a lesson's own random numbers stay
    *products, convolution, copy = timed
    assert all("out" in product.given for product in products)  # no memory is asked for
    assert {one.budget for one in timed} == {0.03}
    assert [product.flop for product in products] == [2 * size**3 for size in (256, 512, 1024)]
    assert found.matrix_product == products[-1].flop / 0.5
    assert found.convolution == convolution.flop / 0.5
    assert found.compute == max(found.matrix_product, found.convolution)
    assert machine.Ceilings(1, 2.0, 3.0, 4.0).compute == 3.0
    with pytest.raises(AttributeError):
        found.copy = 0.0
    assert found.copy == sum(tensor.nbytes for tensor in copy.inputs) / 0.5
    layout = {"memory_format": torch.channels_last}
    assert all(tensor.is_contiguous(**layout) for tensor in convolution.inputs[:2])
    assert all(tensor.nbytes > 1e8 for tensor in copy.inputs)  # 64 MB fit the caches of a server
    assert copy.least == 10
    assert {one.threads for one in timed} == {found.threads} == {1}


def test_all_threads_are_torch_s_unless_told_and_come_back_after_an_error(
    timed: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_num_threads()
    assert machine.ceilings().threads == before
    monkeypatch.setattr(machine, "_copy_rate", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        machine.ceilings(threads=before + 1)
    assert {one.threads for one in timed} == {before, before + 1}
    assert torch.get_num_threads() == before


def test_a_product_has_the_type_asked_for(timed: list[Seen]) -> None:
    assert machine.matrix_product_rate(10, torch.bfloat16, budget=0.1) == 2 * 10**3 / 0.5
    assert [tensor.dtype for tensor in timed[0].inputs] == [torch.bfloat16] * 2
    assert not torch.equal(*timed[0].inputs)
    assert timed[0].budget == 0.1


@pytest.mark.parametrize(
    ("budget", "least", "fastest", "runs"),
    [(1e-9, {}, 2.0, 4), (1e-9, {"least": 5}, 1.0, 6), (14.5, {}, 1.0, 5), (14.0, {}, 2.0, 4)],
)
def test_the_fastest_of_several_runs_after_a_warm_up(
    budget: float, least: dict, fastest: float, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, took = [0.0], [0.5, 8.0, 2.0, 4.0, 1.0, 9.0, 7.0]
    monkeypatch.setattr(machine, "time", SimpleNamespace(perf_counter=lambda: sum(now)))
    assert machine._fastest(lambda: now.append(took[len(now) - 1]), budget, **least) == fastest
    assert len(now) - 1 == runs


@pytest.mark.parametrize(
    ("known", "float32", "float64"),
    [
        ({"avx2": True, "avx512_f": True, "avx512_bf16": True, "amx_bf16": True}, 16, 8),
        ({"avx2": True, "avx512_f": False}, 8, 4),
        ({"neon": True, "bf16": True}, 4, 2),
        ({"architecture": "riscv"}, None, None),
    ],
)
def test_the_peak_is_a_multiplication(
    known: dict, float32: int | None, float64: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 12 if logical else 6)
    monkeypatch.setattr(psutil, "cpu_freq", lambda: SimpleNamespace(current=2e3, max=3e3))
    assert (machine.lanes(), machine.lanes(torch.float64)) == (float32, float64)
    assert machine.clock() == 3e9
    assert machine.peak(threads=2) == (float32 and 2 * float32 * 2 * 2 * 3e9)
    assert machine.peak(torch.float64, 99) == (float64 and 6 * float64 * 2 * 2 * 3e9)
    assert machine.peak() == machine.peak(threads=torch.get_num_threads())
    bfloat16 = [name for name in known if name.endswith("bf16")]
    assert machine.describe()["vector instructions"].split(", ")[1:] == bfloat16
    monkeypatch.setattr(machine, "clock", lambda: None)
    assert machine.peak() is None


@pytest.mark.parametrize("told", [None, SimpleNamespace(current=4, max=4), OSError, SystemError])
def test_a_clock_that_nobody_knows(told: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_freq", Mock(side_effect=[told]))
    assert machine.clock() is None


@pytest.mark.parametrize(
    ("system", "about", "name", "expected"),
    [
        ("Linux", "flags : fpu\nmodel name\t: AMD EPYC: 1 \nmodel name : b", "x86", "AMD EPYC: 1"),
        ("Linux", "Features : fp\n", "x86", "x86"),
        ("Linux", None, "", "aarch64"),
        ("Darwin", "", "arm", "Apple M4"),
        ("Windows", "model name : b", "Intel64 Family 6", "Intel64 Family 6"),
    ],
)
def test_the_processor_by_system(
    system: str, about: str | None, name: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_text(path: Path) -> str:
        return {"/proc/cpuinfo": about}[str(path)] or path.with_name("no such file").read_bytes()

    run = Mock(return_value=SimpleNamespace(stdout="Apple M4\n"))
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "processor", lambda: name)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(subprocess, "run", run)
    assert machine._processor() == expected
    command = ["sysctl", "-n", "machdep.cpu.brand_string"]
    assert run.mock_calls in ([], [call(command, capture_output=True, text=True)])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: machine.ceilings(threads=0), "threads must be .* at least 1, but 0"),
        (lambda: machine.matrix_product_rate(0), "size must be .*, but 0 came"),
        (lambda: machine.matrix_product_rate(9, budget=0), "budget must be a time .*, but 0 came"),
        (lambda: machine.ceilings(threads=1.5), "threads must be a whole number"),
        (lambda: machine.peak(threads=0), "threads must be .*, but 0 came"),
        (lambda: machine.lanes(torch.int8), "dtype must be .* but torch.int8 came"),
    ],
)
def test_wrong_input(ask, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ask()
