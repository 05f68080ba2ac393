"""What several tests need."""

import pytest
import torch

from helpers.plotting import _canvas

torch.set_num_threads(1)  # as quick on a quiet computer, and much quicker beside others


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What the plotting functions display."""
    displayed: list[dict] = []
    monkeypatch.setattr(_canvas, "display", lambda data, raw: displayed.append(data) if raw else 0)
    return displayed
