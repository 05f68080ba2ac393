"""Each room of the house builds on those below it only, and no module on itself."""

from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tools import changed

ROOMS = ["helpers", "tools", "grading", "tests"]  # from below: what lessons use knows nothing else


@pytest.fixture(scope="module")
def uses() -> dict[str, set[str]]:
    """Each module to those that it imports, or whose names it writes in full."""
    files = set(changed.git("ls-files", "--", *(f"{room}/*.py" for room in ROOMS)))
    found = {file: changed.imported(changed.source(file), all_modules=False) for file in files}
    return {file: found[file] & files - {file} for file in files}


def test_no_room_uses_one_above_it(uses: dict[str, set[str]]) -> None:
    floors = {file: ROOMS.index(Path(file).parts[0]) for file in uses}
    up = {(file, used) for file in uses for used in uses[file] if floors[file] < floors[used]}
    assert up == set()


def test_no_module_uses_itself_through_others(uses: dict[str, set[str]]) -> None:
    packages = {file for file in uses if file.endswith("__init__.py")}  # they collect names
    TopologicalSorter({file: uses[file] - packages for file in uses}).prepare()  # or it raises
