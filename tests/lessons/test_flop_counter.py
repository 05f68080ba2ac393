"""What FlopCounterMode of PyTorch 2.13 does not count, which lesson 03, MACs and FLOPs, lists.

A test that fails means that a release of PyTorch now counts this operation: change the lesson.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

MATRIX, VECTOR = torch.ones(64, 32), torch.ones(32)
HEADS = torch.ones(1, 4, 16, 8)


def macs(function, *arguments: Tensor) -> int:
    with FlopCounterMode(display=False) as counter:
        function(*arguments)
    return counter.get_total_flops() // 2


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        pytest.param(torch.mv, (MATRIX, VECTOR), id="matrix × vector"),
        pytest.param(torch.dot, (VECTOR, VECTOR), id="vector · vector"),
        pytest.param(nn.Bilinear(32, 32, 8), (MATRIX, MATRIX), id="nn.Bilinear"),
        pytest.param(F.scaled_dot_product_attention, 3 * (HEADS,), id="SDPA on a CPU"),
    ],
)
@torch.no_grad()
def test_it_is_not_counted(function, arguments: tuple[Tensor, ...]) -> None:
    assert macs(function, *arguments) == 0


def test_the_weight_gradient_of_a_grouped_convolution_is_counted_once_per_group() -> None:
    conv, images = nn.Conv2d(64, 64, 3, groups=4), torch.ones(1, 64, 8, 8)
    forward = macs(conv, images)
    step = macs(lambda: conv(images).sum().backward())
    assert forward == 64 * 6 * 6 * 16 * 9  # exact
    assert step == forward + 4 * forward  # one weight gradient, four times


@torch.no_grad()
def test_a_vector_times_a_matrix_and_a_linear_layer_of_a_vector_are_counted() -> None:
    assert macs(torch.matmul, VECTOR, MATRIX.T.contiguous()) == 32 * 64
    assert macs(F.linear, VECTOR, MATRIX) == 32 * 64
