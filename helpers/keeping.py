"""What the exercises on performance tests use: programs to count, and histories of commits.

A small training program is drawn, and each change gives another text of some of its lines. A change
of a kind other than "harmless" makes the program do more, mainly in the way that its kind names,
and the counts of the other kinds do not show it.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch

from helpers.compiling import sentence
from helpers.exercises import answer, expect, fits

LIMIT = 0.01  # a count above the base's by more than this fraction raises an alarm

PROGRAM = """import numpy as np
import torch
import torch.nn.functional as F

ROWS, COLUMNS, HIDDEN, BATCH = {rows}, {columns}, {hidden}, {batch}
DTYPE, SIZE = torch.float32, BATCH
torch.manual_seed(0)
FEATURES = torch.randn(ROWS, COLUMNS).to(DTYPE)
PROJECTION = torch.randn(COLUMNS, HIDDEN).to(DTYPE)
HELD_OUT = torch.randn(ROWS, COLUMNS).to(DTYPE)
SCORES = torch.randn(COLUMNS, HIDDEN).to(DTYPE)
CLASSES = torch.arange(ROWS) % 4
LABELS, WEIGHTS = CLASSES.tolist(), np.arange(ROWS) % 7

def step(weights, features, classes):
    hidden = torch.empty(SIZE, HIDDEN, dtype=DTYPE)[:BATCH]
    torch.mm(features, PROJECTION, out=hidden)
    loss = F.cross_entropy(hidden @ weights, classes)
    (gradient,) = torch.autograd.grad(loss, [weights])
    weights.detach().sub_(gradient, alpha=0.001)
    return loss.item()

def work():
    weights = torch.zeros(HIDDEN, 4, dtype=DTYPE, requires_grad=True)
    losses = []
    for start in range(0, ROWS, BATCH):
        rows = slice(start, start + BATCH)
        losses.append(step(weights, FEATURES[rows], CLASSES[rows]))
    numbers = np.bincount(LABELS).tolist()
    total = WEIGHTS.sum()
    return [*losses, *numbers, total, (HELD_OUT @ SCORES).mean().item()]
"""


class Change(NamedTuple):
    """A change of the program: its kind, what it does, and lines with those that replace them."""

    kind: str
    what: str
    old: str
    new: str


PADDED = """{0} = F.pad(torch.randn(ROWS, COLUMNS), (0, COLUMNS)).to(DTYPE)
{1} = F.pad(torch.randn(COLUMNS, HIDDEN), (0, 0, 0, COLUMNS)).to(DTYPE)
"""
PLAIN = """{0} = torch.randn(ROWS, COLUMNS).to(DTYPE)
{1} = torch.randn(COLUMNS, HIDDEN).to(DTYPE)
"""
CHANGES = {
    "features": Change(
        "arithmetic",
        "columns of zeros are added to the features",
        PLAIN.format("FEATURES", "PROJECTION"),
        PADDED.format("FEATURES", "PROJECTION"),
    ),
    "held-out": Change(
        "arithmetic",
        "columns of zeros are added to the held-out rows",
        PLAIN.format("HELD_OUT", "SCORES"),
        PADDED.format("HELD_OUT", "SCORES"),
    ),
    "views": Change(
        "operators",
        "each step adds an axis and removes it again",
        "F.cross_entropy(hidden @ weights, classes)",
        "F.cross_entropy(hidden[None].squeeze(0) @ weights, classes)",
    ),
    "clamp": Change(
        "operators",
        "each step limits the weights",
        "sub_(gradient, alpha=0.001)",
        "sub_(gradient, alpha=0.001).clamp_(-99, 99)",
    ),
    "detach": Change(
        "operators",
        "each loss is detached before its value is read",
        "return loss.item()",
        "return loss.detach().item()",
    ),
    "labels": Change(
        "Python",
        "a loop counts the labels",
        "    numbers = np.bincount(LABELS).tolist()\n",
        "    numbers = [0, 0, 0, 0]\n    for label in LABELS:\n        numbers[label] += 1\n",
    ),
    "weights": Change(
        "Python",
        "a loop adds the elements of an array",
        "    total = WEIGHTS.sum()\n",
        "    total = 0\n    for weight in WEIGHTS:\n        total += weight\n",
    ),
    "double": Change(
        "bytes",
        "the tensors are in double precision",
        "DTYPE, SIZE = torch.float32, BATCH",
        "DTYPE, SIZE = torch.float64, BATCH",
    ),
    "buffer": Change(
        "bytes",
        "the buffer of each step has a row for each row of the data",
        "DTYPE, SIZE = torch.float32, BATCH",
        "DTYPE, SIZE = torch.float32, ROWS",
    ),
    "name": Change("harmless", "a variable has another name", "hidden", "activations"),
    "shape": Change(
        "harmless",
        "a shape is written as a tuple",
        "torch.empty(SIZE, HIDDEN, dtype=DTYPE)",
        "torch.empty((SIZE, HIDDEN), dtype=DTYPE)",
    ),
    "order": Change(
        "harmless",
        "two statements are interchanged",
        "    numbers = np.bincount(LABELS).tolist()\n    total = WEIGHTS.sum()\n",
        "    total = WEIGHTS.sum()\n    numbers = np.bincount(LABELS).tolist()\n",
    ),
}


def program(rng: random.Random) -> str:
    """The text of a program whose function ``work()`` trains on drawn numbers of rows."""
    batch = rng.randrange(8, 17)
    sizes = {"rows": batch * rng.randrange(18, 25), "batch": batch}
    sizes |= {"columns": rng.randrange(40, 90), "hidden": rng.randrange(24, 48)}
    return PROGRAM.format(**sizes)


def changed(text: str, name: str) -> str:
    """The program with the change ``name`` of ``CHANGES``."""
    change = CHANGES[name]
    if change.old not in text:
        raise ValueError(f"the program must have the lines that the change {name!r} replaces")
    return text.replace(change.old, change.new)


def one_of_each(rng: random.Random) -> list[str]:
    """The names of three changes: more arithmetic, more operators, and more Python."""
    kinds = ["arithmetic", "operators", "Python"]
    return [rng.choice([n for n, c in CHANGES.items() if c.kind == kind]) for kind in kinds]


def count_programs(text: str, programs: Sequence[str], waits: Sequence[float]) -> list:
    """What the function ``counts`` of ``text`` returns for the ``work`` of each program.

    Each ``work`` first waits for so many seconds. It is called once before it is counted, and the
    first result of ``counts`` is dropped, because first calls may do more. What is returned is
    [results, errors]: after an error, which is a sentence, there are no results.
    """
    try:
        names = {"torch": torch}
        exec(text, names)
        counts, results = names["counts"], []
        counts(loaded(programs[0]))
        for each, seconds in zip(programs, waits, strict=True):
            work = waiting(loaded(each), seconds)
            work()
            results.append(counts(work))
    except Exception as error:
        return [[], [sentence(error)]]
    return [results, []]


def check_alarms(count: Callable[..., list], text: str, program: str, names: Sequence[str]) -> None:
    """Raise a WrongAnswer if the counts of ``text`` miss a regression or raise a false alarm.

    They are tried on the program, on the program while the computer is busy, and on the changes
    ``names`` of it. ``count`` is ``count_programs``, wherever it runs.
    """
    programs = [program, program, *(changed(program, name) for name in names)]
    results, errors = count(text, programs, [0, 0.2, *(0 for _ in names)])
    if errors:  # without a tick otherwise, because an empty function makes no errors
        expect("errors of counts", errors, [])
    results = [answer("what counts returns", result, {str: float}) for result in results]
    base, busy, *others = results
    for name, result in zip(names, others, strict=True):
        what, alarms = CHANGES[name].what, raised(base, result)
        if CHANGES[name].kind == "harmless":
            expect(f"alarms where {what}", alarms, [])
        else:
            enough = len(alarms) > 0
            fits(f"the number of alarms where {what}", len(alarms), "at least 1", enough)
    expect("alarms where the computer is busy", raised(base, busy), [])


def loaded(text: str) -> Callable[[], list]:
    """The function ``work`` of a program."""
    names: dict[str, object] = {"__name__": "program"}
    exec(compile(text, "program", "exec"), names)
    return names["work"]


def waiting(work: Callable[[], list], seconds: float) -> Callable[[], list]:
    """``work`` on a computer that does something else first, for so many seconds."""

    def call() -> list:
        time.sleep(seconds)
        return work()

    return call


def history(rng: random.Random, disturbed: int = 0) -> tuple[list[float], int]:
    """The ratios of 200 commits, and the number of the commit with the step, from 0.

    Each ratio is the time of a commit, divided by that of the last release in the same job. From
    the step on, the ratios are 0.03 to 0.04 higher, and they drift by 0.0003 to 0.0006 per commit,
    up or down. So many ``disturbed`` commits were measured while the computer was busy: their
    ratios are 0.2 to 0.6 too high. At least five other commits are between any two of them. A
    ValueError says if there is no room for so many.
    """
    if not 0 <= disturbed <= 34:
        raise ValueError(f"disturbed must be a number from 0 to 34, but got {disturbed}")
    step, size = rng.randrange(30, 171), rng.uniform(0.03, 0.04)
    drift = rng.choice([-1, 1]) * rng.uniform(0.0003, 0.0006)
    ratios = []
    for commit in range(200):
        slower = size if commit >= step else 0.0
        ratios.append(1 + drift * commit + slower + rng.gauss(0, 0.006))
    # Places in a shorter history, to which five commits are added after each disturbed one.
    places = sorted(rng.sample(range(205 - 5 * disturbed), disturbed))
    for number, place in enumerate(places):
        ratios[place + 5 * number] += rng.uniform(0.2, 0.6)
    return [round(ratio, 4) for ratio in ratios], step


def raised(base: Mapping[str, float], new: Mapping[str, float]) -> list[str]:
    """The names of the counts that are more than 1 % higher in ``new``: each raises an alarm."""
    return [name for name in base if new.get(name, 0) > (1 + LIMIT) * base[name]]
