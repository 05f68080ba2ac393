"""Data sets for lesson 10, in a module, because a worker has to import them."""

import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, get_worker_info

# How many threads PyTorch uses in a process if no setting says how many.
OWN_THREADS = torch.get_num_threads()


class PhotoFiles(Dataset):
    """The JPEG files of a folder, shrunk to (3, 32, 32) float32, 0 to 1.

    ``wait`` holds one number, seconds: if it is not 0, nothing is decoded, and each
    image takes this long to arrive. Each image comes with the number of the worker
    that loaded it (-1 if there was none), the number of threads that PyTorch may
    use there, and when loading began and ended (seconds since 1970).
    """

    def __init__(self, folder: Path, wait: Tensor) -> None:
        self.files, self.wait = sorted(folder.glob("*.jpg")), wait

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> dict[str, Tensor | int | float]:
        began = time.time()
        if seconds := self.wait.item():
            time.sleep(seconds)
            image = torch.zeros(3, 32, 32)
        else:
            with Image.open(self.files[index]) as photo:
                small = photo.convert("RGB").resize((32, 32))
            pixels = torch.from_numpy(np.array(small, dtype=np.float32) / 255)
            image = pixels.permute(2, 0, 1).contiguous()
        worker = get_worker_info()
        return {
            "image": image,
            "label": index % 10,
            "worker": -1 if worker is None else worker.id,
            "threads": torch.get_num_threads(),
            "began": began,
            "ended": time.time(),
        }


class ArrayAndTensor(Dataset):
    """One item: what a worker sees as the first values of an array and a tensor."""

    def __init__(self, array: np.ndarray, tensor: Tensor) -> None:
        self.array, self.tensor = array, tensor

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> dict[str, float]:
        return {"array": self.array[0].item(), "tensor": self.tensor[0].item()}
