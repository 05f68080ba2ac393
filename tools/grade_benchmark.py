"""Ours, in sandboxes, beside stock nbgrader.

python -m tools.grade_benchmark SET [ROUNDS]         twelve submissions of one set, by turns
python -m tools.grade_benchmark --agree SET [SET …]  the points of the solution, the blank, and of
                                                     two wrong answers to each task
"""

import csv
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import nbformat

from tools import exercises, notebooks

STUDENTS = [f"student{n:02}" for n in range(12)]


def classroom(source: Path, folder: Path, students: list[str] = STUDENTS) -> list[str]:
    """A folder for nbgrader with the set, and the solution handed in by each; its command."""
    target = folder / "notebooks" / "solutions" / source.stem
    target.mkdir(parents=True)
    shutil.copy(source, target)
    shutil.copy(notebooks.ROOT / "nbgrader_config.py", folder)
    for student in students:
        hand_in(folder, source, student, {})
    nbgrader = str(Path(sys.executable).with_name("nbgrader"))
    run([nbgrader, "generate_assignment", source.stem], folder)
    return [nbgrader, "autograde", source.stem, "--force"]


def hand_in(folder: Path, source: Path, student: str, answers: dict[str, str]) -> None:
    """The solution with other ``answers``, as a student's submission."""
    solved = notebooks.read(source)
    solved.cells = [cell for cell in solved.cells if "wrong" not in cell.metadata.get("tags", [])]
    for cell in solved.cells:
        mine = {**answers, "student": f"student = {student!r}"}
        cell.source = mine.get(cell.id, cell.source)
    place = folder / "submitted" / student / source.stem
    place.mkdir(parents=True)
    nbformat.write(solved, place / source.name)


def agree(source: Path, folder: Path) -> bool:
    """Whether both give each task of four submissions the same points; what differs is printed."""
    from nbgrader.api import Gradebook

    which = exercises.Set(source)
    stock = classroom(source, folder, students=[])
    last = {task: which.of(task, "answer")[-1].id for task in which.tasks}
    wrong = [{}, {}]
    for task in which.tasks:
        known = [cell for cell in which.wrong if exercises.parts(cell.id)[0] == task]
        for answers, cell in zip(wrong, known, strict=False):
            answers[last[task]] = cell.source
    blank = {c.id: exercises.blank(c) for task in which.tasks for c in which.of(task, "answer")}
    everyone = dict(zip(("ada", "blank", "wrong1", "wrong2"), ({}, blank, *wrong), strict=True))
    for student, answers in everyone.items():
        hand_in(folder, source, student, answers)
    run(stock, folder)
    run([*ours(folder), str(folder / "out")], folder)
    with (folder / "out" / "grades.csv").open(newline="") as file:
        here = {(row["student"], row["task"]): float(row["points"]) for row in csv.DictReader(file)}
    there = dict.fromkeys(here, 0.0)
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as book:
        for student in everyone:
            for grade in book.find_submission_notebook(source.stem, source.stem, student).grades:
                there[student, exercises.parts(grade.name)[0]] += grade.score
    for who, task in here:
        if here[who, task] != there[who, task]:
            print(f"{source.stem}, {who}, {task}: {here[who, task]}, nbgrader {there[who, task]}")
    same = here == there
    sums = [sum(points for (who, _), points in here.items() if who == one) for one in everyone]
    print(f"{source.stem}: {'alike' if same else 'not alike'}; points {sums}", flush=True)
    return same


def ours(folder: Path) -> list[str]:
    """The command that grades here, but for its last word."""
    words = [sys.executable, "-m", "tools.grade", str(folder / "submitted"), "--jobs", "2"]
    return [*words, "--sets", str(folder / "notebooks" / "solutions"), "--out"]


def run(words: list[str], folder: Path) -> float:
    """The seconds of a command, which must succeed."""
    search = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(folder)}
    start = time.perf_counter()
    done = subprocess.run(
        words,
        cwd=folder,
        env={**search, "PYTHONPATH": str(notebooks.ROOT), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
    return time.perf_counter() - start


def main(arguments: list[str]) -> int:
    if arguments[0] == "--agree":
        alike = []
        for word in arguments[1:]:
            with tempfile.TemporaryDirectory() as name:
                alike.append(agree(exercises.solution(word).resolve(), Path(name)))
        return 0 if all(alike) else 1
    source, rounds = exercises.solution(arguments[0]).resolve(), int((arguments[1:] or ["3"])[0])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stock = classroom(source, folder)
        seconds: dict[str, list[float]] = {"nbgrader autograde": [], "make grade": []}
        for number in range(rounds):
            seconds["nbgrader autograde"].append(run(stock, folder))
            seconds["make grade"].append(run([*ours(folder), str(folder / f"out{number}")], folder))
    for what, taken in seconds.items():
        print(f"{what:20} {', '.join(f'{one:.1f}' for one in taken)} s")
    ratio = median(a / b for a, b in zip(*seconds.values(), strict=True))
    print(f"{len(STUDENTS)} submissions of {source.stem}: {ratio:.2f} times as fast")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
