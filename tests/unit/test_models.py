import re
from functools import partial

import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from helpers import models


def with_random_numbers(module: nn.Module) -> nn.Module:
    """The module in eval mode, with no weight or statistic that is one or zero."""
    torch.manual_seed(0)
    for name, value in module.eval().state_dict().items():
        if value.is_floating_point():
            value.uniform_(0.5, 1.5) if "var" in name else value.normal_(0, 0.1)
    return module


def test_a_bottleneck_is_the_published_formula() -> None:
    block, x = with_random_numbers(models.Bottleneck(8, 2, 2)), torch.randn(1, 8, 6, 6)
    y = block.bn1(F.conv2d(x, block.conv1.weight)).clamp(min=0)
    y = block.bn2(F.conv2d(y, block.conv2.weight, padding=1)[..., ::2, ::2]).clamp(min=0)
    y = block.bn3(F.conv2d(y, block.conv3.weight))
    resize, norm = block.shortcut
    y = y + norm(F.conv2d(x[..., ::2, ::2], resize.weight))
    assert torch.allclose(block(x), y.clamp(min=0), atol=1e-5)


def test_an_encoder_block_equals_the_library_s() -> None:
    block = with_random_numbers(models.EncoderBlock(12, 3))
    reference = nn.TransformerEncoderLayer(
        12, 3, 48, 0.0, "gelu", layer_norm_eps=1e-6, batch_first=True, norm_first=True
    )
    parts = (block.attention, block.mlp, block.norm1, block.norm2)  # in the reference's order
    values = [value for part in parts for value in part.state_dict().values()]
    reference.load_state_dict(dict(zip(reference.state_dict(), values, strict=True)))
    x = 1e-3 * torch.randn(2, 5, 12)  # so small that the norms' eps can be seen
    assert torch.allclose(block(x), reference(x), atol=1e-6)


def test_wrong_images_are_refused() -> None:
    for build, expected, shape in (
        (models.ResNet50, "(N, 3, H, W)", (1, 1, 9, 9)),
        (models.ViT_B_16, "(N, 3, 224, 224)", (1, 3, 224, 32)),
    ):
        with torch.device("meta"):
            model, images = build(), torch.empty(shape)
        with pytest.raises(ValueError, match=re.escape(f"must be {expected}, but got {shape}")):
            model(images)


# GPT-2


GPT2_SIZES = {  # blocks, heads, width
    "124M": (12, 12, 768),
    "355M": (24, 16, 1024),
    "774M": (36, 20, 1280),
    "1.5B": (48, 25, 1600),
}
GPT2 = {  # parameters, FLOP per token without attention, bytes of a token in a 16-bit cache
    "124M": (124_439_808, 247_064_064, 36_864),
    "355M": (354_823_168, 706_906_112, 98_304),
    "774M": (774_030_080, 1_544_235_520, 184_320),
    "1.5B": (1_557_611_200, 3_109_942_400, 307_200),
}


@pytest.mark.parametrize("size", GPT2)
def test_the_published_sizes_of_gpt2_are_exact(size: str) -> None:
    with torch.device("meta"):
        model = models.GPT2(*GPT2_SIZES[size]).half()
        cache, tokens = models.Cache(model), torch.zeros(1, 1, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(tokens)
    blocks, _, width = GPT2_SIZES[size]
    flop = counter.get_total_flops() - 4 * blocks * width  # without attention
    stored = (cache.keys.nbytes + cache.values.nbytes) // 1024
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert (parameters, flop, stored) == GPT2[size]


def test_attention_adds_four_flop_per_block_width_and_pair_of_tokens() -> None:
    with torch.device("meta"):
        model, tokens = models.GPT2(), torch.zeros(1, 1024, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(tokens)
    assert counter.get_total_flops() == 1024 * GPT2["124M"][1] + 4 * 12 * 768 * 1024**2
    assert counter.get_total_flops() == 291_648_307_200  # as nanoGPT's notebook has it


def small_gpt2() -> models.GPT2:
    torch.manual_seed(0)
    return models.GPT2(blocks=3, heads=4, width=32, vocabulary=100, context=40).eval()


@torch.no_grad()
def test_a_cache_changes_no_token_and_no_logit() -> None:
    model, prompt = small_gpt2(), torch.randint(0, 100, (2, 9))
    for steps in ([9], [4, 5], [1] * 9):  # at once, in two parts, one by one
        cache, tokens, parts = models.Cache(model, batch=2), prompt, []
        for part in tokens.split(steps, dim=1):
            parts.append(model(part, cache))
        assert torch.allclose(torch.cat(parts, dim=1), model(prompt), atol=1e-5)
        for _ in range(20):
            best = parts[-1][:, -1:].argmax(-1)
            tokens = torch.cat([tokens, best], dim=1)
            parts.append(model(best, cache))
            assert torch.allclose(parts[-1][:, -1], model(tokens)[:, -1], atol=1e-5)


@torch.no_grad()
def test_a_token_sees_none_of_those_after_it() -> None:
    model, tokens = small_gpt2(), torch.randint(0, 100, (1, 9))
    changed = tokens.clone()
    changed[0, 5] = (tokens[0, 5] + 1) % 100
    same = (model(tokens) - model(changed)).abs().amax(-1)[0] < 1e-6
    assert same.tolist() == [True] * 5 + [False] * 4


@torch.no_grad()
def test_gpt2_refuses_more_tokens_than_its_context() -> None:
    model = small_gpt2()
    cache = models.Cache(model)
    model(torch.zeros(1, 38, dtype=torch.int64), cache)
    with pytest.raises(ValueError, match="must be 40 or fewer with those of the cache, not 41"):
        model(torch.zeros(1, 3, dtype=torch.int64), cache)


def test_the_costs_of_a_convolution_are_counted_for_one_image() -> None:
    layer, batch = nn.Conv2d(3, 8, kernel_size=3, padding=1), torch.rand(2, 3, 5, 5)
    costs = models.layer_costs(layer, (batch,), layer(batch))
    weights = 8 * 27 + 8
    assert costs == {
        "MACs": 25 * 8 * 27,
        "parameters": weights,
        "output elements": 200,
        "bytes": 4 * (weights + 150 + 400),
    }
    assert set(models.layer_costs(nn.Identity(), (batch,), batch).values()) == {0}


def test_of_each_call_the_shortest_time_of_all_rounds_counts() -> None:
    rows = [{"layer": name, "time": time} for name, time in zip("abab", (3, 5, 4, 2), strict=True)]
    table = models.shortest_calls(rows, rounds=2)
    assert table.to_dict("list") == {"layer": ["a", "b"], "time": [3, 2]}


def test_a_group_s_intensity_and_rate_are_those_of_its_sums() -> None:
    costs = {"MACs": [100, 300, 0], "bytes": [10, 30, 99], "time": [1.0, 3.0, 9.0]}
    calls = pd.DataFrame(costs)
    groups = pd.Series(["conv", "conv", "relu"])
    assert models.under_the_roof(calls, groups, images=2) == {"conv": (40, 400)}


def test_a_batch_is_compared_with_one_input() -> None:
    growth = models.growth_with_batch({("layer", 1): 1.0, ("layer", 8): 2.0})
    assert growth == {"layer, batch of 8": {"latency": 2, "throughput": 4}}


def test_every_call_is_made_once_a_round() -> None:
    made = []
    times = models.fastest({name: partial(made.append, name) for name in "ab"}, rounds=3)
    assert sorted(made) == list("aaabbb")
    assert all(time > 0 for time in times.values())
