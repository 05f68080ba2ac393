"""``make report`` takes any kind of model, counts it right, and its page needs nothing else."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from helpers import own_model
from tools import notebooks, python_path, refresh, report

PRETENDED_GPU = notebooks.ROOT / "tests" / "lessons" / "pretended_gpu"


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


class Whitens(nn.Module):
    """It solves equations, which has no formula, and it cannot be trained."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    @torch.inference_mode()
    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return torch.linalg.solve(y.T @ y + torch.eye(16), y.T)


def whitens() -> tuple[nn.Module, Tensor]:
    return Whitens(), torch.rand(64, 16)


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
def test_a_report_is_right_and_needs_nothing_else(
    name: str, folder: Path, capsys: pytest.CaptureFixture
) -> None:
    assert report.main([f"tests.tools.test_report:{name}"]) == 0
    announced = re.findall(r"^\[(\d)/7\] .+ …$", capsys.readouterr().out, re.M)
    assert announced == list("1234567")
    page = (folder / f"tests.tools.test_report.{name}.html").read_text(encoding="utf-8")
    cells = dict(re.findall(r"<th>([^<]+)</th>\s*<td>([^<]+)</td>", page))
    assert (cells["parameters"], cells["MACs"]) == tuple(f"{n:,}" for n in MODELS[name])
    assert "Next:" in page
    assert not re.search(r"<script|<link|@import|(src|url\()[=\"'(]*(https?:|//|\w+\.)", page)
    assert "href=" not in page
    assert page.index("What to ask next") < page.index("The computer")
    titles = re.findall(r'<img[^>]* alt="[^"]*?Title: ([^.]+)\.', page)
    assert page.index("Next:") < page.index("<img")
    assert "What is farthest above its limit is the next question" in titles[:2]
    assert page.index("The slowest kinds") < page.index("What to ask next") < page.index("<table")
    assert len(set(titles)) == len(titles) == page.count("<img")


@pytest.mark.everything
def test_what_cannot_be_counted_is_named_and_nothing_rests_on_it(folder: Path) -> None:
    assert report.main(["tests.tools.test_report:whitens"]) == 0
    page = (folder / "tests.tools.test_report.whitens.html").read_text(encoding="utf-8")
    cells = dict(re.findall(r"<th>([^<]+)</th>\s*<td>([^<]+)</td>", page))
    assert cells["MACs"] == f"at least {2 * 64 * 16 * 16:,}"
    assert "_linalg_solve_ex ×1" in page
    assert "saved for the backward pass: not measured" in page
    (verdict,) = re.findall(r'<img[^>]* alt="([^"]*?Title: What is farthest[^"]*)"', page)
    for left_out in ("memory bandwidth", "peak FLOP/s", "training memory"):
        assert left_out not in verdict
    (roof,) = re.findall(r'<img[^>]* alt="(Roofline[^"]*)"', page)
    assert "Linear at" in roof
    assert "the model at" not in roof


def test_every_question_has_its_chart_in_the_template() -> None:
    template = notebooks.read(notebooks.NOTEBOOKS / "profile_your_own_model.ipynb")
    outputs = {cell.id: str(cell.get("outputs")) for cell in template.cells}
    for question in (*own_model.QUESTIONS.values(), own_model.OTHERWISE):
        assert "course-chart" in outputs[question.chart]


def test_a_name_without_a_function_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture,
) -> None:
    for arguments, came in ([], "nothing"), (["mine"], "'mine'"):
        assert report.main(arguments) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(f"MODEL must be package.module:function, but got {came}: ")


@pytest.mark.everything
def test_what_cannot_be_reported_ends_in_a_sentence(capsys: pytest.CaptureFixture) -> None:
    assert report.main(["tests.tools.test_report:too_narrow"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("model must take the example, but got (2, 3) float32")
    assert message.count("\n") == 1


class Functions(nn.Module):
    """Its forward spends most of the time in functions, which no module of its own holds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.quiet = nn.Linear(8, 8), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(50):
            x = torch.tanh(x)
        return self.quiet(self.linear(x))


FILLED_IN = """
from tests.tools.test_report import Functions
model, example = Functions(), torch.rand(4, 8)
"""
ON_THE_SECOND_GPU = """
model, example = model.cuda(1), example.to("cuda:1")
own_model.home = lambda *_: ("cuda:1", torch.float32)  # the pretended GPU's tensors say "cpu"
by_number = torch.cuda.set_device  # the pretended one takes only numbers
torch.cuda.set_device = lambda name: by_number(int(name[-1]))
"""


@pytest.mark.everything
@pytest.mark.parametrize("gpu", ["", ON_THE_SECOND_GPU])
def test_the_template_names_a_leaf_and_runs_its_cells_for_a_gpu(
    gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if gpu:
        monkeypatch.setenv("PYTHONPATH", str(PRETENDED_GPU), prepend=os.pathsep)
        monkeypatch.setenv("PRETENDED_GPUS", "2")
    template = notebooks.read(notebooks.NOTEBOOKS / "profile_your_own_model.ipynb")
    (cell,) = (cell for cell in template.cells if cell.id == "your-model")
    cell.source = FILLED_IN + gpu
    done = refresh.execute(template, notebooks.ROOT)
    printed = {
        cell.id: "".join(text for _, text in notebooks.texts(cell.get("outputs", [])))
        for cell in done.cells
    }
    assert "without MACs: \N{WORD JOINER}Identity\N{WORD JOINER}" in printed["next-table"]
    assert ("allocator's peak" in printed["memory-gpu"]) == bool(gpu)


def test_another_package_of_the_same_name_ends_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(notebooks.ROOT)
    (tmp_path / "helpers").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert python_path.problem() is None  # a folder alone is imported only if nothing else is found
    (tmp_path / "helpers" / "__init__.py").touch()
    assert report.main(["mine:build"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("Python must find the course's package helpers first, but finds")
    assert message.count("\n") == 1
    monkeypatch.setenv("PYTHONPATH", f"{notebooks.ROOT}{os.pathsep}{tmp_path}")
    assert python_path.problem() is None
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path / "helpers") in python_path.problem()


@pytest.mark.everything
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signal for Ctrl+C alone")
@pytest.mark.parametrize("line", [1, 2])
def test_ctrl_c_ends_in_a_sentence(line: int) -> None:
    """Once while the kernel starts, and once while a cell is executed."""
    words = [sys.executable, "-m", "tools.report", "tests.tools.test_report:lstm"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(words, cwd=notebooks.ROOT, **streams) as process:
        while not process.stdout.readline().startswith(f"[{line}/7]"):
            pass
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        lines = process.stdout.read().splitlines()
    assert [line for line in lines if not re.fullmatch(r" {4}\d+ s so far|\[\d/7\] .*", line)] == [
        "Stopped: no report was written."
    ]
    assert process.returncode == 130
