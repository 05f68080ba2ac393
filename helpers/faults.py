"""The faults of ``notebooks/scripts/train_slow.py``, to take out or to put back.

A fault is a few lines of that program and the lines that replace them in the fast program, as
``faults.toml`` lists them. They do not overlap, so a program may have any of them:
``source(["pixels", "copy"])`` has two. ``more_faults.toml`` lists faults that the program does not
have, and which ``source`` can add.

It can also add one change of the other catalogues, with none of the others in the same lines: a
regression, or a harmless change, which does not make the program slower. The counts of lesson 17
were chosen with ``regressions.toml`` and ``harmless.toml``, and are tried on the two catalogues
whose names begin with ``unseen``, because their author did not know the counts.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

SLOW = Path(__file__).parent.parent / "notebooks" / "scripts" / "train_slow.py"


class Fault(NamedTuple):
    """One fault: what it is, its lines, and a tool that shows it, if one is named."""

    what: str
    slow: str  # its lines with the fault
    fast: str
    tool: str = ""


def _catalogue(name: str) -> dict[str, Fault]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return {name: Fault(**fault) for name, fault in tomllib.loads(text).items()}


FAULTS, MORE = _catalogue("faults.toml"), _catalogue("more_faults.toml")
REGRESSIONS = _catalogue("regressions.toml")
HARMLESS = _catalogue("harmless.toml")
UNSEEN_REGRESSIONS = _catalogue("unseen_regressions.toml")
UNSEEN_HARMLESS = _catalogue("unseen_harmless.toml")
CHANGES = REGRESSIONS | HARMLESS | UNSEEN_REGRESSIONS | UNSEEN_HARMLESS


def source(names: Iterable[str]) -> str:
    """The text of the program with these faults and without the others."""
    names = set(names)
    if unknown := names - set(FAULTS | MORE | CHANGES):
        known = ", ".join(FAULTS | MORE | CHANGES)
        raise ValueError(f"names must be of {known}, but got {sorted(unknown)}")
    text = SLOW.read_text(encoding="utf-8")
    for name, fault in FAULTS.items():
        if text.count(fault.slow) != 1:
            raise ValueError(f"{SLOW.name} must hold the fault {name!r} once")
        if name not in names:
            text = text.replace(fault.slow, fault.fast)
    for name, fault in MORE.items():
        if text.count(fault.fast) != 1:
            raise ValueError(f"{SLOW.name} must have one place for the fault {name!r}")
        if name in names:
            text = text.replace(fault.fast, fault.slow)
    for name in names & set(CHANGES):
        if text.count(CHANGES[name].fast) != 1:
            raise ValueError(f"{SLOW.name} must have one place for the change {name!r}")
        text = text.replace(CHANGES[name].fast, CHANGES[name].slow)
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
