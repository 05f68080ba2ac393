"""Models of every kind that ``make report`` must take, each with its example."""

import torch
from torch import Tensor, nn

from helpers import models, workloads


class Two(nn.Module):
    """Two inputs; a dict comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 5), nn.Linear(6, 5)

    def forward(self, left: Tensor, right: Tensor) -> dict[str, Tensor]:
        return {"sum": self.left(left) + self.right(right), "left": left}


class Dynamic(nn.Module):
    """Halves what comes in, by a layer, until it is small."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4, bias=False)
        self.layer.weight.data = torch.eye(4) / 2

    def forward(self, x: Tensor) -> Tensor:
        while x.max() > 1:
            x = self.layer(x)
        return x


def resnet50() -> tuple[nn.Module, Tensor]:
    return models.ResNet50(), torch.rand(1, 3, 224, 224)


def vit_b_16() -> tuple[nn.Module, Tensor]:
    return models.ViT_B_16(), torch.rand(1, 3, 224, 224)


def two_inputs() -> tuple[nn.Module, dict[str, Tensor]]:
    return Two(), {"right": torch.rand(3, 6), "left": torch.rand(3, 8)}


def dynamic() -> tuple[nn.Module, Tensor]:
    return Dynamic(), torch.full((2, 4), 30.0)


def lstm() -> tuple[nn.Module, Tensor]:
    return nn.LSTM(32, 64, batch_first=True), torch.rand(2, 10, 32)


def encoder() -> tuple[nn.Module, Tensor]:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.rand(2, 10, 64)


def bfloat16() -> tuple[nn.Module, Tensor]:
    return workloads.SmallCNN().bfloat16(), torch.rand(8, 3, 32, 32).bfloat16()


def nothing_to_count() -> tuple[nn.Module, Tensor]:
    return nn.ReLU(), torch.rand(8, 3)


def too_narrow() -> tuple[nn.Module, Tensor]:
    return nn.Linear(4, 4), torch.rand(2, 3)
