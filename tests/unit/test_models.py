import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from helpers import models

PUBLISHED = {  # parameters, and MACs of one 224 × 224 image
    models.ResNet50: (25_557_032, 4_089_184_256),
    models.ViT_B_16: (86_567_656, 17_563_828_224),
}


def on_meta(build: type[nn.Module], *shape: int) -> tuple[nn.Module, Tensor]:
    with torch.device("meta"):
        return build().eval(), torch.empty(shape)


def filled(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module with random numbers everywhere, so that nothing is one or zero by chance."""
    module = module.to_empty(device="cpu").eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, value in module.state_dict().items():
            if value.is_floating_point():
                value.copy_(
                    torch.rand_like(value) + 0.5 if "var" in name else value.normal_(0, 0.1)
                )
    return module


@pytest.mark.parametrize("build", PUBLISHED)
@pytest.mark.parametrize("batch", [1, 3])
def test_as_large_and_as_much_work_as_published(build: type[nn.Module], batch: int) -> None:
    model, images = on_meta(build, batch, 3, 224, 224)
    parameters, macs = PUBLISHED[build]
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    assert f"{parameters:,} parameters" in build.__doc__
    assert f"{macs / 1e9:.3f} billion MACs" in " ".join(build.__doc__.split())
    with FlopCounterMode(display=False) as counter:
        logits = model(images)
    assert counter.get_total_flops() == 2 * batch * macs
    assert models.macs(model, images) == batch * macs
    assert tuple(logits.shape) == (batch, 1000)
    assert torch.fx.symbolic_trace(model)(images).shape == (batch, 1000)


def test_the_stages_of_a_resnet_halve_the_picture() -> None:
    model, images = on_meta(models.ResNet50, 2, 3, 224, 224)
    shapes = []
    for stage in (model.stage1, model.stage2, model.stage3, model.stage4):
        stage.register_forward_hook(lambda _, inputs, out: shapes.append(tuple(out.shape)))
    model(images)
    assert shapes == [(2, 256, 56, 56), (2, 512, 28, 28), (2, 1024, 14, 14), (2, 2048, 7, 7)]
    assert tuple(model(images[..., :96, :160]).shape) == (2, 1000)


@pytest.mark.parametrize(("c_in", "stride"), [(8, 1), (8, 2), (6, 1)])
def test_a_bottleneck_is_the_published_formula(c_in: int, stride: int) -> None:
    block, x = filled(models.Bottleneck(c_in, 2, stride)), torch.randn(1, c_in, 6, 6)
    y = block.bn1(F.conv2d(x, block.conv1.weight)).clamp(min=0)
    y = block.bn2(F.conv2d(y, block.conv2.weight, padding=1)[..., ::stride, ::stride]).clamp(min=0)
    y = block.bn3(F.conv2d(y, block.conv3.weight))
    if c_in != 8 or stride != 1:  # the input must have the shape of the output to be added
        resize, norm = block.shortcut
        y = y + norm(F.conv2d(x[..., ::stride, ::stride], resize.weight))
    else:
        y = y + x
    assert torch.allclose(block(x), y.clamp(min=0), atol=1e-5)


def test_the_stem_of_a_resnet() -> None:
    model, x = filled(on_meta(models.ResNet50)[0]), torch.randn(1, 3, 64, 64)
    model.stage1 = model.stage2 = model.stage3 = model.stage4 = nn.Identity()
    model.linear = nn.Linear(64, 5)
    y = F.conv2d(F.pad(x, (3,) * 4), model.conv1.weight, stride=2)
    y = F.max_pool2d(F.pad(model.bn1(y).clamp(min=0), (1,) * 4), 3, 2)
    assert torch.allclose(model(x), model.linear(y.mean((2, 3))), atol=1e-5)


def test_attention_equals_the_library_s() -> None:
    ours, theirs = filled(models.Attention(12, 3)), nn.MultiheadAttention(12, 3, batch_first=True)
    theirs.in_proj_weight, theirs.in_proj_bias = ours.to_qkv.weight, ours.to_qkv.bias
    theirs.out_proj.weight, theirs.out_proj.bias = ours.to_out.weight, ours.to_out.bias
    x = torch.randn(2, 5, 12)
    assert torch.allclose(ours(x), theirs(x, x, x, need_weights=False)[0], atol=1e-6)


def test_an_encoder_block_equals_the_library_s() -> None:
    ours = filled(models.EncoderBlock(12, 3))
    theirs = nn.TransformerEncoderLayer(
        12, 3, 48, 0.0, "gelu", layer_norm_eps=1e-6, batch_first=True, norm_first=True
    )
    pairs = zip(theirs.state_dict().values(), in_their_order(ours), strict=True)
    with torch.no_grad():
        for theirs_value, ours_value in pairs:
            theirs_value.copy_(ours_value)
    x = 1e-3 * torch.randn(2, 5, 12)  # so small that the norms' eps can be seen
    assert torch.allclose(ours(x), theirs(x), atol=1e-6)


def in_their_order(block: models.EncoderBlock) -> list[Tensor]:
    parts = (block.attention, block.mlp, block.norm1, block.norm2)
    return [value for part in parts for value in part.state_dict().values()]


def test_a_vit_is_the_published_formula() -> None:
    model, images = filled(on_meta(lambda: models.ViT_B_16(5))[0]), torch.randn(2, 3, 224, 224)
    model.blocks = model.blocks[:1]  # one block is enough, and quick
    columns = F.unfold(images, 16, stride=16).transpose(1, 2)  # each row one word of the image
    words = columns @ model.patches.weight.flatten(1).T + model.patches.bias
    words = torch.cat([model.class_token.expand(2, 1, 768), words], dim=1) + model.position
    expected = model.linear(model.norm(model.blocks[0](words))[:, 0])
    with torch.no_grad():
        assert torch.allclose(model(images), expected, atol=1e-4)


def test_a_fresh_vit_knows_where_its_words_stand() -> None:
    torch.manual_seed(0)
    with torch.device("meta"):
        model = models.ViT_B_16()
    assert model.position.shape == (1, 197, 768)
    assert {block.norm1.eps for block in model.blocks} == {model.norm.eps} == {1e-6}


@pytest.mark.parametrize(
    ("build", "shape", "message"),
    [
        (models.ResNet50, (3, 224, 224), r"images must be \(N, 3, H, W\), but \(3, 224, 224\)"),
        (models.ResNet50, (1, 1, 9, 9), r"images must be \(N, 3, H, W\), but \(1, 1, 9, 9\) came"),
        (models.ViT_B_16, (1, 3, 32, 32), r"\(N, 3, 224, 224\), but \(1, 3, 32, 32\) came"),
        (models.ViT_B_16, (1, 3, 224, 32), r"\(N, 3, 224, 224\), but \(1, 3, 224, 32\) came"),
    ],
)
def test_wrong_images_are_refused(build: type[nn.Module], shape: tuple, message: str) -> None:
    model, images = on_meta(build, *shape)
    with pytest.raises(ValueError, match=message):
        model(images)


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(ValueError, match="width must be a multiple of heads, 5, but 12 came"):
        models.Attention(12, heads=5)


def test_macs_by_hand() -> None:
    layers = nn.Sequential(nn.Conv2d(4, 6, 3, groups=2, bias=False), nn.ReLU(), nn.Linear(8, 5))
    model, x = layers.to("meta"), torch.empty(2, 4, 10, 10, device="meta")
    assert models.macs(model, x) == 2 * 6 * 8 * 8 * (4 // 2 * 9) + 2 * 6 * 8 * 5 * 8
    attention, x = models.Attention(12, 3).to("meta"), torch.empty(2, 5, 12, device="meta")
    assert models.macs(attention, x) == 2 * 5 * 12 * (36 + 12) + 2 * 2 * 5 * 5 * 12
    assert not attention._forward_hooks
