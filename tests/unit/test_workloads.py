from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from helpers import models, workloads

CONVOLUTIONS = [
    workloads.conv2d_loops,
    workloads.conv2d_numpy,
    workloads.conv2d_im2col,
    workloads.conv2d_torch,
]


@pytest.mark.parametrize("convolve", CONVOLUTIONS)
@pytest.mark.parametrize(
    ("c_in", "height", "width", "c_out", "k"),
    [(1, 7, 7, 1, 3), (3, 9, 5, 4, 3), (2, 8, 11, 3, 5), (4, 5, 6, 2, 1), (2, 3, 2, 2, 5)],
)
def test_convolutions_agree_with_a_float64_reference_and_leave_their_input_alone(
    convolve: Callable, c_in: int, height: int, width: int, c_out: int, k: int
) -> None:
    generator = torch.Generator().manual_seed(k)
    image = torch.randn(c_in, height, width, generator=generator)
    kernel = torch.randn(c_out, c_in, k, k, generator=generator)
    before = image.clone(), kernel.clone()
    reference = F.conv2d(image.double()[None], kernel.double(), padding=k // 2)[0]
    # Rounding: about one part in 2**24 for each of the products that are added.
    magnitude = F.conv2d(image.double().abs()[None], kernel.double().abs(), padding=k // 2)[0]
    result = convolve(image, kernel)
    assert result.dtype == torch.float32
    assert result.shape == (c_out, height, width)
    assert ((result - reference).abs() <= 4 * 2**-24 * k * magnitude + 1e-12).all()
    assert torch.equal(image, before[0])
    assert torch.equal(kernel, before[1])


GREY = torch.rand(1, 4, 4)


@pytest.mark.parametrize(
    ("image", "kernel", "message"),
    [
        ([[1.0]], torch.rand(1, 1, 3, 3), "image must be a torch.float32 tensor, but got a list"),
        (GREY, torch.rand(1, 1, 3, 3).double(), "kernel must be a .*, but got torch.float64"),
        (GREY[0], torch.rand(1, 1, 3, 3), r"image must be \(C_in, H, W\), none .* got \(4, 4\)"),
        (GREY, torch.rand(1, 1, 3, 5), r"odd K, .* got \(1, 1, 3, 5\)"),
        (GREY, torch.rand(1, 3, 3, 3), r"be \(C_out, 1, K, K\) .* image has 1 channels"),
    ],
)
def test_convolutions_refuse(image: Tensor, kernel: Tensor, message: str) -> None:
    for convolve in CONVOLUTIONS:
        with pytest.raises((TypeError, ValueError), match=message):
            convolve(image, kernel)


def test_small_cnn_refuses_other_images() -> None:
    with pytest.raises(ValueError, match=r"be \(N, 3, 32, 32\), but got \(1, 3, 32, 31\)"):
        workloads.SmallCNN()(torch.zeros(1, 3, 32, 31))


def test_the_functional_cnn_computes_what_the_small_cnn_does() -> None:
    model, functional = workloads.SmallCNN().eval(), workloads.FunctionalCNN().eval()
    functional.load_state_dict(model.state_dict())
    images, _ = workloads.synthetic_cifar(4)
    torch.testing.assert_close(functional(images), model(images))


def test_attention_written_with_products_computes_what_the_fused_one_does() -> None:
    fused, products = models.Attention(32, 4), workloads.ProductAttention(32, 4)
    products.load_state_dict(fused.state_dict())
    tokens = torch.rand(2, 5, 32)
    torch.testing.assert_close(products(tokens), fused(tokens))


def test_the_models_to_count_take_their_inputs() -> None:
    cases = [*workloads.models_to_count("meta").values(), *workloads.models_with_tokens().values()]
    for model, x, *_ in cases:
        assert model(x).device.type == "meta"
