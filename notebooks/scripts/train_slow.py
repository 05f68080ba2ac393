"""Train SmallCNN on small images: a program with nine faults, on purpose.

Run it with ``python scripts/train_slow.py --epochs 2``. Lesson 15, Make it fast,
finds the faults; ``helpers/faults.py`` takes them out, or puts some of them back.
"""

import argparse
import io
import sys
from typing import TextIO

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from helpers import workloads

BATCH = 3
MEAN, DEVIATION = (0.5, 0.5, 0.5), (0.2, 0.2, 0.2)
DTYPE = torch.float64  # as NumPy has it
LAYOUT = torch.contiguous_format


def png_files(count: int, seed: int = 0) -> tuple[list[bytes], Tensor]:
    """PNG files of 32 × 32 pixels, as if from a disk, and their labels."""
    images, labels = workloads.synthetic_cifar(count, seed)
    pixels = (images * 25 + 128).clamp(0, 255).byte().permute(0, 2, 3, 1)
    files = [io.BytesIO() for _ in range(count)]
    for file, values in zip(files, pixels.numpy(), strict=True):
        Image.fromarray(values).save(file, "png")
    return [file.getvalue() for file in files], labels


def decode(file: bytes) -> np.ndarray:
    """(32, 32, 3), from 0 to 255."""
    with Image.open(io.BytesIO(file)) as picture:
        return np.array(picture)


def normalise(pixels: np.ndarray) -> Tensor:
    """(3, 32, 32), around 0."""
    mean, deviation = torch.tensor([MEAN, DEVIATION], dtype=DTYPE)
    image = torch.empty(3, 32, 32, dtype=DTYPE)
    for y in range(32):
        for x in range(32):
            pixel = torch.from_numpy(pixels[y, x]) / 255
            image[:, y, x] = (pixel - mean) / deviation
    return image


def read(files: list[bytes]) -> Tensor:
    """(N, 3, 32, 32)"""
    images = torch.stack([normalise(decode(file)) for file in files])
    return images.to(memory_format=LAYOUT)


def step(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    batch: Tensor,
    labels: Tensor,
) -> Tensor:
    """One step of training; return the loss."""
    loss = F.cross_entropy(model(batch), labels)
    optimiser.zero_grad()
    loss.backward(retain_graph=True)
    optimiser.step()
    return loss


def evaluate(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The loss on images that were not trained on."""
    model.eval()
    loss = F.cross_entropy(model(images), labels)
    model.train()
    return loss


def report(model: nn.Module, loss: Tensor, log: TextIO) -> None:
    print(f"loss {loss.item()}", file=log)
    for name, weights in model.named_parameters():
        for number in weights.flatten().tolist():
            print(f"{name} {number}", file=log)


def train(
    files: list[bytes],
    labels: Tensor,
    epochs: int = 2,
    log: TextIO = sys.stdout,
    seed: int = 0,
) -> tuple[list[Tensor], Tensor]:
    """Return the loss of each step, and the final loss of what is held out."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = workloads.SmallCNN().to(DTYPE, memory_format=LAYOUT)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    losses, held_out = [], len(files) // 4
    for _ in range(epochs):
        images = read(files)
        order = held_out + torch.randperm(len(images) - held_out)
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            indices = range(start, start + len(chosen))
            batch = torch.cat([images[order][n : n + 1] for n in indices])
            losses.append(step(model, optimiser, batch, labels[chosen]))
        final = evaluate(model, images[:held_out], labels[:held_out])
        report(model, final, log)
    return losses, final


def main() -> None:
    parser = argparse.ArgumentParser(description="Train SmallCNN on images.")
    parser.add_argument(
        "--epochs", type=int, default=2, help="how many (default: 2)"
    )
    train(*png_files(12), parser.parse_args().epochs)


if __name__ == "__main__":
    main()
