"""Memory as tools report it: over time, by line of a program, and by part of a training step."""

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path

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

    ``budgets`` maps two batch sizes to the bytes of each part.
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
