"""A simulated class on the hub of deploy/: from the login to the pages that the students get back.

    sudo .venv/bin/python -m tests.ninety FOLDER [--students 90] [--wave 10]

All students log in and start their servers at the same time. Then they work in waves: ``--wave`` of
them at once open lesson 01, predict, run it, and solve its exercises, each well or badly. After
that, the class is collected, graded in four parts by a Slurm with one node, marked by hand, and
gets its pages back. What was measured and what broke is printed; FOLDER keeps what was handed in.
It needs what the tests of the hub, of the grader and of Slurm need.
"""

import argparse
import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

import psutil

from grading import predictions
from helpers import terminal
from helpers.questions import questions
from tests.tools import cluster, hub
from tools import exercise_sets, notebooks

SET = exercise_sets.Set(exercise_sets.solution("01"))
NAME = SET.path.stem
LESSON, EXERCISE = f"{NAME}.ipynb", f"exercises/{NAME}/{NAME}.ipynb"
ENDLESS = "def measure(work, calls):\n    while True:\n        pass"
CLASS = {  # what is handed in, and by how many of ninety
    "all right": 45,
    "one wrong answer": 22,
    "one task unfinished": 9,
    "another id": 3,
    "no id": 3,
    "an endless loop": 2,
    "opened, nothing written": 3,
    "absent": 3,
}
PREDICTED = 0.85  # of the questions
RIGHT = 0.5  # of the predictions


class Member:
    """A student of the class, and how long each part of the work took, in seconds."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind, self.rng = name, kind, random.Random(name)
        self.lost = ""  # the task that is answered wrongly or not at all
        self.seconds: dict[str, float] = {}
        self.predicted: dict[str, str] = {}
        self.amber: list[str] = []
        self.broke: list[str] = []

    @property
    def hands_in(self) -> bool:
        """Whether this student wrote an answer: who is absent, or does not get in, does not."""
        return "solve exercises 01" in self.seconds and self.kind != "opened, nothing written"

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a part of the work; what breaks in it is kept, and the class goes on."""
        start = time.monotonic()
        try:
            yield
        except Exception as error:
            self.broke.append(f"{name}: {type(error).__name__}: {str(error)[-300:]}")
        self.seconds[name] = time.monotonic() - start

    def sign_in(self, running: hub.Hub) -> None:
        if self.kind != "absent":
            with self.part("log in, and get a server"):
                self.student = hub.Student(running, self.name)
                self.student.start(seconds=600)

    def work(self) -> None:
        if self.kind == "absent" or self.broke:
            return
        with self.part("open and run lesson 01"):
            self.student.write(LESSON, self.predictions())
            self.run(LESSON)
        with self.part("solve exercises 01"):
            answers = self.answers()
            self.student.write(EXERCISE, answers)
            if self.kind in ("all right", "another id"):
                self.run(EXERCISE)

    def run(self, path: str) -> None:
        """Run a notebook's cells; nothing in it may fail."""
        for cell, message in self.student.messages(path):
            if message["msg_type"] == "error":
                self.broke.append(f"{path}, {cell}: {message['content']['evalue']}")
            if "△" in json.dumps(message, ensure_ascii=False):
                self.amber.append(cell)

    def predictions(self) -> dict[str, str]:
        """The cells of lesson 01 that predict, with a letter for most questions."""
        sources = {}
        for cell in notebooks.read(notebooks.NOTEBOOKS / LESSON).cells:
            asked = re.fullmatch(r'predict\("(.+)", "\?"\)', cell.source)
            if asked and self.rng.random() < PREDICTED:
                question = questions()[asked[1]]
                right = self.rng.random() < RIGHT
                letter = question.right if right else self.rng.choice([*question.options])
                self.predicted[question.name] = letter
                sources[cell.id] = f'predict("{question.name}", "{letter}")'
        return sources

    def answers(self) -> dict[str, str]:
        """The cells of the exercises that this student writes."""
        if self.kind == "opened, nothing written":
            return {}
        others = {"another id": f"student = 'Student {self.name}'", "no id": 'student = ""'}
        found = {"student": others.get(self.kind, f"student = {self.name!r}")}
        found |= {cell.id: cell.source for task in SET.tasks for cell in SET.of(task, "answer")}
        if self.kind == "one wrong answer":
            wrong = self.rng.choice(SET.wrong)
            self.lost = exercise_sets.split_id(wrong.id)[0]
            found[SET.of(self.lost, "answer")[-1].id] = wrong.source
        elif self.kind == "one task unfinished":
            self.lost = self.rng.choice(SET.tasks)
            found |= {c.id: exercise_sets.blank(c) for c in SET.of(self.lost, "answer")}
        elif self.kind == "an endless loop":
            self.lost = "measure"
            found["measure-answer"] = ENDLESS
        return found


class Memory(threading.Thread):
    """What the servers and kernels of the class take at most, in GB, and how many there were."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.processes = 0.0, 0
        self.start()

    def run(self) -> None:
        while True:
            taken, count = now()
            self.most, self.processes = max(self.most, taken), max(self.processes, count)
            time.sleep(2)


def now() -> tuple[float, int]:
    """The memory of all students' processes, in GB, shared pages counted once; and their count."""
    taken, count = 0, 0
    for process in psutil.process_iter():
        try:
            if process.uids().real >= hub.FIRST:
                taken += process.memory_full_info().pss
                count += 1
        except psutil.Error:
            pass
    return taken / 1e9, count


def teach(members: list[Member], wave: int, folder: Path) -> None:
    """The class on the hub, and what it hands in, in ``folder``/submissions."""
    with hub.running([member.name for member in members]) as running:
        start = time.monotonic()
        with ThreadPoolExecutor(len(members)) as everyone:
            list(everyone.map(lambda member: member.sign_in(running), members))
        report("until the last of them has a server", f"{time.monotonic() - start:.0f} s")
        report("memory of the servers", "{:.1f} GB, {} processes".format(*now()))
        memory, start = Memory(), time.monotonic()
        with ThreadPoolExecutor(wave) as some:
            list(some.map(Member.work, members))
        report("all waves", f"{(time.monotonic() - start) / 60:.1f} min")
        report("most memory in a wave", f"{memory.most:.1f} GB, {memory.processes} processes")
        start = time.monotonic()
        words = [f"HOMES={running.homes}", f"SUBMISSIONS={folder / 'submissions'}"]
        print(running.run("make", "-C", str(notebooks.ROOT), "collect", *words))
        report("make collect", f"{time.monotonic() - start:.0f} s")
        shutil.copy(running.log, folder / "hub.log")
    for part in ("log in, and get a server", "open and run lesson 01", "solve exercises 01"):
        taken = [member.seconds[part] for member in members if part in member.seconds]
        low, middle, high = quantiles(taken, n=4)
        report(part, f"{middle:.0f} s ({low:.0f} to {high:.0f}, at most {max(taken):.0f})")
    ambers = Counter(cell for member in members for cell in member.amber)
    report("amber claims", f"{ambers.total()}: {dict(ambers.most_common())}")


def grade(folder: Path, students: int) -> Path:
    """Grade in four parts under Slurm, and merge them; return the folder of the results."""
    start = time.monotonic()
    job = ["sbatch", "--wait", "--cpus-per-task=2", f"--output={folder}/%A-%a.log", "--array=1-4"]
    job += [notebooks.ROOT / "assets/jobs/slurm/grade.sbatch", folder / "submissions"]
    with cluster.running(folder) as configuration:
        variables = {"SLURM_CONF": str(configuration), "OUT": str(folder / "part")}
        with terminal.started(job, notebooks.ROOT, **variables) as child:
            text = "".join(child.communicate(timeout=60 * students))
    assert not child.returncode, text
    report("grade in four parts, one after another", f"{(time.monotonic() - start) / 60:.1f} min")
    merge(folder)
    return folder / "grades"


def merge(folder: Path) -> None:
    line = [sys.executable, "-m", "grading", "--merge", *map(str, sorted(folder.glob("part-?")))]
    line += ["--out", str(folder / "grades")]
    print(
        subprocess.run(line, cwd=notebooks.ROOT, check=True, capture_output=True, text=True).stdout
    )


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def compare(members: list[Member], grades: Path) -> None:
    """Report whose points are not those of what was handed in."""
    points = {(row["student"], row["task"]): row for row in rows(grades / "grades.csv")}
    wrong, checked = [], 0
    for member in members:
        for task in SET.tasks:
            row = points.get((member.name, task), {"points": 0, "of": 1})
            is_full = float(row["points"]) == float(row["of"])
            checked += 1
            if is_full is not (member.hands_in and task != member.lost):
                wrong.append(f"{member.name} ({member.kind}), {task}: {row}")
    report("tasks graded as what was handed in", f"{checked - len(wrong)} of {checked}")
    for line in wrong:
        print(f"    {line}")


def mark(folder: Path, grades: Path) -> None:
    """Give three students full points by hand for the task that they lost."""
    lost = [it for it in rows(grades / "grades.csv") if float(it["points"]) < float(it["of"])]
    lost = list({it["student"]: it for it in lost}.values())[:3]
    before = {row["student"]: float(row[NAME]) for row in rows(grades / "platform.csv")}
    with (grades / "manual.csv").open("a", newline="", encoding="utf-8") as file:
        lines = [[it["student"], it["lesson"], it["task"], it["of"], "seen"] for it in lost]
        csv.writer(file).writerows(lines)
    merge(folder)
    after = {row["student"]: float(row[NAME]) for row in rows(grades / "platform.csv")}
    changed = {name for name in after if after[name] != before[name]}
    marked = {it["student"] for it in lost}
    report("marks by hand that count", f"{len(changed & marked)} of {len(marked)}")
    report("others whose points changed", str(len(changed - marked)))


def hand_back(folder: Path, members: list[Member], grades: Path) -> None:
    with zipfile.ZipFile(grades / "feedback.zip") as pages:
        names = {Path(name).parts[-2] for name in pages.namelist()}
        size = sum(page.file_size for page in pages.infolist())
    expected = {member.name for member in members if member.hands_in}
    report("pages to hand back", f"{len(names & expected)} of {len(expected)}, {size / 1e6:.0f} MB")
    students, problems = predictions.read_class(folder / "submissions")
    counts, expected = predictions.count(students), Counter()
    for member in members:
        expected.update(member.predicted.items())
    same = sum(counts[name][letter] == count for (name, letter), count in expected.items())
    total = f"{same} of {len(expected)} counts, {len(problems)} files left out"
    report("predictions counted as they were made", total)


def report(what: str, value: str) -> None:
    print(f"{what:45}  {value}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.ninety", allow_abbrev=False)
    parser.add_argument("folder", type=Path, help="a new one, for what is handed in and the grades")
    parser.add_argument("--students", type=int, default=90)
    parser.add_argument("--wave", type=int, default=10, help="so many work at the same time")
    options = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin"
    if problem := hub.problem() or ("" if cluster.is_installed() else "Slurm is not installed"):
        sys.exit(f"No class can be simulated here: {problem}")
    options.folder.mkdir(parents=True)
    folder = options.folder.resolve()
    kinds = [kind for kind, count in CLASS.items() for _ in range(count)]
    random.Random(0).shuffle(kinds)
    names = [f"student{number:02}" for number in range(1, options.students + 1)]
    members = [Member(name, kinds[n % len(kinds)]) for n, name in enumerate(names)]
    report("students", f"{len(members)}, {options.wave} at work at once, {os.cpu_count()} cores")
    teach(members, options.wave, folder)
    grades = grade(folder, options.students)
    compare(members, grades)
    mark(folder, grades)
    hand_back(folder, members, grades)
    broke = [f"{member.name}: {text}" for member in members for text in member.broke]
    report("what broke", "\n    ".join([str(len(broke)), *broke]))


if __name__ == "__main__":
    main()
