"""Every word of the glossary in lesson 00 stands in each lesson that its row links to."""

import re

from tools import notebooks


def prose(name: str) -> str:
    cells = notebooks.read(notebooks.NOTEBOOKS / name).cells
    kept = (c for c in cells if c.cell_type == "markdown" and "glossary" not in c.id)
    return "\n".join(cell.source for cell in kept)


def test_the_words_stand_where_the_glossary_says() -> None:
    cells = notebooks.read(notebooks.NOTEBOOKS / "00_start_here.ipynb").cells
    table = "\n".join(cell.source for cell in cells if "glossary" in cell.id)
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 15
    for words, _, where in rows[1:]:
        lessons = re.findall(r"\((\w+\.ipynb)\)", where)
        lessons += ["00_start_here.ipynb"] * where.startswith("here")
        lacking = [
            (word, lesson)
            for lesson in lessons
            if (notebooks.NOTEBOOKS / lesson).exists()  # else the rule of links complains
            for word in words.split(", ")
            if word.lower() not in prose(lesson).lower()
        ]
        assert not lacking
