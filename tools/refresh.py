"""``make refresh``: execute notebooks in place and keep every output that did not really change.

    python -m tools.refresh [NOTEBOOK ...]

A stored output stays, pictures and measured digits included, when what the tests compare is equal
and neither its cell nor the helpers, scripts and recordings changed since the notebook was last
committed. So a refresh without a real change is an empty diff.
"""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from tools import notebooks

READ_BY_CELLS = ("helpers", "notebooks/scripts", "assets/recordings")


def main(arguments: list[str]) -> int:
    paths = [Path(argument).resolve() for argument in arguments] or notebooks.all_of_them()
    os.environ.update(notebooks.KERNEL_ENVIRONMENT)
    failed = 0
    for path in paths:
        try:
            changed = refresh(path)
        except FileNotFoundError:
            print(f"{path}: there is no such notebook; give the path of an .ipynb file")
            failed += 1
        except CellExecutionError as error:
            print(f"{path.name}: left as it was, because a cell failed:\n{error}")
            failed += 1
        else:
            print(f"{path.name}: {changed} cells changed" if changed else f"{path.name}: unchanged")
    return 1 if failed else 0


def refresh(path: Path) -> int:
    """Execute the notebook at ``path`` and write it back; return how many cells changed."""
    stored = notebooks.read(path)
    fresh = notebooks.canonical(execute(stored, path.parent))
    committed = committed_sources(path)
    changed = 0
    for old, new in zip(notebooks.canonical(stored).cells, fresh.cells, strict=True):
        if new.cell_type != "code":
            continue
        if committed.get(new.id) == new.source and compared(old) == compared(new):
            new.outputs = old.outputs
        else:
            changed += 1
    text = notebooks.as_text(notebooks.canonical(fresh))
    if text != path.read_text(encoding="utf-8"):
        path.write_text(text, encoding="utf-8", newline="\n")
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


def compared(cell: NotebookNode) -> list[tuple[str, str]]:
    """What the tests see of a cell's outputs."""
    return [(kind, notebooks.sanitised(text)) for kind, text in notebooks.texts(cell.outputs)]


def committed_sources(path: Path) -> dict[str, str]:
    """Cell id to source as last committed; empty when what cells read has changed since then.

    Empty, too, without git or before the first commit: then every output is taken afresh.
    """
    commit = _git("log", "-1", "--format=%H", "--", str(path), cwd=path.parent)
    if not commit:
        return {}
    top = _git("rev-parse", "--show-toplevel", cwd=path.parent)
    read = [f"{top}/{folder}" for folder in READ_BY_CELLS]
    if _git("diff", "--name-only", commit, "--", *read, cwd=path.parent) != "":
        return {}
    name = path.relative_to(Path(top).resolve()).as_posix()
    text = _git("show", f"{commit}:{name}", cwd=path.parent)
    cells = nbformat.reads(text, as_version=4).cells if text else []
    return {cell.id: cell.source for cell in cells}


def _git(*arguments: str, cwd: Path) -> str | None:
    """What git prints, or None when it is missing or fails."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, capture_output=True, text=True, encoding="utf-8"
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
