"""A tool's file as data: a data frame, the spans of ``plotting.timeline``, or the stacks of
``plotting.icicle``. Each function reads one kind of file and says what its rows and columns are.
"""

import re
import shlex
from pathlib import Path

import pandas as pd


def nsys_command(line: str) -> tuple[list[str], list[str]]:
    """The flags that ``nsys profile …`` gets, each with its value, and the words from the program
    on. The first word that is no flag *is* the program; everything behind it is the program's.

    >>> nsys_command("nsys profile -t nvtx --stats=true python train.py -f true")
    (['-t nvtx', '--stats=true'], ['python', 'train.py', '-f', 'true'])
    """
    words = shlex.split(line)
    if "profile" not in words:
        raise ValueError(f"line must hold the word profile, as in nsys profile …, not {line!r}")
    words, flags = words[words.index("profile") + 1 :], []
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        flags.append(flag if "=" in flag or not words else f"{flag} {words.pop(0)}")
    return flags, words


def memory_profiler(text: str) -> pd.DataFrame:
    """The table that memory_profiler prints for one function, as rows by line number.

    ``Mem usage`` and ``Increment`` in bytes (the tool rounds them to thousandths of a MiB),
    ``Occurrences``, ``source``. Lines that never ran are left out.
    """
    pattern = r"^ *(\d+) +([\d.]+) MiB +(-?[\d.]+) MiB +(\d+) {3}(.*)$"
    rows = re.findall(pattern, text, re.M)
    if not rows:
        raise ValueError(f"text must hold a table of memory_profiler, but {text[:80]!r} came")
    columns = ["line", "Mem usage", "Increment", "Occurrences", "source"]
    table = pd.DataFrame(rows, columns=columns).astype({"line": int, "Occurrences": int})
    sizes = ["Mem usage", "Increment"]
    table[sizes] = table[sizes].astype(float) * 2**20
    return table.set_index("line")


def memray(capture: Path, file: str, when: str = "peak") -> tuple[int, dict[tuple[str, ...], int]]:
    """All bytes of a memray ``capture`` and, of those asked for beneath ``file``, the stacks.

    Alive at the high-water mark, or with ``when="left"`` at the end. A stack is the calls of that
    file alone, from the outside in, as ``("main:49", "convolve:39")``, without its module level.
    """
    from memray import FileReader  # there is none for Windows

    if when not in ("peak", "left"):
        raise ValueError(f"when must be 'peak' or 'left', but {when!r} came")
    whole, stacks = 0, {}
    with FileReader(str(capture)) as reader:
        left = reader.get_leaked_allocation_records
        peak = reader.get_high_watermark_allocation_records
        for record in (peak if when == "peak" else left)(merge_threads=True):
            whole += record.size
            frames = [(name, line) for name, path, line in record.stack_trace() if file in path]
            calls = tuple(f"{name}:{line}" for name, line in frames[::-1] if name != "<module>")
            if calls:
                stacks[calls] = stacks.get(calls, 0) + record.size
    return whole, dict(sorted(stacks.items()))
