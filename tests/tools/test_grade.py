"""A class with every kind of submission: what is broken costs only itself, and nothing is won."""

import csv
import html
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from tests.tools import test_nsight
from tools import exercises, grade_benchmark, notebooks
from tools.grading import sandbox

NO_SANDBOX = sandbox.trouble(sandbox.Limits())

pytestmark = [
    pytest.mark.everything,
    pytest.mark.skipif(find_spec("nbgrader") is None, reason="nbgrader is not installed"),
    pytest.mark.skipif(bool(NO_SANDBOX), reason=NO_SANDBOX or "there is one"),
]

LESSON = "90_small"
DUE = "--due=2001-09-09T02:46:40+00:00"
CELLS = {  # of a small set: id to source, and for a check its points
    "title": "# Exercises 90 · Small",
    "student": 'student = ""\n### BEGIN SOLUTION\nstudent = "ada"\n### END SOLUTION',
    "setup": "import random\nimport time\n\nimport torch\n\nfrom helpers import exercises\n"
    "from helpers.exercises import expect, one_of",
    "macs-given": 'rng = exercises.draw(student, "90, macs")\n'
    "n_in, n_out = rng.randint(2, 9), rng.randint(10, 99)",
    "macs-answer": '''def macs(n, inputs, outputs):
    """The MACs of a linear layer on n rows."""
    ### BEGIN SOLUTION
    return n * inputs * outputs
    ### END SOLUTION


full = ...  # n_in times n_out, as a tensor of n_in numbers
### BEGIN SOLUTION
full = torch.ones(n_in) * n_out
### END SOLUTION''',
    "macs-check-1": (
        3,
        """expect("macs(1)", macs(1, n_in, n_out), n_in * n_out)
### BEGIN HIDDEN TESTS
for _ in range(3):
    sizes = [random.randint(2, 99) for _ in range(3)]
    expect("macs of other sizes", macs(*sizes), torch.empty(*sizes).numel())
### END HIDDEN TESTS""",
    ),
    "macs-check-2": (1, 'expect("full", full, torch.full((n_in,), float(n_out)))'),
    "macs-wrong-1": "# wrong: a factor of two\n# fails: macs-check-1\n"
    "def macs(n, inputs, outputs):\n    return 2 * n * inputs * outputs\n\n\n"
    "full = torch.ones(n_in) * n_out",
    "why-answer": 'why = ...  # one of "a", "b", "c"\n### BEGIN SOLUTION\nwhy = "b"\n'
    "### END SOLUTION",
    "why-check": (
        3,
        'one_of("why", why, "abc")\n### BEGIN HIDDEN TESTS\nexpect("why", why, "b")\n'
        "### END HIDDEN TESTS",
    ),
    "why-wrong-1": '# wrong: the first\nwhy = "a"',
    "fast-given": "def slow(values):\n    time.sleep(0.25)\n    return sum(values)",
    "fast-answer": '''def fast(values):
    """The sum of values, faster than slow."""
    ### BEGIN SOLUTION
    return sum(values)
    ### END SOLUTION''',
    "fast-check": (
        3,
        'expect("fast([1, 2])", fast([1, 2]), 3)\n### BEGIN HIDDEN TESTS\n'
        "inputs = [([random.randint(1, 99) for _ in range(9)],) for _ in range(4)]\n"
        'exercises.faster("fast", fast, slow, inputs)\n### END HIDDEN TESTS',
    ),
    "fast-wrong-1": "# wrong: as slow as before\ndef fast(values):\n    return slow(values)",
    "say-answer": "*Your answer*",
}
GOOD = {
    "macs-answer": "def macs(n, inputs, outputs):\n    return n * inputs * outputs\n\n\n"
    "full = torch.ones(n_in) * n_out",
    "why-answer": 'why = "b"',
    "fast-answer": "def fast(values):\n    return sum(values)",
}

SPENT = "GB of memory|MemoryError|took more than"  # on a crowded computer the time is over first

# Each is the content of macs-answer; why and fast are answered honestly.
BREAKS = {  # name: (content, a part of the reason)
    "endless-loop": ("while True:\n    pass", "took more than 8 s"),
    "forks": ("import os\nwhile True:\n    os.fork()", "macs-answer"),
    "memory": ("kept = []\nwhile True:\n    kept.append(bytearray(2**28))", SPENT),
    "memory-of-many": (
        "import os\nfor _ in range(16):\n    if not os.fork():\n        kept = b'x' * 2**28\n"
        "        time.sleep(100)\ntime.sleep(100)",
        SPENT,
    ),
    "leaves": ("import os\nos._exit(0)", "the kernel ended"),
    "hangs": ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "took more than 8 s"),
    "hangs-when-called": (
        "def macs(*sizes):\n    time.sleep(1000)\n\n\nfull = 1",
        "took more than 8 s",
    ),
    "endless-output": ("while True:\n    print('x' * 1000)", "took more than 8 s"),
    "fills-the-disk": (
        "import glob, os\nimport psutil\n"
        "place = os.path.dirname(psutil.Process().cmdline()[-3])\n"
        "for n in range(99):\n    open(f'{place}/{n}', 'wb').write(bytes(2**27))\ntime.sleep(100)",
        "files",
    ),
    "huge-result": (
        "def macs(*sizes):\n    return torch.zeros(5_000_000)\n\n\nfull = 1",
        "at most 16,000,000 can",
    ),
    "a-module": ("macs = 1\nfull = torch", "full: a module came"),
}
WINS = {  # what must not win the points of macs
    "strips-assert": "ip = get_ipython()\n"
    "ip.input_transformers_post.append(lambda lines: [l for l in lines if 'expect' not in l])\n"
    "macs = lambda *sizes: 0\nfull = 0",
    "builtins": "import builtins\nbuiltins.abs = lambda x: 0\n"
    "builtins.isinstance = lambda *a: True\n"
    "torch.allclose = torch.equal = lambda *a, **k: True\n"
    "exercises.expect = exercises._same = lambda *a, **k: True\nexpect = exercises.expect\n"
    "macs = lambda *sizes: 0\nfull = 0",
    "frames": "import gc, inspect\ndef macs(*sizes):\n"
    "    for frame in [f.frame for f in inspect.stack()]:\n"
    "        for name in ('expected', 'sizes', 'theirs'):\n"
    "            if name in frame.f_locals and frame.f_code.co_name != 'macs':\n"
    "                return frame.f_locals[name]\n"
    "    return len([o for o in gc.get_objects() if 'numel' in repr(type(o))])\n\n\nfull = 0",
    "equals-all": "class Equal(int):\n    __eq__ = lambda *a: True\n"
    "    __sub__ = __rsub__ = lambda *a: 0\n"
    "    __hash__ = int.__hash__\n\n\nmacs = lambda *sizes: Equal()\nfull = Equal()",
    "reduces": "class Code:\n    def __reduce__(self):\n        import os\n"
    "        return os.system, ('touch /tmp/owned-by-a-student',)\n\n\n"
    "macs = lambda *sizes: Code()\nfull = [Code()]",
    "replies": "from tools.grading import inside\n"
    'wide = \'{"gave": {"tensor": "", "shape": [1000000000000], "dtype": "float32"}}\'\n'
    "bad = {'macs': '[' * 10**6 + ']' * 10**6, 'fast': wide}\n"
    "look = inside.look\n"
    "inside.look = lambda names: inside.Text('{') if 'full' in names else look(names)\n"
    "inside.call = lambda name, *rest: inside.Text(bad[name])\nfull = 0\nmacs = print",
    "forges": "session = get_ipython().kernel.session\nsend = session.send\n"
    "def forged(stream, kind, content=None, *rest, **more):\n"
    "    if kind == 'execute_reply':\n        content = {'user_expressions': {'it': 7}}\n"
    "    return send(stream, kind, content, *rest, **more)\n"
    "session.send = forged\nfull = 0\nmacs = print",
}
CHEATS = {  # content of fast-answer that must not be fast
    "looks-at-sealed": "from tools.grading import inside\nbring, known = inside.bring, {}\n"
    "def early(number, sealed):\n"
    "    try:\n        content = inside.json.loads(inside.base64.b64decode(sealed))\n"
    "        (values,) = inside.unpack(content)\n"
    "        known[str(values)] = slow(values)\n    except Exception:\n        pass\n"
    "    return bring(number, sealed)\n"
    "inside.bring = early\n"
    "def fast(values):\n    return known.get(str(values)) or slow(values)",
    "remembers": "known = {}\ndef fast(values):\n    if str(values) not in known:\n"
    "        known[str(values)] = slow(values)\n    return known[str(values)]",
    "stops-the-clock": "wait = time.sleep\n"
    "time.perf_counter = time.monotonic = time.time = lambda: 0.0\n"
    "def fast(values):\n    wait(0.25)\n    return sum(values)",
}


def small_set(folder: Path) -> Path:
    cells = []
    for name, source in CELLS.items():
        kind = "" if name == "title" else exercises.parts(name)[1]
        points, source = source if isinstance(source, tuple) else (0, source)
        about = {"grade_id": name, "schema_version": 3, "task": False, "locked": kind != "answer"}
        about |= {"grade": kind == "check", "solution": kind in ("answer", "student")}
        about |= {"points": float(points)} if points else {}
        if kind == "wrong":
            cell = new_raw_cell(source, metadata={"tags": ["wrong"]})
        elif name in ("title", "say-answer"):
            by_hand = {"grade": True, "points": 2.0} if name != "title" else {}
            about |= {"cell_type": "markdown", **by_hand}
            cell = new_markdown_cell(source, metadata={"nbgrader": about})
        else:
            about |= {"cell_type": "code", "locked": kind not in ("answer", "student")}
            cell = new_code_cell(source, metadata={"nbgrader": about})
        cells.append(cell | {"id": name})
    path = folder / LESSON / f"{LESSON}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(notebooks.as_text(notebooks.canonical(new_notebook(cells=cells))))
    return path


class Class:
    """Submissions in a folder, and the call that grades them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder / "submitted", folder / "out"
        self.sets = folder / "sets"
        self.released = exercises.release(small_set(self.sets))

    def hand_in(self, student: str, **answers: str) -> Path:
        return self.write(student, self.copy(student, **answers))

    def copy(self, student: str, **answers: str) -> NotebookNode:
        notebook = nbformat.reads(self.released, as_version=4)
        content = {f"{task}-answer": text for task, text in answers.items()}
        for cell in notebook.cells:
            cell.source = {**GOOD, **content}.get(cell.id, cell.source)
            if cell.id == "student":
                cell.source = f"student = {student!r}"
        return notebook

    def write(self, student: str, notebook: NotebookNode, name: str = f"{LESSON}.ipynb") -> Path:
        path = self.folder / student / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(nbformat.writes(notebook))
        return path

    def line(self, *options: str, out: Path | None = None) -> list[str]:
        line = [sys.executable, "-m", "tools.grade", str(self.folder), f"--sets={self.sets}"]
        line += ["--cell-seconds=8", "--seconds=300", "--memory=1", f"--out={out or self.out}"]
        return [*line, *options]

    def grade(self, *options: str, out: Path | None = None) -> str:
        line = self.line(*options, out=out)
        done = subprocess.run(line, cwd=notebooks.ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def table(self, name: str = "grades", out: Path | None = None) -> list[dict]:
        with ((out or self.out) / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def page(self, student: str) -> str:
        return (self.out / "feedback" / student / f"{LESSON}.html").read_text()


@pytest.fixture(scope="module")
def network() -> Iterator[socket.socket]:
    """A server here, which no submission must reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, network: socket.socket) -> Class:
    """The whole class, graded once."""
    it = whole_class(tmp_path_factory.mktemp("class"), network.getsockname()[1])
    os.environ["SECRET_OF_THE_GRADER"] = "1"
    it.grade(DUE, "--jobs=4")  # many of them only wait
    return it


def whole_class(folder: Path, port: int) -> Class:
    it = Class(folder)
    it.hand_in("ada")
    it.hand_in("grace", macs=CELLS["macs-wrong-1"], why='why = "a"', say="Because <b>it</b> is.")
    for name, (content, _) in BREAKS.items():
        it.hand_in(name, macs=content)
    for name, content in WINS.items():
        it.hand_in(name, macs=content)
    for name, content in CHEATS.items():
        it.hand_in(name, fast=content)

    places = [notebooks.ROOT, notebooks.ROOT / "helpers", it.folder, it.out, "/etc", "/usr", "/"]
    it.hand_in(
        "explores",
        macs=f"""import os, socket
found = []
for folder, inner, names in os.walk("/"):
    inner[:] = [name for name in inner if name not in ("proc", "sys", "usr", "lib")]
    found += [name for name in names if name.endswith(".ipynb") or name in ("grades.csv", "shadow")]
found += [name for name in os.environ if "SECRET" in name]
for folder in {[str(place) for place in places]}:
    try:
        open(folder + "/owned", "w")
        found.append(folder)
    except OSError:
        pass
for address in [("127.0.0.1", {port}), ("1.1.1.1", 53)]:
    try:
        socket.create_connection(address, 2)
        found.append(address)
    except OSError:
        pass
assert not found, found
{GOOD["macs-answer"]}""",
    )

    altered = it.copy("alters")
    for cell in altered.cells:
        if "-check" in cell.id:
            cell.source = "pass"
        if cell.id == "macs-answer":
            cell.source = "macs = full = 0"
        if "points" in cell.metadata.get("nbgrader", {}):
            cell.metadata.nbgrader["points"] = 100.0
    it.write("alters", altered)
    deleted = it.copy("deletes", why='why = "a"')
    deleted.cells = [cell for cell in reversed(deleted.cells) if "-check" not in cell.id]
    it.write("deletes", deleted)
    helped = it.copy("helper-cell", macs="macs = product\nfull = torch.ones(n_in) * n_out")
    place = [cell.id for cell in helped.cells].index("macs-answer")
    own = "import subprocess, sys\ntwo = subprocess.run([sys.executable, '-c', 'print(2)'])\n"
    own += "def product(*sizes):\n    return torch.tensor(sizes).prod().item()"
    helped.cells.insert(place, new_code_cell(own))
    helped.cells.append(new_code_cell("1 / 0"))
    it.write("helper-cell", helped)
    twice = it.copy("twice")
    (answer,) = (cell for cell in twice.cells if cell.id == "why-answer")
    twice.cells.append(new_code_cell('why = "c"', metadata=answer.metadata))
    it.write("twice", twice)
    it.write("another-id", it.copy("ada"))

    path = it.hand_in("truncated")
    path.write_bytes(path.read_bytes()[:3000])
    it.hand_in("text").write_text("my answers are in the mail")
    it.hand_in("no-bytes").write_bytes(b"")
    it.hand_in("other-json").write_text('{"cells": 3, "nbformat": 4}')
    it.hand_in("binary").write_bytes(bytes(range(256)))
    it.hand_in("deep-json").write_text("[" * 100_000)
    (it.folder / "nothing").mkdir()
    it.write("two-files", it.copy("two-files"))
    it.write("two-files", it.copy("two-files"), f"{LESSON} (1).ipynb")
    it.hand_in("large").write_bytes(b" " * 100 * 2**20)
    (it.folder / "link").mkdir()
    (it.folder / "link" / f"{LESSON}.ipynb").symlink_to(it.folder / "ada" / f"{LESSON}.ipynb")
    (it.folder / "link-folder").symlink_to(it.folder / "ada")
    (it.folder / "pipe").mkdir()
    os.mkfifo(it.folder / "pipe" / f"{LESSON}.ipynb")
    one = "def macs(n, inputs, outputs):\n    total = 0\n    for row in range(n):\n"
    one += "        total += inputs * outputs\n    return int(total)\n\n\n"
    one += "full = torch.tensor([float(n_out)] * n_in)"
    two = re.sub("total", "s", one).replace("    s = 0", "    # by rows\n    s = 0")
    first = it.copy(
        "copied-1",
        macs=one,
        fast="def fast(v):\n    t = 0\n    for x in v:\n        t += x\n    return t",
    )
    it.write("copied-1", first, f"{LESSON}-Copy1.ipynb")
    it.hand_in(
        "copied-2",
        macs=two,
        fast="def fast(w):\n    u = 0\n    for y in w:\n        u += y\n    return u",
    )
    late, stamped = it.hand_in("<script>alert(1)<&script>"), it.hand_in("=1+1")
    for path in it.folder.rglob("*.ipynb"):
        os.utime(path, (1e9, 1e9), follow_symlinks=False)
    os.utime(late, (1e9 + 7200, 1e9 + 7200))
    stamped.with_name("timestamp.txt").write_text("2001-09-12 02:46:40 UTC")

    return it


@pytest.fixture(scope="module")
def rows(graded: Class) -> dict[str, dict]:
    found = defaultdict(dict)
    for row in graded.table():
        found[row["student"]][row["task"]] = row
    return found


def points(rows: dict, student: str) -> list[float]:
    return [float(rows[student][task]["points"]) for task in ("macs", "why", "fast")]


def test_everyone_gets_a_row_for_every_task_and_a_page(graded: Class, rows: dict) -> None:
    students = {path.name for path in graded.folder.iterdir()}
    assert {name.removeprefix("'") for name in rows} == students
    assert all(len(tasks) == 4 for tasks in rows.values())
    pages = {path.parent.name for path in graded.out.glob(f"feedback/*/{LESSON}.html")}
    assert pages == students


def test_honest_answers_score_and_wrong_ones_say_what_came(rows: dict) -> None:
    assert points(rows, "ada") == [4, 3, 3]
    assert points(rows, "grace") == [1, 0, 3]
    assert re.match(
        r"macs\(1\): expected [\d,]+, but [\d,]+ came$", rows["grace"]["macs"]["reason"]
    )
    assert rows["grace"]["why"]["reason"] == "why: expected 'b', but 'a' came"
    assert rows["ada"]["fast"]["reason"] == ""
    assert rows["grace"]["say"]["reason"] == "to be marked by hand, in manual.csv"
    assert rows["ada"]["say"]["points"] == "0.0"


@pytest.mark.parametrize("name", BREAKS)
def test_what_breaks_costs_itself_and_says_why(name: str, rows: dict) -> None:
    assert points(rows, name) == [0, 3, 3]
    assert re.search(BREAKS[name][1], rows[name]["macs"]["reason"])


@pytest.mark.parametrize("name", WINS)
def test_nothing_in_the_students_kernel_wins_a_point(name: str, rows: dict) -> None:
    assert points(rows, name)[0] == 0
    assert rows[name]["macs"]["reason"]
    assert not Path("/tmp/owned-by-a-student").exists()


@pytest.mark.parametrize("name", CHEATS)
def test_time_is_taken_outside(name: str, rows: dict) -> None:
    assert points(rows, name) == [4, 3, 0]
    assert "at least 2 times as fast" in rows[name]["fast"]["reason"]


def test_nothing_outside_can_be_reached(rows: dict, network: socket.socket) -> None:
    assert points(rows, "explores") == [4, 3, 3], rows["explores"]["macs"]["reason"]
    with pytest.raises(BlockingIOError):
        network.accept()


def test_the_courses_checks_run_whatever_became_of_them(rows: dict) -> None:
    assert points(rows, "alters") == [0, 3, 3]
    assert "macs-check-1 was altered: the course's own ran" in rows["alters"]["macs"]["reason"]
    assert rows["alters"]["why"]["of"] == "3.0"
    assert points(rows, "deletes") == [4, 0, 3]
    assert "why-check was missing" in rows["deletes"]["why"]["reason"]
    assert points(rows, "twice") == [4, 3, 3]
    assert rows["twice"]["why"]["reason"] == "why-answer came twice: the first one counts"


def test_cells_that_a_student_added_run_too(rows: dict) -> None:
    assert points(rows, "helper-cell") == [4, 3, 3]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, "not a whole notebook") for name in ("truncated", "text", "no-bytes", "binary")),
        *((name, "not a whole notebook") for name in ("other-json", "deep-json")),
        ("nothing", "nothing was handed in"),
        ("two-files", "2 files for one lesson"),
        ("large", "100 MB"),
        ("link", "symbolic link"),
        ("link-folder", "symbolic link"),
        ("pipe", "not a file"),
    ],
)
def test_what_cannot_be_read_gets_zero_and_a_reason(name: str, why: str, rows: dict) -> None:
    assert points(rows, name) == [0, 0, 0]
    assert why in rows[name]["macs"]["reason"]


def test_an_id_that_is_not_the_folders_is_said(rows: dict) -> None:
    said = "the first cell says 'ada', but the folder is 'another-id': graded with its numbers"
    assert rows["another-id"]["why"]["reason"] == said
    assert points(rows, "another-id") == [4, 3, 3]
    assert not [row for row in rows["grace"].values() if "first cell" in row["reason"]]


def test_a_second_download_under_another_name_is_taken(rows: dict) -> None:
    assert points(rows, "copied-1") == [4, 3, 3]


def test_names_are_text(graded: Class, rows: dict) -> None:
    assert points(rows, "'=1+1") == [4, 3, 3]
    name = "<script>alert(1)<&script>"
    assert points(rows, name) == [4, 3, 3]
    assert "<script>alert" not in graded.page(name)


def test_a_page_shows_its_own_student_only_and_no_hidden_test(graded: Class) -> None:
    page = graded.page("grace")
    assert "Score: 4.0 / 12.0" in page
    assert "'grace'</span>" in page
    assert "but 'a' came" in html.unescape(page)
    assert "Because &lt;b&gt;it" in page
    assert "macs of other sizes" not in page
    assert not [name for name in ("copied", "endless", "truncated", "explores") if name in page]


def test_late_work_is_flagged(rows: dict) -> None:
    late = {name: tasks["fast"]["reason"] for name, tasks in rows.items()}
    late = {name: reason for name, reason in late.items() if "late" in reason}
    assert late == {"<script>alert(1)<&script>": "late by 1.0 hours", "'=1+1": "late by 3 days"}


def test_look_alikes_are_listed(graded: Class) -> None:
    (pair,) = graded.table("alike")
    assert (pair["student"], pair["and"]) == ("copied-1", "copied-2")


def test_the_platforms_table_and_the_classs_page(graded: Class, rows: dict) -> None:
    table = {row["student"]: float(row[LESSON]) for row in graded.table("platform")}
    assert len(table) == len(rows)
    assert (table["ada"], table["grace"]) == (10, 4)
    page = (graded.out / "class.md").read_text()
    assert re.search(r"\| macs \| \d+ of \d+ \| .*1 × \*a factor of two\*", page)
    assert not [name for name in ("grace", "truncated", "copied") if name in page]


def test_the_graded_notebook_has_nbgraders_layout(graded: Class) -> None:
    from nbgrader import utils

    path = graded.out / "autograded" / "grace" / LESSON / f"{LESSON}.ipynb"
    cells = [cell for cell in notebooks.read(path).cells if utils.is_grade(cell)]
    assert [utils.determine_grade(cell)[0] for cell in cells] == [0, 1, 0, 3, None]


def test_a_second_call_grades_nothing_and_marks_by_hand_stay(graded: Class) -> None:
    before = (graded.out / "platform.csv").read_text()
    path = graded.out / "manual.csv"
    assert path.read_text() == f"student,lesson,task,points,comment\ngrace,{LESSON},say,,\n"
    said = graded.grade(DUE)
    assert f"{len(list(graded.folder.iterdir()))} are graded already" in said
    assert (graded.out / "platform.csv").read_text() == before
    path.write_text(path.read_text().replace("say,,", "say,1.5,Nearly: why <b>?"))
    for _ in range(2):
        said = graded.grade(DUE)
        assert ("[  1/1] grace" in said) == (_ == 0)
        (row,) = (r for r in graded.table() if (r["student"], r["task"]) == ("grace", "say"))
        assert (row["points"], row["reason"]) == ("1.5", "Nearly: why <b>?")
    assert "Score: 5.5 / 12.0" in graded.page("grace")
    assert "Nearly: why &lt;b&gt;?" in graded.page("grace")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"student;lesson;task;points;comment\nada;90;say;2;", "save it as CSV"),
        (b"", "must begin with student,lesson,task,points,comment, but nothing came"),
        (b'student,lesson,task,points,comment\nada,90,say,"1,5",', "row 2: .* '1,5' came"),
        (b"student,lesson,task,points,comment\nZo\xeb,90,say,1,", "not UTF-8"),
    ],
)
def test_a_spoiled_table_of_marks_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    from tools.grading import summary

    (tmp_path / "manual.csv").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        summary.marks_by_hand(tmp_path)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Class:
    """Three students, graded in one go."""
    it = Class(tmp_path_factory.mktemp("small"))
    it.hand_in("ada")
    it.hand_in("grace", macs=CELLS["macs-wrong-1"])
    it.hand_in("edsger", why='why = "c"', fast="def fast(values):\n    return 0")
    it.grade()
    return it


def tables(out: Path) -> dict[str, str]:
    names = ("grades.csv", "platform.csv", "manual.csv", "alike.csv", "class.md")
    return {name: (out / name).read_text() for name in names}


def test_what_was_stopped_goes_on_and_ends_alike(small: Class, tmp_path: Path) -> None:
    line = small.line("--jobs=1", out=tmp_path)
    with subprocess.Popen(line, cwd=notebooks.ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert "[  1/3] ada" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
    assert len(list(tmp_path.glob("results/*/*.json"))) == 1
    assert "1 are graded already" in small.grade(out=tmp_path)
    assert tables(tmp_path) == tables(small.out)


def test_a_grader_that_is_killed_leaves_nobody_at_work(small: Class, tmp_path: Path) -> None:
    line = small.line("--jobs=2", out=tmp_path)
    with subprocess.Popen(line, cwd=notebooks.ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert "[  1/3]" in running.stdout.readline()
        others = psutil.Process(running.pid).children(recursive=True)
        running.kill()
    assert others
    left = psutil.wait_procs(others, timeout=20)[1]
    # in a container nobody may bury them
    assert [one for one in left if one.status() != psutil.STATUS_ZOMBIE] == []


def test_shards_add_up(small: Class, tmp_path: Path) -> None:
    parts = [tmp_path / str(k) for k in (1, 2)]
    for k, part in enumerate(parts, 1):
        small.grade(f"--shard={k}/2", out=part)
    merged(parts, tmp_path)
    assert tables(tmp_path) == tables(small.out)
    assert {path.name for path in (tmp_path / "feedback").iterdir()} == {"ada", "edsger", "grace"}
    by_hand = tmp_path / "manual.csv"
    by_hand.write_text(f"{by_hand.read_text()}grace,{LESSON},macs,2.5,half\nnobody,1,say,1,\n")
    assert "nobody, 1, say was not graded: no mark was given" in merged(parts, tmp_path)
    assert re.search(r"grace,\w+,macs,2.5,4.0,\W?half", (tmp_path / "grades.csv").read_text())
    assert "Score: 8.5 / 12.0" in (tmp_path / "feedback" / "grace" / f"{LESSON}.html").read_text()


def merged(parts: list[Path], out: Path) -> str:
    line = [sys.executable, "-m", "tools.grade", "--merge", *map(str, parts), "--out", str(out)]
    done = subprocess.run(line, cwd=notebooks.ROOT, check=True, capture_output=True, text=True)
    return done.stdout


slurm = test_nsight.slurm  # a real one, of our own


def test_slurm_grades_two_shards(small: Class, tmp_path: Path, slurm: tuple) -> None:
    _, environment = slurm
    script = notebooks.ROOT / "assets" / "jobs" / "slurm" / "grade.sbatch"
    words = ["sbatch", "--wait", "--array=1-2", "--cpus-per-task=2", "--chdir", notebooks.ROOT]
    words += [f"--output={tmp_path}/log-%a", script, *small.line()[3:5]]
    prefix = Path(sys.executable).parent.parent
    here = {**environment, "OUT": str(tmp_path / "part"), "VENV": str(prefix)}
    here["PYTHONPATH"] = str(notebooks.ROOT)
    done = subprocess.run(words, env=here, capture_output=True, text=True, timeout=300)
    logs = "\n".join(path.read_text() for path in tmp_path.glob("log-*"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    merged([tmp_path / "part-1", tmp_path / "part-2"], tmp_path)
    assert tables(tmp_path) == tables(small.out)


def test_stock_nbgrader_agrees_on_honest_work(small: Class, tmp_path: Path) -> None:
    (source,) = small.sets.glob("*/*.ipynb")
    command = grade_benchmark.classroom(source, tmp_path, students=[])
    for student in ("ada", "grace", "edsger"):
        path = tmp_path / "submitted" / student / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        shutil.copy(small.folder / student / path.name, path)
    grade_benchmark.run(command, tmp_path)
    from nbgrader.api import Gradebook

    ours = {row["student"]: float(row[LESSON]) for row in small.table("platform")}
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        stock = {who: book.find_submission(LESSON, who).score for who in ours}
    assert ours == stock == {"ada": 10, "grace": 7, "edsger": 4}


@pytest.mark.parametrize(
    ("search", "words", "said"),
    [
        ("", ["."], "apt-get install bubblewrap"),
        ("/usr/bin", ["."], "expected FOLDER/STUDENT/NN_name.ipynb"),
        ("/usr/bin", ["there-is-none"], "SUBMISSIONS must be a folder, but there-is-none came"),
        ("/usr/bin", [""], "SUBMISSIONS must be a folder, but nothing came"),
        ("/usr/bin", [".", "--shard=3/2"], "--shard"),
        ("/usr/bin", [".", "--lesson=1"], "a set or its number, such as 03, but 1 came"),
        ("/usr/bin", [".", "--due=1.12.2026"], "such as 2026-12-01T23:59, but 1.12.2026 came"),
        ("/usr/bin", ["--merge", "there-is-none"], "folders of shards, but there-is-none came"),
    ],
)
def test_what_is_missing_is_said(
    search: str,
    words: list,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    from tools import grade

    monkeypatch.setenv("PATH", search)
    monkeypatch.chdir(tmp_path)
    try:
        status = grade.main([*words, f"--out={tmp_path / 'out'}"])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert said in capsys.readouterr().err
