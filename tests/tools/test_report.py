"""``make report`` takes any kind of model, counts it right, and its page needs nothing else."""

import re
from pathlib import Path

import pytest

from tools import report

MODELS = {  # parameters, MACs of the example: as published, or by hand
    "resnet50": (25_557_032, 4_089_184_256),
    "vit_b_16": (86_567_656, 17_563_828_224),
    "two_inputs": (8 * 5 + 5 + 6 * 5 + 5, 3 * (8 + 6) * 5),
    "dynamic": (4 * 4, 5 * 2 * 4 * 4),  # 30 is halved five times
    "lstm": (4 * 64 * (32 + 64 + 2), 2 * 10 * 4 * 64 * (32 + 64)),
    "encoder": (2 * 33_472, 2 * 680_960),
    "bfloat16": (25_674, 8 * 1_642_496),
    "nothing_to_count": (0, 0),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "REPORTS", tmp_path / "reports")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return tmp_path / "reports"


@pytest.mark.everything
@pytest.mark.parametrize("name", MODELS)
def test_a_report_is_right_and_needs_nothing_else(name: str, folder: Path) -> None:
    assert report.main([f"tests.tools.own_models:{name}"]) == 0
    page = (folder / f"tests.tools.own_models.{name}.html").read_text(encoding="utf-8")
    cells = dict(re.findall(r"<th>([^<]+)</th>\s*<td>([^<]+)</td>", page))
    assert (cells["parameters"], cells["MACs"]) == tuple(f"{n:,}" for n in MODELS[name])
    assert "Next:" in page
    assert not re.search(r"<script|<link|@import|(src|url\()[=\"'(]*(https?:|//|\w+\.)", page)
    links = re.findall(r'href="([^"]+)"', page)
    assert len(links) > 10
    assert all((folder / link).exists() for link in links)


@pytest.mark.everything
def test_what_cannot_be_reported_ends_in_a_sentence(capsys: pytest.CaptureFixture) -> None:
    assert report.main(["tests.tools.own_models:too_narrow"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("model must take the example, but (2, 3) float32 came")
    assert said.count("\n") == 1
