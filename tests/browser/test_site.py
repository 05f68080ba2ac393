"""The site that ``make site`` builds, opened from its folder in a real Chromium.

A page is visited once, in light and in dark, on a screen, on paper and on a phone.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urldefrag

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from tests.lessons.rules import LESSONS
from tools import notebooks, site

pytestmark = pytest.mark.everything
SCRIPT = Path(__file__).with_name("site.js")
WORDS = "{} is missing: pip install -r requirements-make.txt -c constraints.txt"
# Everything that can be wrong with a page, each once.
AWKWARD = """<html><head></head><body><main><article><h1>Page</h1>
<a href="gone.html">gone</a> <a href="#gone">gone</a> <a href="index.html">there</a>
<img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">
<img src="gone.png" alt="a picture">
<img src="http://127.0.0.2:1/far.png" alt="a picture far away"> <p>a formula $n^2$</p>
<table><tr><td style="min-width: 2000px">wide</td></tr></table>
<div class="cell_input"><pre style="overflow: auto">CODE</pre></div>
<div class="cell_output">
<pre style="height: 1100px; color: #ccc; background: white">pale</pre></div>
</article></main></body></html>""".replace("CODE", "long " * 60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("sphinx", "myst_nb", "pydata_sphinx_theme"):
        pytest.importorskip(module, reason=WORDS.format(module))
    out = tmp_path_factory.mktemp("site")
    assert site.main([str(out)]) == 0
    return out


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
        page.add_script_tag(path=axe)
        facts = page.evaluate("facts()")
        wrong = page.evaluate("complaints()")
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
    here = (folder.as_uri(), "data:")
    page.on("request", lambda it: it.url.startswith(here) or visited.outside.append(it.url))
    yield visited
    page.close()


@pytest.fixture(scope="module")
def pages(folder: Path, visit) -> dict[str, SimpleNamespace]:
    """What every page holds, by its address."""
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]
    return {path.as_uri(): visit(path) for path in paths}


def dead_links(pages: dict[str, SimpleNamespace]) -> list[str]:
    """Links from page to page, to a place on one, or to a file, that lead nowhere."""
    dead = []
    for page in pages.values():
        for link in page.links:
            address, place = urldefrag(link)
            if not address.startswith("file:"):
                continue
            there = Path(unquote(address.removeprefix("file://"))).is_file()
            if not there or (place and place not in pages[address].ids):
                dead.append(f"{page.path.name}: {link}")
    return dead


def test_every_page_is_there_under_its_title_and_in_the_order_of_the_plan(pages, folder) -> None:
    plan = [f"{number} · {name}: " for number, name in LESSONS.items()] + ["Profile your own model"]
    sets = sorted(notebooks.NOTEBOOKS.glob("exercises/*/*.ipynb"))
    first = (folder / "index.html").as_uri()
    read, titles = [first], []
    while following := pages[read[-1]].next:
        assert len(read) < 100
        assert pages[following[0]].previous == [read[-1]]
        read += following
        titles.append(pages[read[-1]].title)
    assert len(titles) > len(plan) + len(sets)
    assert all(title.startswith(name) for title, name in zip(titles, plan, strict=False))
    assert titles[len(plan) :][: len(sets)] == [
        notebooks.read(path).cells[0].source.splitlines()[0].removeprefix("# ") for path in sets
    ]
    assert set(read) == {*pages} - {(folder / "search.html").as_uri()}
    assert all([urldefrag(link)[0] for link in pages[it].contents] == read[1:] for it in read)


def test_every_link_leads_somewhere(pages) -> None:
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert dead_links(pages) == []


def test_nothing_is_too_wide_too_high_or_without_its_text(pages) -> None:
    assert {page.path.name: page.complaints for page in pages.values() if page.complaints} == {}


def test_nothing_stands_in_the_way_of_a_keyboard_or_a_screen_reader(pages) -> None:
    assert {page.path.name: page.barriers for page in pages.values() if page.barriers} == {}


def test_a_notebook_is_there_to_download_as_it_is_stored(pages, folder) -> None:
    taken = [link for page in pages.values() for link in page.download]
    for link in taken:
        path = Path(unquote(link.removeprefix("file://")))
        stored = notebooks.ROOT / path.relative_to(folder / "_sources")
        assert path.read_bytes() == stored.read_bytes()
    assert len(taken) == len([*notebooks.NOTEBOOKS.glob("*.ipynb")]) + len(
        [*notebooks.NOTEBOOKS.glob("exercises/*/*.ipynb")]
    )


def test_solutions_and_instructors_notes_are_not_shown(pages, folder) -> None:
    lessons = [page for page in pages.values() if page.path.parent.name == "notebooks"]
    assert len(lessons) > len(LESSONS)
    assert not any("Instructor notes" in page.text for page in lessons)
    solved = 0
    for path in notebooks.NOTEBOOKS.glob("solutions/*/*.ipynb"):
        name = f"notebooks/exercises/{path.parent.name}/{path.stem}"
        taken = notebooks.read(folder / "_sources" / f"{name}.ipynb")
        shown = "\n".join(cell.source for cell in taken.cells)
        shown += pages[(folder / f"{name}.html").as_uri()].text
        for cell in notebooks.read(path).cells:
            for kind in ("SOLUTION", "HIDDEN TESTS"):
                _, _, rest = cell.source.partition(f"### BEGIN {kind}\n")
                secret = rest.partition(f"### END {kind}")[0].strip()
                solved += bool(secret)
                assert not secret or secret not in shown, f"{path.name}, {cell.id}"
    assert solved > 100
    assert not [*folder.rglob("*solutions*")]


def test_the_search_finds_a_word(visit, folder, pages) -> None:
    visit.page.goto(f"{(folder / 'search.html').as_uri()}?q=roofline")
    found = visit.page.locator("#search-results li a").first
    found.wait_for()
    hrefs = visit.page.locator("#search-results li a").evaluate_all("all => all.map(a => a.href)")
    assert any("04_roofline.html" in href for href in hrefs)


def test_a_keyboard_reaches_the_text_and_shows_where_it_is(visit, folder, pages) -> None:
    page = visit.page
    page.set_viewport_size({"width": 1280, "height": 720})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto((folder / "notebooks/01_timing.html").as_uri())
        page.add_script_tag(path=SCRIPT)
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        page.keyboard.press("Tab")
        page.wait_for_function("() => focused().seen")  # it slides in
        assert page.evaluate("focused().name") == "Skip to main content"
        for _ in range(30):
            page.keyboard.press("Tab")
            assert page.evaluate("focused().seen"), page.evaluate("focused()")
        page.reload()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('main') !== null")


def test_nothing_is_asked_of_anybody_else(visit, pages) -> None:
    assert visit.outside == []


def test_what_a_reader_would_stumble_over_is_noticed(visit, pages, tmp_path: Path) -> None:
    path = tmp_path / "awkward.html"
    path.write_text(AWKWARD, encoding="utf-8")
    found = visit(path)
    assert [one.rpartition("/")[2] for one in dead_links({path.as_uri(): found})] == [
        "gone.html", "awkward.html#gone", "index.html",
    ]  # fmt: skip
    for words in ("the page is", "a table ends", "a line of code", "an output is",
                  "a picture is not shown", "a picture without", "a formula",
                  "a pre scrolls on paper"):  # fmt: skip
        assert any(one.startswith(words) for one in found.complaints), words
    for barrier in ("image-alt", "html-has-lang", "color-contrast"):
        assert any(one.startswith(barrier) for one in found.barriers), barrier
    assert "http://127.0.0.2:1/far.png" in visit.outside
    assert not visit.page.evaluate("focused().seen")
    visit.outside.clear()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one lesson, a helper and two pages; the site is made of it."""
    pytest.importorskip("sphinx", reason=WORDS.format("sphinx"))
    notes = "<details><summary>Instructor notes</summary>\n\nsaid aloud\n\n</details>"
    link = "# 01 · One: why?\n\n## Which Clock?\n\n[there](#Which-Clock?) [code](../helpers/one.py)"
    cells = [new_markdown_cell(link), new_markdown_cell(notes)]
    files = {
        "README.md": "# Course\n\n[one](notebooks/01_one.ipynb#which-clock) [more](docs/more.md)\n",
        "docs/more.md": "# More\n\n[home](../README.md#course) and [code](../helpers)\n",
        "notebooks/01_one.ipynb": notebooks.as_text(new_notebook(cells=cells)),
        "helpers/one.py": "one = 1\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(site, "README", tmp_path / "README.md")
    return tmp_path


def test_pages_of_all_kinds_are_found_and_linked(small: Path) -> None:
    assert site.main([]) == 0
    lesson = (small / "site/notebooks/01_one.html").read_text(encoding="utf-8")
    assert 'href="#which-clock"' in lesson
    assert "said aloud" not in lesson
    assert [path.read_text() for path in small.glob("site/_downloads/*/one.py")] == ["one = 1\n"]
    assert '"../index.html#course"' in (small / "site/docs/more.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "link", ["gone.md", "#gone", "docs/more.md#gone", "notebooks/solutions/01_one.ipynb"]
)
def test_a_link_that_leads_nowhere_ends_the_build(small: Path, link: str, capsys) -> None:
    solution = small / "notebooks/solutions/01_one.ipynb"
    solution.parent.mkdir()
    shutil.copy(small / "notebooks/01_one.ipynb", solution)
    site.README.write_text(f"# Course\n\n[there]({link})\n", encoding="utf-8")
    assert site.main([]) == 1
    assert link.rpartition("/")[2].rpartition("#")[2] in capsys.readouterr().err


def test_what_is_missing_is_said_in_a_sentence(monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "myst_nb", None)
    assert site.main([]) == 1
    said = "The site needs myst_nb, which is not installed: pip install -r requirements-make.txt"
    assert capsys.readouterr().err.startswith(said)
