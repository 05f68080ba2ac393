"""How pytest runs the notebooks: strictly, in one environment everywhere, and every one of them."""

import os
import platform

import pytest

from tools import notebooks


def mode(system: str, processor: str) -> str:
    """Outputs are compared where the stored ones were made; elsewhere cells only have to run."""
    return "strict" if (system, processor) == ("Linux", "x86_64") else "lax"


def pytest_configure(config: pytest.Config) -> None:
    os.environ.update(notebooks.KERNEL_ENVIRONMENT)
    if config.option.nbval and mode(platform.system(), platform.machine()) == "lax":
        config.option.nbval, config.option.nbval_lax = False, True


def pytest_report_header() -> str:
    here = f"{platform.system()} {platform.machine()}"
    if mode(platform.system(), platform.machine()) == "strict":
        return f"notebooks: every output is compared ({here})"
    return (
        f"notebooks: this is {here}; outputs are compared on Linux x86_64 only, "
        "so here every cell must run and every claim must hold"
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """A whole run that leaves out a notebook or a test file is an error, not a pass."""
    config = session.config
    whole = config.args_source == pytest.Config.ArgsSource.TESTPATHS
    narrowed = config.option.keyword or config.option.markexpr or config.getoption("lf", False)
    if not whole or narrowed:
        return
    expected = {*notebooks.all_of_them(), *(notebooks.ROOT / "tests").rglob("test_*.py")}
    idle = expected - {item.path for item in session.items}
    if idle:
        names = ", ".join(str(path.relative_to(notebooks.ROOT)) for path in sorted(idle))
        raise pytest.UsageError(f"nothing was collected from {names}; every one must be tested")
