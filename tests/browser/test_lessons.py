"""The student's copies in JupyterLab, as ``make lab`` opens them, in a window of 1280 × 720.

The window is a new reader's: menu, sidebar, tab and status bar are there, and the notebook has a
view of 950 × 599. What is measured has every answer unfolded. SCREENSHOTS=folder leaves pictures of
every page there, in light and dark, for somebody to look at.
"""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import exercises, notebooks

pytestmark = pytest.mark.everything
LESSONS = sorted(path.name for path in notebooks.NOTEBOOKS.glob("*.ipynb"))
EXERCISES = sorted(path.parent.name for path in exercises.all_sets())
AT_ONCE = 2  # lessons that run at the same time
# No news are fetched, and every cell is drawn, not only those on the screen.
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false"},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
SCRIPT = Path(__file__).with_name("lab.js")


def awkward() -> list:
    """A notebook's cells, each with one thing that a reader would stumble over."""
    table = "| " + "word | " * 60 + "\n" + "|---" * 60 + "|\n"
    dot = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
    picture = new_output("display_data", {"text/html": f'<img src="{dot}" width="9">'})
    clear = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    ink = new_output("display_data", {"text/html": f'<img src="{clear}" alt="ink" width="9">'})
    printed = new_output("stream", text=("word " * 30 + "\n") * 5)
    return [
        new_markdown_cell("line\n\n" * 30, id="tall"),
        new_markdown_cell(table, id="wide"),
        new_code_cell("x = 1  # " + "long " * 30, id="long", execution_count=1),
        new_code_cell("words", id="broken", execution_count=2, outputs=[printed]),
        new_markdown_cell("![gone](gone.png)", id="gone"),
        new_code_cell("dot", id="dumb", execution_count=3, outputs=[picture]),
        new_code_cell("clear", id="clear", execution_count=4, outputs=[ink]),
        new_markdown_cell("![far](http://127.0.0.2:1/far.png)", id="far"),
    ]


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """JupyterLab on a copy of the course in ``folder``; the address of its first page.

    It ends with the block, and its kernels with it.
    """
    course = folder / "course"
    for name in ("assets", "helpers", "notebooks", "tools"):
        shutil.copytree(notebooks.ROOT / name, course / name)
    awkward_one = notebooks.canonical(new_notebook(cells=awkward()))
    (course / "awkward.ipynb").write_text(notebooks.as_text(awkward_one), encoding="utf-8")
    for name, values in SETTINGS.items():
        path = folder / "LAB_SETTINGS_DIR" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex()
    rooms = ["CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR", "LAB_SETTINGS_DIR", "LAB_WORKSPACES_DIR"]
    own = {
        f"JUPYTER{'' if room.startswith('LAB') else '_'}{room}": str(folder / room)
        for room in rooms
    }
    options = ["--no-browser", "--allow-root", f"--port={port}", "--ServerApp.port_retries=0"]
    options += [f"--IdentityProvider.token={token}", "--LabApp.expose_app_in_browser=True"]
    log = folder / "log"
    with log.open("wb") as file:
        server = subprocess.Popen(
            [sys.executable, "-m", "tools.lab", *options], cwd=course, stdout=file, stderr=file,
            env={**os.environ, **own, "PYTHONPATH": str(course)}, start_new_session=True,
        )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(600):
            assert server.poll() is None, log.read_text()
            try:
                urllib.request.urlopen(f"{address}/api?token={token}")
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        yield f"{address}/lab/tree/work/00_start_here.ipynb?token={token}"
    finally:  # at once: asked kindly, it sometimes waits for ever for a thread of AnyIO
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.fixture(scope="module")
def outside() -> list[str]:
    """What the page asked of others than its own server."""
    return []


@pytest.fixture(scope="module")
def page(chromium, outside: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """JupyterLab on a new reader's course, with the functions of lab.js."""
    with jupyterlab(tmp_path_factory.mktemp("lab")) as address:
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(1000 * notebooks.CELL_TIMEOUT)
        here = (address.split("/lab")[0], "data:", "blob:")
        page.on("request", lambda it: it.url.startswith(here) or outside.append(it.url))
        page.goto(address)
        page.add_script_tag(path=SCRIPT)
        page.wait_for_function("() => window.jupyterapp?.shell.currentWidget")
        yield page
        page.close()


def show(page, path: str) -> None:
    """Bring a notebook to the front; open it, if it is not open."""
    page.evaluate("path => show(path)", path)
    page.wait_for_function("path => drawn(path)", arg=path)


def menu(page, *words: str) -> None:
    for word in words:
        page.get_by_role("menuitem", name=word, exact=True).click()


def plan(notebook: Path) -> list[str]:
    """The headings of a notebook's text."""
    texts = [cell.source for cell in notebooks.read(notebook).cells if cell.cell_type == "markdown"]
    prose = re.sub(r"```.*?```", "", "\n\n".join(texts), flags=re.DOTALL)
    return [re.sub(r"[`*]", "", title) for title in re.findall(r"^#+ +(.+)", prose, re.MULTILINE)]


def pictures(cells: list) -> dict[str, int]:
    """How many pictures each cell shows."""
    return {cell["id"]: str(cell["outputs"]).count("<img") for cell in cells}


@pytest.fixture(scope="module")
def begun() -> set[str]:
    """The lessons whose cells have been told to run."""
    return set()


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_students_copy_runs_from_the_menu(page, outside, begun, lesson: str) -> None:
    from playwright.sync_api import expect

    place = LESSONS.index(lesson)
    for ahead in LESSONS[place : place + AT_ONCE]:
        if ahead not in begun:
            begun.add(ahead)
            show(page, f"work/{ahead}")
            page.wait_for_function("path => idle(path)", arg=f"work/{ahead}")
            menu(page, "Run", "Run All Cells")
    path, source = f"work/{lesson}", notebooks.NOTEBOOKS / lesson
    show(page, path)
    page.wait_for_function("path => done(path)", arg=path, timeout=600_000)
    page.wait_for_function("path => drawn(path)", arg=path)
    assert page.evaluate("path => failures(path)", path) == []
    stored = [cell for cell in notebooks.read(source).cells if cell.cell_type == "code"]
    assert pictures(page.evaluate("path => codeCells(path)", path)) == pictures(stored)
    page.evaluate("jupyterapp.commands.execute('toc:show-panel')")
    expect(page.locator(".jp-TableOfContents .jp-tocItem-content")).to_have_text(plan(source))
    found = page.evaluate("path => complaints(path)", path)
    take_screenshots(page, path)
    assert found == []
    assert outside == []
    page.evaluate("path => end(path)", path)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_every_cell_of_an_exercise_fits_one_view(page, outside, exercise: str) -> None:
    path = f"work/exercises/{exercise}/{exercise}.ipynb"
    show(page, path)
    found = page.evaluate("path => complaints(path)", path)
    take_screenshots(page, path)
    assert found == []
    assert outside == []
    page.evaluate("path => end(path)", path)


def test_a_folded_answer_opens_from_the_keyboard(page) -> None:
    path = "work/01_timing.ipynb"
    show(page, path)
    page.wait_for_function("path => idle(path)", arg=path)  # a kernel that starts takes the focus
    fold = page.locator(".jp-Cell:visible details", has_text="Read").first
    fold.evaluate("fold => fold.closest('.jp-Cell').focus()")  # as the arrow keys do
    page.keyboard.press("Tab")
    assert fold.evaluate("fold => fold.firstElementChild === document.activeElement")
    assert not fold.evaluate("fold => fold.open")
    page.keyboard.press("Enter")
    assert fold.evaluate("fold => fold.open")
    page.evaluate("path => end(path)", path)


def test_an_exercise_is_answered_and_checked(page, outside) -> None:
    path = "work/exercises/03_macs_and_flops/03_macs_and_flops.ipynb"
    cells = {cell.id: cell for cell in exercises.Set(exercises.solution("03")).notebook.cells}
    solution = re.sub(r"^ *### .*\n", "", cells["hand-answer"].source, flags=re.MULTILINE)
    show(page, path)
    page.wait_for_function("path => idle(path)", arg=path)
    menu(page, "Run", "Run All Cells")
    page.wait_for_function("path => done(path)", arg=path)
    assert "expected 21,200, but None came" in seen(page, path, "hand-check")
    run(page, path, "table-given-1")
    assert "student must be your id, such as 'ada'" in run(page, path, "table-given-2")
    write(page, path, "student", 'student = "ada"')
    assert run(page, path, "student") == ""
    assert "groups" in run(page, path, "table-given-2")
    write(page, path, "hand-answer", cells["hand-wrong-1"].source)
    run(page, path, "hand-answer")
    assert "expected 21,200, but 42,400 came" in run(page, path, "hand-check")
    take_screenshots(page, path)
    assert page.evaluate("path => complaints(path)", path) == []
    write(page, path, "hand-answer", solution)
    run(page, path, "hand-answer")
    verdict = "✓ 8 to 12 channels, 10 × 10, twice as wide, 3 × 3, stride 2"
    assert run(page, path, "hand-check") == verdict
    assert outside == []
    page.evaluate("path => end(path)", path)


def node(page, path: str, cell: str):
    return page.evaluate_handle("place => cellOf(place).node", [path, cell]).as_element()


def write(page, path: str, cell: str, text: str) -> None:
    """Replace what stands in a cell, as by hand."""
    node(page, path, cell).query_selector(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def run(page, path: str, cell: str) -> str:
    """Run a cell from the keyboard; what is seen below it."""
    before = page.evaluate("place => count(place)", [path, cell])
    node(page, path, cell).query_selector(".cm-content").click()
    page.keyboard.press("Control+Enter")
    page.wait_for_function("place => ran(place)", arg=[path, cell, before])
    return seen(page, path, cell)


def seen(page, path: str, cell: str) -> str:
    return node(page, path, cell).query_selector(".jp-Cell-outputWrapper").inner_text().strip()


def take_screenshots(page, path: str) -> None:
    """The notebook from top to bottom, in light and dark, where SCREENSHOTS names a folder."""
    if "SCREENSHOTS" not in os.environ:
        return
    page.set_viewport_size({"width": 1280, "height": 1500})
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme
        )
        page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
        for number in range(page.evaluate("path => screens(path)", path)):
            page.evaluate("([path, number]) => scroll(path, number)", [path, number])
            place = "-".join(Path(path).with_suffix("").parts)
            name = f"{place}-{theme.split()[1].lower()}-{number:02}.png"
            page.screenshot(path=Path(os.environ["SCREENSHOTS"]) / name)
    page.set_viewport_size({"width": 1280, "height": 720})


def test_what_a_reader_would_stumble_over_is_noticed(page, outside) -> None:
    show(page, "awkward.ipynb")
    found = page.evaluate("path => complaints(path)", "awkward.ipynb")
    assert {complaint.split(":")[0] for complaint in found} == {cell.id for cell in awkward()}
    assert outside == ["http://127.0.0.2:1/far.png"]
    outside.clear()
