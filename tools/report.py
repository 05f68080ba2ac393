"""``make report``: the notebook *profile your own model*, run with a model of yours, as one page.

    python -m tools.report package.module:function

The function takes no arguments and returns the model and an example. The page, in reports/, begins
with what to ask next. It needs nothing but itself, so it can be sent: it has no script, picture or
font from elsewhere, and no links.
"""

import re
import subprocess
import sys
from pathlib import Path

from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert import HTMLExporter

from tools import notebooks, refresh

TEMPLATE = notebooks.NOTEBOOKS / "profile_your_own_model.ipynb"
REPORTS = notebooks.ROOT / "reports"


def main(arguments: list[str]) -> int:
    name = arguments[0] if arguments else ""
    notebook = notebooks.read(TEMPLATE)
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
    try:  # the profiler's own lines are not wanted here, either
        executed = refresh.execute(notebook, Path.cwd(), timeout=None, stderr=subprocess.DEVNULL)
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
    page.write_text(as_page(executed, name), encoding="utf-8")
    print(f"written: {page}")
    return 0


def as_page(notebook: notebooks.NotebookNode, name: str) -> str:
    """What the cells put out, and the text between them, with the last section first."""
    notebook.metadata["title"] = name
    ids = [cell.id for cell in notebook.cells]
    last = ids.index("next")
    notebook.cells[1:1] = notebook.cells[last:]
    del notebook.cells[last + len(ids) - last :]
    left_out = ("input", "input_prompt", "output_prompt", "anchor_links")
    exporter = HTMLExporter(**{f"exclude_{part}": True for part in left_out})
    page, _ = exporter.from_notebook_node(notebook)
    page = re.sub(r"<script\b.*?</script>", "", page, flags=re.S)
    return re.sub(r'<a href="[^"]+">(.*?)</a>', r"\1", page, flags=re.S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
