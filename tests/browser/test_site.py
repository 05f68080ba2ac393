"""The site that ``make site`` builds, opened from its folder in a real Chromium.

Every page is visited on a screen and on a phone. Four pages, one of each kind, are also looked at
in the dark, on paper and with axe.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urldefrag

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import notebooks

pytestmark = pytest.mark.everything
SCRIPT = Path(__file__).with_name("site.js")
WORDS = "{} is missing: pip install -r requirements-make.txt -c constraints.txt"
LOOKED_AT_CLOSELY = (
    "README.html",
    "notebooks/01_timing.html",
    "notebooks/profile_your_own_model.html",
    "notebooks/exercises/01_timing/01_timing.html",
)


def build(source: Path, out: Path) -> subprocess.CompletedProcess:
    """Call Sphinx as the Makefile does."""
    pytest.importorskip("sphinx", reason=WORDS.format("sphinx"))
    settings = str(notebooks.ROOT / "tools" / "site")
    line = [sys.executable, "-m", "sphinx", "-M", "html", str(source), str(out), "-c", settings]
    options = ["-q", "--fail-on-warning", "--keep-going"]
    return subprocess.run([*line, *options], capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = build(notebooks.ROOT, out)
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def visit(chromium, folder: Path) -> Iterator:
    """``visit(page)`` opens a page and says what is on it; ``visit.outside``: what it asked."""
    axe = pytest.importorskip(
        "axe_playwright_python.base", reason=WORDS.format("axe")
    ).AXE_FILE_PATH

    def visited(path: Path) -> SimpleNamespace:
        page.set_viewport_size({"width": 1280, "height": 720})
        page.emulate_media(color_scheme="light")
        page.goto(path.as_uri())
        page.add_script_tag(path=SCRIPT)
        facts, barriers = page.evaluate("facts()"), []
        wrong = page.evaluate("complaints()")
        if path.relative_to(folder).as_posix() in LOOKED_AT_CLOSELY:
            page.add_script_tag(path=axe)
            page.emulate_media(media="print")
            page.set_viewport_size({"width": 718, "height": 1047})
            wrong += page.evaluate("onPaper()")
            page.emulate_media(media="screen")
            page.set_viewport_size({"width": 1280, "height": 720})
            page.evaluate("thinOut()")
            barriers = page.evaluate("barriers(false)") + page.evaluate("barriers(true)")
            page.emulate_media(color_scheme="dark")
            barriers += page.evaluate("barriers(true)")
        page.set_viewport_size({"width": 390, "height": 844})
        wrong += page.evaluate("complaints()")
        return SimpleNamespace(**facts, path=path, complaints=wrong, barriers=barriers)

    # Without motion a colour is there at once: axe would see buttons half-way from light to dark.
    page = chromium.new_page(reduced_motion="reduce")
    visited.page, visited.outside = page, []
    page.on("pageerror", lambda error: visited.outside.append(f"error: {error}"))
    here = (folder.as_uri(), "data:")
    page.on("request", lambda it: it.url.startswith(here) or visited.outside.append(it.url))
    yield visited
    page.close()


@pytest.fixture(scope="module")
def pages(folder: Path, visit) -> dict[str, SimpleNamespace]:
    """What every page holds, by its address."""
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]
    paths.remove(folder / "index.html")  # it leads to the README
    return {path.as_uri(): visit(path) for path in paths}


def test_every_page_is_there_and_every_link_leads_somewhere(pages, folder, visit) -> None:
    contents = {urldefrag(link)[0] for link in pages[(folder / "README.html").as_uri()].contents}
    sources = [*notebooks.NOTEBOOKS.glob("*.ipynb"), *notebooks.ROOT.glob("docs/*.md")]
    sources += notebooks.NOTEBOOKS.glob("exercises/*/*.ipynb")
    names = [path.relative_to(notebooks.ROOT).with_suffix(".html") for path in sources]
    assert {(folder / name).as_uri() for name in names} <= contents
    dead = []
    for page in pages.values():
        for link in page.links:
            address, place = urldefrag(link)
            if address.startswith("file:"):
                exists = Path(unquote(address.removeprefix("file://"))).is_file()
                if not exists or (place and place not in pages[address].ids):
                    dead.append(f"{page.path.name}: {link}")
    assert dead == []
    assert visit.outside == []
    visit.page.goto((folder / "index.html").as_uri())
    visit.page.wait_for_url("**/README.html")


def test_nothing_is_too_wide_or_in_the_way_of_a_screen_reader(pages) -> None:
    found = {page.path.name: page.complaints + page.barriers for page in pages.values()}
    assert not any(found.values()), found


def test_solutions_and_instructors_notes_are_not_shown(pages, folder) -> None:
    lessons = [page for page in pages.values() if page.path.parent.name == "notebooks"]
    assert len(lessons) > 10
    assert not any("Instructor notes" in page.text for page in lessons)
    assert not [*folder.rglob("*solutions*")]


def test_the_search_finds_a_word(visit, folder, pages) -> None:
    visit.page.goto(f"{(folder / 'search.html').as_uri()}?q=roofline")
    results = visit.page.locator("#search-results li a")
    results.first.wait_for()
    hrefs = results.evaluate_all("all => all.map(a => a.href)")
    assert any("04_roofline.html" in href for href in hrefs)


def test_a_check_is_folded_and_what_the_site_did_not_write_stays(tmp_path: Path, chromium) -> None:
    """Of a course of one lesson and two pages."""
    check = new_code_cell(
        "claim('so')", outputs=[new_output("display_data", {"text/html": "✓ so"})]
    )
    check.metadata.update(tags=["hide-input"], jupyter={"source_hidden": True})
    cells = [new_markdown_cell("# 01 · One: why?"), check]
    lesson = new_notebook(cells=cells, metadata=notebooks.METADATA)
    files = {
        "README.md": "# Course\n\n[one](notebooks/01_one.ipynb) [more](docs/more.md)\n",
        "CHANGELOG.md": "# Changelog\n",
        "docs/more.md": "# More\n\n[home](../README.md#course)\n",
        "notebooks/01_one.ipynb": json.dumps(lesson),
        "notebooks/exercises/01_one/01_one.ipynb": json.dumps(lesson),
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    out = tmp_path / "site"
    assert build(tmp_path, out).returncode == 0
    own = out / "html" / "own.txt"
    own.write_text("kept")
    done = build(tmp_path, out)
    assert done.returncode == 0, done.stderr
    assert own.read_text() == "kept"
    page = chromium.new_page()
    page.goto((out / "html/notebooks/01_one.html").as_uri())
    code = page.get_by_text("claim('so')")
    assert page.get_by_text("✓ so").is_visible()
    assert not code.is_visible()
    page.get_by_text("Show the check").click()
    assert code.is_visible()
    page.close()
