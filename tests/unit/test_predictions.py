"""The reader's predictions: kept, shown beside what came out, counted, and never in the way."""

import json
from pathlib import Path

import pytest

from helpers import predictions, questions
from helpers.predictions import outcome, predict, record_of

CLOCKS, RIGHT = "01 clocks", "b"


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(predictions, "FILE", tmp_path / predictions.NAME)
    return tmp_path / predictions.NAME


@pytest.fixture
def said(capsys: pytest.CaptureFixture):
    """What the last call has said."""
    return lambda: capsys.readouterr().out.strip()


def test_a_letter_is_kept_and_shown_again_with_what_came_out(file: Path, said) -> None:
    predict(CLOCKS, "a")
    assert said().startswith("You predict (a): All four report about 0.3 seconds")
    predict(CLOCKS, "?")
    assert said().startswith("You predicted (a): All four")
    outcome(CLOCKS)
    assert said() == "You predicted (a), and the answer is (b)."
    first, second = map(json.loads, file.read_text().splitlines())
    assert (first["question"], first["chose"], second["saw"]) == (CLOCKS, "a", "b")
    assert first["time"] <= second["time"]


def test_the_prediction_is_the_last_letter_before_the_check(file: Path, said) -> None:
    for letter in "ac":
        predict(CLOCKS, letter)
    for letter in "cbb":  # a second run
        outcome(CLOCKS)
        predict(CLOCKS, letter)
    said()
    outcome(CLOCKS)
    assert said() == "You predicted (c), and the answer is (b). Later you chose (b)."
    letters = [json.loads(line).get("chose", "saw") for line in file.read_text().splitlines()]
    assert letters == ["a", "c", "saw", "b"]


@pytest.mark.parametrize("wrong", ["d", "B ", "", "ab", 3, None, ["a"], "what?"])
def test_a_wrong_letter_is_one_sentence_and_not_kept(file: Path, said, wrong: object) -> None:
    predict(CLOCKS, wrong)
    sentence = (
        f'The answer must be "a", "b" or "c", in quotes, but it is {wrong!r}, so it was not kept.'
    )
    assert said() == sentence
    assert not file.exists()


def test_nothing_predicted_shows_nothing_at_the_check(file: Path, said) -> None:
    predict(CLOCKS, "?")
    assert said().startswith('No prediction yet: write "a", "b" or "c" instead of')
    outcome(CLOCKS)
    assert said() == ""
    record_of("01")
    assert said() == "You have predicted none of this lesson's 5 answers yet."
    assert not file.exists()


def test_a_question_of_another_version_is_named(file: Path, said) -> None:
    predict("01 sundial", "a")
    assert said() == "This version of the course has no question '01 sundial', so nothing was kept."
    outcome("01 sundial")
    assert said() == ""


def test_what_cannot_be_written_or_read_is_said(file: Path, said) -> None:
    file.mkdir()
    predict(CLOCKS, "a")
    assert said().endswith(f"(This could not be kept in {predictions.NAME}: Is a directory.)")
    file.rmdir()
    predict(CLOCKS, "a")
    damaged = b'\xff\n{"question"\n[1]\n{"chose": "f", "question": "01 clocks"}\n{"chose": 3}\n'
    file.write_bytes(file.read_bytes() + damaged)
    said()
    record_of("01")
    summary, go_back_to = said().splitlines()
    assert summary.startswith("1 of 5 answers predicted, and 0 of them right. 5 lines of")
    assert go_back_to.startswith(
        "- Wall time and process time: you predicted (a), not (b). We time"
    )
    assert file.read_bytes().endswith(damaged)


def test_an_instructor_sees_the_votes_and_the_answer_only_at_the_check(file: Path, said) -> None:
    counts = {CLOCKS: {"a": 3, "b": 12}}
    file.with_name(predictions.OF_THE_CLASS).write_text(json.dumps(counts))
    predict(CLOCKS, "?")
    _, *votes = said().splitlines()
    assert [line.split()[:2] for line in votes] == [["3", "(a)"], ["12", "(b)"], ["0", "(c)"]]
    assert "✓" not in "".join(votes)
    outcome(CLOCKS)
    assert [line.endswith("✓") for line in said().splitlines()] == [False, True, False]


def test_every_bar_has_its_length_and_only_the_right_one_is_green() -> None:
    question = questions.Question("01 x", "", "", {"a": "`a < b`", "b": "*no*", "c": "c"}, "b")
    _, markup = questions.votes(question, {"a": 4, "c": 1}, "b")
    assert [f"width: {width}%" in markup for width in (100, 0, 25)] == [True] * 3
    assert markup.count(questions.GREEN) == 1
    assert "<code>a &lt; b</code>" in markup
    assert "<em>no</em>" in markup


def test_the_right_letters_are_spread_evenly() -> None:
    letters = [question.right for question in questions.questions().values()]
    assert len(letters) > 100
    assert max(map(letters.count, "abc")) <= 0.4 * len(letters)


@pytest.mark.parametrize(
    "text", ["Which? (a) One. (c) Two.", "Which?", "**Predict.** Which? (a) One. (b) Two."]
)
def test_a_question_without_options_or_an_answer_is_an_error(text: str) -> None:
    cells = [
        {"cell_type": "markdown", "source": text},
        {"cell_type": "code", "source": 'predict("01 x", "?")'},
        {"cell_type": "markdown", "source": "The answer is (d)."},
    ]
    with pytest.raises(ValueError, match="'01 x': the text above asks nothing, or none answers"):
        list(questions.asked_in(cells))
