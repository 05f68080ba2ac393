"""A profile of torch.profiler is read as its own table shows it."""

import pytest
import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from helpers import torch_profiles


@pytest.fixture(scope="module")
def prof() -> profile:
    options = {"record_shapes": True, "with_flops": True}
    with profile(activities=[ProfilerActivity.CPU], **options) as recorded:
        F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3))
        torch.ones(2, 5) @ torch.ones(5, 7)
    return recorded


def test_an_operator_has_its_calls_and_no_more_self_time_than_total_time(prof: profile) -> None:
    row = torch_profiles.operator_table(prof).loc["aten::conv2d"]
    assert row["# of Calls"] == 1
    assert 0 < row["Self CPU in µs"] < row["CPU total in µs"]
    assert torch_profiles.self_seconds(prof)["aten::conv2d"] == row["Self CPU in µs"] / 1e6


def test_a_chain_goes_from_an_operator_to_the_one_that_does_the_work(prof: profile) -> None:
    stacks = list(torch_profiles.longest_chain(prof, "aten::conv2d", depth=3))
    assert stacks[-1] == ("aten::conv2d", "aten::convolution", "aten::_convolution")
    assert stacks[0] == stacks[-1][:1]
    assert len(torch_profiles.longest_chain(prof, "aten::ones", depth=100)) < 10


def test_flop_are_those_of_a_calculation_by_hand(prof: profile) -> None:
    rows = torch_profiles.counted_flop(prof).values.tolist()
    assert rows == [
        ["aten::conv2d", "1×3×8×8, 4×3×3×3", f"{2 * 4 * 6 * 6 * 3 * 3 * 3:,}"],
        ["aten::mm", "2×5, 5×7", f"{2 * 2 * 5 * 7}"],
    ]
