"""The table of the lessons, ``lessons.toml``."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "lessons.toml"


@dataclass(frozen=True)
class Lesson:
    """One row. ``name`` is the notebook's, ``part`` a heading of the map or nothing."""

    number: str
    name: str
    title: str
    question: str
    tools: str
    part: str = ""

    @property
    def heading(self) -> str:
        """The first line of the notebook, without its mark."""
        question = self.question[0].lower() + self.question[1:]
        return f"{self.number} · {self.title}: {question}"


LESSONS = [Lesson(**row) for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["lesson"]]
