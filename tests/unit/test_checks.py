import doctest
from pathlib import Path

import numpy as np
import pytest

from helpers import checks
from helpers.checks import ClaimError, claim


def test_a_confirmed_claim_prints_what_it_rests_on(capsys: pytest.CaptureFixture) -> None:
    claim("it holds", np.bool_(True), ratio=12.345, calls=1234, shape=(3, 4), sure=False)
    expected = "✓ it holds  (ratio = ~12.3, calls = 1,234, shape = (3, 4), sure = False)\n"
    assert capsys.readouterr().out == expected


def test_a_failed_claim_says_what_was_measured(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(ClaimError, match=r"not confirmed on this run: it holds  \(ratio = ~0.500"):
        claim("it holds", 0.5 > 1, ratio=0.5)
    assert capsys.readouterr().out == ""


def test_in_a_reader_s_copy_only_an_exact_claim_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / checks.LEDGER).touch()
    claim("it holds", False, ratio=np.float32(0.5), calls=2)
    claim("it holds", True, ratio=0.5)
    amber = "\x1b[1;33m△ not confirmed on this run: it holds  (ratio = ~0.500, calls = 2)\x1b[0m\n"
    assert capsys.readouterr().out == f"{amber}✓ it holds  (ratio = ~0.500)\n"
    with pytest.raises(ClaimError):
        claim("it holds", False, calls=2, sure=True, names=["a"])


@pytest.mark.parametrize("holds", [1, "yes", [True], None])
def test_a_claim_needs_a_truth_value(holds: object) -> None:
    with pytest.raises(TypeError, match="holds must be True or False"):
        claim("it holds", holds, ratio=1.0)


def test_a_claim_needs_evidence_and_words() -> None:
    with pytest.raises(TypeError, match="must show what it rests on"):
        claim("it holds", True)
    with pytest.raises(TypeError, match="text must be a sentence"):
        claim("", True, ratio=1.0)


def test_the_example_in_the_docstring() -> None:
    results = doctest.testmod(checks)
    assert results.attempted == 1
    assert results.failed == 0
