"""Run a profiler that may be missing, not permitted or unlucky, and read what it reports."""

import json
import os
import pstats
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pandas import DataFrame, Series

from helpers import profiles, terminal, traces

if TYPE_CHECKING:
    import torch

# What Python 3.15's sampling profiler reported elsewhere, for readers with an older Python.
RECORDING = Path(__file__).parents[1] / "assets" / "recordings" / "tachyon.json"
SAMPLING = " -m profiling.sampling "
PARTS = ("one", "two", "three", "calls", "native")  # of known_split.py


def record(command: str, folder: Path) -> tuple[Path | None, str]:
    """Run a profiler's ``command`` in ``folder``; return its profile, and what the program prints.

    The profile is the file after ``-o``, or None where pyinstrument is not installed (it has no
    wheel for Python 3.15), where Python is older than its ``profiling.sampling``, or where Scalene,
    py-spy or ``profiling.sampling`` ends with an error: for example, it is not installed, or not
    permitted. Scalene runs again, at most twice, if the program fails or the profile is empty:
    before Python 3.12 its signal can break an import (CPython issue 91351).
    """
    if " -m pyinstrument " in command and find_spec("pyinstrument") is None:
        return None, ""
    is_sampling = SAMPLING in command
    if is_sampling and sys.version_info < (3, 15):
        return None, ""
    profile = Path(folder, re.search(r"-o (\S+)", command)[1])
    if is_sampling:  # the files of an earlier run would be read, too
        for old in [profile, *profiles.collapsed_children(profile)]:
            old.unlink(missing_ok=True)
    is_scalene = " scalene " in command
    settings = {}
    if is_scalene:
        # Scalene would set these variables, one to its default, and then start Python once more.
        settings["SCALENE_ALLOCATION_SAMPLING_WINDOW"] = str(2**20)
        if " --memory" in command and sys.platform == "linux":
            settings |= _settings_for_memory()
        program = Path(folder, re.search(r"\S+\.py\b", command)[0])
        if not re.search(r"\b(torch|helpers)\b", program.read_text(encoding="utf-8")):
            settings["PYTHONPATH"] = _folder_without_torch(folder)
    goes = 3 if is_scalene else 1
    for _ in range(goes):
        try:
            printed = terminal.run(command, folder, **settings).stdout
            if is_sampling and not profile.exists():  # it found no stack
                return None, ""
            if not is_scalene or "files" in json.loads(profile.read_text(encoding="utf-8")):
                return profile, printed
        except (OSError, subprocess.CalledProcessError):
            if not is_scalene and not is_sampling and not command.startswith("py-spy"):
                raise
    return None, ""


def recorded(name: str, folder: Path) -> Path:
    """Write a profile of ``profiling.sampling`` from RECORDING to ``folder``, and return its path.

    The profiles of child processes are written, too. Raises a KeyError for any other ``name``.
    """
    found = json.loads(RECORDING.read_text(encoding="utf-8"))["profiles"]
    path = Path(folder, name)
    path.write_text("\n".join(found[name]), encoding="utf-8")
    for other, stacks in found.items():
        if re.fullmatch(rf"{re.escape(path.stem)}_\d+{re.escape(path.suffix)}", other):
            Path(folder, other).write_text("\n".join(stacks), encoding="utf-8")
    return path


def recorded_share_of_calls(folder: Path) -> tuple[float, Series]:
    """What ``shares_of_calls`` found for ``profiling.sampling``, on the computer of RECORDING."""
    printed = json.loads(RECORDING.read_text(encoding="utf-8"))["printed"]
    without = _own_times(printed["without a profiler"])
    row = _tested(recorded("split.collapsed", folder), printed["with profiling.sampling"])
    row["slowdown"] = row.pop("round") / min(without["calls"])
    return _share(_sums(without)), Series(row)


def _settings_for_memory() -> dict[str, str]:
    """The variables with which Linux loads Scalene's library: none if some of them are set."""
    scalene = find_spec("scalene")
    if scalene is None or {"LD_LIBRARY_PATH", "LD_PRELOAD"} & set(os.environ):
        return {}
    return {"LD_LIBRARY_PATH": str(Path(scalene.origin).parent), "LD_PRELOAD": "libscalene.so"}


def _folder_without_torch(folder: Path) -> str:
    """A folder that hides torch from Scalene, which would import it in vain, and the program."""
    hiding = Path(folder, "without_torch").resolve()
    hiding.mkdir(exist_ok=True)
    (hiding / "torch.py").write_text("raise ImportError", encoding="utf-8")
    return str(hiding)


def shares_of_calls(commands: Mapping[str, str], folder: Path) -> tuple[float, DataFrame]:
    """Test profilers on ``known_split.py``, which prints how long its functions take.

    After each of the ``commands``, which map a profiler to what runs it, the script runs in
    ``folder`` without a profiler. Returns the share of ``calls`` in these runs, and a row for each
    profiler that ran. Columns: ``reported``, the share of ``calls`` in the profile; ``profiled``,
    its share in the profiled run by the script's own clock; ``slowdown`` of its shortest round;
    ``samples``, how many a sampling profiler took, except pyinstrument.
    """
    without: dict[str, list[float]] = {part: [] for part in PARTS}
    rows = {}
    for profiler, command in commands.items():
        profile, printed = record(command, folder)
        if profile is None:
            continue
        rows[profiler] = _tested(profile, printed)
        plain = terminal.run("python known_split.py --rounds 2", folder).stdout
        for part, seconds in _own_times(plain).items():
            without[part] += seconds
    table = DataFrame.from_dict(rows, orient="index")
    table["slowdown"] = table.pop("round") / min(without["calls"])
    columns = ["reported", "profiled", "slowdown", "samples"]
    return _share(_sums(without)), table.reindex(columns=columns)


def _tested(profile: Path, printed: str) -> dict[str, float]:
    """A row of ``shares_of_calls``, with the seconds of the shortest ``round``."""
    in_profile = profiles.times_by_function(profile)
    if profile.suffix == ".json":  # Scalene's time of calls() excludes low_bits()
        in_profile["calls"] += in_profile["low_bits"]
    times = _own_times(printed)
    row = {"reported": _share(in_profile), "profiled": _share(_sums(times))}
    if profile.suffix in (".raw", ".collapsed", ".json"):
        row["samples"] = profiles.samples_of(profile)
    return row | {"round": min(times["calls"])}


def _own_times(printed: str) -> dict[str, list[float]]:
    return json.loads(re.search(r"\{.*\}", printed)[0])


def _sums(times: Mapping[str, list[float]]) -> dict[str, float]:
    return {part: sum(seconds) for part, seconds in times.items()}


def _share(seconds: Mapping[str, float]) -> float:
    return seconds["calls"] / sum(seconds[part] for part in PARTS)


def times_by_function(commands: Mapping[str, str], folder: Path) -> dict[str, dict[str, float]]:
    """Run each profiler's command in ``folder``: the time of each function in its profile.

    Each profiler has its own unit, see ``profiles.times_by_function``. Those that did not run are
    missing.
    """
    recorded = {profiler: record(command, folder)[0] for profiler, command in commands.items()}
    return {name: profiles.times_by_function(path) for name, path in recorded.items() if path}


def compared_with(
    reference: str, times: Mapping[str, Mapping[str, float]], functions: Iterable[str]
) -> DataFrame:
    """The times of ``functions`` divided by that of ``reference``, a row for each profiler.

    ``times`` maps a profiler to the time of each function, in whatever unit it reports.
    """
    ratios = {
        profiler: {name: reported.get(name, 0) / reported[reference] for name in functions}
        for profiler, reported in times.items()
    }
    return DataFrame.from_dict(ratios, orient="index")


def samples_by_line(path: Path | None, function: str) -> Series:
    """How many samples of py-spy's ``.raw`` file are at each line of ``function``.

    Indexed by the number of the line in its file. Empty without a file.
    """
    samples: dict[int, int] = {}
    raw = path.read_text(encoding="utf-8") if path else ""
    for stack, count in profiles.folded_stacks(raw).items():
        for frame in stack:  # for example "train_step (script.py:12)"
            if match := re.match(rf"{function} \(.*:(\d+)\)", frame):
                line = int(match[1])
                samples[line] = samples.get(line, 0) + count
    return Series(samples, dtype=int)


def share_of_callees(stats: pstats.Stats, caller: str) -> DataFrame:
    """What the functions called by ``caller`` take of its time, in a profile of cProfile.

    Indexed by the callee. Columns: ``ncalls``, and ``share``, from 0 to 1.
    """
    calls = profiles.call_rows(stats).query("caller == @caller").set_index("callee")
    whole = profiles.function_rows(stats).cumtime[caller]
    return DataFrame({"ncalls": calls.ncalls, "share": calls.cumtime / whole})


def calls_out_of(stats: pstats.Stats, module: str) -> DataFrame:
    """The calls from functions of a ``module`` to functions that it does not define.

    Rows and columns of ``profiles.call_rows``, and ``label``, the call in words.
    """
    calls = profiles.call_rows(stats)
    inside = calls[["caller", "callee"]].apply(lambda names: names.str.startswith(f"{module}."))
    found = calls[inside.caller & ~inside.callee]
    count = found.ncalls.map("{:,} calls".format)
    callers, callees = (found[column].str.split(".").str[-1] for column in ("caller", "callee"))
    return found.assign(label=callees + " in " + callers + ", " + count)


def peak_bytes(prof: "torch.profiler.profile") -> int:
    """The most bytes that PyTorch had requested and not freed on the CPU during a profile.

    Of a profile with ``profile_memory=True``, counted from where it begins.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        prof.export_chrome_trace(str(file))
        events = traces.chrome_trace(file)
    changes = events.loc[events["name"] == "[memory]", "args"]
    return int(Series([a["Bytes"] for a in changes if a["Device Type"] == 0]).cumsum().max())


def outermost_operators(prof: "torch.profiler.profile", rounds: int) -> DataFrame:
    """The operators that Python called directly: ``calls``, and ``time`` as a fraction of all.

    The profile holds equal ``rounds``, and the shortest time of each call counts.
    """
    found = [
        (event.name.removeprefix("aten::"), event.cpu_time_total)
        for event in prof.events()
        if event.cpu_parent is None and event.name.startswith("aten::")
    ]
    table = DataFrame(found, columns=["operator", "time"])
    first_round = table[: len(table) // rounds]  # each round has the same rows
    shortest = table.groupby(table.index % len(first_round))["time"].min()
    fractions = first_round.assign(time=shortest / shortest.sum())
    return fractions.groupby("operator")["time"].agg(calls="size", time="sum")


def operators_by_dtype(prof: "torch.profiler.profile") -> DataFrame:
    """Each operator's own time (``sum``, in seconds) and calls (``count``).

    Indexed by the operator and the first dtype of its inputs, which a profile with
    ``record_shapes=True`` holds.
    """
    rows = []
    for event in prof.events():
        dtypes = [name for name in event.input_dtypes if name]
        if dtypes:
            rows.append((event.name, dtypes[0], event.self_cpu_time_total / 1e6))
    table = DataFrame(rows, columns=["operator", "dtype", "seconds"])
    return table.groupby(["operator", "dtype"]).seconds.agg(["sum", "count"])
