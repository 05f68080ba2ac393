"""The README's picture: a lesson in JupyterLab, with the outputs that are stored in it.

    python -m tests.browser.picture [OUT.png]

It needs Chromium and what is in requirements-make.txt.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.browser.test_lessons import SCRIPT, jupyterlab
from tools import notebooks

PICTURE = notebooks.ROOT / "assets" / "figures" / "jupyterlab.png"
LESSON, CELL = "00_start_here.ipynb", "five-predict"
WINDOW = {"width": 1280, "height": 1080}
SHOW = """id => {
  const notebook = current().content;
  notebook.activeCellIndex = notebook.widgets.findIndex((cell) => cell.model.id === id);
  notebook.activeCell.node.scrollIntoView();
  [...jupyterapp.shell.widgets("main")].forEach((tab) => tab === current() || tab.dispose());
}"""


def take(picture: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # A student has no grader, and sees none of its buttons.
        config = folder / "CONFIG_DIR" / "labconfig" / "page_config.json"
        config.parent.mkdir(parents=True)
        config.write_text(json.dumps({"disabledExtensions": {"@jupyter/nbgrader": True}}))
        with jupyterlab(folder) as address, sync_playwright() as driver:
            # As if the student had run it: the lesson with its outputs.
            shutil.copy(notebooks.NOTEBOOKS / LESSON, folder / "course" / "work" / LESSON)
            chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = chromium.new_page(viewport=WINDOW)
            page.goto(address)
            page.add_script_tag(path=SCRIPT)
            page.wait_for_function("() => drawn('work/00_start_here.ipynb')")
            page.evaluate("path => openNotebook(path)", f"work/{LESSON}")
            page.wait_for_function("path => drawn(path) && idle()", arg=f"work/{LESSON}")
            page.evaluate(SHOW, CELL)
            page.wait_for_timeout(1000)  # the file browser marks what is open
            page.screenshot(path=picture)


if __name__ == "__main__":
    take(Path(sys.argv[1]) if sys.argv[1:] else PICTURE)
