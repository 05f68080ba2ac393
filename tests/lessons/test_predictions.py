"""A reader whose every second prediction is wrong: the checks and the recap show it."""

import re
from collections.abc import Iterator
from pathlib import Path

import nbclient
import pytest
from nbformat import NotebookNode

from helpers import predictions, questions
from tools import notebooks

LESSONS = sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
Made = list[tuple[questions.Question, str]]


def predicted_in(lesson: NotebookNode) -> Iterator[tuple[questions.Question, str]]:
    """Write letters into a lesson's questions, of which every second is wrong, up to the recap."""
    for number, cell in enumerate(filter(notebooks.is_prediction, lesson.cells)):
        if not (called := questions.CELL.fullmatch(cell.source)):
            return
        question = questions.questions()[called["name"]]
        wrong = next(letter for letter in question.options if letter != question.right)
        letter = wrong if number % 2 else question.right
        cell.source = f'predict("{question.name}", "{letter}")'
        yield question, letter


def assert_recap(text: str, markup: str, made: Made) -> None:
    """The picture has a square for each question, and the wrong ones are named below it."""
    wrong = [question for question, letter in made if letter != question.right]
    assert len(wrong) == len(made) // 2
    first, *named = text.splitlines()
    right = len(made) - len(wrong)
    summary = (
        f"{len(made)} of {len(made)} answers predicted, and {right} of them right. Go back to:"
    )
    assert first == summary
    assert [line.partition(": you")[0] for line in named] == [f"- {it.section}" for it in wrong]
    squares = re.findall(r"solid (#\w+)[^>]*>(.)</span>", markup)
    colours = {True: questions.GREEN, False: questions.AMBER}
    assert squares == [(colours[letter == it.right], letter) for it, letter in made]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name)
def test_a_recap_counts_what_was_predicted(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    monkeypatch.setattr(predictions, "FILE", tmp_path / predictions.NAME)
    monkeypatch.setattr(predictions, "_show", lambda *shows: shown.append(shows))
    lesson = notebooks.read(path)
    made = list(predicted_in(lesson))
    for cell in [*filter(notebooks.is_prediction, lesson.cells)][: len(made) + 1]:
        exec(cell.source, {"predict": predictions.predict, "record_of": predictions.record_of})
    assert_recap(*shown[-1], made)


@pytest.mark.everything
def test_a_lesson_that_was_predicted_shows_it_at_each_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = notebooks.NOTEBOOKS / "06_gpu_timeline.ipynb"  # from recordings, so it is exact
    lesson, stored = notebooks.read(path), notebooks.read(path)
    made = list(predicted_in(lesson))
    monkeypatch.setenv("PREDICTIONS_FILE", str(tmp_path / predictions.NAME))
    nbclient.NotebookClient(
        lesson,
        timeout=notebooks.CELL_TIMEOUT,
        resources={"metadata": {"path": str(notebooks.NOTEBOOKS)}},
        extra_arguments=notebooks.KERNEL_ARGUMENTS,
    ).execute()
    outcomes = []
    for cell, before in zip(lesson.cells, stored.cells, strict=True):
        if cell.cell_type == "code" and not notebooks.is_prediction(cell):
            new = [text for _, text in notebooks.texts(cell.outputs) if text.startswith("You pre")]
            outcomes += new
            kept = [out for out in cell.outputs if "You predicted" not in str(out)]
            assert len(kept) == len(before.outputs)
    assert outcomes == [
        f"You predicted ({letter}), and the answer is ({question.right})."
        for question, letter in made
    ]
    (record,) = (cell for cell in lesson.cells if cell.source.startswith("record_of("))
    shown = record.outputs[0].data
    assert_recap(shown["text/plain"], shown["text/html"], made)
