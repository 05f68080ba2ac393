import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

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
        with pytest.raises(ValueError, match=re.escape(f"must be {expected}, but {shape} came")):
            model(images)
