"""A profile of torch.profiler is read as its own table shows it."""

import pytest
import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, record_function

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


def test_memory_is_cut_where_a_range_ends() -> None:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        with record_function("fill"):
            kept = [torch.empty(1000), torch.empty(500)]
        with record_function("empty"):
            kept.clear()
    curves = torch_profiles.memory_of_ranges(recorded, ["fill", "empty"])
    fill, empty = ([size for _, size in curve] for curve in curves.values())
    assert fill == [0, 4000, 6000, 6000]
    assert empty[0] == 6000
    assert empty[-1] == 0


def test_a_range_that_the_profile_does_not_have_has_no_memory(prof: profile) -> None:
    with pytest.raises(KeyError, match="refill"):
        torch_profiles.memory_of_ranges(prof, ["refill"])


def test_the_cost_has_a_row_per_setting_and_no_table_without_a_profile() -> None:
    calls = []
    settings = {"no options": {}, "with_stack": {"with_stack": True}}
    table = torch_profiles.cost(lambda: calls.append(torch.ones(1)), settings, rounds=2)
    assert list(table.index) == ["not profiled", *settings]
    assert list(table.columns) == ["run", "afterwards"]
    assert table.afterwards["not profiled"] == 0
    assert (table.afterwards[list(settings)] > 0).all()
    assert len(calls) == 2 * (2 + len(settings))
