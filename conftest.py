"""How pytest runs the notebooks: strictly, in one environment everywhere, once or twice."""

import gc
import os
import platform
from collections.abc import Iterator
from functools import partial
from itertools import chain, groupby

import nbval.kernel
import pytest
from nbval.plugin import IPyNbCell

from tools import notebooks

# What a student is handed is incomplete on purpose; its source, the solutions, is run. The other is
# a set for the tests of the grader.
collect_ignore = ["notebooks/exercises", "tests/grading/90_small.ipynb"]
# Outputs are compared where the stored ones were made; elsewhere cells only have to run.
HERE = f"{platform.system()} {platform.machine()}"
STRICT = HERE == "Linux x86_64"


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "run the cells of each notebook from the first to the last twice, in the same kernel"
    parser.addoption("--twice", action="store_true", help=words)


def pytest_configure(config: pytest.Config) -> None:
    if not getattr(config.option, "numprocesses", None):  # not in the process that starts workers:
        os.environ.update(notebooks.KERNEL_ENVIRONMENT)  # they look for the real nsys first
    start = partial(nbval.kernel.start_new_kernel, extra_arguments=notebooks.KERNEL_ARGUMENTS)
    nbval.kernel.start_new_kernel = start
    config.option.nbval_cell_timeout = notebooks.CELL_TIMEOUT
    config.addinivalue_line("markers", "everything: costs much; chosen with -m everything")
    if config.option.nbval and not STRICT:
        config.option.nbval, config.option.nbval_lax = False, True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays to the end: no garbage collection goes through it."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


def pytest_report_header(config: pytest.Config) -> str:
    if STRICT and config.option.nbval:
        return f"notebooks: every output is compared ({HERE})"
    return (
        f"notebooks: outputs are not compared here ({HERE}), "
        "but every cell must run and every claim must hold"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, IPyNbCell) and not notebooks.is_comparable(item.cell):
            item.options["check"] = False  # its claims must still hold
    if config.option.twice:
        files = [list(file) for _, file in groupby(items, lambda item: item.path)]
        items[:] = chain.from_iterable(map(twice_if_notebook, files))


def twice_if_notebook(file: list[pytest.Item]) -> list[pytest.Item]:
    """The tests of one file; a notebook's cells follow again, each under a name of its own."""
    return file + [again(cell) for cell in file if isinstance(cell, IPyNbCell)]


def again(cell: IPyNbCell) -> IPyNbCell:
    parts = {"cell_num": cell.cell_num, "cell": cell.cell, "options": cell.options}
    return IPyNbCell.from_parent(cell.parent, name=f"{cell.name} again", **parts)
