"""A tool's file as data: a data frame, the spans of ``plotting.timeline``, or the stacks of
``plotting.icicle``. Each function reads one kind of file and says what its rows and columns are.
"""

import re
from linecache import getlines
from pathlib import Path
from pstats import Stats
from typing import TYPE_CHECKING

from pandas import DataFrame

if TYPE_CHECKING:
    from line_profiler import LineStats


def profile_rows(stats: Stats) -> DataFrame:
    """A profile of cProfile, one row a function (``workloads.forward``, ``torch.conv2d``).

    Columns: ncalls; primitive, the calls that came from outside the function itself; tottime and
    cumtime, in seconds.
    """
    rows = [
        (_label(function), ncalls, primitive, tottime, cumtime)
        for function, (primitive, ncalls, tottime, cumtime, _) in stats.stats.items()
    ]
    columns = ["function", "ncalls", "primitive", "tottime", "cumtime"]
    return DataFrame(rows, columns=columns).set_index("function")


def profile_calls(stats: Stats) -> DataFrame:
    """Who called whom, one row a pair: caller, callee, ncalls, and cumtime of those calls."""
    rows = [
        (_label(caller), _label(callee), ncalls, cumtime)
        for callee, (*_, callers) in stats.stats.items()
        for caller, (ncalls, _, _, cumtime) in callers.items()
    ]
    return DataFrame(rows, columns=["caller", "callee", "ncalls", "cumtime"])


def profile_stacks(stats: Stats, root: str, least: float = 0.01) -> dict[tuple[str, ...], float]:
    """The pairs unfolded from ``root`` downwards: own seconds by path, for ``plotting.icicle``.

    A profile does not say to which of its callers a function's callees belong, so their time is
    divided in proportion. A path ends at a recursion, or below ``least`` of the root's time.
    """
    callees: dict = {}
    for callee, (*_, callers) in stats.stats.items():
        for caller, (*_, cumtime) in callers.items():
            callees.setdefault(caller, {})[callee] = cumtime
    roots = [function for function in stats.stats if _label(function) == root]
    if len(roots) != 1:
        raise ValueError(f"root must name one function, but {root!r} names {len(roots)}")
    smallest = least * stats.stats[roots[0]][3]
    stacks: dict[tuple[str, ...], float] = {}

    def unfold(function: tuple, share: float, above: tuple) -> None:
        _, _, own, whole, _ = stats.stats[function]
        path = (*above, function)
        cut = share * whole < smallest
        names = tuple(map(_label, path))
        stacks[names] = stacks.get(names, 0.0) + share * (whole if cut else own)
        for callee, cumtime in sorted(callees.get(function, {}).items()) if not cut else ():
            if callee not in path and stats.stats[callee][3] > 0:
                unfold(callee, share * cumtime / stats.stats[callee][3], path)

    unfold(roots[0], 1.0, ())
    return stacks


def line_rows(stats: "LineStats", folder: Path | str = ".") -> DataFrame:
    """A profile of line_profiler, one row a line: function, line, hits, seconds, code.

    ``folder`` is where the profiled program was started: the name of its file may begin there.
    """
    rows = []
    for (file, _, function), lines in stats.timings.items():
        path = Path(folder, file)
        source = path.read_text("utf-8").splitlines() if path.exists() else getlines(file)
        for line, hits, ticks in lines:
            code = source[line - 1].strip() if source else ""
            rows.append((function, line, hits, ticks * stats.unit, code))
    return DataFrame(rows, columns=["function", "line", "hits", "seconds", "code"])


def import_times(listing: str) -> DataFrame:
    """What ``python -X importtime`` printed: module, depth, own and cumulative, in seconds.

    A module stands after those that it imported itself.
    """
    line = re.compile(r"^import time: +(\d+) \| +(\d+) \| ( *)(\S+)$", re.M)
    rows = [
        (module, len(indent) // 2, int(own) / 1e6, int(cumulative) / 1e6)
        for own, cumulative, indent, module in line.findall(listing)
    ]
    return DataFrame(rows, columns=["module", "depth", "own", "cumulative"])


def _label(function: tuple[str, int, str]) -> str:
    """``module.name`` of a Python function, the name of one in C."""
    file, line, name = function
    if line == 0:  # such as <built-in method torch.relu>, <method 'item' of … objects>
        words = name.strip("<>").replace("'", "").split()
        return next((word for word in words if word not in ("built-in", "method")), name)
    path = Path(file)
    package = path.parent.name if path.stem == "__init__" else ""  # gone after strip_dirs
    return f"{package or path.stem}.{name}"
