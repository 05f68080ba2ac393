"""A class with every kind of submission: what is broken costs only itself, and nothing is won."""

import html
import os
import re
import socket
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell

from tests.grading.classroom import CELLS, LESSON, MARKS, Class
from tools import notebooks

pytestmark = MARKS

DUE = "--due=2001-09-09T02:46:40+00:00"
SCRIPT = "<script>alert(1)<&script>"
TEXT = (  # an answer for a person to read
    "Because `a < b`, [see](javascript:alert(1)), <script>alert(2)</script> "
    "![one](http://127.0.0.1/1.png) <img src=http://127.0.0.1/2.png>"
)
SPENT = "GB of memory|MemoryError|took more than"  # on a crowded computer the time is over first
# Each is the content of macs-answer; why and fast are answered honestly.
BREAKS = {  # name: (content, a part of the reason)
    "endless-loop": ("while True:\n    pass", "took more than 8 s"),
    "forks": ("import os\nwhile True:\n    os.fork()", "macs-answer"),
    "memory-of-many": (
        "import os\nfor _ in range(16):\n    if not os.fork():\n        block = b'x' * 2**28\n"
        "        time.sleep(100)\ntime.sleep(100)",
        SPENT,
    ),
    "leaves": ("import os\nos._exit(0)", "the kernel ended"),
    "hangs-when-called": (
        "def macs(*sizes):\n    time.sleep(1000)\n\n\nfull = 1",
        "took more than 8 s",
    ),
    "endless-output": ("while True:\n    print('x' * 1000)", SPENT),
    "fills-the-disk": (
        "import glob, os\nimport psutil\n"
        "place = os.path.dirname(psutil.Process().cmdline()[-3])\n"
        "for n in range(99):\n    open(f'{place}/{n}', 'wb').write(bytes(2**27))\ntime.sleep(100)",
        "files",
    ),
    "no-data": (
        "def macs(*sizes):\n    return torch.zeros(5_000_000)\n\n\nfull = torch",
        "at most 16,000,000 can.*full: a module came",
    ),
}
WINS = {  # what must not win the points of macs
    "builtins": "import builtins\nbuiltins.abs = lambda x: 0\n"
    "builtins.isinstance = lambda *a: True\n"
    "torch.allclose = torch.equal = lambda *a, **k: True\n"
    "exercises.expect = exercises._same = lambda *a, **k: True\nexpect = exercises.expect\n"
    "ip = get_ipython()\n"
    "ip.input_transformers_post.append(lambda lines: [l for l in lines if 'expect' not in l])\n"
    "macs = lambda *sizes: 0\nfull = 0",
    "frames": "import gc, inspect\ndef macs(*sizes):\n"
    "    for frame in [f.frame for f in inspect.stack()]:\n"
    "        for name in ('expected', 'sizes', 'theirs'):\n"
    "            if name in frame.f_locals and frame.f_code.co_name != 'macs':\n"
    "                return frame.f_locals[name]\n"
    "    return len([o for o in gc.get_objects() if 'numel' in repr(type(o))])\n\n\nfull = 0",
    "objects": "class Equal(int):\n    __eq__ = lambda *a: True\n"
    "    __sub__ = __rsub__ = lambda *a: 0\n"
    "    __hash__ = int.__hash__\n\n\n"
    "class Code:\n    def __reduce__(self):\n        import os\n"
    "        return os.system, ('touch /tmp/owned-by-a-student',)\n\n\n"
    "macs = lambda *sizes: Equal()\nfull = [Code()]",
    "replies": "from grading import inside\n"
    'wide = \'{"gave": {"tensor": "", "shape": [1000000000000], "dtype": "float32"}}\'\n'
    "bad = {'macs': '[' * 10**6 + ']' * 10**6, 'fast': wide}\n"
    "look = inside.look\n"
    "inside.look = lambda names: inside.Text('{') if 'full' in names else look(names)\n"
    "inside.call = lambda name, *rest: inside.Text(bad[name])\nfull = 0\nmacs = print",
    "forges": "session = get_ipython().kernel.session\nsend = session.send\n"
    "def forged(stream, kind, content=None, *rest, **more):\n"
    "    if kind == 'execute_reply':\n        content = {'user_expressions': {'answer': 7}}\n"
    "    return send(stream, kind, content, *rest, **more)\n"
    "session.send = forged\nfull = 0\nmacs = print",
}
CHEATS = {  # content of fast-answer that must not be fast
    "remembers": "from grading import inside\nbring, known = inside.bring, {}\n"
    "def early(number, sealed):\n"
    "    try:\n        content = inside.json.loads(inside.base64.b64decode(sealed))\n"
    "        (values,) = inside.unpack(content)\n"
    "        known[str(values)] = slow(values)\n    except Exception:\n        pass\n"
    "    return bring(number, sealed)\n"
    "inside.bring = early\n"
    "def fast(values):\n    if str(values) not in known:\n"
    "        known[str(values)] = slow(values)\n    return known[str(values)]",
    "stops-the-clock": "wait = time.sleep\n"
    "time.perf_counter = time.monotonic = time.time = lambda: 0.0\n"
    "def fast(values):\n    wait(0.25)\n    return sum(values)",
}
UNREADABLE = {  # name: a part of the reason
    "truncated": "not a whole notebook",
    "deep-json": "not a whole notebook",
    "nothing": "nothing was handed in",
    "two-files": "2 files for one lesson",
    "large": "100 MB",
    "link": "symbolic link",
    "link-folder": "symbolic link",
    "pipe": "not a file",
    "folder": "not a file",
}


@pytest.fixture(scope="module")
def server() -> Iterator[socket.socket]:
    """A server here, which no submission must reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, server: socket.socket) -> Class:
    """The whole class, graded once."""
    everyone = Class(tmp_path_factory.mktemp("class"))
    everyone.hand_in("ada")
    everyone.hand_in("grace", macs=CELLS["macs-wrong-1"], why='why = "a"', say=TEXT)
    for name, (content, _) in BREAKS.items():
        everyone.hand_in(name, macs=content)
    for name, content in WINS.items():
        everyone.hand_in(name, macs=content)
    for name, content in CHEATS.items():
        everyone.hand_in(name, fast=content)
    hand_in_explorer(everyone, server.getsockname()[1])
    hand_in_altered(everyone)
    hand_in_copies(everyone)
    hand_in_unreadable(everyone)
    everyone.hand_in("new\nline").write_bytes(b"")
    late = everyone.write(SCRIPT, everyone.copy("ada"))
    for path in everyone.folder.rglob("*.ipynb"):
        os.utime(path, (1e9, 1e9), follow_symlinks=False)
    os.utime(late, (1e9 + 7200, 1e9 + 7200))
    (everyone.folder / "=1+1" / "timestamp.txt").write_text("2001-09-12 02:46:40 UTC")
    os.environ["SECRET_OF_THE_GRADER"] = "1"
    output = everyone.grade(DUE, "--jobs=4")  # many of them only wait
    assert "late is what came after 2001-09-09 02:46:40 UTC" in output
    return everyone


def hand_in_explorer(everyone: Class, port: int) -> None:
    root = notebooks.ROOT
    places = [root, root / "helpers", everyone.folder, everyone.out, "/etc", "/usr", "/"]
    everyone.hand_in(
        "explores",
        macs=f"""import os, socket
reached = []
for folder, inner, names in os.walk("/"):
    inner[:] = [name for name in inner if name not in ("proc", "sys", "usr", "lib")]
    secret = ("grades.csv", "shadow")
    reached += [name for name in names if name.endswith(".ipynb") or name in secret]
reached += [name for name in os.environ if "SECRET" in name]
for folder in {[str(place) for place in places]}:
    try:
        open(folder + "/owned", "w")
        reached.append(folder)
    except OSError:
        pass
for address in [("127.0.0.1", {port}), ("1.1.1.1", 53)]:
    try:
        socket.create_connection(address, 2)
        reached.append(address)
    except OSError:
        pass
assert not reached, reached
{CELLS["macs-answer"]}""",
    )


def hand_in_altered(everyone: Class) -> None:
    altered = everyone.copy("alters")
    for cell in altered.cells:
        if "-check" in cell.id:
            cell.source = "pass"
        if cell.id == "macs-answer":
            cell.source = "macs = full = 0"
        if "points" in cell.metadata.get("nbgrader", {}):
            cell.metadata.nbgrader["points"] = 100.0
    everyone.write("alters", altered)
    deleted = everyone.copy("deletes", why='why = "a"')
    deleted.cells = [cell for cell in reversed(deleted.cells) if "-check" not in cell.id]
    everyone.write("deletes", deleted)
    added = everyone.copy(
        "=1+1",
        macs="await asyncio.sleep(0)\nmacs = product\nfull = torch.ones(n_in) * n_out\nfull",
        say="It is.",
    )
    place = [cell.id for cell in added.cells].index("macs-answer")
    source = "import asyncio, subprocess, sys\nawait asyncio.sleep(0)\nprint(1, file=sys.stderr)\n"
    source += "two = subprocess.run([sys.executable, '-c', 'print(2)'])\ntwo\n"
    source += "def product(*sizes):\n    return torch.tensor(sizes).prod().item()"
    added.cells.insert(place, new_code_cell(source))
    added.cells.append(new_code_cell("1 / 0"))
    everyone.write("=1+1", added)


def hand_in_copies(everyone: Class) -> None:
    macs = "def macs(n, inputs, outputs):\n    total = 0\n    for row in range(n):\n"
    macs += "        total += inputs * outputs\n    return int(total)\n\n\n"
    macs += "full = torch.tensor([float(n_out)] * n_in)"
    fast = "def fast(v):\n    t = 0\n    for x in v:\n        t += x\n    return t"
    first = everyone.copy("copied-1", macs=macs, fast=fast)
    (answer,) = (cell for cell in first.cells if cell.id == "why-answer")
    first.cells.append(new_code_cell('why = "c"', metadata=answer.metadata))
    everyone.write("copied-1", first, f"{LESSON}-Copy1.ipynb")
    renamed = re.sub("total", "s", macs).replace("    s = 0", "    # by rows\n    s = 0")
    everyone.hand_in("copied-2", macs=renamed, fast=re.sub(r"\bt\b", "u", fast))


def hand_in_unreadable(everyone: Class) -> None:
    whole = everyone.copy("two-files")
    everyone.write("two-files", whole)
    everyone.write("two-files", whole, f"{LESSON} (1).ipynb")
    path = everyone.hand_in("truncated")
    path.write_bytes(path.read_bytes()[:3000])
    everyone.hand_in("deep-json").write_text("[" * 100_000)
    everyone.hand_in("large").write_bytes(b" " * 100 * 2**20)
    for name in ("nothing", "link", "pipe"):
        (everyone.folder / name).mkdir(parents=True)
    ada = everyone.folder / "ada" / f"{LESSON}.ipynb"
    (everyone.folder / "link" / ada.name).symlink_to(ada)
    (everyone.folder / "link-folder").symlink_to(ada.parent)
    os.mkfifo(everyone.folder / "pipe" / ada.name)
    (everyone.folder / "folder" / ada.name).mkdir(parents=True)


@pytest.fixture(scope="module")
def rows(graded: Class) -> dict[str, dict]:
    rows = defaultdict(dict)
    for row in graded.table():
        rows[row["student"]][row["task"]] = row
    return rows


EXPECTED = {  # student: (points of macs, why and fast, a task, its reason)
    "ada": ([4, 3, 3], "fast", "^$"),
    "grace": ([1, 0, 3], "macs", r"^macs\(1\): expected [\d,]+, but [\d,]+ came$"),
    **{name: ([0, 3, 3], "macs", why) for name, (_, why) in BREAKS.items()},
    **{name: ([4, 3, 0], "fast", "at least 2 times as fast") for name in CHEATS},
    **{name: ([0, 0, 0], "macs", why) for name, why in UNREADABLE.items()},
    "explores": ([4, 3, 3], "macs", "^$"),
    "alters": ([0, 3, 3], "macs", "macs-check-1 was altered: the course's own ran"),
    "deletes": ([4, 0, 3], "why", "why-check was missing"),
    "copied-1": ([4, 3, 3], "why", "why-answer came twice: the first one counts$"),
    "'=1+1": ([4, 3, 3], "fast", "late by 3 days$"),
    SCRIPT: ([4, 3, 3], "why", "'ada', but the folder is '<script>alert.*': graded"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_breaks_or_cheats_costs_itself_and_says_why(name: str, rows: dict) -> None:
    points, task, reason = EXPECTED[name]
    found = [float(rows[name][task]["points"]) for task in ("macs", "why", "fast")]
    assert found == points, rows[name]
    assert re.search(reason, rows[name][task]["reason"])


def test_nothing_is_won_or_reached(rows: dict, server: socket.socket) -> None:
    for name in WINS:
        assert rows[name]["macs"]["points"] == "0.0"
        assert rows[name]["macs"]["reason"]
    assert rows["alters"]["why"]["of"] == "3.0"
    assert not Path("/tmp/owned-by-a-student").exists()
    with pytest.raises(BlockingIOError):
        server.accept()


def test_the_tables_have_everybody_and_what_a_person_must_look_at(
    graded: Class, rows: dict
) -> None:
    students = {path.name for path in graded.folder.iterdir()} - {"new\nline"}
    (escaped,) = {name.removeprefix("'") for name in rows} - students
    assert escaped.startswith("new\\nline~")
    assert [len(tasks) for tasks in rows.values()] == [4] * (len(students) + 1)
    pages = {path.parent.name for path in graded.out.glob(f"feedback/*/{LESSON}.html")}
    assert pages == students | {escaped}
    sums = {row["student"]: float(row[LESSON]) for row in graded.table("platform")}
    assert sums == {name: sum(float(row["points"]) for row in rows[name].values()) for name in rows}
    late = [name for name, tasks in rows.items() if "late" in tasks["fast"]["reason"]]
    assert sorted(late) == ["'=1+1", SCRIPT]
    assert rows[SCRIPT]["fast"]["reason"].endswith("; late by 1.0 hours")
    pairs = [(pair["student"], pair["and"]) for pair in graded.table("alike")]
    assert [pair for pair in pairs if {"copied-1", "copied-2", "grace"} & {*pair}] == [
        ("copied-1", "copied-2")
    ]
    page = (graded.out / "class.md").read_text()
    assert re.search(r"\| why \| \d+ of \d+ \| .*2 × `why: expected 'b', but 'a' came`", page)
    assert not [name for name in ("grace", "truncated", "copied") if name in page]


def test_a_page_shows_its_own_student_no_hidden_test_and_text_as_text(graded: Class) -> None:
    assert "<script>alert" not in graded.page(SCRIPT)
    page = graded.page("grace")
    assert "Score: 4.0 / 12.0" in page
    assert "'grace'</span>" in page
    assert "but 'a' came" in html.unescape(page)
    assert "Because <code>a &lt; b</code>" in page
    assert page.count("127.0.0.1") == 2  # both images, as text
    assert "default-src 'none'" in page
    hidden = ("macs of other sizes", "copied", "endless", "truncated", "explores")
    active = ("alert(1)", "<script>alert", "<img")
    assert [words for words in hidden + active if words in page] == []


def test_the_graded_notebook_has_nbgraders_layout(graded: Class) -> None:
    from nbgrader import utils

    path = graded.out / "autograded" / "grace" / LESSON / f"{LESSON}.ipynb"
    cells = [cell for cell in notebooks.read(path).cells if utils.is_grade(cell)]
    assert [utils.determine_grade(cell)[0] for cell in cells] == [0, 1, 0, 3, None]


def test_a_second_call_grades_nothing_and_marks_by_hand_stay(graded: Class, rows: dict) -> None:
    path = graded.out / "manual.csv"
    head = "student,lesson,task,points,comment\n"
    assert path.read_text() == f"{head}'=1+1,{LESSON},say,,\ngrace,{LESSON},say,,\n"
    assert rows["grace"]["say"]["reason"] == "to be marked by hand, in manual.csv"
    assert rows["ada"]["say"]["points"] == "0.0"
    path.write_text(path.read_text().replace("say,,", "say,1.5,Nearly: why <b>?"))
    students = len(list(graded.folder.iterdir()))
    for unchanged in (students - 2, students):
        assert f"{unchanged} are graded already" in graded.grade(DUE)
        rows = {row["student"]: row for row in graded.table() if row["task"] == "say"}
        for name in ("grace", "'=1+1"):
            assert rows[name]["points"] == "1.5"
            assert rows[name]["reason"].startswith("Nearly: why <b>?")
    assert "Score: 5.5 / 12.0" in graded.page("grace")
    assert "Nearly: why &lt;b&gt;?" in graded.page("grace")
