"""What ``--everything`` adds to nbval's one run of each cell, in the same kernel.

After each cell its claims are examined and it is run a second time; after the last one all of them
are run a third time. Each is an item of its own, compared with the stored outputs like the first.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbformat.v4 import new_code_cell
from nbval.plugin import IPyNbCell

EXAMINER = Path(__file__).with_name("claims.py")


class Again(IPyNbCell):
    """A further run of a cell."""

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.nodeid


class Claims(Again):
    """The claims of the cell that has just run: each must have been able to fail."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo) -> str:
        errors = [out.evalue for out in self.test_outputs or [] if out.output_type == "error"]
        return "\n".join([self.nodeid, *errors]) if errors else super().repr_failure(excinfo)


def everything(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """``items`` with the claims and the further runs of every notebook's cells among them."""
    for notebook, group in groupby(items, lambda item: (item.parent, isinstance(item, IPyNbCell))):
        cells = list(group)
        if not notebook[1]:
            yield from cells
            continue
        for cell in cells:
            yield cell
            if "claim(" in cell.cell.source:
                yield examination(cell)
            yield again(cell, "second run")
        yield from (again(cell, "third run") for cell in cells)


def again(cell: IPyNbCell, which: str) -> Again:
    name = f"{cell.name} ({cell.cell.id}), {which}"
    return Again.from_parent(
        cell.parent, name=name, cell_num=cell.cell_num, cell=cell.cell, options=cell.options
    )


def examination(cell: IPyNbCell) -> Claims:
    source = TransformerManager().transform_cell(cell.cell.source)
    run = f"""__import__("runpy").run_path({str(EXAMINER)!r})["examine"]"""
    return Claims.from_parent(
        cell.parent,
        name=f"{cell.name} ({cell.cell.id}), claims",
        cell_num=cell.cell_num,
        cell=new_code_cell(f"{run}({source!r}, get_ipython().user_ns)"),
        options=defaultdict(bool),
    )
