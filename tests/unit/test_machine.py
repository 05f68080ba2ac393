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


KERNELS = {
    "13.0": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"],
    "12.6": ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"],
}


def with_gpus(
    monkeypatch: pytest.MonkeyPatch, cuda: str | None, *gpus: dict[str, str], works: bool = True
) -> Mock:
    """As if PyTorch were built for ``cuda``, and nvidia-smi knew these ``gpus``."""

    def nvidia_smi(line: list[str], **options: object) -> SimpleNamespace:
        if not gpus:
            raise FileNotFoundError
        fields = line[1].removeprefix("--query-gpu=").split(",")
        rows = [", ".join(gpu[field] for field in fields) for gpu in gpus]
        return SimpleNamespace(stdout="".join(f"{row}\n" for row in rows))

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(machine.subprocess, "run", nvidia_smi)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: works)
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: KERNELS.get(cuda, []))
    initialises = Mock(return_value="the first GPU")
    monkeypatch.setattr(torch.cuda, "get_device_name", initialises)
    return initialises


def gpu(name: str, compute_cap: str, driver_version: str = "580.65.06") -> dict[str, str]:
    return {"name": name, "compute_cap": compute_cap, "driver_version": driver_version}


V100, T4, H100 = gpu("Tesla V100", "7.0"), gpu("Tesla T4", "7.5"), gpu("H100", "9.0")


@pytest.mark.parametrize(
    ("cuda", "gpus"),
    [
        ("13.0", [T4]),
        ("13.0", [V100, H100]),  # one of them can be used
        ("13.0", [gpu("RTX 4090", "8.9")]),  # sm_86's code runs on it
        ("13.0", [gpu("newer than the build", "12.1")]),
        ("13.0", [gpu("unknown", "[N/A]", "[N/A]")]),
        ("12.6", [V100]),
        ("12.6", [gpu("T4 with an older driver", "7.5", "550.54.14")]),
        ("13.0", []),
        (None, [V100]),
    ],
)
def test_a_gpu_that_can_be_used_is_no_problem(
    cuda: str | None, gpus: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, cuda, *gpus)
    assert machine.gpu_problem() is None


@pytest.mark.parametrize(
    ("cuda", "gpus", "sentence"),
    [
        ("13.0", [V100], "CUDA 13.0 has no kernels for the Tesla V100 (compute capability 7.0)"),
        ("13.0", [gpu("T4", "7.5", "550.54.14")], "driver 580 or newer, but the T4 has 550.54.14"),
        ("12.6", [gpu("RTX 5070", "12.0")], "CUDA 12.6 has no kernels for the RTX 5070"),
    ],
)
def test_a_gpu_that_this_build_cannot_use_is_named(
    cuda: str, gpus: list, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, cuda, *gpus)
    assert sentence in machine.gpu_problem()
    assert machine.describe()["GPU"] == f"{gpus[0]['name']}, which this PyTorch cannot use"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert machine.gpu_problem() is None


def test_the_gpu_is_named_without_initialising_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    initialises = with_gpus(monkeypatch, "13.0", T4, T4)
    assert machine.describe()["GPU"] == "Tesla T4"
    initialises.assert_not_called()
    with_gpus(monkeypatch, "13.0", T4, works=False)
    assert machine.describe()["GPU"] == "none"
    with_gpus(monkeypatch, None)  # as with ROCm, which has no nvidia-smi
    assert machine.describe()["GPU"] == "the first GPU"
