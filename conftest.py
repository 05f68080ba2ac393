"""How pytest runs the notebooks: strictly, in one environment everywhere, and every one of them.

Each cell runs once. With ``--everything``, the second half of ``make test-all``, the cells of a
notebook run from the first to the last twice in the same kernel, and the marked tests run, too.
"""

import os
import platform
from itertools import chain, groupby
from pathlib import Path

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


def start_kernel(start=nbval.kernel.start_new_kernel, **options) -> tuple:
    """A kernel for nbval, started again where it died: another program can take the port that was
    found free for it before it binds it (4 of 961 kernels, where six programs started them)."""
    options["extra_arguments"] = notebooks.KERNEL_ARGUMENTS
    try:
        return start(**options)
    except RuntimeError:
        return start(**options)


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "run cells twice, and run the tests marked 'everything'"
    parser.addoption("--everything", action="store_true", help=words)


def pytest_configure(config: pytest.Config) -> None:
    os.environ.update(notebooks.KERNEL_ENVIRONMENT)
    nbval.kernel.start_new_kernel = start_kernel
    config.option.nbval_cell_timeout = notebooks.CELL_TIMEOUT
    config.addinivalue_line("markers", "everything: costs much; run with --everything only")
    config.addinivalue_line("markers", "notebook: a run of a notebook's cell")
    if config.option.nbval and not STRICT:
        config.option.nbval, config.option.nbval_lax = False, True


def pytest_report_header() -> str:
    if STRICT:
        return f"notebooks: every output is compared ({HERE})"
    return (
        f"notebooks: this is {HERE}; outputs are compared on Linux x86_64 only, "
        "so here every cell must run and every claim must hold"
    )


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.everything:
        files = [list(file) for _, file in groupby(items, lambda item: item.path)]
        items[:] = chain.from_iterable(map(twice_if_notebook, files))
        return
    for item in items:
        if item.get_closest_marker("everything"):
            item.add_marker(pytest.mark.skip(reason="make test-all runs it"))


def twice_if_notebook(file: list[pytest.Item]) -> list[pytest.Item]:
    """The tests of one file; a notebook's cells follow again, each under a name of its own."""
    if not isinstance(file[0], IPyNbCell):
        return file
    twice = file + [again(cell) for cell in file]
    for cell in twice:
        cell.add_marker("notebook")
    return twice


def again(cell: IPyNbCell) -> IPyNbCell:
    parts = {"cell_num": cell.cell_num, "cell": cell.cell, "options": cell.options}
    return IPyNbCell.from_parent(cell.parent, name=f"{cell.name} again", **parts)


def pytest_collection_finish(session: pytest.Session) -> None:
    nothing_is_left_out(session.config, {item.path for item in session.items})


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: object, ids: list[str]) -> None:
    """With -n: each worker collects, and the one that hands out the work knows what was asked."""
    nothing_is_left_out(node.config, {notebooks.ROOT / name.split("::")[0] for name in ids})


def nothing_is_left_out(config: pytest.Config, collected: set[Path]) -> None:
    """A whole run that leaves out a notebook or a test file is an error, not a pass."""
    whole = config.args_source == pytest.Config.ArgsSource.TESTPATHS
    narrowed = config.option.keyword or config.option.markexpr or config.getoption("lf", False)
    if not whole or narrowed:
        return
    expected = {*notebooks.all_of_them(), *(notebooks.ROOT / "tests").rglob("test_*.py")}
    idle = expected - collected
    if idle:
        names = ", ".join(str(path.relative_to(notebooks.ROOT)) for path in sorted(idle))
        raise pytest.UsageError(f"nothing was collected from {names}; every one must be tested")
