"""Reduce public recordings of language models to what lesson 14 reads, in assets/recordings/llm.

    python assets/recordings/make/reduce_llm.py SOURCE-FOLDER

SOURCE-FOLDER holds the files as their repositories publish them, in the folders named below.
Nothing is computed that a lesson should compute: rows and columns are left out, and times start at
0 and get their unit into their name. NAME.json beside each file is written by hand.
"""

import gzip
import json
import sys
from pathlib import Path

import pandas as pd
from recording import RECORDINGS

TARGET = RECORDINGS / "llm"


def write(name: str, rows: pd.DataFrame) -> None:
    """Write a CSV, compressed if its name ends in .gz; equal rows give equal bytes."""
    data = rows.to_csv(index=False, lineterminator="\n").encode()
    (TARGET / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def matmuls(source: Path) -> None:
    """Qwen3-8B on an MI300X: the shapes of its matmuls, and their kernels' time, by phase."""
    columns = {"param: M": "rows", "param: N": "n", "param: K": "k", "name_count": "calls"}
    columns["Kernel Time (µs)_sum"] = "time_us"
    tables = []
    for phase, file in (("prefill", "prefilldecode"), ("decode", "decode")):
        table = pd.read_csv(source / f"1_tracelens_mi300x/oracle_sglang_{file}_GEMM.csv")
        table = table[table["name"] == "aten::mm"].rename(columns=columns)
        table["time_us"] = table["time_us"].round(3)
        tables.append(table[list(columns.values())].assign(phase=phase))
    write("mi300x_qwen3_matmuls.csv", pd.concat(tables))


def decode_step(source: Path) -> None:
    """The same model's decode step: when its one graph was launched, and its kernels."""
    path = source / "1_tracelens_mi300x/sglang_Qwen3-8B_decode.json.gz"
    trace = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    (launch,) = (event for event in trace if event["name"] == "hipGraphLaunch")
    number = launch["args"]["correlation"]
    rows = [["hipGraphLaunch", 0.0, launch["dur"]]]
    for event in sorted((e for e in trace if e.get("cat") == "kernel"), key=lambda e: e["ts"]):
        if event["args"]["correlation"] == number:
            kind = "matmul" if event["name"].startswith("Cijk") else "other"
            kind = "attention" if "paged_attention" in event["name"] else kind
            rows.append([kind, round(event["ts"] - launch["ts"], 3), round(event["dur"], 3)])
    columns = ["kind", "start_us", "duration_us"]
    write("mi300x_qwen3_decode_step.csv.gz", pd.DataFrame(rows, columns=columns))


def linear_layers(source: Path) -> None:
    """Llama-3 8B on one A100: the median time of the linear layers of a block, by tokens."""
    table = pd.read_csv(source / "3_vidur_a100/Meta-Llama-3-8B_mlp.csv.gz")
    table = table[table["num_tensor_parallel_workers"] == 1]
    layers = ("attn_pre_proj", "attn_post_proj", "mlp_up_proj", "mlp_down_proj")
    rows = {"tokens": table["num_tokens"]}
    rows |= {f"{name}_ms": table[f"time_stats.{name}.median"] for name in layers}
    # A stable sort: the order of two measurements of one size must not depend on the processor.
    table = pd.DataFrame(rows).sort_values("tokens", kind="stable")
    write("a100_llama3_linear.csv", table.round(4))


def serving(source: Path) -> None:
    """Llama-3.1 8B served on one H100, by the largest batch."""
    path = source / "2_mlenergy_h100_b200/lm-arena-chat.json.gz"
    rows = pd.DataFrame(json.loads(gzip.decompress(path.read_bytes()))["configurations"])
    chosen = rows["model_id"] == "meta-llama/Llama-3.1-8B-Instruct"
    rows = rows[chosen & (rows["gpu_model"] == "H100")].sort_values("max_num_seqs", kind="stable")
    columns = {
        "max_num_seqs": "largest_batch",
        "avg_batch_size": "mean_batch",
        "median_itl_ms": "itl_p50_ms",
        "p99_itl_ms": "itl_p99_ms",
        "output_throughput_tokens_per_sec": "tokens_per_s",
        "avg_power_watts": "watts",
        "energy_per_token_joules": "joules_per_token",
    }
    write("h100_llama3_serving.csv", rows[list(columns)].rename(columns=columns).round(4))


def requests(source: Path) -> None:
    """300 requests to Llama-3.1 8B on two cards: their moments, and the server by seconds."""
    for name, card in (("rtx4090", "RTX4090"), ("rtxpro6000", "RTXPRO6000")):
        start = source / f"5_llmservingsim_vllm/{card}_Llama-3.1-8B"
        rows = pd.read_json(f"{start}_requests.jsonl", lines=True)
        names = ("queued", "scheduled", "first_token", "last_token")
        since = rows["queued_ts"].min()
        table = rows[["input_toks", "output_toks"]].set_axis(
            ["input_tokens", "output_tokens"], axis=1
        )
        for moment in names:
            table[f"{moment}_s"] = (rows[f"{moment}_ts"] - since).round(6)
        write(f"{name}_requests.csv", table)
        seconds = pd.read_csv(f"{start}_timeseries.csv")
        seconds = seconds.rename(columns={"t": "second", "kv_cache_pct": "cache_percent"})
        columns = ["second", "running", "waiting", "cache_percent"]
        if name == "rtxpro6000":  # its column of the cache holds only 0
            columns.remove("cache_percent")
        write(f"{name}_seconds.csv", seconds[columns])


def small_tables(source: Path) -> None:
    """gpt-fast's rates on an A100, and tiny-llm's ladder on an Apple M4 Pro."""
    folder = source / "6_small_tables"
    rows = pd.read_csv(folder / "gpt_fast_a100.csv", dtype=str)
    write("a100_gptfast.csv", rows)
    ladder = json.loads((folder / "tiny_llm_m4pro_qwen3-4b_progression.json").read_text())
    found = next(part for part in ladder.values() if "week2-kv-cache" in part)
    rows = [
        [step["label"], run, sample["prefill"], sample["decode"]]
        for step in found.values()
        for run, sample in enumerate(step["samples"], 1)
    ]
    columns = ["step", "run", "prefill_tokens_per_s", "decode_tokens_per_s"]
    write("m4pro_tinyllm.csv", pd.DataFrame(rows, columns=columns))


PARTS = (matmuls, decode_step, linear_layers, serving, requests, small_tables)

if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    TARGET.mkdir(exist_ok=True)
    for part in PARTS:
        part(Path(sys.argv[1]))
