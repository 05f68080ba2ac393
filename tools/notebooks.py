"""Where the notebooks are, what a canonical one looks like, and how its outputs are compared."""

import os
import re
import shutil
from functools import cache
from importlib import metadata
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbval.plugin import coalesce_streams, get_sanitize_patterns

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
# How the cells begin that only an instructor sees.
NOTES = "<details><summary>Instructor notes</summary>"
# The kind of an output that JupyterLab draws as a picture that moves: helpers/plotting/moving.py.
MOVING = "application/vnd.vegalite.v5+json"
SANITIZE = ROOT / "tools" / "nbval_sanitize.cfg"

# The same for a refresh and for a test, so that both see the same output:
# - the GPU is hidden, because most readers and every test machine have none;
# - nsys is hidden for the same reason; lesson 11 looks where this variable says;
# - what C code writes to stderr, as torch's profiler does, goes past the notebook;
# - the solutions' hidden checks draw the same numbers each time;
# - nothing is predicted, whatever somebody has predicted in this folder.
KERNEL_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "NSYS": "",
    "UNSEEN_SEED": "the solutions",
    "PREDICTIONS_FILE": os.devnull,
}
KERNEL_ARGUMENTS = ["--IPKernelApp.capture_fd_output=False"]
# The seconds that a cell may take: in a test, in a refresh, on the pretended GPU.
CELL_TIMEOUT = 120

# The real nsys, for the tests that want it: found before the kernels' variable hides it.
INSTALLED_NSYS = shutil.which(os.environ.get("NSYS") or "nsys")

# What a cell's metadata keep, besides a folded source: for slides, for tests, for grading.
KEPT = ("nbgrader", "slideshow", "tags")

# How a tag begins that names a package. Without this package, as some are missing on Python 3.15,
# the cell's claims must hold, but its output is not compared.
NEEDED = "compare-with-"

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def all_of_them() -> list[Path]:
    """Every notebook that is executed; generated exercises are incomplete on purpose."""
    return sorted(
        path
        for path in NOTEBOOKS.rglob("*.ipynb")
        if ".ipynb_checkpoints" not in path.parts and "exercises" not in path.parts
    )


def named(word: str) -> Path:
    """The notebook that ``word`` names: a path, or a lesson's number or name, such as 01."""
    lessons = NOTEBOOKS.glob("*.ipynb")
    found = [path for path in lessons if f"{path.stem}_".startswith(f"{word}_")]
    return found[0] if found else Path(word).resolve()


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def as_text(notebook: NotebookNode) -> str:
    """The file's content, as JupyterLab writes it."""
    return nbformat.writes(notebook) + "\n"


def write(path: Path, content: bytes) -> None:
    """Replace ``path`` at once: after a full disk or Ctrl+C it holds all of it or what it held."""
    aside = path.with_name(f".{path.name}.new")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def is_prediction(cell: NotebookNode) -> bool:
    """Whether the reader answers a question in this cell, or sees the record of the answers."""
    return cell.cell_type == "code" and cell.source.startswith(("predict(", "record_of("))


def needed_for_comparison(cell: NotebookNode) -> list[tuple[str, str]]:
    """The packages, each with a version or "", without which a cell has another output.

    Tags name them, such as compare-with-scalene and compare-with-torch-2.13.
    """
    tags = cell.metadata.get("tags", [])
    named = [tag.removeprefix(NEEDED) for tag in tags if tag.startswith(NEEDED)]
    return [re.fullmatch(r"(.+?)(?:-(\d[\d.]*))?", name).groups("") for name in named]


def is_comparable(cell: NotebookNode) -> bool:
    """Whether the packages are here that the cell's stored output depends on."""
    try:
        here = [(metadata.version(name), v) for name, v in needed_for_comparison(cell)]
    except metadata.PackageNotFoundError:
        return False
    return all(f"{found}.".startswith(f"{v}." if v else "") for found, v in here)


def is_picture(output: NotebookNode) -> bool:
    """Whether an output is a chart, a photograph, or the still form of a picture that moves."""
    data = output.get("data", {})
    return "image/png" in data or "<img" in data.get("text/html", "")


def canonical(notebook: NotebookNode) -> NotebookNode:
    """A copy without what an editor or an execution leaves: times, widget state, folded outputs.

    A stream is one output, as nbval compares it: where it was cut is an accident of timing.
    """
    clean = nbformat.from_dict(notebook)
    clean.metadata = nbformat.from_dict(METADATA)
    clean.nbformat, clean.nbformat_minor = 4, 5
    for cell in clean.cells:
        kept = {key: cell.metadata[key] for key in KEPT if cell.metadata.get(key)}
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            kept["jupyter"] = {"source_hidden": True}
        cell.metadata = nbformat.from_dict(kept)
        if cell.cell_type == "code":
            cell.outputs = coalesce_streams(cell.outputs)
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = cell.execution_count
    return clean


def sanitised(text: str) -> str:
    """``text`` as nbval compares it."""
    for pattern, replacement in _patterns():
        text = pattern.sub(replacement, text)
    return text


@cache
def _patterns() -> list[tuple[re.Pattern, str]]:
    found = get_sanitize_patterns(SANITIZE.read_text(encoding="utf-8"))
    return [(re.compile(regex), replacement) for regex, replacement in found]


def texts(outputs: list[NotebookNode]) -> list[tuple[str, str]]:
    """(kind, text) of everything in ``outputs`` that nbval compares, in order."""
    found = []
    for output in outputs:
        if output.output_type == "stream":
            found.append((output.name, output.text))
        elif output.output_type == "error":
            found.append(("error", f"{output.ename}: {output.evalue}"))
        else:
            kinds = sorted(set(output.data) - {"image/png", "image/jpeg"})
            found += [(kind, str(output.data[kind])) for kind in kinds]
    return found
