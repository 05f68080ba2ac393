"""What FlopCounterMode of PyTorch 2.13 to 2.15 does not count, which lesson 03 lists.

A test that fails means that a release of PyTorch now counts this operation: change the lesson.
"""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode, flop_registry

MATRIX, VECTOR = torch.ones(64, 32), torch.ones(32)
HEADS = torch.ones(1, 4, 16, 8)
# Four groups of eight tokens, each multiplied by its own matrix; meta tensors must be bfloat16.
TOKENS, EXPERTS = torch.ones(4, 8, 32).bfloat16(), torch.ones(4, 32, 16).bfloat16()


def macs(function, *arguments: Tensor) -> int:
    with FlopCounterMode(display=False) as counter:
        function(*arguments)
    return counter.get_total_flops() // 2


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        pytest.param(torch.mv, (MATRIX, VECTOR), id="matrix × vector"),
        pytest.param(torch.dot, (VECTOR, VECTOR), id="vector · vector"),
        pytest.param(torch.outer, (VECTOR, VECTOR), id="outer product"),
        pytest.param(torch.addmv, (torch.ones(64), MATRIX, VECTOR), id="matrix × vector + vector"),
        pytest.param(torch.cdist, (MATRIX, MATRIX), id="distances"),
        pytest.param(nn.Bilinear(32, 32, 8), (MATRIX, MATRIX), id="nn.Bilinear"),
        pytest.param(F.grouped_mm, (TOKENS, EXPERTS), id="grouped matrix × matrix"),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
@torch.no_grad()
def test_it_is_not_counted(function, arguments: tuple[Tensor, ...], device: str) -> None:
    if isinstance(function, nn.Module):
        function = copy.deepcopy(function).to(device)
    assert macs(function, *(argument.to(device) for argument in arguments)) == 0


@torch.no_grad()
def test_grouped_mm_with_the_ends_of_its_groups_is_not_counted() -> None:
    """As a mixture of experts calls it."""
    words, ends = TOKENS.flatten(0, 1), torch.tensor([8, 16, 24, 32], dtype=torch.int32)
    assert macs(lambda: F.grouped_mm(words, EXPERTS, offs=ends)) == 0


@torch.no_grad()
def test_fused_attention_is_counted_on_a_cpu_by_versions_that_have_its_formula() -> None:
    has_formula = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu in flop_registry
    counted = 2 * 4 * 16 * 16 * 8 if has_formula else 0
    assert macs(F.scaled_dot_product_attention, HEADS, HEADS, HEADS) == counted
    assert has_formula == (torch.__version__ >= "2.15")  # compared as versions, so 2.9 is older


def test_the_weight_gradient_of_a_grouped_convolution_is_counted_once_per_group() -> None:
    conv, images = nn.Conv2d(64, 64, 3, groups=4), torch.ones(1, 64, 8, 8)
    forward = macs(conv, images)
    step = macs(lambda: conv(images).sum().backward())
    assert forward == 64 * 6 * 6 * 16 * 9  # exact
    assert step == forward + 4 * forward  # one weight gradient, four times


@torch.no_grad()
def test_a_linear_layer_of_a_vector_is_counted() -> None:
    assert macs(F.linear, VECTOR, MATRIX) == 32 * 64


@torch.no_grad()
def test_a_transposed_convolution_costs_one_mac_per_input_value_and_weight_that_it_meets() -> None:
    conv = nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, bias=False)
    images = torch.ones(1, 4, 8, 8)
    expected = images.numel() * conv.weight[0].numel()
    assert macs(conv, images) == expected
    nn.init.ones_(conv.weight)
    assert conv(images).sum() == expected  # each MAC adds one
