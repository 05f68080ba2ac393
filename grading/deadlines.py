"""When work was due and when it came, and what lateness costs."""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))? ?(\S+)?")

CANVAS_LATE = re.compile(r"[^_]+_LATE_\d+_\d+_")  # how the name of a late file begins


@dataclass(frozen=True)
class Deadline:
    """When work was due, and what each day that begins after it costs, in percent of the points."""

    due: datetime | None = None
    percent: float = 0.0
    stamped: bool = False  # whether a timestamp.txt beside a notebook is the grader's own

    def lateness(self, file: Path | None) -> tuple[str, float]:
        """How late a submission is, in words or "", and the fraction of its points it costs."""
        if file is None:
            return "", 0.0
        unknown = "late, says Canvas: how late is not known" if CANVAS_LATE.match(file.name) else ""
        if self.due is None:
            return unknown, 0.0
        try:
            late = (time_of(file, self.stamped) - self.due).total_seconds()
        except (OSError, ValueError, OverflowError) as error:
            return f"late? its time cannot be read: {error}", 0.0
        if late <= 0:
            return unknown, 0.0
        late, days = math.ceil(late), math.ceil(late / 86400)
        words = f"late by {duration(late)}"
        penalty = min(1.0, days * self.percent / 100)
        if not penalty:
            return words, 0.0
        counts = f"which counts as {days} day{'s' if days > 1 else ''}"
        return f"{words}, {counts}: {100 * penalty:.4g}% less", penalty


def duration(seconds: int) -> str:
    """A time in words that leave nothing out, such as "2 days 12 h" or "1 min 30 s"."""
    parts = []
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, seconds = divmod(seconds, size)
        if number:
            parts.append("1 day" if (number, unit) == (1, "days") else f"{number} {unit}")
    return " ".join(parts)


def time_of(file: Path, stamped: bool) -> datetime:
    """When a file came: its own time, or what nbgrader or ``make collect`` wrote beside it."""
    stamp = file.with_name("timestamp.txt")
    if stamped and stamp.is_file() and not stamp.is_symlink():
        with stamp.open(encoding="utf-8") as text:
            return parse_due(text.read(100))
    return datetime.fromtimestamp(file.lstat().st_mtime, UTC)


def parse_due(text: str) -> datetime:
    """The time that a text such as ``2026-12-01 23:59 Europe/Berlin`` names.

    A day without a time means its last second. A time without a zone is in this computer's zone.
    A zone is an offset such as +01:00, Z, or a name of the zone database. An abbreviation that the
    database does not have, such as CEST, raises a ValueError, because its offset is ambiguous.
    """
    try:
        day, time, zone = TIME.fullmatch(text.strip()).groups()
        is_offset = zone and (zone == "Z" or zone[0] in "+-")
        when = datetime.fromisoformat(f"{day}T{time or '23:59:59'}{zone if is_offset else ''}")
        if is_offset:
            return when
        return when.replace(tzinfo=ZoneInfo(zone)) if zone else when.astimezone()
    except (AttributeError, KeyError, ValueError, OSError):
        raise ValueError(
            f"expected a day or a time, such as 2026-12-01 or 2026-12-01T23:59, and perhaps a zone "
            f"such as +01:00, UTC or Europe/Berlin, but got {text!r}"
        ) from None
