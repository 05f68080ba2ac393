"""The faults of ``notebooks/scripts/train_slow.py``, to take out or to put back.

A fault is a few lines of that program and the lines that replace them in the fast program, as
``faults.toml`` lists them. They do not overlap, so a program may have any of them:
``source(["pixels", "copy"])`` has two.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

SLOW = Path(__file__).parent.parent / "notebooks" / "scripts" / "train_slow.py"


class Fault(NamedTuple):
    """One fault: what it is, a tool that shows it, and its lines."""

    what: str
    tool: str
    slow: str  # lines of the program, exactly as they appear there
    fast: str


CATALOGUE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FAULTS = {name: Fault(**fault) for name, fault in CATALOGUE.items()}


def source(names: Iterable[str]) -> str:
    """The text of the program with these faults and without the others."""
    names = set(names)
    if unknown := names - set(FAULTS):
        raise ValueError(f"names must be of {', '.join(FAULTS)}, but {sorted(unknown)} came")
    text = SLOW.read_text(encoding="utf-8")
    for name, fault in FAULTS.items():
        if text.count(fault.slow) != 1:
            raise ValueError(f"{SLOW.name} must hold the fault {name!r} once")
        if name not in names:
            text = text.replace(fault.slow, fault.fast)
    return text


def load(names: Iterable[str], path: Path) -> ModuleType:
    """The program with these faults, written to ``path``, as a module: call its ``train``."""
    text = source(names)
    path.write_text(text, encoding="utf-8", newline="\n")
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    # Not by an import, which may take the cached bytecode of another program of the same size.
    exec(compile(text, path, "exec"), module.__dict__)
    return module
