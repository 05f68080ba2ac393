"""The log of PyTorch's compiler, as it was recorded and as it would be without what is sought."""

from pathlib import Path

import pytest
import torch

from helpers import compiler_logs

RECORDED = Path("assets/recordings/compile_cpu.log").read_text(encoding="utf-8")
FAILED = (
    "V1129 15:35:11.7 59 guards.py:5396] [0/1] [__recompiles]     - 0/0: x.size(0) == 8   # x + 1\n"
)


def test_a_log_holds_a_program_for_each_graph() -> None:
    chain, matmul = compiler_logs.programs(RECORDED)
    assert compiler_logs.calls(chain) == ["cpp_fused_add_copy__mul_0"]
    assert compiler_logs.calls(matmul) == ["extern_kernels.mm", "cpp_fused_relu_sub_0"]
    assert "output_code" not in chain
    assert compiler_logs.programs("V0101 another] [0/0] [__guards] async_compile") == []


def test_a_loop_is_read_out_of_its_kernel() -> None:
    _, program = compiler_logs.programs(RECORDED)
    lines = compiler_logs.loop(program, "cpp_fused_relu_sub_0").splitlines()
    assert lines[0].startswith("auto tmp0 = at::vec::Vectorized<float>::loadu(in_out_ptr0 + x0")
    assert lines[-1] == "tmp4.store(in_out_ptr0 + x0);"
    with pytest.raises(ValueError, match="no kernel 'cpp_fused_tanh_0'"):
        compiler_logs.loop(program, "cpp_fused_tanh_0")


def test_a_guard_is_named_once() -> None:
    assert compiler_logs.failed_guards(FAILED * 2) == ["x.size(0) == 8"]
    assert compiler_logs.failed_guards("") == []


def test_an_error_names_its_innermost_line() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        print(end="")
        return x + 1

    def outer(x: torch.Tensor) -> torch.Tensor:
        return 2 * inner(x)

    with pytest.raises(torch._dynamo.exc.Unsupported) as raised:
        torch.compile(outer, fullgraph=True, backend="eager")(torch.ones(3))
    first = inner.__code__.co_firstlineno
    assert compiler_logs.line_of(raised.value) == f'inner, line {first + 1}: print(end="")'
    with pytest.raises(ValueError, match="names no line of a program: why"):
        compiler_logs.line_of(RuntimeError("why"))
