"""``make report`` takes any kind of model, counts it right, and its page needs nothing else."""

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tools import report


class Two(nn.Module):
    """Two inputs; a dict comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 5), nn.Linear(6, 5)

    def forward(self, left: Tensor, right: Tensor) -> dict[str, Tensor]:
        return {"sum": self.left(left) + self.right(right), "left": left}


def two_inputs() -> tuple[nn.Module, dict[str, Tensor]]:
    return Two(), {"right": torch.rand(3, 6), "left": torch.rand(3, 8)}


def lstm() -> tuple[nn.Module, Tensor]:
    return nn.LSTM(32, 64, batch_first=True), torch.rand(2, 10, 32)


class Tied(nn.Module):
    """Its last product uses the table of its embedding, in a range of the profiler."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        with torch.profiler.record_function("head"):
            return nn.functional.linear(self.table(tokens), self.table.weight)


def tied() -> tuple[nn.Module, Tensor]:
    return Tied(), torch.zeros(2, 3, dtype=torch.int64)


def too_narrow() -> tuple[nn.Module, Tensor]:
    return nn.Linear(4, 4), torch.rand(2, 3)


# Parameters, and MACs of the example, by hand.
MODELS = {
    "two_inputs": (8 * 5 + 5 + 6 * 5 + 5, 3 * (8 + 6) * 5),
    "tied": (50 * 8, 2 * 3 * 8 * 50),
    "lstm": (4 * 64 * (32 + 64 + 2), 2 * 10 * 4 * 64 * (32 + 64)),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "REPORTS", tmp_path / "reports")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return tmp_path / "reports"


@pytest.mark.everything
@pytest.mark.parametrize("name", MODELS)
def test_a_report_is_right_and_needs_nothing_else(name: str, folder: Path) -> None:
    assert report.main([f"tests.tools.test_report:{name}"]) == 0
    page = (folder / f"tests.tools.test_report.{name}.html").read_text(encoding="utf-8")
    cells = dict(re.findall(r"<th>([^<]+)</th>\s*<td>([^<]+)</td>", page))
    assert (cells["parameters"], cells["MACs"]) == tuple(f"{n:,}" for n in MODELS[name])
    assert "Next:" in page
    assert not re.search(r"<script|<link|@import|(src|url\()[=\"'(]*(https?:|//|\w+\.)", page)
    assert "href=" not in page
    assert page.index("What to ask next") < page.index("The computer")


@pytest.mark.everything
def test_what_cannot_be_reported_ends_in_a_sentence(capsys: pytest.CaptureFixture) -> None:
    assert report.main(["tests.tools.test_report:too_narrow"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("model must take the example, but got (2, 3) float32")
    assert message.count("\n") == 1
