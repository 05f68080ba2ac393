"""Recordings of language models on servers, as data frames and as what charts draw."""

from pathlib import Path

import pandas as pd

_MOMENTS = ["queued_s", "scheduled_s", "first_token_s", "last_token_s"]


def matmul_phases(path: Path | str) -> pd.DataFrame:
    """The matrix multiplications of a call, summed up: a row each for prefill and decode.

    Columns: ``flop``; ``bytes`` of the factors and the results, in 16 bits; ``seconds``;
    ``intensity`` in FLOP/B; ``rate`` in FLOP/s. Each row of the file has the number of ``calls``,
    their total ``time_us``, and a shape: ``rows`` × ``k`` times ``k`` × ``n``.
    """
    table = pd.read_csv(path)
    elements = table.rows * table.k + table.n * table.k + table.rows * table.n
    table["flop"] = 2 * table.rows * table.n * table.k * table.calls
    table["bytes"] = 2 * elements * table.calls
    table["seconds"] = table.time_us / 1e6
    total = table.groupby("phase")[["flop", "bytes", "seconds"]].sum()
    rates = {"intensity": total.flop / total.bytes, "rate": total.flop / total.seconds}
    return total.assign(**rates)


def moments(path: Path | str) -> list[list[float]]:
    """When each request arrived, was scheduled, and had its first and its last token, in s."""
    return pd.read_csv(path)[_MOMENTS].to_numpy().tolist()


def medians(path: Path | str) -> pd.Series:
    """The median seconds of the requests ``in the queue``, for the ``prompt``, and ``per token``.

    The last is a request's mean inter-token latency.
    """
    requests = pd.read_csv(path)
    parts = requests[_MOMENTS].diff(axis=1).iloc[:, 1:]
    parts["last_token_s"] /= requests.output_tokens - 1
    return parts.median().set_axis(["in the queue", "prompt", "per token"])


def running_requests(path: Path | str) -> dict[str, list[tuple[float, float]]]:
    """What a server reported every second, each as points (second, value) of ``plotting.curves``.

    The requests ``running`` and ``waiting``, and the ``cache`` in use, in percent.
    """
    table = pd.read_csv(path, index_col="second").rename(columns={"cache_percent": "cache"})
    return {name: list(values.items()) for name, values in table.items()}
