"""A class that several files' tests look at."""

import pytest

from tests.grading.classroom import CELLS, Class


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """Three students, graded in one go."""
    small = Class(tmp_path_factory.mktemp("small"))
    small.hand_in("ada")
    small.hand_in("grace", macs=CELLS["macs-wrong-1"])
    small.hand_in("edsger", why='why = "c"', fast="def fast(values):\n    return 0")
    small.grade()
    return small
