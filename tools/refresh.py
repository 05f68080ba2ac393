"""``make refresh``: execute notebooks in place, and keep those that did not really change.

    python -m tools.refresh [NOTEBOOK ...]     such as 01, or a path

A notebook keeps its outputs, pictures and measured digits included, when what the tests compare is
equal and neither a cell nor the helpers, scripts and recordings changed since it was last
committed. Otherwise it takes all outputs of the new run, because the numbers of different cells
have to agree with one another. A notebook that its author saves during the run is not written.
"""

import base64
import io
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.reader import NotJSONError
from PIL import Image

from tools import notebooks

VEGA_LITE = "5.20"  # the one that JupyterLab brings
SHARP = 1.5  # pixels of a still picture for each of the chart
READ_BY_CELLS = ("helpers", "notebooks/scripts", "assets/recordings")


def main(arguments: list[str]) -> int:
    paths = [notebooks.named(argument) for argument in arguments] or notebooks.all_of_them()
    os.environ.update(notebooks.KERNEL_ENVIRONMENT)
    failed = 0
    for path in paths:
        print(f"{path.name}: ", end="", flush=True)  # it will take a while
        try:
            changed = refresh(path)
        except (FileNotFoundError, IsADirectoryError, NotJSONError):
            print(f"there is no notebook {path}: give a number such as 01, or an .ipynb file")
            failed += 1
        except SavedMeanwhile:
            print("left as it was, because it was saved meanwhile: refresh it again")
            failed += 1
        except CellExecutionError as error:
            print(f"left as it was, because a cell failed:\n{error}")
            failed += 1
        else:
            print(f"{changed} cells changed" if changed else "unchanged")
    return 1 if failed else 0


class SavedMeanwhile(Exception):
    """While a notebook was executed, somebody saved another content of it."""


def refresh(path: Path) -> int:
    """Execute the notebook at ``path`` and write it back; return how many cells really changed."""
    content = path.read_bytes()
    stored = notebooks.canonical(nbformat.reads(content.decode(), as_version=4))
    fresh = with_stills(notebooks.canonical(execute(stored, path.parent)))
    committed = committed_sources(path)
    changed = 0
    for old, new in zip(stored.cells, fresh.cells, strict=True):
        if new.cell_type == "code":
            changed += committed.get(new.id) != new.source or compared(old) != compared(new)
    if path.read_bytes() != content:
        raise SavedMeanwhile
    notebooks.write(path, notebooks.as_text(fresh if changed else stored).encode())
    return changed


def execute(
    notebook: NotebookNode,
    folder: Path,
    failing: bool = False,
    timeout: int | None = notebooks.CELL_TIMEOUT,
    **kernel: object,
) -> NotebookNode:
    """A copy of ``notebook``, executed in a new kernel that starts in ``folder``.

    The first cell that fails ends it with a CellExecutionError; with ``failing`` all are executed.
    ``timeout`` is for a cell, in seconds; ``kernel`` goes to subprocess.Popen.
    """
    copy = nbformat.from_dict(notebook)
    NotebookClient(
        copy,
        timeout=timeout,
        allow_errors=failing,
        kernel_name="python3",
        extra_arguments=notebooks.KERNEL_ARGUMENTS,
        resources={"metadata": {"path": str(folder)}},
    ).execute(**kernel)
    return copy


def with_stills(notebook: NotebookNode) -> NotebookNode:
    """The notebook, in which each picture that moves has a still one, too: for decks and GitHub."""
    for output in chain(*(cell.get("outputs", []) for cell in notebook.cells)):
        if chart := output.get("data", {}).get(notebooks.MOVING):
            from vl_convert import vegalite_to_png  # only makers have it

            png = vegalite_to_png(chart, vl_version=VEGA_LITE, scale=SHARP)
            still = io.BytesIO()  # a chart has few colours
            Image.open(io.BytesIO(png)).convert("RGB").quantize(64).save(
                still, "png", optimize=True
            )
            output.data["image/png"] = base64.b64encode(still.getvalue()).decode()
            output.metadata["image/png"] = {"alt": chart["description"]}
    return notebook


def compared(cell: NotebookNode) -> list[tuple[str, str]]:
    """What the tests see of a cell's outputs: nothing, where they are told to ignore them."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return []
    return [(kind, notebooks.sanitised(text)) for kind, text in notebooks.texts(cell.outputs)]


def committed_sources(path: Path) -> dict[str, str]:
    """Cell id to source as last committed; empty when what cells read has changed since then.

    Empty, too, without git or before the first commit: then every output is taken afresh.
    """
    try:
        top = Path(_git(path.parent, "rev-parse", "--show-toplevel"))
        commit = _git(path.parent, "log", "-1", "--format=%H", "--", path.name)
        read = [str(top / folder) for folder in READ_BY_CELLS]
        _git(path.parent, "diff", "--quiet", commit, "--", *read)  # fails where they differ
        text = _git(path.parent, "show", f"{commit}:./{path.name}")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return {}
    return {cell.id: cell.source for cell in nbformat.reads(text, as_version=4).cells}


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, encoding="utf-8"
    )
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
