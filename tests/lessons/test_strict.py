"""What nbval compares, with our sanitising: every exact number, and no measured one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import units
from tests.lessons import rules
from tools import notebooks

# Written apart from the sanitising, so that a slip in one shows against the other.
MARKED = r"~\[[^\]\n]*\]|~-?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?"
NOT_COMPARED = re.compile(rf"{MARKED}|0x[0-9a-fA-F]{{6,}}|ipykernel_\d+[\\/]\d+")


def digits(text: str) -> Iterator[tuple[int, bool]]:
    """(position, compared exactly?) of the last digit of every number in ``text``."""
    hidden = [match.span() for match in NOT_COMPARED.finditer(text)]
    for match in re.finditer(r"\d+", text):
        position = match.end() - 1
        yield position, not any(start <= position < end for start, end in hidden)


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
def test_every_exact_number_is_compared_and_no_measured_one(path: Path) -> None:
    tried = 0
    for cell in notebooks.read(path).cells:
        if cell.cell_type != "code" or rules.IGNORED in cell.metadata.get("tags", []):
            continue
        for kind, text in notebooks.texts(cell.outputs):
            text = re.sub(r"base64,[A-Za-z0-9+/=]+", "base64,", text)  # a picture's bytes
            for at, exact in digits(text):
                altered = f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}"
                noticed = notebooks.sanitised(altered) != notebooks.sanitised(text)
                assert noticed is exact, f"{cell.id}, {kind}: …{text[max(0, at - 30) : at + 1]}"
                tried += 1
    assert tried > 20, "a notebook of this course prints numbers"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (units.seconds(1.84e-3), units.seconds(9.7e-7)),
        (units.seconds(0.0), units.seconds(123.4)),
        (units.size(1.5e6), units.size(12.0)),
        (units.rate(8.6e10, "FLOP"), units.rate(9.99e12, "FLOP")),
        (units.rate(3.4e10, "B"), units.rate(2.0, "B")),
        (units.rate(120.0, "images"), units.rate(1.2e4, "images")),
        (units.ratio(0.5), units.ratio(12345.0)),
        (units.percent(0.01), units.percent(1.2)),
        (units.number(-3.0), units.number(1e-9)),
        (units.number(2), units.number(1024)),
        (units.name("AMD EPYC (64 cores)"), units.name("none")),
    ],
)
def test_measured_values_are_equal_to_each_other(ours: str, theirs: str) -> None:
    for layout in ("{:>16} end\n", "{:24}|\n", "(first = {}, last = 3)", "<span>({})</span>"):
        assert notebooks.sanitised(layout.format(ours)) == notebooks.sanitised(
            layout.format(theirs)
        )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("~1.84 ms", "~1.84 B"),  # the unit
        ("~1.84 ms", "1.84 ms"),  # the mark
        ("~2 threads", "~2 processes"),
        ("~12.0 image/s", "~12.0 calls/s"),
        ("3,538,944 FLOP", "3,538,945 FLOP"),
        ("~1.84 ms of 200", "~1.84 ms of 201"),
        ("loops ~1 s\nNumPy ~2 s", "NumPy ~1 s\nloops ~2 s"),  # the order of rows
        ("a ~1 s", "a ~1 s\nb ~1 s"),  # their number
        ("(3, 64, 64)", "(3, 64, 63)"),
        ("~inf", "~12.0"),  # a division by nothing is no other measurement
    ],
)
def test_everything_else_is_compared(ours: str, theirs: str) -> None:
    assert notebooks.sanitised(ours) != notebooks.sanitised(theirs)
