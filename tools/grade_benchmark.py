"""Twelve submissions of one set: ours, in sandboxes, and stock nbgrader, by turns.

python -m tools.grade_benchmark SET [ROUNDS]
"""

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
    solved = notebooks.read(source)
    solved.cells = [cell for cell in solved.cells if "wrong" not in cell.metadata.get("tags", [])]
    for student in students:
        for cell in solved.cells:
            if cell.id == "student":
                cell.source = f"student = {student!r}"
        place = folder / "submitted" / student / source.stem
        place.mkdir(parents=True)
        nbformat.write(solved, place / source.name)
    nbgrader = str(Path(sys.executable).with_name("nbgrader"))
    run([nbgrader, "generate_assignment", source.stem], folder)
    return [nbgrader, "autograde", source.stem, "--force"]


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
    source, rounds = exercises.solution(arguments[0]).resolve(), int((arguments[1:] or ["3"])[0])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stock = classroom(source, folder)
        ours = [sys.executable, "-m", "tools.grade", str(folder / "submitted"), "--jobs", "2"]
        ours += ["--sets", str(folder / "notebooks" / "solutions"), "--out"]
        seconds: dict[str, list[float]] = {"nbgrader autograde": [], "make grade": []}
        for number in range(rounds):
            seconds["nbgrader autograde"].append(run(stock, folder))
            seconds["make grade"].append(run([*ours, str(folder / f"out{number}")], folder))
    for what, taken in seconds.items():
        print(f"{what:20} {', '.join(f'{one:.1f}' for one in taken)} s")
    ratio = median(a / b for a, b in zip(*seconds.values(), strict=True))
    print(f"{len(STUDENTS)} submissions of {source.stem}: {ratio:.2f} times as fast")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
