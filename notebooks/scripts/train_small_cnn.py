"""Train SmallCNN for a few steps: a whole program, for profilers that start one.

Run it with ``python scripts/train_small_cnn.py --steps 5``.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers import units, workloads


def training_step(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Forward, backward, update; return the loss."""
    loss = F.cross_entropy(model(images), labels)
    model.zero_grad()
    loss.backward()
    update(model)
    return loss.item()


def update(model: nn.Module, learning_rate: float = 0.005) -> None:
    """By hand: lesson 02, cProfile, finds out why not with torch.optim."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= learning_rate * parameter.grad


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Train SmallCNN on synthetic images."
    )
    parser.add_argument(
        "--steps", type=int, default=5, help="how many (default: 5)"
    )
    steps = parser.parse_args().steps

    torch.manual_seed(0)
    model = workloads.SmallCNN()
    images, labels = workloads.synthetic_cifar(64)
    for step in range(1, steps + 1):
        loss = training_step(model, images, labels)
        print(f"step {step}: loss {units.number(loss)}")


if __name__ == "__main__":
    main()
