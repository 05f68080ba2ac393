"""The students' copy of the course holds no solution, no test and nobody's work."""

import subprocess
from pathlib import Path

import pytest

from tools import handout, notebooks

SET = "03_macs_and_flops/03_macs_and_flops.ipynb"


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A small repository with one set, its solution and a lesson, committed."""
    root = tmp_path / "course"
    solved = 'x = 1\n### BEGIN SOLUTION\nx = "secret"\n### END SOLUTION'
    for name, text in {
        f"notebooks/solutions/{SET}": solved,
        f"notebooks/exercises/{SET}": "x = ...  # your answer",
        "notebooks/solutions_explained.ipynb": "a lesson whose name begins alike",
        "helpers/units.py": "",
        "tests/test_answers.py": "counts = 'secret'",
        "submissions/ada/03_macs_and_flops.ipynb": "student = 'ada', secret",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def test_a_copy_has_no_solution_and_no_history(course: Path, tmp_path: Path) -> None:
    (course / "later.txt").write_text("not committed", encoding="utf-8")
    assert handout.write(tmp_path / "out", course) == 3
    files = {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*")}
    assert f"notebooks/exercises/{SET}" in files
    assert "notebooks/solutions_explained.ipynb" in files
    assert not files & {"notebooks/solutions", "tests", ".git", "later.txt"}
    assert handout.uncommitted(course) == ["later.txt"]
    everything = "".join(
        path.read_text(encoding="utf-8")
        for path in (tmp_path / "out").rglob("*.*")
        if path.is_file()
    )
    assert "secret" not in everything


def test_a_solution_among_the_exercises_is_refused(course: Path, tmp_path: Path) -> None:
    solution = (course / "notebooks" / "solutions" / SET).read_text(encoding="utf-8")
    (course / "notebooks" / "exercises" / SET).write_text(solution, encoding="utf-8")
    git(course, "commit", "-qam", "by mistake")
    with pytest.raises(ValueError, match="contains a solution: run make refresh"):
        handout.write(tmp_path / "out", course)
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_over(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "marks.csv").write_text("ada,10", encoding="utf-8")
    assert handout.main([str(tmp_path / "mine")]) == 1
    assert "is not an empty folder" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["marks.csv"]
    with pytest.raises(ValueError, match="git cannot read the course's last commit here"):
        handout.write(tmp_path / "out", tmp_path)
    assert handout.main([""]) == 2


def test_the_course_itself_can_be_handed_out(tmp_path: Path) -> None:
    if not (notebooks.ROOT / ".git").exists():
        pytest.skip("a copy without git")
    handout.write(tmp_path / "out")
    copied = {path.parent.name for path in (tmp_path / "out").glob("notebooks/exercises/*/*.ipynb")}
    assert copied == {path.parent.name for path in notebooks.NOTEBOOKS.glob("exercises/*/*.ipynb")}
    assert not (tmp_path / "out" / "notebooks" / "solutions").exists()
