"""The workloads that every lesson measures: a photograph, one convolution written four ways, a
small CNN around it, a data set for it to learn, and models on which counting tools disagree.

The four convolutions share one signature and one result: ``image`` (C_in, H, W) and ``kernel``
(C_out, C_in, K, K), both float32, give (C_out, H, W). K is odd and the image is padded with zeros
("same" padding), so height and width stay. Like PyTorch they do not flip the kernel: strictly, it
is a cross-correlation.
"""

import importlib.util
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps
from torch import Tensor, nn

from helpers import _input, models


def photograph(height: int = 64, width: int = 64) -> Tensor:
    """The photograph that matplotlib ships, as float32 (3, height, width) in [0, 1].

    It shows Rear Admiral Grace Hopper, by James S. Davis, United States Navy, public domain
    (matplotlib's ``grace_hopper.jpg``, 600 × 512 pixels). The largest centred part with the shape
    requested is resized.
    """
    for argument, value in {"height": height, "width": width}.items():
        _input.whole(argument, value, what="a whole number of pixels")
    # find_spec locates matplotlib without importing it: a workload should not load plots.
    matplotlib = Path(importlib.util.find_spec("matplotlib").origin).parent
    with Image.open(matplotlib / "mpl-data" / "sample_data" / "grace_hopper.jpg") as photo:
        resized = ImageOps.fit(photo.convert("RGB"), (width, height), Image.Resampling.LANCZOS)
    pixels = torch.from_numpy(np.array(resized, dtype=np.float32) / 255)
    return pixels.permute(2, 0, 1).contiguous()


def conv2d_loops(image: Tensor, kernel: Tensor) -> Tensor:
    """The definition, term by term, in plain Python over nested lists of floats.

    Lists, because indexing a tensor element by element is dozens of times slower again, and then
    the indexing would be measured instead of the loops.
    """
    c_in, height, width, c_out, k = _checked_shapes(image, kernel)
    pixels, weights, reach = image.tolist(), kernel.tolist(), k // 2
    output = [[[0.0] * width for _ in range(height)] for _ in range(c_out)]
    for o in range(c_out):
        for y in range(height):
            for x in range(width):
                total = 0.0
                for i in range(c_in):
                    for dy in range(max(0, reach - y), min(k, height + reach - y)):
                        row = pixels[i][y + dy - reach]
                        taps = weights[o][i][dy]
                        for dx in range(max(0, reach - x), min(k, width + reach - x)):
                            total += row[x + dx - reach] * taps[dx]
                output[o][y][x] = total
    return torch.tensor(output)


def conv2d_numpy(image: Tensor, kernel: Tensor) -> Tensor:
    """Loops over the kernel's entries only; NumPy multiplies a whole shifted image by each."""
    c_in, height, width, c_out, k = _checked_shapes(image, kernel)
    reach = k // 2
    padded = np.pad(image.numpy(), ((0, 0), (reach, reach), (reach, reach)))
    weights = kernel.numpy()
    output = np.zeros((c_out, height, width), dtype=np.float32)
    for o in range(c_out):
        for i in range(c_in):
            for dy in range(k):
                for dx in range(k):
                    shifted = padded[i, dy : dy + height, dx : dx + width]
                    output[o] += weights[o, i, dy, dx] * shifted
    return torch.from_numpy(output)


def conv2d_im2col(image: Tensor, kernel: Tensor) -> Tensor:
    """Copies every K × K neighbourhood into a column, then does one matrix product."""
    _, height, width, c_out, k = _checked_shapes(image, kernel)
    columns = F.unfold(image[None], kernel_size=k, padding=k // 2)[0]  # (C_in·K·K, H·W)
    return (kernel.reshape(c_out, -1) @ columns).reshape(c_out, height, width)


def conv2d_torch(image: Tensor, kernel: Tensor) -> Tensor:
    """PyTorch's own convolution, which picks an algorithm for the processor and the shapes."""
    *_, k = _checked_shapes(image, kernel)
    return F.conv2d(image[None], kernel, padding=k // 2)[0]


def _checked_shapes(image: Tensor, kernel: Tensor) -> tuple[int, int, int, int, int]:
    """C_in, H, W, C_out and K of two tensors that fit each other, or an error that says why not."""
    expected = {"image": "(C_in, H, W)", "kernel": "(C_out, C_in, K, K)"}
    for argument, value in {"image": image, "kernel": kernel}.items():
        if not isinstance(value, Tensor) or value.dtype != torch.float32:
            kind = value.dtype if isinstance(value, Tensor) else f"a {type(value).__name__}"
            raise TypeError(f"{argument} must be a torch.float32 tensor, but got {kind}")
        shape = tuple(value.shape)
        if len(shape) != expected[argument].count(",") + 1 or 0 in shape:
            raise ValueError(
                f"{argument} must be {expected[argument]}, none of them 0, but got {shape}"
            )
    c_out, c_in, k, k2 = kernel.shape
    if c_in != image.shape[0] or k != k2 or k % 2 == 0:
        raise ValueError(
            f"kernel must be (C_out, {image.shape[0]}, K, K) with an odd K, because image has "
            f"{image.shape[0]} channels, but got {tuple(kernel.shape)}"
        )
    return c_in, image.shape[1], image.shape[2], c_out, k


class SmallCNN(nn.Module):
    """Two rounds of convolution, batch norm, ReLU and pooling, then a linear layer.

    (N, 3, 32, 32) float32 in, (N, 10) logits out. 25,674 parameters.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, kernel_size=3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(32 * 8 * 8, 10)

    def forward(self, images: Tensor) -> Tensor:
        if images.dim() != 4 or tuple(images.shape[1:]) != (3, 32, 32):
            raise ValueError(f"images must be (N, 3, 32, 32), but got {tuple(images.shape)}")
        x = self.pool(self.relu(self.bn1(self.conv1(images))))
        x = self.pool(self.relu(self.bn2(self.conv2(x))))
        return self.linear(x.flatten(1))


def synthetic_cifar(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """``count`` images (count, 3, 32, 32) float32 and their labels (count,) int64, in 10 classes.

    The shape of CIFAR-10 without the download. Each class has a smooth pattern, the same for every
    ``seed``; an image is its class's pattern, shifted by up to three pixels, under noise of about
    twice its strength. Use two seeds for a training and a test set.
    """
    _input.whole("count", count, what="a whole number of images")
    patterns = torch.randn(10, 3, 4, 4, generator=torch.Generator().manual_seed(2102208))
    patterns = F.interpolate(patterns, size=(32, 32), mode="bicubic")

    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=generator)
    shifts = torch.randint(-3, 4, (count, 2), generator=generator).tolist()
    images = torch.stack(
        [patterns[label].roll(shift, (1, 2)) for label, shift in zip(labels, shifts, strict=True)]
    )
    return images + 2 * torch.randn(images.shape, generator=generator), labels


class FunctionalCNN(SmallCNN):
    """``SmallCNN`` with the same parameters and arithmetic, which calls functions, not layers.

    In inference: the batch norms use their running statistics, and do not update them.
    """

    def forward(self, images: Tensor) -> Tensor:
        x = images
        for conv, norm in [(self.conv1, self.bn1), (self.conv2, self.bn2)]:
            x = F.conv2d(x, conv.weight, conv.bias, padding=1)
            x = F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias)
            x = F.max_pool2d(F.relu(x), 2)
        return F.linear(x.flatten(1), self.linear.weight, self.linear.bias)


class ProductAttention(models.Attention):
    """``models.Attention`` with its two matrix multiplications written one by one, with ``@``."""

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.split_heads(part) for part in self.to_qkv(x).chunk(3, dim=-1))
        scores = self.multiply(q, k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        mixed = self.multiply(scores.softmax(dim=-1), v)
        return self.to_out(mixed.transpose(1, 2).flatten(2))


def models_to_count(device: str) -> dict[str, tuple[nn.Sequential, Tensor]]:
    """Eight models on ``device``, each with an input for it, on which counting tools disagree.

    Each is alone in an ``nn.Sequential``, because flops-profiler ignores what the outermost module
    computes itself.
    """
    image_32, image_224, tokens = (1, 3, 32, 32), (1, 3, 224, 224), (1, 197, 768)
    recipes = {
        "conv + bias": (lambda: nn.Conv2d(3, 16, 3), image_32),
        "grouped conv": (lambda: nn.Conv2d(3, 12, 3, groups=3), image_32),
        "SmallCNN": (SmallCNN, image_32),
        "FunctionalCNN": (FunctionalCNN, image_32),
        "attention, @": (lambda: ProductAttention(768, 12), tokens),
        "attention, SDPA": (lambda: models.Attention(768, 12), tokens),
        "ResNet-50": (models.ResNet50, image_224),
        "ViT-B/16": (models.ViT_B_16, image_224),
    }
    with torch.device(device):
        return {
            name: (nn.Sequential(build()).eval(), torch.rand(shape))
            for name, (build, shape) in recipes.items()
        }


def models_with_tokens() -> dict[str, tuple[nn.Module, Tensor, int]]:
    """Five cases for the rules 2N and 6N, on the meta device.

    Each is a model, its input, and how many tokens (of an MLP or ResNet-50: inputs) it holds.
    """
    with torch.device("meta"):
        blocks = nn.Sequential(*[models.EncoderBlock(768, 12) for _ in range(12)])
        output_layer = nn.Linear(768, 50_257, bias=False)
        language_model = nn.Sequential(nn.Embedding(50_257, 768), blocks, output_layer)
        mlp = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        word_ids = torch.zeros(1, 128, dtype=torch.int64)
        return {
            "12 blocks, 128 tokens": (blocks, torch.rand(1, 128, 768), 128),
            "12 blocks, 8,192 tokens": (blocks, torch.rand(1, 8192, 768), 8192),
            "language model, 128 tokens": (language_model, word_ids, 128),
            "MLP, 64 inputs": (mlp, torch.rand(64, 512), 64),
            "ResNet-50, 2 images": (models.ResNet50(), torch.rand(2, 3, 224, 224), 2),
        }
