"""A compiled module that counts its calls; run it with TORCH_LOGS=recompiles."""

import torch
from torch import nn


class CountedLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return self.layer(x)


if __name__ == "__main__":
    model = torch.compile(CountedLayer(), backend="eager")
    for _ in range(3):
        model(torch.ones(2, 4))
