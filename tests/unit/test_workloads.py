from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from helpers import workloads

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
def test_convolutions_agree_with_a_float64_reference(
    convolve: Callable, c_in: int, height: int, width: int, c_out: int, k: int
) -> None:
    generator = torch.Generator().manual_seed(k)
    image = torch.randn(c_in, height, width, generator=generator)
    kernel = torch.randn(c_out, c_in, k, k, generator=generator)
    reference = F.conv2d(image.double()[None], kernel.double(), padding=k // 2)[0]
    # Rounding: about one part in 2**24 for each of the products that are added.
    magnitude = F.conv2d(image.double().abs()[None], kernel.double().abs(), padding=k // 2)[0]
    result = convolve(image, kernel)
    assert result.dtype == torch.float32
    assert result.shape == (c_out, height, width)
    assert ((result - reference).abs() <= 4 * 2**-24 * k * magnitude + 1e-12).all()


@pytest.mark.parametrize("convolve", CONVOLUTIONS)
def test_convolutions_leave_their_input_alone(convolve: Callable) -> None:
    image, kernel = torch.rand(2, 5, 5), torch.rand(3, 2, 3, 3)
    before = image.clone(), kernel.clone()
    convolve(image, kernel)
    assert torch.equal(image, before[0])
    assert torch.equal(kernel, before[1])


@pytest.mark.parametrize("convolve", CONVOLUTIONS)
@pytest.mark.parametrize(
    ("image", "kernel", "error", "message"),
    [
        ([[1.0]], torch.rand(1, 1, 3, 3), TypeError, "image must be a tensor, but a list came"),
        (torch.rand(1, 4, 4), None, TypeError, "kernel must be a tensor, but a NoneType came"),
        (
            torch.rand(1, 4, 4).double(),
            torch.rand(1, 1, 3, 3),
            TypeError,
            r"image must be torch.float32, but torch.float64 came",
        ),
        (
            torch.rand(4, 4),
            torch.rand(1, 1, 3, 3),
            ValueError,
            r"image must be \(C_in, H, W\).*\(4, 4\) came",
        ),
        (torch.rand(1, 0, 4), torch.rand(1, 1, 3, 3), ValueError, r"none of them 0.*\(1, 0, 4\)"),
        (
            torch.rand(1, 4, 4),
            torch.rand(1, 3, 3),
            ValueError,
            r"kernel must be \(C_out, C_in, K, K\).*\(1, 3, 3\) came",
        ),
        (torch.rand(1, 4, 4), torch.rand(1, 1, 2, 2), ValueError, "odd K.*2 × 2 came"),
        (torch.rand(1, 4, 4), torch.rand(1, 1, 3, 5), ValueError, "odd K.*3 × 5 came"),
        (
            torch.rand(2, 4, 4),
            torch.rand(1, 3, 3, 3),
            ValueError,
            r"kernel must have as many input channels as image has channels, 2, but",
        ),
    ],
)
def test_convolutions_refuse(
    convolve: Callable, image: Tensor, kernel: Tensor, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        convolve(image, kernel)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), [(64, 64), (600, 512), (33, 97), (1, 1)])
def test_photograph(channels: int, height: int, width: int) -> None:
    photo = workloads.photograph(height, width, channels)
    assert photo.shape == (channels, height, width)
    assert photo.dtype == torch.float32
    assert photo.is_contiguous()
    assert 0 <= photo.min() <= photo.max() <= 1
    assert torch.equal(photo, workloads.photograph(height, width, channels))


def test_the_photograph_is_no_noise() -> None:
    """Neighbouring pixels of a photograph are alike; those of noise are not."""
    photo = workloads.photograph(128, 128, 1)[0]
    assert photo.std() > 0.1
    assert (photo[:, 1:] - photo[:, :-1]).abs().mean() < photo.std() / 4


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 64), ValueError, "height must be a whole number of pixels, at least 1, but 0"),
        ((64, -2), ValueError, "width must be a whole number of pixels, at least 1, but -2"),
        ((6.4, 64), TypeError, "height must be a whole number of pixels, but 6.4 came"),
        ((64, 64, 4), ValueError, r"channels must be 1 \(grey\) or 3 \(colour\), but 4 came"),
    ],
)
def test_photograph_refuses(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        workloads.photograph(*arguments)


def test_small_cnn_learns_the_synthetic_data() -> None:
    torch.manual_seed(0)
    images, labels = workloads.synthetic_cifar(640, seed=1)
    unseen, truth = workloads.synthetic_cifar(500, seed=2)
    model = workloads.SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for start in range(0, 2 * 640, 64):
        batch = slice(start % 640, start % 640 + 64)
        optimizer.zero_grad()
        F.cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
    accuracy = (model.eval()(unseen).argmax(1) == truth).float().mean().item()
    assert accuracy > 0.5  # chance is 0.1


def test_small_cnn_has_the_documented_size() -> None:
    model = workloads.SmallCNN()
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_674
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    with pytest.raises(ValueError, match=r"images must be \(N, 3, 32, 32\), but \(3, 32, 32\)"):
        model(torch.zeros(3, 32, 32))


def test_synthetic_cifar_is_seeded() -> None:
    images, labels = workloads.synthetic_cifar(50, seed=3)
    again, labels_again = workloads.synthetic_cifar(50, seed=3)
    other, _ = workloads.synthetic_cifar(50, seed=4)
    assert images.shape == (50, 3, 32, 32)
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    assert set(labels.tolist()) <= set(range(10))
    assert torch.equal(images, again)
    assert torch.equal(labels, labels_again)
    assert not torch.equal(images, other)


@pytest.mark.parametrize(("count", "error"), [(0, ValueError), (2.5, TypeError)])
def test_synthetic_cifar_refuses(count: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"count must be .*{count}"):
        workloads.synthetic_cifar(count)
