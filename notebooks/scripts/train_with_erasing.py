"""Train SmallCNN on images with a random square erased: a program to be profiled.

Run it with ``python scripts/train_with_erasing.py --steps 3``. One line is slow, on
purpose: lesson 07, line_profiler, finds it, and fixes a copy.
"""

import argparse

import torch
import torch.nn.functional as F
from line_profiler import profile

from helpers import units, workloads


@profile
def train_step(model, images, labels):
    """Erase squares, train one step; return the loss."""
    side = 16
    images = images.clone()
    corners = torch.randint(33 - side, (len(images), 2))
    for n, (top, left) in enumerate(corners.tolist()):
        for y in range(top, top + side):
            for x in range(left, left + side):
                for channel in range(3):
                    images[n, channel, y, x] = 0.0
    images = (images - images.mean()) / images.std()
    logits = model(images)
    loss = F.cross_entropy(logits, labels)
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.005 * parameter.grad
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Train SmallCNN on images with a random square erased."
    )
    parser.add_argument(
        "--steps", type=int, default=3, help="how many (default: 3)"
    )
    steps = parser.parse_args().steps

    torch.set_num_threads(1)  # steadier times: see lesson 01, Timing
    torch.manual_seed(0)
    model = workloads.SmallCNN()
    images, labels = workloads.synthetic_cifar(32)
    for step in range(1, steps + 1):
        loss = train_step(model, images, labels)
        print(f"step {step}: loss {units.number(loss)}")


if __name__ == "__main__":
    main()
