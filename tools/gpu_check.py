"""Run the lessons' cells for GPUs on a real one, and write what they did to one small file.

    python -m tools.gpu_check     writes reports/gpu-check.json

Each lesson's cells for GPUs run twice, in a new kernel, after the cells that they need. The file
has the GPU, the versions, and for each of these cells what it printed, with its claims and errors.
It has no picture, and no path that names a person.
"""

import json
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import torch
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from helpers import machine
from tools import notebooks, refresh, rules

REPORT = notebooks.ROOT / "reports" / "gpu-check.json"
LONGEST = 2000  # characters of what a cell printed
SECONDS = 600  # for a cell


def for_gpus(cell: NotebookNode) -> bool:
    """Whether a cell does one thing with a GPU and another without."""
    asks = r"^if (torch\.cuda\.is_available\(\)|cuda)( and .*)?:"
    return cell.cell_type == "code" and bool(re.search(asks, cell.source, re.M))


def lessons() -> list[Path]:
    """The notebooks that have a cell for GPUs."""
    paths = [path for path in notebooks.all_of_them() if "cuda" in path.read_text("utf-8")]
    return [path for path in paths if any(map(for_gpus, _cells(path)))]


def gpu_part(lesson: NotebookNode) -> NotebookNode:
    """A lesson's cells for GPUs, after the cells that bind what they read.

    It ends with the cells for GPUs once more, as a reader runs them.
    """
    part, needed = [], set()
    for cell in reversed([cell for cell in lesson.cells if cell.cell_type == "code"]):
        tree = rules.parsed(cell)
        bound = rules.symbols(tree)[1]
        if for_gpus(cell) or bound & needed:
            part.insert(0, cell)
            needed = needed - bound | rules.read_first(tree.body, set())
    again = [
        nbformat.from_dict(cell | {"id": f"{cell.id}-again"}) for cell in part if for_gpus(cell)
    ]
    return nbformat.from_dict(lesson | {"cells": [*part, *again]})


def check(path: Path) -> dict:
    """What a lesson's cells for GPUs printed, and the errors of all cells that ran, by cell."""
    start, result = time.perf_counter(), {"cells": {}}
    part = gpu_part(notebooks.read(path))
    try:
        part = refresh.execute(part, path.parent, failing=True, timeout=SECONDS)
    except (CellTimeoutError, DeadKernelError) as error:
        result["error"] = without_paths(str(error))[-LONGEST:]
        return result
    for cell in part.cells:
        errors = [out for out in cell.outputs if out.output_type == "error"]
        if for_gpus(cell) or errors:
            shown = "".join(
                out.get("text") or f"{out.get('data', {}).get('text/plain', '')}\n"
                for out in cell.outputs
            )
            failed = [f"{out.ename}: {out.evalue}" for out in errors]
            result["cells"][cell.id] = {
                "printed": without_paths(shown)[:LONGEST],
                "error": without_paths("; ".join(failed))[:LONGEST],
            }
    result["seconds"] = round(time.perf_counter() - start)
    return result


def without_paths(text: str) -> str:
    """A text without colours and the paths of the course, the home and temporary files."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    names = {notebooks.ROOT: "COURSE", Path(tempfile.gettempdir()): "TMP", Path.home(): "HOME"}
    for folder, name in names.items():
        if str(folder) != folder.anchor:
            text = text.replace(str(folder), name)
    return text


def _cells(path: Path) -> list[NotebookNode]:
    return notebooks.read(path).cells


def main() -> int:
    if not torch.cuda.is_available():
        print(
            "This PyTorch finds no CUDA GPU, so there is nothing to check: "
            f"{machine.gpu_problem() or 'run this command on a computer with an NVIDIA GPU'}."
        )
        return 1
    found = {
        "computer": machine.describe(),
        "CUDA": torch.version.cuda,
        "ROCm": torch.version.hip,
        "GPU memory": torch.cuda.get_device_properties(0).total_memory,
        "lessons": {},
    }
    REPORT.parent.mkdir(exist_ok=True)
    failures = 0
    for path in lessons():
        print(f"{path.name}: ", end="", flush=True)  # it will take a while
        lesson = found["lessons"][path.name] = check(path)
        errors = [name for name, cell in lesson["cells"].items() if cell["error"]]
        failures += len(errors) + ("error" in lesson)
        words = lesson.get("error") or (f"failed: {', '.join(errors)}" if errors else "no errors")
        print(f"{len(lesson['cells'])} cells, {words.splitlines()[-1]}", flush=True)
        # After each lesson, so that nothing is lost if a later one ends the computer.
        REPORT.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
    shown = REPORT.relative_to(notebooks.ROOT)
    print(f"{failures} cells failed. Read {shown}, and attach it to an issue of the course.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
