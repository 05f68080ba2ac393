"""The student's copies in JupyterLab, as ``make lab`` opens them, in a window of 1280 × 720.

The window is a new reader's: menu, sidebar, tab and status bar are there, and the notebook has a
view of 950 × 599. What is measured has every answer unfolded.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat.sign import NotebookNotary

from helpers import terminal
from tests.browser import moving
from tools import exercise_sets, lab, notebooks

pytestmark = pytest.mark.everything
LESSONS = sorted(path.name for path in notebooks.NOTEBOOKS.glob("*.ipynb"))
EXERCISES = sorted(path.parent.name for path in exercise_sets.all_sets())
# The reader's own settings: every cell is drawn, not only those on the screen.
SETTINGS = {"notebook-extension/tracker": {"windowingMode": "none"}}
SCRIPT = Path(__file__).with_name("lab.js")


# These are run in JupyterLab, to see a lesson, processes and a report there; nbval runs them all.
RUN = ("00_start_here.ipynb", "10_data_and_processes.ipynb", "profile_your_own_model.ipynb")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a new reader's course is, and JupyterLab's data."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def page(chromium, folder: Path) -> Iterator:
    """JupyterLab on a new reader's course, with the functions of lab.js; it asks nobody else."""
    from jupyter_server.serverapp import list_running_servers  # slow to import

    course, runtime = folder / "course", folder / "runtime"
    for name in ("assets", "helpers", "notebooks", "tools"):
        shutil.copytree(notebooks.ROOT / name, course / name)
    for name, values in SETTINGS.items():
        path = folder / "lab" / "user-settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    own = {"JUPYTER_CONFIG_DIR": str(folder), "JUPYTER_DATA_DIR": str(folder / "data")}
    own |= {"JUPYTER_RUNTIME_DIR": str(runtime), "PYTHONPATH": str(course)}
    own["PREDICTIONS_FILE"] = ""  # beside the notebooks, as for a reader
    line = "python -m tools.lab --no-browser --allow-root --LabApp.expose_app_in_browser=True"
    with terminal.started(line, course, stderr=subprocess.DEVNULL, **own) as server:
        while not (servers := [*list_running_servers(runtime)]):
            assert server.poll() is None
            time.sleep(0.1)
        address, token = servers[0]["url"], servers[0]["token"]
        page = chromium.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(1000 * notebooks.CELL_TIMEOUT)
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{address}lab/tree/work/00_start_here.ipynb?token={token}")
        page.add_script_tag(path=SCRIPT)
        page.wait_for_function("() => window.jupyterapp?.shell.currentWidget")
        yield page
        page.close()
        here = (address, "data:", "blob:")
        assert [url for url in requests if not url.startswith(here)] == []


def show(page, path: str) -> None:
    """Bring a notebook to the front; open it, if it is not open."""
    page.evaluate("path => show(path)", path)
    page.wait_for_function("path => drawn(path)", arg=path)


def run_all(page, path: str) -> None:
    show(page, path)
    page.wait_for_function("path => idle(path)", arg=path)
    for item in ("Run", "Run All Cells"):
        page.get_by_role("menuitem", name=item, exact=True).click()
    page.wait_for_function("path => done(path)", arg=path, timeout=600_000)


@pytest.mark.parametrize("lesson", RUN)
def test_a_students_copy_runs_from_the_menu(page, lesson: str) -> None:
    path = f"work/{lesson}"
    run_all(page, path)
    page.wait_for_function("path => drawn(path)", arg=path)
    assert page.evaluate("path => failures(path)", path) == []
    look(page, path)


@pytest.mark.parametrize("lesson", sorted(set(LESSONS) - set(RUN)))
def test_a_students_copy_that_has_run_fits_one_view(page, folder: Path, lesson: str) -> None:
    """With the outputs that are stored in the course, trusted as those that one has run oneself."""
    path = show_stored(page, folder, lesson)
    assert page.evaluate("path => codeCells(path).every((cell) => cell.execution_count)", path)
    look(page, path)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_every_cell_of_an_exercise_fits_one_view(page, exercise: str) -> None:
    path = f"work/exercises/{exercise}/{exercise}.ipynb"
    show(page, path)
    look(page, path)


def look(page, path: str) -> None:
    """All of a notebook fits one view and is seen; then it is closed."""
    assert page.evaluate("path => complaints(path)", path) == []
    page.evaluate("path => end(path)", path)
    page.wait_for_function("path => !notebookOf(path)", arg=path)


@pytest.mark.parametrize(("lesson", "cell", "value"), moving.SLIDERS)
def test_a_slider_is_turned(page, folder: Path, lesson: str, cell: str, value: float) -> None:
    """Without a kernel: the picture is the one that is stored."""
    path = show_stored(page, folder, f"{lesson}.ipynb")
    page.wait_for_function(
        "place => cellOf(place).node.querySelector('svg.marks')", arg=[path, cell]
    )
    before, after = moving.turn(node(page, path, cell), value)
    assert before != after
    look(page, path)


@pytest.mark.parametrize(("lesson", "cell"), moving.TIMELINES)
def test_a_timeline_is_zoomed(page, folder: Path, lesson: str, cell: str) -> None:
    path = show_stored(page, folder, f"{lesson}.ipynb")
    page.wait_for_function(
        "place => cellOf(place).node.querySelector('svg.marks')", arg=[path, cell]
    )
    before, after, said = moving.zoom_and_point(page, node(page, path, cell))
    assert before != after
    assert "name" in said
    assert "start, ms" in said
    look(page, path)


def show_stored(page, folder: Path, lesson: str) -> str:
    """Show a lesson with the course's outputs, trusted as those that one has run oneself."""
    copy = folder / "course" / "work" / lesson
    stored = notebooks.NOTEBOOKS / lesson
    copy.write_bytes(lab.with_outputs(copy.read_bytes(), stored.read_bytes()))
    NotebookNotary(data_dir=str(folder / "data")).sign(notebooks.read(copy))
    path = f"work/{lesson}"
    show(page, path)
    return path


def test_an_exercise_is_answered_and_checked(page) -> None:
    path = "work/exercises/03_macs_and_flops/03_macs_and_flops.ipynb"
    which = exercise_sets.Set(exercise_sets.solution("03"))
    cells = {cell.id: cell for cell in which.notebook.cells}
    solution = re.sub(r"^ *### .*\n", "", cells["hand-answer"].source, flags=re.MULTILINE)
    run_all(page, path)
    assert "expected 21,200, but got None" in seen(page, path, "hand-check")
    run(page, path, "table-given-1")
    assert "student must be your id, such as 'ada'" in run(page, path, "table-given-2")
    write(page, path, "student", 'student = "ada"')
    assert run(page, path, "student") == ""
    assert "groups" in run(page, path, "table-given-2")
    write(page, path, "hand-answer", cells["hand-wrong-1"].source)
    run(page, path, "hand-answer")
    assert "expected 21,200, but got 42,400" in run(page, path, "hand-check")
    write(page, path, "hand-answer", solution)
    run(page, path, "hand-answer")
    verdict = "✓ MACs for 8 to 12 channels, 10 × 10 pixels, expand 2, 3 × 3, stride 2"
    assert run(page, path, "hand-check").startswith(verdict)
    look(page, path)


def test_a_prediction_is_kept_over_a_restart_and_counted(page) -> None:
    path, chosen = "work/01_timing.ipynb", "You predicted (a), and the answer is (b)."
    show(page, path)
    start_again(page, path)
    run(page, path, "setup")
    assert run(page, path, "clocks-answer").startswith('No prediction yet: write "a", "b" or "c"')
    write(page, path, "clocks-answer", 'predict("01 clocks", "a")')
    assert run(page, path, "clocks-answer").startswith("You predict (a): All four report about")
    for cell in ("clocks-define", "clocks-measure", "clocks-check"):
        assert (chosen in run(page, path, cell)) == (cell == "clocks-check")
    start_again(page, path)
    run(page, path, "setup")
    write(page, path, "clocks-answer", 'predict("01 clocks", "?")')
    assert run(page, path, "clocks-answer").startswith("You predicted (a): All four report about")
    shown = run(page, path, "record")
    assert shown.split("\n")[0] == "a––––"
    assert "1 of 5 answers predicted, and 0 of them right. Go back to:" in shown
    assert "Wall time and process time: you predicted (a), not (b)." in shown
    squares = page.locator("div[role=img] > span")
    colours = squares.evaluate_all("all => all.map((it) => it.style.borderColor)")
    assert colours == ["rgb(210, 153, 34)", *["rgb(140, 149, 159)"] * 4]
    page.evaluate("path => end(path)", path)
    page.wait_for_function("path => !notebookOf(path)", arg=path)


def test_a_lesson_and_its_exercises_have_different_tabs(page) -> None:
    """Their files have the same name, and keep it."""
    name = "03_macs_and_flops"
    paths = [f"work/{name}.ipynb", f"work/exercises/{name}/{name}.ipynb"]
    for path in paths:
        show(page, path)
    expected = [f"{name}.ipynb", f"Exercises · {name}.ipynb"]
    page.wait_for_function("names => names.every((name) => tabs().includes(name))", arg=expected)
    for path in paths:
        page.evaluate("path => end(path)", path)
        page.wait_for_function("path => !notebookOf(path)", arg=path)


def test_a_new_reader_is_asked_nothing(page) -> None:
    show(page, "work/00_start_here.ipynb")
    page.wait_for_timeout(2000)  # when JupyterLab would ask about news
    assert page.locator("#jp-Notification, .Toastify__toast").all_inner_texts() == []
    names = page.locator(".jp-DirListing-itemText").all_inner_texts()
    assert "00_start_here.ipynb" in [name.strip() for name in names]
    assert not page.locator(".jp-DirListing-itemModified:visible").count()


def test_a_slow_cell_counts_its_seconds_and_then_says_how_long_it_took(page) -> None:
    path = "work/exercises/01_timing/01_timing.ipynb"
    show(page, path)
    page.wait_for_function("path => idle(path)", arg=path)
    write(page, path, "student", "import time\n\ntime.sleep(4)")
    page.keyboard.press("Control+Enter")
    for line in (r"[1-3]\.\d+s", "Last executed in 4"):  # the line is not there at once
        found = "([place, line]) => secondsBelow(place).match(line)"
        page.wait_for_function(found, arg=[[path, "student"], line])
    page.evaluate("path => end(path)", path)


def start_again(page, path: str) -> None:
    """Restart the kernel from the menu, and remove the outputs."""
    page.wait_for_function("path => idle(path)", arg=path)
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    item = re.compile("^Restart Kernel and Clear Outputs")
    page.locator(".lm-Menu-itemLabel", has_text=item).click()
    page.locator(".jp-Dialog button.jp-mod-accept").click()
    cleared = "path => idle(path) && !codeCells(path).some((cell) => cell.execution_count)"
    page.wait_for_function(cleared, arg=path)


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
    place = node(page, path, cell)  # a check is folded
    (place.query_selector(".cm-content") or place.query_selector(".jp-InputPlaceholder")).click()
    page.keyboard.press("Control+Enter")
    page.wait_for_function("place => ran(place)", arg=[path, cell, before])
    return seen(page, path, cell)


def seen(page, path: str, cell: str) -> str:
    return node(page, path, cell).query_selector(".jp-Cell-outputWrapper").inner_text().strip()
