"""What several tests need."""

import pytest

from helpers import plotting


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What the plotting functions display."""
    displayed: list[dict] = []
    monkeypatch.setattr(plotting, "display", lambda data, raw: displayed.append(data))
    return displayed
