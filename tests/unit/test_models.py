import pytest
import torch
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


@pytest.mark.parametrize("build", PUBLISHED)
def test_as_large_as_published(build: type[nn.Module]) -> None:
    model, _ = on_meta(build, 1)
    assert sum(parameter.numel() for parameter in model.parameters()) == PUBLISHED[build][0]


@pytest.mark.parametrize("build", PUBLISHED)
@pytest.mark.parametrize("batch", [1, 3])
def test_as_much_work_as_published(build: type[nn.Module], batch: int) -> None:
    model, images = on_meta(build, batch, 3, 224, 224)
    with FlopCounterMode(display=False) as counter:
        logits = model(images)
    assert counter.get_total_flops() == 2 * batch * PUBLISHED[build][1]
    assert models.macs(model, images) == batch * PUBLISHED[build][1]
    assert tuple(logits.shape) == (batch, 1000)


def test_the_published_figures_as_they_are_quoted() -> None:
    quoted = {build: f"{macs / 1e9:.3f}" for build, (_, macs) in PUBLISHED.items()}
    assert quoted == {models.ResNet50: "4.089", models.ViT_B_16: "17.564"}


def test_the_stages_of_a_resnet_halve_the_picture() -> None:
    model, images = on_meta(models.ResNet50, 2, 3, 224, 224)
    shapes = []
    for stage in (model.stage1, model.stage2, model.stage3, model.stage4):
        stage.register_forward_hook(lambda _, inputs, out: shapes.append(tuple(out.shape)))
    model(images)
    assert shapes == [(2, 256, 56, 56), (2, 512, 28, 28), (2, 1024, 14, 14), (2, 2048, 7, 7)]


def test_a_resnet_takes_other_sizes() -> None:
    model, images = on_meta(models.ResNet50, 1, 3, 96, 160)
    assert tuple(model(images).shape) == (1, 1000)


def test_a_bottleneck_adds_its_input() -> None:
    block = models.Bottleneck(8, 2, stride=1).eval()
    nn.init.zeros_(block.bn3.weight)  # the branch is silent, so only the input is left
    images = torch.rand(1, 8, 5, 5)
    assert torch.equal(block(images), images)


def test_attention_is_softmax_of_the_products() -> None:
    torch.manual_seed(0)
    attention, x = models.Attention(12, heads=3).eval(), torch.randn(2, 5, 12)
    with torch.no_grad():
        q, k, v = attention.to_qkv(x).reshape(2, 5, 3, 3, 4).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.transpose(-2, -1) / 4**0.5).softmax(dim=-1) @ v
        expected = attention.to_out(mixed.transpose(1, 2).reshape(2, 5, 12))
        assert torch.allclose(attention(x), expected, atol=1e-6)


def test_attention_equals_the_library_s() -> None:
    torch.manual_seed(0)
    ours, theirs = models.Attention(12, heads=3), nn.MultiheadAttention(12, 3, batch_first=True)
    theirs.in_proj_weight, theirs.in_proj_bias = ours.to_qkv.weight, ours.to_qkv.bias
    theirs.out_proj.weight, theirs.out_proj.bias = ours.to_out.weight, ours.to_out.bias
    x = torch.randn(2, 5, 12)
    assert torch.allclose(ours(x), theirs(x, x, x, need_weights=False)[0], atol=1e-6)


def test_the_answer_of_a_vit_depends_on_where_the_words_stand() -> None:
    torch.manual_seed(0)
    model = models.ViT_B_16(classes=5)
    model.blocks = model.blocks[:1]  # one block is enough, and quick
    images = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        assert not torch.allclose(model(images), model(images.flip(-1)), atol=1e-4)
        assert tuple(model(images).shape) == (1, 5)


@pytest.mark.parametrize("build", PUBLISHED)
def test_torch_fx_can_follow_it(build: type[nn.Module]) -> None:
    model, images = on_meta(build, 1, 3, 224, 224)
    assert torch.fx.symbolic_trace(model)(images).shape == (1, 1000)


@pytest.mark.parametrize(
    ("build", "shape", "message"),
    [
        (models.ResNet50, (3, 224, 224), r"images must be \(N, 3, H, W\), but \(3, 224, 224\)"),
        (models.ResNet50, (1, 1, 9, 9), r"images must be \(N, 3, H, W\), but \(1, 1, 9, 9\) came"),
        (models.ViT_B_16, (1, 3, 32, 32), r"\(N, 3, 224, 224\), but \(1, 3, 32, 32\) came"),
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
