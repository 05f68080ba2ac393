"""nbval's comparison, with our sanitising, sees every exact number and no measured one."""

import copy
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbval.plugin import IPyNbCell, IPyNbFile, get_sanitize_patterns, nocolors

from helpers import units
from tests.lessons import rules
from tools import notebooks

# Written apart from the sanitising, so that a slip in one shows against the other.
MARKED = r"~\[[^\]\n]*\]|~-?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?"
NOT_COMPARED = re.compile(
    rf"data:image/png;base64,[A-Za-z0-9+/=]+|{MARKED}|0x[0-9a-fA-F]{{6,}}|ipykernel_\d+[\\/]\d+"
)


@pytest.fixture(scope="module")
def compare(request: pytest.FixtureRequest):
    """nbval's own ``compare_outputs``, bound to a cell that has our patterns and no kernel."""
    skip = IPyNbFile.from_parent(request.session, path=notebooks.all_of_them()[0]).skip_compare
    patterns = dict(get_sanitize_patterns(notebooks.SANITIZE.read_text(encoding="utf-8")))
    cell = SimpleNamespace(
        parent=SimpleNamespace(sanitize_patterns=patterns, skip_compare=skip),
        colors=nocolors,
        format_output_compare=lambda *_: None,
    )
    cell.sanitize = partial(IPyNbCell.sanitize, cell)
    return partial(IPyNbCell.compare_outputs, cell)


def digits(text: str) -> Iterator[tuple[int, bool]]:
    """(position, compared exactly?) of the last digit of every number in ``text``."""
    hidden = [match.span() for match in NOT_COMPARED.finditer(text)]
    for match in re.finditer(r"\d+", text):
        position = match.end() - 1
        yield position, not any(start <= position < end for start, end in hidden)


def altered(outputs: list[NotebookNode], kind: str, index: int, position: int):
    """A copy of ``outputs`` with the digit at ``position`` of its ``index``-th output changed."""
    changed = copy.deepcopy(outputs)
    output = changed[index]
    holder, key = (output, "text") if output.output_type == "stream" else (output.data, kind)
    text = holder[key]
    holder[key] = f"{text[:position]}{(int(text[position]) + 1) % 10}{text[position + 1 :]}"
    return changed


def every_digit(path: Path) -> Iterator[tuple[str, list, list, bool]]:
    """(where, outputs, outputs with one digit altered, whether it must be noticed)."""
    for cell in notebooks.read(path).cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type != "code" or rules.IGNORED in tags:
            continue
        for index, output in enumerate(cell.outputs):
            kinds = [output.name] if output.output_type == "stream" else list(output.data)
            for kind in kinds:
                text = output.text if output.output_type == "stream" else output.data[kind]
                if kind == "text/html":  # a picture: its bytes hold too many digits to try each
                    text = re.sub(r"base64,[A-Za-z0-9+/=]+", "base64,", text)
                    output.data[kind] = text
                for position, exact in digits(text):
                    where = f"{cell.id}, {kind}: …{text[max(0, position - 30) : position + 1]}"
                    yield where, cell.outputs, altered(cell.outputs, kind, index, position), exact


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
def test_every_exact_number_is_compared_and_no_measured_one(path: Path, compare) -> None:
    tried = 0
    for where, stored, changed, exact in every_digit(path):
        tried += 1
        assert compare(changed, stored) is not exact, where
    assert tried > 20, "a notebook of this course prints numbers"


def stream(text: str) -> list[NotebookNode]:
    return [new_output("stream", text=text)]


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
def test_measured_values_are_equal_to_each_other(ours: str, theirs: str, compare) -> None:
    assert compare(stream(f"{'time':6}{ours:>16} end\n"), stream(f"{'time':6}{theirs:>16} end\n"))
    assert compare(stream(f"{ours:24}|\n"), stream(f"{theirs:24}|\n"))
    assert compare(stream(f"(first = {ours}, last = 3)"), stream(f"(first = {theirs}, last = 3)"))


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
    ],
)
def test_everything_else_is_compared(ours: str, theirs: str, compare) -> None:
    assert compare(stream(ours), stream(ours))
    assert not compare(stream(ours), stream(theirs))
