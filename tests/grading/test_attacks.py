"""The page of a class says which attacks fooled how many of its harnesses."""

from grading import tables


def result(**failures: str) -> dict:
    return {"student": "s", "lesson": "fool_and_repair", "failures": failures}


def said(names: str) -> str:
    return f"WrongAnswer: attacks that fool measure: expected [], but got {names}"


def test_each_harness_counts_once_for_an_attack() -> None:
    results = [
        result(second=said("['only_nan', 'only_nan']"), third=said("['only_nan', 'same_values']")),
        result(second=said("['only_nan']")),
        result(second="errors of measure: expected [], but got ['it took more than 15 s']"),
        result(),
    ]
    assert list(tables.attacks(results)) == [
        "| attack | harnesses that it fooled |\n|---|---|",
        "| `only_nan` | 2 of 4 |",
        "| `same_values` | 1 of 4 |",
        "",
    ]


def test_a_class_that_no_attack_fooled_has_no_such_table() -> None:
    assert list(tables.attacks([result(), result(one="not answered yet")])) == []


def test_a_forged_sentence_adds_no_markup_and_no_long_words() -> None:
    forged = [said("['<b>attack</b>']"), said("['a|b']"), said("['" + "x" * 99 + "']")]
    rows = [row for one in forged for row in tables.attacks([result(one=one)])]
    assert "<" not in "".join(rows)
    assert max(map(len, rows), default=0) < 90
