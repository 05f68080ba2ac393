"""What several tests need."""

import pytest

from helpers.plotting import _canvas


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What the plotting functions display."""
    displayed: list[dict] = []
    monkeypatch.setattr(_canvas, "display", lambda data, raw: displayed.append(data))
    return displayed
