"""What happened when: Chrome traces of torch.profiler, and the command line of nsys."""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from torch.profiler import ProfilerAction

from helpers import recordings


def chrome_trace(path: Path | str) -> pd.DataFrame:
    """The events of a Chrome trace, ``.json`` or ``.json.gz``, in the order of their start.

    Columns: ``ph``, ``cat``, ``name``, ``pid``, ``tid``, ``args`` as in the file, and ``ts`` and
    ``dur``, start and duration in microseconds; ``ts`` is 0 where the first event with a duration
    starts. The categories of 2021's profiler get today's names. Raises a ValueError if the file is
    incomplete or not JSON, or holds no operator, no kernel, and no event under the names of 2021.
    """
    columns = ["ph", "cat", "name", "ts", "dur", "pid", "tid", "args"]
    rows = [[event.get(column) for column in columns] for event in recordings.read_events(path)]
    events = pd.DataFrame(rows, columns=columns)
    recordings.require_categories(Path(path).name, set(events.cat.dropna()), len(rows))
    events["cat"] = events.cat.replace(recordings.CATEGORIES)
    events["ts"] -= events.loc[events.ph == "X", "ts"].min()
    return events.sort_values("ts", kind="stable", ignore_index=True)


def spans(events: pd.DataFrame) -> list[tuple[float, float, str, int]]:
    """The events of one thread of a ``chrome_trace`` as spans for ``plotting.timeline``.

    A span is (start in s, duration in s, name, depth). An event within another one is one level
    deeper; events without a duration are left out.
    """
    nested, ends = [], []
    timed = events[events.ph == "X"].sort_values(["ts", "dur"], ascending=[True, False])
    for start, duration, name in zip(timed.ts, timed.dur, timed.name, strict=True):
        while ends and ends[-1] <= start:
            ends.pop()
        nested.append((start / 1e6, duration / 1e6, name, len(ends)))
        ends.append(start + duration)
    return nested


def intervals(
    events: pd.DataFrame, start: float = 0.0, length: float = math.inf
) -> list[tuple[float, float]]:
    """When the ``events`` ran, for ``plotting.activity``: (start, duration), in seconds.

    They count from ``start``. Events and window are in microseconds, and what is outside the window
    is cut off.
    """
    begins = events.ts.clip(lower=start)
    ends = (events.ts + events.dur).clip(upper=start + length)
    runs = ends > begins
    return list(zip((begins - start)[runs] / 1e6, (ends - begins)[runs] / 1e6, strict=True))


def operator_lanes(
    operators: pd.DataFrame, parts: pd.DataFrame
) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """For each part of a program, when an operator ran, as fractions of the part's time.

    ``operators`` are the events of one thread, and ``parts`` those of ranges in that thread, by
    name, both as in ``chrome_trace``. The result is for ``plotting.activity``.
    """
    rows = {}
    for name, part in parts.iterrows():
        inside = operators[operators.ts.between(part.ts, part.ts + part.dur)]
        outermost = [span[:2] for span in spans(inside) if span[3] == 0]
        start, length = part.ts / 1e6, part.dur / 1e6
        runs = [((begin - start) / length, seconds / length) for begin, seconds in outermost]
        rows[str(name)] = {"operator": runs}
    return rows


def schedule_rows(
    plan: Callable[[int], ProfilerAction], steps: int, places: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """What a ``schedule`` of torch.profiler does in each of the ``steps``, for ``plotting.strip``.

    ``places`` maps a place that events can reach to their names there, ``trace_name`` in PyTorch.
    A step is kept there if its range ``ProfilerStep#n`` is among them.
    """
    phases = {
        ProfilerAction.NONE: "wait",
        ProfilerAction.WARMUP: "warm-up",
        ProfilerAction.RECORD: "active",
        ProfilerAction.RECORD_AND_SAVE: "active",  # the last active step of a cycle
    }
    rows = {"schedule": [phases[plan(step)] for step in range(steps)]}
    for place, names in places.items():
        kept = [f"ProfilerStep#{step}" in names for step in range(steps)]
        rows[place] = ["kept" if is_kept else "" for is_kept in kept]
    return rows


def nsys_command(line: str) -> tuple[list[str], list[str]]:
    """The flags that ``nsys profile …`` gets, each with its value, and the program with its words.

    The first word that is neither a flag nor a flag's value is the program; everything after it
    belongs to the program. A word ``--`` before it is left out. A line may go on after a backslash
    at its end. Raises a ValueError if the word ``profile`` is missing.

    >>> nsys_command("nsys profile -t nvtx --stats=true python train.py -f true")
    (['-t nvtx', '--stats=true'], ['python', 'train.py', '-f', 'true'])
    >>> nsys_command("nsys profile -ftrue -t cuda python train.py")
    (['-ftrue', '-t cuda'], ['python', 'train.py'])
    >>> nsys_command("nsys profile -t cuda -- python train.py")
    (['-t cuda'], ['python', 'train.py'])
    """
    words = shlex.split(line.replace("\\\n", " "))
    if "profile" not in words:
        raise ValueError(f"line must hold the word profile, as in nsys profile …, not {line!r}")
    words, flags = words[words.index("profile") + 1 :], []
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        if flag == "--":
            break
        has_its_value = "=" in flag or (len(flag) > 2 and flag[1] != "-")
        flags.append(flag if has_its_value or not words else f"{flag} {words.pop(0)}")
    return flags, words
