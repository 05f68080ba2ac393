from pathlib import Path

import numpy as np
import pytest
import torch

from helpers import checks, units
from helpers.checks import ClaimError, claim
from tools import notebooks


@pytest.fixture
def readers_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / checks.LEDGER).touch()
    return tmp_path


def test_a_confirmed_claim_prints_what_it_rests_on(capsys: pytest.CaptureFixture) -> None:
    measured = {"ratios": [1.5, 2], "by": {"a": np.float32(0.25), "b": ("x", 1)}, "pair": (1, 2.5)}
    claim("it holds", np.bool_(True), ratio=12.345, calls=1234, shape=(3, 4), sure=False)
    claim("so do these", True, **measured, least=float("-inf"))
    claim("and these", np.True_, most=np.inf, none=[float("nan")])
    assert capsys.readouterr().out.splitlines() == [
        "✓ it holds  (ratio = ~12.3, calls = 1,234, shape = (3, 4), sure = False)",
        "✓ so do these  (ratios = ~1.50, 2, by = a: ~0.250, b: (x, 1), "
        "pair = (1, ~2.50), least = ~-inf)",
        "✓ and these  (most = ~inf, none = ~nan)",
    ]


@pytest.mark.parametrize(
    "measured",
    [0.5, np.float32(0.5), units.ratio(0.5), [0.5, 2], {"a": units.seconds(1)}, float("inf")],
)
def test_in_a_readers_copy_a_measurement_that_fails_is_amber(
    measured: object, readers_copy: Path, capsys: pytest.CaptureFixture
) -> None:
    claim("it holds", False, measured=measured, calls=2)
    assert capsys.readouterr().out.startswith("△ not confirmed on this run: it holds  (measured = ")
    with pytest.raises(ClaimError):
        claim("two results are equal", False, exact=True, difference=measured)


def test_in_a_readers_copy_an_exact_claim_stops(readers_copy: Path) -> None:
    with pytest.raises(ClaimError):
        claim("it holds", False, calls=2, sure=True, names=["a"], share="16%")


def test_a_line_is_legible_text_in_every_format() -> None:
    line = checks.rendered("a < b & c", "ratio = ~1.2 ms")
    assert line["text/plain"] == "✓ a < b & c  (ratio = ~1.2 ms)"
    assert "a &lt; b &amp; c" in line["text/html"]
    assert 'class="claim claim-holds"' in line["text/html"]
    assert notebooks.sanitised(line["text/html"]) == notebooks.sanitised(
        line["text/html"].replace("~1.2 ms", "~310 µs")
    )


def source(lesson: str, cell_id: str) -> str:
    cells = notebooks.read(notebooks.NOTEBOOKS / f"{lesson}.ipynb").cells
    return next(cell.source for cell in cells if cell.id == cell_id)


def test_a_wrong_result_is_an_error_in_a_readers_copy(readers_copy: Path) -> None:
    """Lesson 00: whoever brightens by 1.3 for 1.2 is not told that the computer may differ."""
    limits = {"load": 1.1, "brighten": 9.0, "convolve": 1.1}
    names = {"claim": claim, "limits": limits, "speedup": 3.0, "difference": 1.3 - 1.2}
    with pytest.raises(ClaimError, match="both programs compute the same result"):
        exec(source("00_start_here", "five-check"), names)


@pytest.mark.parametrize("lesson", ["00_start_here", "01_timing"])
def test_an_interrupted_cell_does_not_change_the_number_of_threads(lesson: str) -> None:
    threads, names = torch.get_num_threads(), {}
    try:
        exec(source(lesson, "setup"), names)
        torch.set_num_threads(names["all_threads"] + 1)  # and the interrupt keeps it so
        exec(source(lesson, "setup"), again := {})
    finally:
        torch.set_num_threads(threads)
    assert again["all_threads"] == names["all_threads"]


def test_a_claim_needs_a_truth_value_and_evidence() -> None:
    with pytest.raises(TypeError, match="holds must be True or False, but got a list"):
        claim("it holds", [True], ratio=1.0)
    with pytest.raises(TypeError, match="must show what it rests on"):
        claim("it holds", True)
