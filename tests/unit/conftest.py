import pytest
import torch

from helpers import exercises, simulated
from helpers.plotting import _canvas

torch.set_num_threads(1)  # as quick on a quiet computer, and much quicker beside others


class Clock:
    """Stands for the module ``time``: no other work on this computer moves it."""

    now = 1000.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the exercises, and of what they simulate."""
    clock = Clock()
    for module in (exercises, simulated):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What the plotting functions display."""
    displayed: list[dict] = []
    monkeypatch.setattr(_canvas, "display", lambda data, raw: displayed.append(data))
    return displayed
