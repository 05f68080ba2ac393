"""A class whose answers are read, but not run, so that a test is quick."""

from pathlib import Path

import pytest

from tests.grading.classroom import HAS_GRADER, Class


@pytest.fixture
def everyone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Class:
    """A class of which each answer that could be read counts as right, and no page is written."""
    if not HAS_GRADER:
        pytest.skip("the grader needs nbgrader and Linux")
    from grading import feedback, score

    def read_only(submission, reading, *_: object) -> tuple:
        try:
            answers = submission.answers(reading)
        except ValueError as error:
            return score.no_points(submission, str(error), reading)
        notebook = score.issued_copy(submission)
        return score.result(submission, notebook, {}, answers), notebook

    monkeypatch.setattr(score, "score", read_only)
    monkeypatch.setattr(feedback, "page", lambda notebook, result: result["student"])
    return Class(tmp_path)
