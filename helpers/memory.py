"""Memory as tools report it: over time, by line of a program, and by part of a training step."""

import inspect
import json
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from helpers import profiles, terminal

Curve = list[tuple[float, float]]


def python(*arguments: str | Path, **variables: str) -> str:
    """Run Python with these ``arguments`` in a separate process and return what it prints.

    It prints UTF-8 without colours, and NumPy's matrix multiplications use one thread. The
    ``variables`` are added to the environment.
    """
    variables |= {"NO_COLOR": "1", "PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"}
    return terminal.run(["python", *arguments], **variables).stdout


def through_python(*arguments: str | Path) -> str:
    """Like ``python``, but started by another, small Python process instead of this one."""
    start = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True)"
    return python("-c", start, *arguments)


def mprof_curve(file: Path) -> Curve:
    """What ``mprof run`` wrote into a file: (seconds since its first sample, bytes in memory)."""
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = [line.split()[1:] for line in lines if line.startswith("MEM")]
    start = float(rows[0][1])  # a row holds MiB and the seconds since 1970
    return [(float(time) - start, float(mib) * 2**20) for mib, time in rows]


def profiler_curve(trace: Path) -> Curve:
    """The memory that PyTorch used on the CPU in a ``trace`` of torch.profiler, above its start.

    The profile needs ``profile_memory=True``. The curve is a list of (seconds since the first
    event, bytes): the running sum of what was allocated and freed.
    """
    events = pd.DataFrame(json.loads(trace.read_text(encoding="utf-8"))["traceEvents"])
    events = events[events["name"] == "[memory]"]
    events = events[events["args"].map(lambda args: args["Device Type"] == 0)]
    events = events.sort_values("ts", kind="stable")
    live = events["args"].map(lambda args: args["Bytes"]).cumsum()
    return list(zip((events["ts"] - events["ts"].min()) / 1e6, live, strict=True))


def by_line(capture: Path, function: Callable, when: str = "peak") -> dict[str, int]:
    """A ``capture`` of memray by the lines of a ``function``, without its last: bytes.

    Counts what is allocated at the peak, or with ``when="left"`` at the end.
    """
    _, held = profiles.memray(capture, function.__code__.co_filename, when)
    lines, first = inspect.getsourcelines(function)
    sizes = {line.strip(): 0 for line in lines[1:-1]}
    for calls, size in held.items():  # the calls begin with the function and its line: "step:5"
        sizes[lines[int(calls[0].split(":")[1]) - first].strip()] += size
    return sizes


def increments(table: pd.DataFrame, lines: range) -> dict[str, float]:
    """How many bytes RSS rose in each of these ``lines``, by number and source.

    ``table`` is one of ``profiles.memory_profiler``. A fall is shown as 0.
    """
    rows = table.loc[table.index.isin(lines)]
    names = [f"{line}: {source.strip()}" for line, source in rows["source"].items()]
    return dict(zip(names, rows["Increment"].clip(lower=0).tolist(), strict=True))


def numbered(source: str, first: int, last: int) -> str:
    """The lines ``first`` to ``last`` of a program's source with their numbers; no empty ones."""
    lines = enumerate(source.splitlines()[first - 1 : last], first)
    return "\n".join(f"{number:3}  {line}" for number, line in lines if line)


def parts(snapshot: Mapping) -> dict[str, int]:
    """The parts of a step's memory, in bytes, from a snapshot of MemTracker of one device.

    What belongs to none of the four main parts is ``other``.
    """
    (sizes,) = snapshot.values()
    named = {getattr(kind, "name", kind): size for kind, size in sizes.items()}
    main = {
        "parameters": named["PARAM"],
        "gradients": named["GRAD"],
        "optimiser state": named["OPT"],
        "activations": named["ACT"],
    }
    return main | {"other": named["Total"] - sum(main.values())}


def by_batch(
    budgets: Mapping[int, Mapping[str, float]],
) -> dict[str, tuple[float, float]]:
    """Each part of a step's memory as (bytes for any batch, further bytes per image).

    ``budgets`` maps two batch sizes to the bytes of each part. It holds for batches whose peak
    comes at the same point of the step, so not for very small ones.
    """
    (few, small), (many, large) = budgets.items()
    slopes = {part: (large[part] - small[part]) / (many - few) for part in small}
    return {part: (small[part] - few * slope, slope) for part, slope in slopes.items()}


def largest_batch(parts_by_batch: Mapping[str, tuple[float, float]], limit: float) -> int:
    """How many images fit into ``limit`` bytes, from what ``by_batch`` returns."""
    fixed, per_image = (sum(column) for column in zip(*parts_by_batch.values(), strict=True))
    return int((limit - fixed) // per_image)


def gigabytes(size: float) -> str:
    """An exact ``size`` in bytes, as ``3.09 GB``."""
    return f"{size / 1e9:.2f} GB"


def highest(curve: Curve) -> float:
    """The most bytes of a curve."""
    return max(size for _, size in curve)


def messages(file: Path) -> pd.DataFrame:
    """A table of messages "CUDA out of memory", one row per message, with two parts computed.

    Its sizes are in GiB. ``outside PyTorch`` is what this process has in use and PyTorch has not
    reserved; ``other processes`` have the capacity without what is free or used by this process.
    """
    table = pd.read_csv(file)
    reserved = table["tensors"] + table["unused"]
    table["outside PyTorch"] = table["this process"] - reserved
    in_use = table["free"] + table["this process"]
    table["other processes"] = (table["capacity"] - in_use).clip(0)  # the sizes are rounded
    return table


def message_bars(table: pd.DataFrame, rows: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """The parts of a GPU's memory and the request, in GiB, as ``plotting.stacked_bars`` draws them.

    ``rows`` maps a name to a row of ``messages``.
    """
    parts = ["other processes", "outside PyTorch", "tensors", "unused", "free"]
    bars = {}
    for name, row in rows.items():
        message = table.iloc[row]
        bars[f"{name}: memory of the GPU"] = {part: message[part] for part in parts}
        bars[f"{name}: request"] = {"requested": message["requested"]}
    return bars


def enough(table: pd.DataFrame) -> pd.DataFrame:
    """By page: would free memory be enough for the request, with that of others or the unused?"""
    kinds = {"others": "other processes", "unused": "unused", "named others": "named others"}
    return pd.DataFrame(
        {
            f"free + {name}": table["free"] + table[column] >= table["requested"]
            for name, column in kinds.items()
        }
    ).set_index(table["page"])


def divided_by_requests(
    table: pd.DataFrame, named: Mapping[str, int]
) -> dict[str, dict[str, float]]:
    """Free memory with that of others, and with the unused, divided by the request of each message.

    The result has a row per page of ``messages``, such as ``name 7`` for ``owner/name/issues/7``;
    those that ``named`` maps a name to have it in parentheses.
    """
    names = {row: f" ({name})" for name, row in named.items()}
    rows = {}
    for row, message in table.iterrows():
        _, repository, _, number = message["page"].split("/")
        free, request = message["free"], message["requested"]
        rows[f"{repository} {number}{names.get(row, '')}"] = {
            "free + other processes": (free + message["other processes"]) / request,
            "free + unused": (free + message["unused"]) / request,
        }
    return rows


# The files of a stack that are not the program's own: Python's, and what is installed.
_LIBRARY = re.compile(r"[\\/](site-packages|dist-packages|python3\.\d+)[\\/]")
_BEFORE = -1  # the number of the event that allocated a block, if it was not recorded


class _PlainUnpickler(pickle.Unpickler):
    """Reads dicts, lists, strings and numbers only, because other pickles can run any program."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(f"it would import {module}.{name}")


def allocations(file: Path, device: int = 0) -> pd.DataFrame:
    """The blocks in a snapshot of a GPU's memory, one row per block, in the order of their events.

    The file is what ``torch.cuda.memory._dump_snapshot`` writes. Events that allocate or free a
    block are numbered from 0. Columns: ``bytes``, as requested; ``start``, the event that allocated
    the block, or -1 if it existed before the recording; ``end``, the event that freed it, or the
    number of events if it was not freed; ``stack``, the lines of the program's own Python code that
    led to it as "module.function:line", outermost first, joined by ";", empty if there are none.

    Raises a ValueError if the file is no snapshot, or holds no block of this ``device``.
    """
    segments, trace = _snapshot(file, device)
    events = [entry for entry in trace if entry["action"] in ("alloc", "free_completed")]
    rows, alive = [], {}  # alive: the row of each address
    for number, event in enumerate(events):
        if event["action"] == "alloc":
            alive[event["addr"]] = len(rows)
            rows.append([event["size"], number, len(events), _own_lines(event.get("frames", []))])
        elif event["addr"] in alive:
            rows[alive.pop(event["addr"])][2] = number
        else:
            rows.append([event["size"], _BEFORE, number, ""])
    for block in (block for segment in segments for block in segment["blocks"]):
        if block["state"].startswith("active") and block["address"] not in alive:
            stack = _own_lines(block.get("frames", []))
            rows.append([block["requested_size"], _BEFORE, len(events), stack])
    if not rows:
        raise ValueError(
            f"{Path(file).name} holds no block of device {device}: take it while tensors are on "
            "the GPU, and call torch.cuda.memory._record_memory_history before"
        )
    blocks = pd.DataFrame(rows, columns=["bytes", "start", "end", "stack"])
    return blocks.sort_values(["start", "end"], kind="stable", ignore_index=True)


def _snapshot(file: Path, device: int) -> tuple[list[dict], list[dict]]:
    """The segments and the trace of a ``device`` in a snapshot."""
    path = Path(file)
    try:
        with path.open("rb") as opened:
            snapshot = _PlainUnpickler(opened).load()
        segments, traces = snapshot["segments"], snapshot["device_traces"]
    except (pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path.name} is no snapshot of CUDA memory ({type(error).__name__}: {error}): give "
            "the file that torch.cuda.memory._dump_snapshot wrote"
        ) from error
    if not 0 <= device < len(traces):
        raise ValueError(f"{path.name} has {len(traces)} devices, and device {device} is not one")
    return [segment for segment in segments if segment["device"] == device], traces[device]


def _own_lines(frames: Sequence[Mapping]) -> str:
    """The Python lines of a stack that are not a library's, outermost first: "a.main:9;b.f:2"."""
    lines = []
    for frame in frames:
        *folders, file = re.split(r"[\\/]", frame["filename"])
        is_python = file.endswith(".py") or (file.startswith("<") and "<frozen" not in file)
        if is_python and not _LIBRARY.search(frame["filename"]):
            is_cell = bool(folders) and folders[-1].startswith("ipykernel_")
            module = "cell" if is_cell else file.removesuffix(".py")
            lines.append(f"{module}.{frame['name']}:{frame['line']}")
    return ";".join(reversed(lines))


def alive_at_peak(blocks: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``allocations`` that are alive when their sum is largest for the first time."""
    recorded = blocks[blocks["start"] > _BEFORE]
    changes = np.zeros(blocks["end"].max() + 1, dtype=int)
    np.add.at(changes, recorded["start"], recorded["bytes"])
    np.add.at(changes, blocks["end"], -blocks["bytes"])
    above_start = np.r_[0, np.cumsum(changes[:-1])]  # before the first event, and after each
    peak = np.argmax(above_start) - 1
    return blocks[(blocks["start"] <= peak) & (blocks["end"] > peak)]


def by_stack(blocks: pd.DataFrame) -> dict[tuple[str, ...], int]:
    """The bytes of the rows of ``allocations`` by their stacks, as ``plotting.icicle`` draws them.

    Blocks from before the recording, and others without a line of Python, have a name instead.
    """
    stacks = blocks["stack"].fillna("").replace("", "no Python line")
    stacks = stacks.mask(blocks["start"] == _BEFORE, "existed before")
    sizes = blocks["bytes"].groupby(stacks).sum().sort_values(ascending=False, kind="stable")
    return {tuple(stack.split(";")): int(size) for stack, size in sizes.items()}
