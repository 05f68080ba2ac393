"""``make report``: the notebook *profile your own model*, run with a model of yours, as one page.

    python -m tools.report package.module:function

The function takes no arguments and returns the model and an example. The page, in reports/, begins
with what to ask next, and with the chart that shows why. It needs nothing but itself, so it can be
sent: it has no script, picture or font from elsewhere, and no links.
"""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from tools import python_path

REPORTS = python_path.ROOT / "reports"
STOPPED = 130  # as a shell reports Ctrl+C
# The cell with which a part begins, and what is printed then. The first one also starts Python.
PARTS = {
    "setup": "loading the model, and trying it with its example",
    "whole-count": "counting its work",
    "whole-time": "timing its calls",
    "layers-kinds": "timing each of its modules",
    "operators-table": "profiling its operators",
    "memory-training": "measuring the memory of a training step",
    "roof-ceilings": "measuring how fast this computer is",
}
FIRST = ("next-chart", "roof-draw", "layers-kinds")  # the charts below the first one
STYLE = """
body {max-width: 60rem; margin-inline: auto; background: white}
.jp-OutputArea-output {overflow-x: auto}
@media (prefers-color-scheme: dark) {html {filter: invert(0.89) hue-rotate(180deg)}}
"""


def main(arguments: list[str]) -> int:
    if problem := python_path.problem():
        print(problem, file=sys.stderr)
        return 1
    name = arguments[0] if arguments else ""
    if ":" not in name:
        from helpers import own_model  # without a kernel, which takes longer to start

        try:
            own_model.load(name)
        except own_model.Refused as refusal:
            print(refusal, file=sys.stderr)
            return 1
    announce("setup")
    try:
        return report(name)
    except KeyboardInterrupt:
        print("Stopped: no report was written.", file=sys.stderr)
        return STOPPED


def report(name: str) -> int:
    # These imports take seconds, so they come after the first line that is printed.
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    from tools import notebooks

    notebook = notebooks.read(notebooks.NOTEBOOKS / "profile_your_own_model.ipynb")
    filled_in = {
        "title": f"# A profile of {name}",
        "your-model-text": (
            "## The model\n\nThe report assumes that the first dimension counts the samples."
        ),
        "your-model": f"model, example = own_model.load({name!r})",
    }
    cells = {cell.id: cell for cell in notebook.cells}
    for cell, source in filled_in.items():
        cells[cell].source = source
    try:
        execute(notebook)
    except CellExecutionError as error:
        refused, plain = error.ename == "Refused", re.sub(r"\x1b\[[\d;]*m", "", str(error))
        print(error.evalue if refused else f"the report failed:\n{plain}", file=sys.stderr)
        return 1
    except DeadKernelError:
        print("the program was ended from outside, most likely because the memory ran out: "
              "give a smaller example", file=sys.stderr)  # fmt: skip
        return 1
    REPORTS.mkdir(exist_ok=True)
    page = REPORTS / f"{name.replace(':', '.')}.html"
    page.write_text(as_page(notebook, name), encoding="utf-8")
    print(f"written: {page}")
    return 0


def announce(cell: str) -> None:
    """Print which part of the report begins with this cell, if one does."""
    if cell in PARTS:
        number = list(PARTS).index(cell) + 1
        print(f"[{number}/{len(PARTS)}] {PARTS[cell]} …", flush=True)


def execute(notebook: Any) -> None:
    """Execute ``notebook`` in a new kernel that starts in this folder, and announce its parts.

    Ctrl+C ends the kernel, too, and is raised as a KeyboardInterrupt. For this, the client runs in
    a thread: in the main thread, it would handle the signal itself, as if the kernel had died.
    """
    import psutil
    from nbclient import NotebookClient

    from tools import notebooks

    client = NotebookClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        extra_arguments=notebooks.KERNEL_ARGUMENTS,
        resources={"metadata": {"path": str(Path.cwd())}},
        on_cell_start=lambda cell, cell_index: cell.id == "setup" or announce(cell.id),
    )
    start = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        # The profiler's own lines, on stderr, are not wanted.
        running = pool.submit(client.execute, stderr=subprocess.DEVNULL)
        try:
            while not wait([running], timeout=4).done:
                print(f"    {time.monotonic() - start:.0f} s so far", flush=True)
            running.result()
        except KeyboardInterrupt:
            while not running.done():  # the kernel may only be starting
                for child in psutil.Process().children():
                    child.kill()
                wait([running], timeout=0.2)
            raise


def as_page(notebook: Any, name: str) -> str:
    """What the cells put out, and the text between them, in the order in which it is read."""
    from nbconvert import HTMLExporter

    notebook.metadata["title"] = name
    notebook.cells = in_order(notebook.cells)
    left_out = ("input", "input_prompt", "output_prompt", "anchor_links")
    exporter = HTMLExporter(**{f"exclude_{part}": True for part in left_out})
    page, _ = exporter.from_notebook_node(notebook)
    page = re.sub(r"<script\b.*?</script>", "", page, flags=re.S)
    page = page.replace("</head>", f"<style>{STYLE}</style></head>", 1)
    return re.sub(r'<a href="[^"]+">(.*?)</a>', r"\1", page, flags=re.S)


def in_order(cells: list) -> list:
    """The cells of the page: what to ask next, the chart that shows why, others, and the sections.

    The verdict names the cell of that chart in its output's metadata. A cell without a chart stays
    in its section.
    """
    from nbformat.v4 import new_markdown_cell

    by_id = {cell.id: cell for cell in cells}
    verdict = by_id["next-question"]
    first = [by_id[name] for name in (verdict.outputs[0].metadata["chart"], *FIRST)]
    charts = [cell for cell in first if "<img" in str(cell.outputs)]
    top = [by_id["title"], verdict, *(by_id[name] for name in dict.fromkeys(c.id for c in charts))]
    last = cells.index(by_id["next"])
    sections = []
    for cell in cells[last:] + cells[1:last]:
        if cell not in top and (cell.cell_type == "markdown" or cell.outputs):
            sections.append(cell)
        elif cell in charts and cell.id != "next-chart":
            sections.append(new_markdown_cell("A chart of this section is at the top of the page."))
    return top + sections


if __name__ == "__main__":
    status = main(sys.argv[1:])
    if status == STOPPED:  # at once, because nbclient cannot clean up a kernel that just starts
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
