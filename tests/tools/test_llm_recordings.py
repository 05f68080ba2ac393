"""The recordings of language models agree with their originals, and with one another."""

import importlib
import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from tools import notebooks

LLM = notebooks.ROOT / "assets" / "recordings" / "llm"
ORIGINALS = notebooks.ROOT.parent / "shared" / "llm-recordings"


def test_the_matmuls_have_the_published_shapes_and_the_time_of_the_traces_kernels() -> None:
    matmuls = pd.read_csv(LLM / "mi300x_qwen3_matmuls.csv")
    for phase, tokens in (("prefill", 15_360), ("decode", 32)):
        rows = matmuls[matmuls["phase"] == phase]
        in_blocks = rows[rows["n"] != 151_936]
        assert set(in_blocks["rows"]) == {tokens}
        assert 2 * (rows["n"] * rows["k"] * rows["calls"]).sum() == 15_136_194_560  # FLOP per token
    step = pd.read_csv(LLM / "mi300x_qwen3_decode_step.csv.gz")
    kernels = step[step["kind"] != "hipGraphLaunch"]
    assert len(kernels) == 544
    decode = matmuls.loc[matmuls["phase"] == "decode", "time_us"].sum()
    in_trace = kernels.loc[kernels["kind"] == "matmul", "duration_us"].sum()
    assert in_trace == pytest.approx(decode, rel=1e-5)


def test_the_moments_of_a_request_are_in_order_and_the_server_finishes_all() -> None:
    for card in ("rtx4090", "rtxpro6000"):
        rows = pd.read_csv(LLM / f"{card}_requests.csv")
        moments = ["queued_s", "scheduled_s", "first_token_s", "last_token_s"]
        assert len(rows) == 300
        assert (rows[moments].diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
        seconds = pd.read_csv(LLM / f"{card}_seconds.csv")
        assert abs(len(seconds) - rows["last_token_s"].max()) < 3


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason="the originals are not here")
def test_reducing_the_originals_again_gives_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(LLM.parent / "make")
    reduce_llm = importlib.import_module("reduce_llm")
    monkeypatch.setattr(reduce_llm, "TARGET", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reduce_llm.py", str(ORIGINALS)])
    for part in reduce_llm.PARTS:
        part(ORIGINALS)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in LLM.glob("*.csv*")}


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason="the originals are not here")
def test_waits_and_latencies_agree_with_the_originals() -> None:
    for card, name in (("rtx4090", "RTX4090"), ("rtxpro6000", "RTXPRO6000")):
        rows = pd.read_csv(LLM / f"{card}_requests.csv")
        file = ORIGINALS / "5_llmservingsim_vllm" / f"{name}_Llama-3.1-8B_requests.jsonl"
        lines = file.read_text("utf-8").splitlines()
        for row, line in zip(rows.itertuples(), lines, strict=True):
            original = json.loads(line)
            first = original["first_token_ts"] - original["queued_ts"]
            assert row.first_token_s - row.queued_s == pytest.approx(first, abs=2e-6)
            latency = original["last_token_ts"] - original["first_token_ts"]
            assert row.last_token_s - row.first_token_s == pytest.approx(latency, abs=2e-6)
            assert row.output_tokens == original["output_toks"]
