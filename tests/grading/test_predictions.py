"""What a class predicted: every file is counted or named, and nobody's name is on the page."""

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from grading import predictions
from helpers.predictions import NAME, OF_THE_CLASS
from helpers.questions import questions
from tools import notebooks

STUDENTS = [f"student-{number:02}" for number in range(30)]
DAMAGED = {
    "student-07": b'{"time": "2026-11-29T10:00:00+00:00", "ques',
    "student-11": b'{"question": "00 speed", "chose": "c"}\n',  # it has (a) and (b)
    "student-23": bytes(range(256)),
}


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the page and the counts go."""
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def handed_in(tmp_path: Path) -> tuple[Path, Counter]:
    """A class's folder, with files as a hub and two platforms give them, and what it predicted."""
    folder, counts, rng = tmp_path / "class", Counter(), random.Random(0)
    for number, student in enumerate(STUDENTS):
        lines = []
        for question in questions().values() if student not in DAMAGED else ():
            if rng.random() < 0.7:
                first, second = rng.choices(list(question.options), k=2)
                counts[question.name, first] += 1
                lines += [{"chose": first}, {"saw": question.right}, {"chose": second}]
                lines[-3:] = [{"question": question.name, **line} for line in lines[-3:]]
        name = (
            f"{student}/predictions/{NAME}",
            f"{student}_123_assignsubmission_file_/{NAME}",
            f"{student}_123_456_predictions-1.jsonl",
        )[number % 3]
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        path.write_bytes(DAMAGED.get(student, text.encode()))
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / NAME).write_text("an editor's")
    return folder, counts


def test_a_class_of_thirty_of_whom_three_files_are_damaged(course, handed_in, capsys) -> None:
    folder, counts = handed_in
    assert predictions.main([str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "written: reports/predictions.html, from 27 files" in out
    assert re.findall(r"^left out: (student-\d\d)", err, re.M) == list(DAMAGED)
    page = (course / "reports" / "predictions.html").read_text("utf-8")
    assert "From 27 files of predictions." in page
    assert "3 files could not be read." in page
    assert not any(student in page for student in STUDENTS)
    shown = [int(number) for number in re.findall(r"<b>(\d+)</b>", page)]
    options = [(it.name, letter) for it in questions().values() for letter in it.options]
    assert shown == [counts[option] for option in options]
    assert page.count(" ✓") == len(questions())
    of_the_class = json.loads((course / "teach" / OF_THE_CLASS).read_text("utf-8"))
    found = {(name, a): n for name, letters in of_the_class.items() for a, n in letters.items()}
    assert found == counts


def test_one_lesson_alone(course, handed_in) -> None:
    assert predictions.main([str(handed_in[0]), "--lesson", "01"]) == 0
    page = (course / "reports" / "predictions.html").read_text("utf-8")
    assert re.findall(r"<h2 id=\"(\d\d)\">", page) == ["01"]
    assert page.count("<section>") == sum(name.startswith("01 ") for name in questions())


def test_what_cannot_be_counted_ends_in_a_sentence(course, tmp_path, capsys) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / NAME).touch()
    (empty / "linked.jsonl").symlink_to(NAME)
    (empty / "large.jsonl").write_bytes(b"\n" * (predictions.LARGEST + 1))
    assert predictions.main([str(empty)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "left out: large.jsonl: it has more than 1 MB, but is a list of letters",
        "left out: linked.jsonl: it is a link: hand in the file itself",
        f"left out: {NAME}: it holds no prediction",
        f"{empty} holds no file of predictions that can be read",
    ]
    for words, sentence in (
        ([""], "expected the folder with the class's files, but got ''"),
        ([str(tmp_path / "no")], "expected the folder with the class's files, but got"),
        ([str(empty), "--lesson", "1"], "there is no lesson '1': give a number, such as 01"),
    ):
        with pytest.raises(SystemExit):
            predictions.main(words)
        assert sentence in capsys.readouterr().err
    assert not (course / "reports").exists()
