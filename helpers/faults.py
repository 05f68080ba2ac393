"""The faults of ``notebooks/scripts/train_slow.py``: a catalogue, to take out or to put back.

A fault is a few lines of that program and the lines that replace them in the fast program. They do
not overlap, so a program may have any of them: ``source(["pixels", "copy"])`` has two.
"""

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

SLOW = Path(__file__).parent.parent / "notebooks" / "scripts" / "train_slow.py"


class Fault(NamedTuple):
    """One fault: what it is, the tool that shows it among its first three rows, and its lines."""

    what: str
    tool: str
    slow: str  # lines of the program, exactly as they appear there
    fast: str


FAULTS = {
    "pixels": Fault(
        what="a Python loop over the pixels",
        tool="line_profiler",
        slow="""\
    image = torch.empty(3, 32, 32, dtype=DTYPE)
    for y in range(32):
        for x in range(32):
            pixel = torch.from_numpy(pixels[y, x]) / 255
            image[:, y, x] = (pixel - mean) / deviation
    return image
""",
        fast="""\
    image = (torch.from_numpy(pixels) / 255 - mean) / deviation
    return image.permute(2, 0, 1)
""",
    ),
    "again": Fault(
        what="the pictures are read again in each epoch",
        tool="cProfile",
        slow="""\
    for _ in range(epochs):
        images = read(files)
""",
        fast="""\
    images = read(files)
    for _ in range(epochs):
""",
    ),
    "copy": Fault(
        what="all pictures are copied to take one",
        tool="torch.profiler",
        slow="""\
            places = range(start, start + len(chosen))
            batch = torch.cat([images[order][n : n + 1] for n in places])
""",
        fast="""\
            batch = images[chosen]
""",
    ),
    "float64": Fault(
        what="float64: twice the bytes of float32",
        tool="torch.profiler",
        slow="DTYPE = torch.float64  # as NumPy has it\n",
        fast="DTYPE = torch.float32\n",
    ),
    "layout": Fault(
        what="a layout with a slow routine for pooling",
        tool="torch.profiler",
        slow="LAYOUT = torch.contiguous_format\n",
        fast="LAYOUT = torch.channels_last\n",
    ),
    "graph": Fault(
        what="each step's graph is kept, with what it saved",
        tool="saved_tensors_hooks",
        slow="""\
    loss.backward(retain_graph=True)
    optimiser.step()
    return loss
""",
        fast="""\
    loss.backward()
    optimiser.step()
    return loss.detach()
""",
    ),
    "gradients": Fault(
        what="evaluation saves for a backward pass",
        tool="saved_tensors_hooks",
        slow="def evaluate(",
        fast="@torch.no_grad()\ndef evaluate(",
    ),
    "thread": Fault(
        what="one thread, whatever the number of cores",
        tool="parallel_info",
        slow="    torch.set_num_threads(1)\n",
        fast="",
    ),
    "log": Fault(
        what="every weight is logged",
        tool="cProfile",
        slow="""\
        for number in weights.flatten().tolist():
            print(f"{name} {number}", file=log)
""",
        fast="""\
        print(f"{name} {weights.detach().norm().item()}", file=log)
""",
    ),
}


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
