import doctest

import pytest

from helpers import readers


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(readers).failed == 0


def test_what_stands_behind_the_program_is_the_programs() -> None:
    line = "nsys profile -w true -o 'my report' python a.py --force-overwrite true"
    flags, program = readers.nsys_command(line)
    assert flags == ["-w true", "-o my report"]
    assert program == ["python", "a.py", "--force-overwrite", "true"]
    assert readers.nsys_command("srun nsys profile -f") == (["-f"], [])
    with pytest.raises(ValueError, match="profile"):
        readers.nsys_command("ncu python a.py")
