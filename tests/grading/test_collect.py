"""What a class hands in on a hub, read as the students, and nothing else."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell

from grading import collect
from helpers import predictions
from tools import exercise_sets, notebooks

if sys.platform == "win32":
    pytest.skip("a hub does not run on Windows", allow_module_level=True)

SET = exercise_sets.EXERCISES / "03_macs_and_flops" / "03_macs_and_flops.ipynb"
FIRST = 60_000  # the user who owns the first home, where root runs this
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can read as several users")


class Hub:
    """Homes, and a folder for what is collected."""

    def __init__(self, folder: Path) -> None:
        self.homes, self.folder, self.students = folder / "homes", folder / "handed-in", []

    def home(self, student: str) -> Path:
        """The folder in a student's home where the student's copy of the set is."""
        folder = self.homes / student / "measure-pytorch/work/exercises" / SET.stem
        folder.mkdir(parents=True)
        self.students.append(student)
        return folder

    def write(self, student: str, answer: str = "", written_id: str = "") -> Path:
        copy = notebooks.read(SET)
        for cell in copy.cells:
            if cell.id == "student":
                cell.source = f'student = "{written_id or student}"'
            elif cell.id == "hand-answer" and answer:
                cell.source = answer
        path = self.home(student) / SET.name
        path.write_text(notebooks.as_text(copy))
        os.utime(path, (0, 0))
        return path

    def collect(self, capsys: pytest.CaptureFixture) -> list[str]:
        for number, student in enumerate(self.students):
            home = self.homes / student
            for path in [home, *home.rglob("*")] if os.geteuid() == 0 else ():
                os.chown(path, FIRST + number, FIRST + number, follow_symlinks=False)
            home.chmod(0o700)
        assert collect.main([str(self.homes), str(self.folder)]) == 0
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[1:]]


@pytest.fixture
def hub() -> Iterator[Hub]:
    """In a folder that the students can enter; pytest's own are closed."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o711)
        yield Hub(Path(folder))


def test_what_was_begun_is_collected_with_its_time(hub: Hub, capsys) -> None:
    path = hub.write("ada", answer="macs = 1")
    hub.write("grace", answer="macs = 2", written_id="ada")
    hub.write("zoe")  # only the id
    assert hub.collect(capsys) == [
        "ada 03_macs_and_flops 1970-01-01 00:00:00 collected",
        "grace 03_macs_and_flops 1970-01-01 00:00:00 collected; its id is 'ada', and it will be "
        "graded as 'grace'",
        "zoe - - nothing was handed in",
    ]
    assert sorted(folder.name for folder in hub.folder.iterdir()) == ["ada", "grace"]
    assert hub.folder.stat().st_mode & 0o777 == 0o700
    copy = hub.folder / "ada" / SET.stem / SET.name
    assert copy.read_bytes() == path.read_bytes()
    assert copy.with_name("timestamp.txt").read_text() == "1970-01-01 00:00:00 UTC\n"


def test_predictions_are_collected_and_hinder_no_grade(hub: Hub, capsys) -> None:
    pytest.importorskip("nbgrader", reason="requirements-grade.txt")
    from grading import deadlines, submissions

    hub.write("ada", answer="macs = 1")
    for student in ("ada", "grace", "zoe"):
        work = hub.homes / student / "measure-pytorch" / "work"
        if student != "ada":
            hub.home(student)
        path = work / predictions.NAME
        if student == "zoe":
            path.symlink_to(hub.homes / "ada" / "measure-pytorch" / "work" / predictions.NAME)
        else:
            path.write_text(f"{student}'s")
            os.utime(path, (0, 0))
    assert hub.collect(capsys) == [
        "ada 03_macs_and_flops 1970-01-01 00:00:00 collected",
        "ada predictions 1970-01-01 00:00:00 collected",
        "grace predictions 1970-01-01 00:00:00 collected",
        "zoe predictions - NOT COLLECTED: measure-pytorch/work/predictions.jsonl is a link, or "
        "leads through one",
    ]
    for student in ("ada", "grace"):
        copy = hub.folder / student / "predictions" / predictions.NAME
        assert copy.read_text() == f"{student}'s"
    source = exercise_sets.SOLUTIONS / SET.stem / SET.name
    students = submissions.students_in(hub.folder)
    found = submissions.find_submissions(students, {source: []}, deadlines.Deadline())
    assert [(each.student, each.nothing if each.others else bool(each.file)) for each in found] == [
        ("ada", True),
        ("grace", False),
    ]


def test_a_full_disk_leaves_what_was_collected_as_it_was(hub: Hub, capsys, monkeypatch) -> None:
    path = hub.write("ada", answer="macs = 1")
    hub.collect(capsys)
    copy = hub.folder / "ada" / SET.stem / SET.name
    before = copy.read_bytes()
    path.write_bytes(path.read_bytes().replace(b"macs = 1", b"macs = 2"))

    def full(path: Path, content: bytes) -> None:
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(SystemExit, match=r"Not everything was collected: \[Errno 28\] No space"):
        hub.collect(capsys)
    assert copy.read_bytes() == before


def test_a_damaged_file_is_the_graders_and_other_names_are_nobodys(hub: Hub, capsys) -> None:
    damaged = hub.write("ada")
    damaged.write_text('{"cells": [')
    os.utime(damaged, (0, 0))
    path = hub.write("grace", answer="macs = 2")
    path.rename(path.with_name(f"{SET.stem}.yours-1.ipynb"))
    assert hub.collect(capsys) == [
        "ada 03_macs_and_flops 1970-01-01 00:00:00 collected, but the file is not a whole "
        "notebook (NotJSONError)",
        "grace - - nothing was handed in",
    ]


def test_a_link_out_of_a_home_collects_nothing(hub: Hub, capsys) -> None:
    theirs = hub.write("ada", answer="macs = 1")
    (hub.home("grace") / SET.name).symlink_to(theirs)
    folder = hub.home("zoe")
    folder.rmdir()
    folder.symlink_to(theirs.parent)
    lines = hub.collect(capsys)
    assert [line.split()[0] for line in lines] == ["ada", "grace", "zoe"]
    assert all("NOT COLLECTED" in line and "is a link" in line for line in lines[1:])
    assert [folder.name for folder in hub.folder.iterdir()] == ["ada"]


def test_work_in_cells_without_ids_or_in_new_ones_is_collected(hub: Hub, capsys) -> None:
    bare, untouched = hub.write("bare", answer="macs = 1"), hub.write("untouched")
    for path in (bare, untouched):  # as an old editor saves it
        copy = notebooks.read(path)
        copy.nbformat_minor = 4
        for cell in copy.cells:
            cell.metadata = {}
            del cell["id"]
        path.write_text(notebooks.as_text(copy))
    for student, removed in (("replaces", 1), ("adds", 0)):
        path = hub.write(student)
        copy = notebooks.read(path)
        place = [cell.id for cell in copy.cells].index("hand-answer")
        copy.cells[place : place + removed] = [new_code_cell("macs = 1")]
        path.write_text(notebooks.as_text(copy))
    first = hub.write("first-cell")
    first.write_text(first.read_text().replace("student = ", "macs = 1\\nstudent = ", 1))
    lines = {line.split()[0]: line for line in hub.collect(capsys)}
    assert lines.pop("untouched") == "untouched - - nothing was handed in"
    assert sorted(lines) == ["adds", "bare", "first-cell", "replaces"]
    assert all(line.endswith(" collected") for line in lines.values())
    assert sorted(folder.name for folder in hub.folder.iterdir()) == sorted(lines)


def test_of_a_linked_home_only_what_was_begun_is_reported(hub: Hub, capsys) -> None:
    begun, untouched = hub.write("begun", answer="macs = 1"), hub.write("untouched")
    hub.home("lost")
    for path in (begun, untouched):
        work = path.parents[2]
        for other in exercise_sets.EXERCISES.glob("0[12]_*"):
            (work / "exercises" / other.name).mkdir()
            copy = notebooks.read(other / f"{other.name}.ipynb")
            (work / "exercises" / other.name / f"{other.name}.ipynb").write_text(
                notebooks.as_text(copy)
            )
        work.rename(work.with_name("elsewhere"))
        work.symlink_to("elsewhere")
    lost = hub.homes / "lost" / "measure-pytorch" / "work"
    lost.rename(lost.with_name("away"))
    lost.symlink_to("nowhere")
    assert hub.collect(capsys) == [
        f"begun {SET.stem} - NOT COLLECTED: measure-pytorch/work/exercises/{SET.stem}/{SET.name} "
        "is a link, or leads through one",
        "lost - - NOT COLLECTED: measure-pytorch/work is a link that leads nowhere",
        "untouched - - nothing was handed in",
    ]


@AS_ROOT
def test_a_file_is_read_as_the_student(hub: Hub, capsys) -> None:
    theirs = hub.write("ada", answer="macs = 1")
    hub.write("grace", answer="macs = 2")
    hidden = hub.write("zoe", answer="macs = 3")
    hub.collect(capsys)
    mine = hub.homes / "grace" / theirs.relative_to(hub.homes / "ada")
    mine.unlink()
    os.link(theirs, mine)  # as a student can where fs.protected_hardlinks is 0
    theirs.chmod(0o644)
    hidden.chmod(0)
    (hub.homes / "root" / "measure-pytorch").mkdir(parents=True)
    assert collect.main([str(hub.homes), str(hub.folder.with_name("again"))]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[2:]]
    assert "is not a plain file of the student's own" in lines[0]
    assert lines[1:] == [
        "root - - NOT COLLECTED: measure-pytorch is root's",
        "zoe 03_macs_and_flops - NOT COLLECTED: Permission denied",
    ]
    assert (os.geteuid(), os.getegid()) == (0, 0)


def test_what_cannot_be_collected_ends_in_a_sentence(tmp_path: Path, capsys) -> None:
    for folders, sentence in (
        ([tmp_path / "no", tmp_path / "out"], "expected the folder that holds the students' homes"),
        (["", ""], "give both folders: make collect HOMES=/home SUBMISSIONS=submissions"),
    ):
        with pytest.raises(SystemExit):
            collect.main([str(folder) for folder in folders])
        assert sentence in capsys.readouterr().err
    (tmp_path / "out").touch()
    with pytest.raises(SystemExit, match=r"Not everything was collected: .*File exists: .*/out"):
        collect.main([str(tmp_path), str(tmp_path / "out")])
