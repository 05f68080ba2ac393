"""CSV files that a person opens as spreadsheets: what a student wrote computes nothing in them."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from tools import notebooks

COMPUTED = tuple("=+-@\t\r'")  # a spreadsheet computes a text that begins so; ' stops it


def read(option: str, path: Path) -> list[list[str]]:
    """The rows that hold anything; a ValueError says what ``option`` needs.

    In some languages, a spreadsheet writes semicolons.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            lines = csv.reader(file, delimiter=";" if ";" in head and "," not in head else ",")
            return [row for row in lines if any(map(str.strip, row))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{option}: {path} cannot be read as CSV in UTF-8: {error}") from None


def write(path: Path, head: list[str], rows: Iterable[list]) -> None:
    write_lines(path, [head, *([not_computed(value) for value in row] for row in rows)])


def write_lines(path: Path, lines: Iterable[list]) -> None:
    """Write a CSV file as a whole: if a disk is full, the file is as it was."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    notebooks.write(path, text.getvalue().encode())


def not_computed(value: object) -> object:
    """A text that a spreadsheet would compute gets a mark that stops it; a dash alone is a text."""
    computed = isinstance(value, str) and value.startswith(COMPUTED) and value != "-"
    return f"'{value}" if computed else value


def literal(text: str) -> str:
    """The text that ``not_computed`` was given."""
    return text[1:] if text[:1] == "'" and not_computed(text[1:]) == text else text
