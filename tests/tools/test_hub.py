"""A class on a JupyterHub: three users of one computer, from the login to their points."""

import csv
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import requests

from tests.grading.classroom import PROBLEM as NO_SANDBOX
from tests.tools.hub import COPY, FIRST, Hub, Student, problem, running, wait_for
from tools import exercise_sets, notebooks

STUDENTS = ("ada", "grace", "zoe")
SET = exercise_sets.solution("03")
EXERCISE = f"exercises/{SET.stem}/{SET.name}"
OTHER_KERNEL = json.dumps({"argv": ["true"], "display_name": "Another course", "language": "R"})

pytestmark = [
    pytest.mark.everything,
    pytest.mark.skipif(bool(problem()), reason=problem() or "a hub can be started"),
]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running(STUDENTS) as hub:
        yield hub
        print(hub.log.read_text(errors="replace"))  # pytest shows it where a test fails


def test_a_class_works_on_a_hub_and_is_graded(hub: Hub, tmp_path: Path) -> None:
    others = hub.homes / "grace" / ".local/share/jupyter/kernels/other/kernel.json"
    hub.run("mkdir", "-p", str(others.parent), user="grace")
    hub.run("sh", "-c", f"echo {shlex.quote(OTHER_KERNEL)} > {others}", user="grace")
    full = hub.homes / "zoe" / "big"
    hub.run("sh", "-c", f"cat /dev/zero > {full} 2> /dev/null || true", user="zoe")
    ada, grace, zoe = students = [Student(hub, name) for name in STUDENTS]
    with ThreadPoolExecutor() as threads:
        list(threads.map(Student.start, students))
        # A full disk: a sentence, and a server to make room with.
        assert f"zoe: The reader's copy cannot be written to {full.parent}" in hub.log.read_text()
        assert "Free some space" in hub.log.read_text()
        zoe.call("DELETE", "user/zoe/api/contents/big")
        zoe.stop()
        zoe.start()

        code = {cell.id: cell.source for cell in exercise_sets.Set(SET).code}
        answers = {name: code[name] for name in code if exercise_sets.split_id(name)[1] == "answer"}
        zoe.write(EXERCISE, answers | {"student": "student = 'zoe'"})
        lessons = ["00_start_here.ipynb", "03_macs_and_flops.ipynb", EXERCISE]
        assert list(threads.map(Student.run, students, lessons)) == [[], [], []]

    assert "Culling kernels with idle durations > 3600 seconds" in hub.log.read_text()
    kernels = grace.call("GET", "user/grace/api/kernelspecs")["kernelspecs"]
    assert set(kernels) == {"python3", "other"}
    assert others.read_text().strip() == OTHER_KERNEL
    shown = f"{hub.address}/user/grace/files/measure-pytorch/assets/figures/map.svg"
    assert requests.get(shown, headers={"Authorization": f"token {grace.token}"}, timeout=9).ok

    modes = hub.run("find", str(hub.homes), "-path", f"*/{COPY}/*", "-perm", "/077")
    assert not modes, "others can read what a student has written"

    # A server that was killed comes back with the student's work, and starts a lesson again.
    lesson = ada.open(lessons[0])
    lesson.cells[0].source = "# Mine"
    ada.save(lessons[0], lesson)
    for process in psutil.Process(hub.process.pid).children(recursive=True):
        if process.uids().real == FIRST:
            process.kill()
    wait_for(lambda: not ada.server(), "the end of a killed server")
    ada.start()
    assert ada.open(lessons[0]).cells[0].source == "# Mine"
    answer = hub.run(
        "make", "-C", str(hub.homes / "ada/measure-pytorch"), "lab", "FRESH=00", user="ada"
    )
    assert f"{COPY[-4:]}/00_start_here.yours-1.ipynb" in answer
    assert ada.open("00_start_here.yours-1.ipynb").cells[0].source == "# Mine"

    # What they hand in is collected, and graded.
    ada.write(EXERCISE, {"hand-answer": "pass", "student": "student = 'zoe'"})
    submissions = tmp_path / "submissions"
    collect = [sys.executable, "-m", "grading.collect", str(hub.homes), str(submissions)]
    table = hub.run(*collect).splitlines()[1:]
    assert [line.split()[0] for line in table] == list(STUDENTS)
    assert "its id is 'zoe', and it will be graded as 'ada'" in table[0]
    assert table[1].endswith("nothing was handed in")
    if NO_SANDBOX:
        pytest.skip(f"all but the grading: {NO_SANDBOX}")
    grade = [sys.executable, "-m", "grading", str(submissions), "--out", str(tmp_path / "out")]
    subprocess.run(grade, cwd=notebooks.ROOT, check=True, capture_output=True)
    with (tmp_path / "out" / "platform.csv").open(newline="") as file:
        points = {row["student"]: float(row[SET.stem]) for row in csv.DictReader(file)}
    assert points == {"ada": 0, "zoe": 10}
