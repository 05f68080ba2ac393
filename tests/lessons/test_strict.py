"""What nbval compares, with our sanitising: every exact number, and no measured one."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell
from packaging.requirements import Requirement

from helpers import units
from tools import notebooks, rules

# Written apart from the sanitising, so that a slip in one shows against the other.
MARKED = r"\u2060[^\u2060\n]*\u2060|~-?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?"
NOT_COMPARED = re.compile(rf"{MARKED}|0x[0-9a-fA-F]{{6,}}|ipykernel_\d+[\\/]\d+")
read = cache(notebooks.read)


def digits(text: str) -> Iterator[tuple[int, bool]]:
    """(position, compared exactly?) of the last digit of every number in ``text``."""
    hidden = [match.span() for match in NOT_COMPARED.finditer(text)]
    for match in re.finditer(r"\d+", text):
        position = match.end() - 1
        yield position, not any(start <= position < end for start, end in hidden)


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
def test_every_exact_number_is_compared_and_no_measured_one(path: Path) -> None:
    tried = 0
    for cell in read(path).cells:
        if cell.cell_type != "code" or rules.IGNORED in cell.metadata.get("tags", []):
            continue
        for kind, text in notebooks.texts(cell.outputs):
            text = re.sub(r"base64,[A-Za-z0-9+/=]+", "base64,", text)  # a picture's bytes
            # A chart that moves holds thousands of numbers: each of its rows is tried by itself.
            for part in text.split("}, {") if kind.endswith("json") else [text]:
                stored = notebooks.sanitised(part)
                for at, exact in digits(part):
                    altered = f"{part[:at]}{(int(part[at]) + 1) % 10}{part[at + 1 :]}"
                    noticed = notebooks.sanitised(altered) != stored
                    assert noticed is exact, f"{cell.id}, {kind}: …{part[max(0, at - 30) : at + 1]}"
                    tried += 1
    assert tried > 20, "a notebook of this course prints numbers"


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
def test_every_output_is_compared_with_the_packages_that_made_it(path: Path) -> None:
    """A tag names a package, and a version, that requirements.txt installs on Python 3.11."""
    lines = (notebooks.ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line.split(" #")[0]) for line in lines if line and line[0] not in "#-"]
    there = {"python_version": "3.11", "sys_platform": "linux", "platform_machine": "x86_64"}
    pinned = {
        pin.name: str(pin.specifier)
        for pin in pins
        if pin.marker is None or pin.marker.evaluate(there)
    }
    for cell in read(path).cells:
        for name, version in notebooks.needed_for_comparison(cell):
            assert f"{pinned[name]}.".startswith(f"=={version}." if version else "=="), cell.id


@pytest.mark.parametrize(
    ("tags", "comparable"),
    [
        ([], True),
        (["hide-input", "compare-with-nbval"], True),
        (["compare-with-nbval-0.11"], True),
        (["compare-with-nbval-0.1"], False),
        (["compare-with-nbval", "compare-with-a-tool-that-is-missing"], False),
    ],
)
def test_a_cell_is_compared_where_its_packages_are(tags: list[str], comparable: bool) -> None:
    assert notebooks.is_comparable(new_code_cell(metadata={"tags": tags})) is comparable


def test_measured_values_are_equal_to_each_other() -> None:
    """However wide they are, and whatever their prefix is."""
    pairs = [
        (units.seconds(1.84e-3), units.seconds(123.4)),
        (units.rate(8.6e10, "FLOP"), units.rate(9.99e12, "FLOP")),
        (units.number(-3.0), units.number(1e-9)),
        (units.name("AMD EPYC (64 cores)"), units.name("none")),
    ]
    for layout in ("{:>16} end\n", "{:24}|\n", "(first = {}, last = 3)", "<span>({})</span>"):
        for ours, theirs in pairs:
            ours, theirs = layout.format(ours), layout.format(theirs)
            assert notebooks.sanitised(ours) == notebooks.sanitised(theirs)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("~1.84 ms", "~1.84 B"),  # the unit
        ("~1.84 ms", "1.84 ms"),  # the mark
        ("~1.84 ms of 200", "~1.84 ms of 201"),
        ("loops ~1 s\nNumPy ~2 s", "NumPy ~1 s\nloops ~2 s"),  # the order of rows
        ("~inf", "~12.0"),  # a division by nothing is no other measurement
    ],
)
def test_everything_else_is_compared(ours: str, theirs: str) -> None:
    assert notebooks.sanitised(ours) != notebooks.sanitised(theirs)
