"""The lessons in JupyterLab, as ``make lab`` opens it, in a window of 1280 × 720.

The window is a new reader's: menu, file browser, tab and status bar are there, and the notebook has
a view of 950 × 599. What is measured has every answer unfolded.
"""

import json
import os
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

from tests.browser.conftest import CHROMIUM, FLAGS  # noqa: F401 (once defined here)
from tools import notebooks

pytestmark = pytest.mark.everything
LESSONS = sorted(path.name for path in notebooks.NOTEBOOKS.glob("*.ipynb"))
RUN = ("00_start_here.ipynb", "11_nsight.ipynb")  # quick; the strict run has them all
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
    printed = new_output("stream", text=("word " * 30 + "\n") * 5)
    return [
        new_markdown_cell("line\n\n" * 30, id="tall"),
        new_markdown_cell(table, id="wide"),
        new_code_cell("x = 1  # " + "long " * 30, id="long", execution_count=1),
        new_code_cell("words", id="broken", execution_count=2, outputs=[printed]),
        new_markdown_cell("![gone](gone.png)", id="gone"),
        new_code_cell("dot", id="dumb", execution_count=3, outputs=[picture]),
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
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.fixture(scope="module")
def lab(chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """``lab(path)`` opens a notebook and gives the page; ``lab.outside``: what it asked others."""
    with jupyterlab(tmp_path_factory.mktemp("lab")) as address:
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(1000 * notebooks.CELL_TIMEOUT)

        def opened(path: str):
            page.evaluate("path => openNotebook(path)", path)
            page.wait_for_function("path => drawn(path)", arg=path)
            return page

        opened.outside = []
        here = (address.split("/lab")[0], "data:", "blob:")
        page.on("request", lambda it: it.url.startswith(here) or opened.outside.append(it.url))
        page.goto(address)
        page.add_script_tag(path=SCRIPT)
        page.wait_for_function("() => drawn('work/00_start_here.ipynb')")
        yield opened
        page.close()


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_cell_and_every_output_fits_one_view(lab, lesson: str) -> None:
    assert lab(f"notebooks/{lesson}").evaluate("complaints()") == []
    assert lab.outside == []


@pytest.mark.parametrize("lesson", RUN)
def test_a_students_copy_runs_from_the_menu(lab, lesson: str) -> None:
    page = lab(f"work/{lesson}")
    page.wait_for_function("() => idle()")
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function("() => done()")
    assert page.evaluate("errors()") == []
    page.wait_for_function("path => drawn(path)", arg=f"work/{lesson}")
    assert page.evaluate("complaints()") == []
    assert lab.outside == []


def test_what_a_reader_would_stumble_over_is_noticed(lab) -> None:
    found = lab("awkward.ipynb").evaluate("complaints()")
    assert {complaint.split(":")[0] for complaint in found} == {cell.id for cell in awkward()}
    assert lab.outside == ["http://127.0.0.2:1/far.png"]
    lab.outside.clear()
