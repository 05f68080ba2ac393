"""Run a network of two blocks, whose layers are of the same kinds, five times."""

import torch
from torch import Tensor, nn

from helpers import workloads


class NearBlock(nn.Module):
    """Convolution, ReLU, and the maximum of each window of 3 × 3 pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 16, kernel_size=3, padding=1)
        self.pool = nn.MaxPool2d(kernel_size=3, stride=1, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.conv(x).relu())


class WideBlock(nn.Module):
    """Convolution, ReLU, and the maximum of each window of 15 × 15 pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 16, kernel_size=3, padding=1)
        self.pool = nn.MaxPool2d(kernel_size=15, stride=1, padding=7)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.conv(x).relu())


class Network(nn.Module):
    """The two blocks, one after the other, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.wide = NearBlock(3), WideBlock(16)
        self.linear = nn.Linear(16, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.wide(self.near(images))
        return self.linear(x.mean(dim=(2, 3)))


def main() -> None:
    model = Network()
    images, _ = workloads.synthetic_cifar(8)
    with torch.no_grad():
        for _ in range(5):
            model(images)


if __name__ == "__main__":
    main()
