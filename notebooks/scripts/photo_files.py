"""A data set of JPEG files, in a module: a worker must be able to import it."""

import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, get_worker_info

# What PyTorch takes in a process to which nobody has said how many threads to use.
OWN_THREADS = torch.get_num_threads()


class PhotoFiles(Dataset):
    """The JPEG files of a folder, shrunk to (3, 32, 32) float32, 0 to 1.

    ``wait`` holds one number, seconds: if it is not 0, nothing is decoded, and each
    picture takes so long to arrive. With each goes the worker that made it, -1 if
    none, and how many threads PyTorch may use there.
    """

    def __init__(self, folder: Path, wait: Tensor) -> None:
        self.files, self.wait = sorted(folder.glob("*.jpg")), wait

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> dict[str, Tensor | int]:
        if seconds := self.wait.item():
            time.sleep(seconds)
            image = torch.zeros(3, 32, 32)
        else:
            with Image.open(self.files[index]) as photo:
                small = photo.convert("RGB").resize((32, 32))
            pixels = torch.from_numpy(np.array(small, dtype=np.float32) / 255)
            image = pixels.permute(2, 0, 1).contiguous()
        worker = get_worker_info()
        number = -1 if worker is None else worker.id
        threads = torch.get_num_threads()
        return {
            "image": image,
            "label": index % 10,
            "worker": number,
            "threads": threads,
        }
