"""What ran when: in a loop over a DataLoader, in ranks, and on GPUs that exchange data."""

import linecache
import multiprocessing
import os
import re
import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from helpers.traces import chrome_trace

Span = tuple[float, float, str, int]


def calls(loader: Iterable) -> tuple[dict[str, float], float]:
    """The seconds of the first, the median and the last call for a batch, and of all calls.

    The last call finds no further batch. The median is that of the calls between the two.
    """
    times, start = [], time.perf_counter()
    for _ in loader:
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
    times.append(time.perf_counter() - start)
    median = statistics.median(times[1:-1])
    return {"first": times[0], "median": median, "last": times[-1]}, sum(times)


def recorded_epoch(loader: Iterable, work: Callable) -> tuple[float, dict[str, list[Span]]]:
    """The seconds of an epoch with ``work(batch)``, and spans of loading and training by process.

    The spans are those of ``plotting.timeline``. A batch holds ``worker``, ``began`` and ``ended``
    for each image, as those of ``scripts/photo_files.py`` do.
    """
    tracks: dict[str, list[Span]] = {"main process": []}
    epoch_start = time.time()
    for batch in loader:
        start = time.time()
        work(batch)
        tracks["main process"].append((start - epoch_start, time.time() - start, "train", 0))
        (worker,) = set(batch["worker"].tolist())  # one worker loads a batch
        track = "main process" if worker < 0 else f"worker {worker}"
        began, ended = batch["began"].min().item(), batch["ended"].max().item()
        tracks.setdefault(track, []).append((began - epoch_start, ended - began, "load", 0))
    return time.time() - epoch_start, tracks


def write_pieces(folder: Path, count: int, size: int) -> tuple[Path, list[Path]]:
    """Write ``count`` random pieces of ``size`` bytes into one file, and each into its own."""
    data = os.urandom(count * size)
    one_file = folder / "one.bin"
    one_file.write_bytes(data)
    many_files = [folder / f"{number:03}.bin" for number in range(count)]
    for number, path in enumerate(many_files):
        path.write_bytes(data[number * size : (number + 1) * size])
    return one_file, many_files


def save_to_disk(paths: Iterable[Path]) -> None:
    """Wait until the data of these files are on the disk: Linux drops nothing else from memory."""

    def save(path: Path) -> None:
        with path.open("rb") as file:
            os.fsync(file.fileno())

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(save, paths))


def drop_from_cache(paths: Iterable[Path]) -> None:
    """Ask Linux to forget the data of these files, but not their names, so that it reads them.

    Call ``save_to_disk`` once after the files were written, and before this.
    """
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # all of it


def rank_traces(folder: Path, cases: Iterable[str], ranks: int = 2) -> pd.DataFrame:
    """The traces that ``scripts/train_ddp.py`` wrote: their events, with the ``case`` and ``rank``.

    The other columns are those of ``traces.chrome_trace``.
    """
    parts = [
        chrome_trace(folder / f"{case}, rank {rank}.json").assign(case=case, rank=f"rank {rank}")
        for case in cases
        for rank in range(ranks)
    ]
    return pd.concat(parts, ignore_index=True)


def all_reduces(trace: pd.DataFrame) -> pd.DataFrame:
    """The rows of gloo's all-reduces in a trace, with their ``bytes``: four per float32 element."""
    rows = trace[trace.name == "gloo:all_reduce"]
    elements = rows.args.map(lambda args: args["Input Dims"][0][0])
    return rows.assign(bytes=4 * elements)


def rank_tracks(trace: pd.DataFrame, names: list[str], count: int) -> dict[str, list[Span]]:
    """The first ``count`` events with these ``names`` in each rank's trace, for a timeline.

    ``trace`` has the columns of ``traces.chrome_trace``, and ``rank``. Each rank begins at 0,
    because the clocks of traces may differ. Events of the first name are the outermost.
    """
    tracks = {}
    for rank, rows in trace[trace.name.isin(names)].groupby("rank"):
        rows = rows.sort_values("ts", kind="stable")[:count]
        start = (rows.ts - rows.ts.min()) / 1e6
        spans = zip(start, rows.dur / 1e6, rows.name, strict=True)
        tracks[rank] = [(*span, int(span[2] != names[0])) for span in spans]
    return tracks


def in_ranks(work: Callable, *arguments: object, method: str, seconds: float = 20) -> None:
    """Run ``work(rank, *arguments)`` in two processes, and wait until both have ended.

    ``method`` is a start method, and ``work`` is a function of a module. No process outlives this
    call, not even if you interrupt it. Raises RuntimeError if a rank fails, or still runs after
    ``seconds``.
    """
    context = multiprocessing.get_context(method)
    ranks = [context.Process(target=work, args=(rank, *arguments)) for rank in range(2)]
    end = time.monotonic() + seconds
    try:
        for process in ranks:
            process.start()
        for process in ranks:
            process.join(max(0, end - time.monotonic()))
        codes = [process.exitcode for process in ranks]
    finally:
        for process in ranks:
            if process.pid is not None:
                process.kill()
                process.join()
    for rank, code in enumerate(codes):
        if code is None:
            raise RuntimeError(f"rank {rank} still ran after {seconds} seconds, and was ended")
        if code:
            raise RuntimeError(f"rank {rank} failed with exit code {code}; its error is above")


def waits_in(stack: str, file: str) -> str:
    """The innermost line of ``file`` in a stack that ``faulthandler`` wrote, without its indent.

    Raises ValueError if the stack has no line of this file.
    """
    found = re.search(rf'File "{re.escape(file)}", line (\d+)', stack)
    if found is None:
        raise ValueError(f"expected a stack with a line of {file}, but got {stack!r}")
    return linecache.getline(file, int(found[1])).strip()


def communication(operations: pd.DataFrame) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """When a GPU communicates and when it works: three lanes, as ``plotting.activity`` draws them.

    ``operations`` are the rows of a recording with the columns name, start_us and end_us, in
    microseconds; the names of NCCL's kernels begin with ``nccl``. NCCL is overlapped while another
    operation runs, and otherwise exposed. The results are in seconds.
    """
    nccl = operations.name.str.startswith("nccl")
    end = int(operations.end_us.max())
    communicates, works = (_busy(operations[rows], end) for rows in (nccl, ~nccl))
    return {
        "exposed NCCL": {"NCCL": _spans(communicates & ~works)},
        "overlapped NCCL": {"NCCL": _spans(communicates & works)},
        "other work": {"GPU operation": _spans(works)},
    }


def overlapped(lanes: dict[str, dict[str, list[tuple[float, float]]]]) -> float:
    """The fraction of NCCL's time that is overlapped, from the lanes of ``communication``."""
    exposed, overlapped = (
        sum(duration for _, duration in lanes[f"{kind} NCCL"]["NCCL"])
        for kind in ("exposed", "overlapped")
    )
    return overlapped / (exposed + overlapped)


def _busy(operations: pd.DataFrame, end: int) -> np.ndarray:
    """True in each microsecond before ``end`` in which any of the ``operations`` runs."""
    busy = np.zeros(end, bool)
    starts, ends = operations.start_us.astype(int), operations.end_us.astype(int)
    for start, stop in zip(starts, ends, strict=True):
        busy[start:stop] = True
    return busy


def _spans(busy: np.ndarray) -> list[tuple[float, float]]:
    """The (start, duration) in seconds of each stretch of microseconds that is True."""
    edges = np.flatnonzero(np.diff(busy, prepend=False, append=False)).reshape(-1, 2) / 1e6
    return [(start, stop - start) for start, stop in edges.tolist()]
