import platform
import subprocess
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from helpers import machine


class Seen(TorchDispatchMode):
    """The tensors that go into any operator."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.tensors = [value for value in args if isinstance(value, torch.Tensor)]
        return func(*args, **(kwargs or {}))


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """What is timed: its FLOPs, the tensors it takes, and under which conditions."""
    seen: list[SimpleNamespace] = []

    def fastest(run, budget, least=3):
        with torch.inference_mode(False), FlopCounterMode(display=False) as flops, Seen() as mode:
            run()
        threads, flop = torch.get_num_threads(), flops.get_total_flops()
        seen.append(SimpleNamespace(flop=flop, threads=threads, least=least, inputs=mode.tensors))
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


def test_ceilings_are_rates_of_real_work_and_leave_the_threads_alone() -> None:
    before = torch.get_num_threads()
    found = machine.ceilings(threads=1, budget=0.001)
    assert torch.get_num_threads() == before
    # A single core of any computer that runs torch lies far inside these bounds.
    assert 1e8 < found.matrix_product < 1e14
    assert 1e8 < found.convolution < 1e14
    assert 1e8 < found.copy < 1e13


def test_a_ceiling_counts_the_work_that_was_timed(timed: list[SimpleNamespace]) -> None:
    found = machine.ceilings(threads=1)
    *products, convolution, copy = timed
    assert [product.flop for product in products] == [2 * size**3 for size in (256, 512, 1024)]
    assert found.matrix_product == products[-1].flop / 0.5
    assert found.convolution == convolution.flop / 0.5
    assert found.copy == sum(tensor.nbytes for tensor in copy.inputs) / 0.5
    images, weights = convolution.inputs[:2]
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert weights.is_contiguous(memory_format=torch.channels_last)
    assert all(tensor.nbytes > 1e8 for tensor in copy.inputs)  # 64 MB fit the caches of a server
    assert all(tensor.is_floating_point() and tensor.any() for tensor in copy.inputs[-1:])
    assert copy.least >= 10
    assert {one.threads for one in timed} == {found.threads} == {1}


def test_all_threads_are_torch_s_unless_told_and_come_back_after_an_error(
    timed: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_num_threads()
    assert machine.ceilings().threads == before
    monkeypatch.setattr(machine, "_copy_rate", lambda budget: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        machine.ceilings(threads=before + 1)
    assert {one.threads for one in timed} == {before, before + 1}
    assert torch.get_num_threads() == before


def test_the_better_arithmetic_rate_is_the_ceiling() -> None:
    assert machine.Ceilings(1, 2.0, 3.0, 4.0).compute == 3.0
    assert machine.Ceilings(1, 5.0, 3.0, 4.0).compute == 5.0


def test_a_product_has_the_type_asked_for(timed: list[SimpleNamespace]) -> None:
    assert machine.matrix_product_rate(10, torch.bfloat16) == 2 * 10**3 / 0.5
    assert [tensor.dtype for tensor in timed[0].inputs] == [torch.bfloat16] * 2
    assert not torch.equal(*timed[0].inputs)


def test_the_fastest_of_enough_runs_counts() -> None:
    runs: list[int] = []
    machine._fastest(lambda: runs.append(0), budget=1e-9, least=10)
    assert len(runs) == 11  # and a warm-up


@pytest.mark.parametrize(
    ("budget", "least", "fastest", "runs"),
    [(1e-9, 3, 2.0, 4), (1e-9, 5, 1.0, 6), (14.5, 1, 1.0, 5), (14.0, 3, 2.0, 4)],
)
def test_the_fastest_of_several_runs_after_a_warm_up(
    budget: float, least: int, fastest: float, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, took = [0.0], iter([0.5, 8.0, 2.0, 4.0, 1.0, 9.0, 7.0])
    monkeypatch.setattr(machine, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    calls: list[None] = []

    def run() -> None:
        calls.append(None)
        now[0] += next(took)

    assert machine._fastest(run, budget, least) == fastest
    assert len(calls) == runs


@pytest.mark.parametrize(
    ("known", "float32", "float64"),
    [
        ({"avx2": True, "avx512_f": True}, 16, 8),
        ({"avx2": True, "avx512_f": False}, 8, 4),
        ({"neon": True, "bf16": True}, 4, 2),
        ({"architecture": "riscv"}, None, None),
    ],
)
def test_the_peak_is_a_multiplication(
    known: dict, float32: int | None, float64: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 6)
    monkeypatch.setattr(psutil, "cpu_freq", lambda: SimpleNamespace(current=2e3, max=3e3))
    assert (machine.lanes(), machine.lanes(torch.float64)) == (float32, float64)
    assert machine.clock() == 3e9
    assert machine.peak(threads=2) == (float32 and 2 * float32 * 2 * 2 * 3e9)
    assert machine.peak(torch.float64, 99) == (float64 and 6 * float64 * 2 * 2 * 3e9)
    assert machine.peak() == machine.peak(threads=torch.get_num_threads())
    assert "bf16" in machine.describe()["vector instructions"] or "bf16" not in known
    monkeypatch.setattr(machine, "clock", lambda: None)
    assert machine.peak() is None


@pytest.mark.parametrize("told", [None, SimpleNamespace(current=4, max=4), OSError, SystemError])
def test_a_clock_that_nobody_knows(told: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def cpu_freq() -> object:
        if isinstance(told, type):
            raise told
        return told

    monkeypatch.setattr(psutil, "cpu_freq", cpu_freq)
    assert machine.clock() is None


@pytest.mark.parametrize(
    ("system", "expected"),
    [("Linux", "AMD EPYC: 1"), ("Darwin", "Apple M4"), ("Windows", "Intel64 Family 6")],
)
def test_the_processor_by_system(
    system: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = "flags\t: fpu\nmodel name\t: AMD EPYC: 1 \nmodel name\t: other\n"
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "processor", lambda: "Intel64 Family 6")
    monkeypatch.setattr(Path, "read_text", lambda path: {"/proc/cpuinfo": about}[str(path)])
    answers = {("sysctl", "-n", "machdep.cpu.brand_string"): SimpleNamespace(stdout="Apple M4\n")}

    def run(command: list, capture_output: bool, text: bool) -> object:
        return answers[tuple(command)] if capture_output and text else None

    monkeypatch.setattr(subprocess, "run", run)
    assert machine._processor() == expected


@pytest.mark.parametrize(("name", "expected"), [("x86", "x86"), ("", "aarch64")])
def test_a_processor_that_is_hidden(
    name: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "processor", lambda: name)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(Path, "read_text", lambda path: "Features : fp\n")
    assert machine._processor() == expected
    monkeypatch.setattr(Path, "read_text", lambda path: path.with_name("no such file").stat())
    assert machine._processor() == expected


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: machine.ceilings(threads=0), ValueError, "threads must be .* at least 1, but 0"),
        (lambda: machine.ceilings(threads=1.5), TypeError, "threads must be a whole number"),
        (lambda: machine.ceilings(budget=0), ValueError, "budget must be a time .*, but 0 came"),
        (lambda: machine.matrix_product_rate(0), ValueError, "size must be .*, but 0 came"),
        (lambda: machine.peak(threads=0), ValueError, "threads must be .*, but 0 came"),
        (lambda: machine.lanes(torch.int8), ValueError, "dtype must be .* but torch.int8 came"),
    ],
)
def test_wrong_input(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
