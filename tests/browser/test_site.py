"""The site that ``make site`` builds, opened from its folder in a real Chromium.

Every page is visited on a screen and on a phone. Five pages, one of each kind, are also looked at
in the dark, on paper and with axe. Sphinx says of every other link than a table's whether it leads
somewhere: its warnings are errors.
"""

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from matplotlib.colors import rgb_to_hsv
from matplotlib.pyplot import imread

from tests.browser import moving
from tools import notebooks

pytestmark = pytest.mark.everything
SCRIPT = Path(__file__).with_name("site.js")
WORDS = "{} is missing: pip install -r requirements-make.txt -c constraints.txt"
LOOKED_AT_CLOSELY = (
    "index.html",
    "README.html",
    "notebooks/01_timing.html",
    "notebooks/profile_your_own_model.html",
    "notebooks/exercises/01_timing/01_timing.html",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as the Makefile does, where another file was before."""
    pytest.importorskip("sphinx", reason=WORDS.format("sphinx"))
    out = tmp_path_factory.mktemp("site")
    (out / "html").mkdir()
    (out / "html" / "own.txt").write_text("kept")
    line = f"-m sphinx -M html . {out} -c tools/site -q --fail-on-warning --keep-going"
    words = [sys.executable, *line.split()]
    done = subprocess.run(words, cwd=notebooks.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def page(chromium) -> Iterator:
    # Without motion a colour is there at once: axe would see buttons half-way from light to dark.
    page = chromium.new_page(reduced_motion="reduce")
    yield page
    page.close()


@pytest.fixture(scope="module")
def pages(folder: Path, page) -> dict[str, SimpleNamespace]:
    """What every page holds, by its name, and what a reader would stumble over."""
    axe = pytest.importorskip("axe_playwright_python.base", reason=WORDS.format("axe"))
    requests = []
    page.on("pageerror", lambda error: requests.append(f"error: {error}"))
    page.on("request", lambda it: requests.append(it.url))

    def visit(name: str) -> SimpleNamespace:
        requests.clear()
        page.set_viewport_size({"width": 1280, "height": 720})
        page.emulate_media(color_scheme="light")
        page.goto((folder / name).as_uri())
        # A colour that is still changing to the dark theme's has too little contrast.
        page.add_style_tag(content="* { transition: none !important; }")
        page.add_script_tag(path=SCRIPT)
        wrong = page.evaluate("complaints()")
        if name in LOOKED_AT_CLOSELY:
            page.add_script_tag(path=axe.AXE_FILE_PATH)
            page.emulate_media(media="print")
            page.set_viewport_size({"width": 718, "height": 1047})
            wrong += page.evaluate("onPaper()")
            page.emulate_media(media="screen")
            page.set_viewport_size({"width": 1280, "height": 720})
            page.evaluate("thinOut()")
            wrong += page.evaluate("barriers(false)") + page.evaluate("barriers(true)")
            page.emulate_media(color_scheme="dark")
            wrong += page.evaluate("barriers(true)")
        page.set_viewport_size({"width": 390, "height": 844})
        wrong += page.evaluate("complaints()")
        wrong += [url for url in requests if not url.startswith((folder.as_uri(), "data:"))]
        return SimpleNamespace(**page.evaluate("facts()"), complaints=wrong)

    paths = (path.relative_to(folder) for path in sorted(folder.rglob("*.html")))
    names = (path.as_posix() for path in paths if path.parts[0] != "_static")
    return {name: visit(name) for name in names}


def test_no_page_is_in_a_readers_way_or_asks_the_network(pages) -> None:
    assert set(LOOKED_AT_CLOSELY) <= set(pages)
    found = {name: page.complaints for name, page in pages.items() if page.complaints}
    assert found == {}


def test_every_link_leads_to_a_file(pages) -> None:
    links = {urlsplit(link) for page in pages.values() for link in page.links}
    files = {Path(unquote(link.path)) for link in links if link.scheme == "file"}
    assert [path for path in files if not path.is_file()] == []


def test_every_page_but_the_solutions_is_there_and_what_others_wrote_stays(pages, folder) -> None:
    sources = [*notebooks.NOTEBOOKS.glob("*.ipynb"), *notebooks.ROOT.glob("docs/*.md")]
    sources += notebooks.NOTEBOOKS.glob("exercises/*/*.ipynb")
    names = {path.relative_to(notebooks.ROOT).with_suffix(".html").as_posix() for path in sources}
    assert {(folder / name).as_uri() for name in names} <= set(pages["README.html"].contents)
    assert not any("solutions" in name for name in pages)
    assert not any("Instructor notes" in pages[name].text for name in names if "notebook" in name)
    assert (folder / "own.txt").read_text() == "kept"


@pytest.mark.parametrize(
    ("way", "heading"),
    [
        ("Learn", "00 · Start here"),
        ("Teach", "For instructors"),
        ("Measure my model", "Measure your own model"),
    ],
)
def test_the_landing_page_leads_three_ways_without_a_script(chromium, folder, way, heading) -> None:
    page = chromium.new_page(java_script_enabled=False)
    page.goto((folder / "index.html").as_uri())
    page.locator("section", has=page.get_by_role("heading", name=way)).locator("a").first.click()
    place = page.get_by_role("heading", name=heading).first.bounding_box()
    assert 0 <= place["y"] < page.viewport_size["height"]
    page.close()


def test_the_landing_pages_sentence_is_true_of_its_picture(page, folder) -> None:
    page.goto((folder / "index.html").as_uri())
    alt = page.locator("figure img").get_attribute("alt")
    waiting = re.findall(r"(V100|A100): .+? from (\d+) to (\d+) waiting", alt)
    (old, least, _), (new, _, most) = waiting
    assert (old, new) == ("V100", "A100")
    assert int(least) > 990
    assert int(most) < 10


def test_the_search_finds_a_word(page, folder) -> None:
    page.goto(f"{(folder / 'search.html').as_uri()}?q=roofline")
    page.locator("#search-results li a[href*='04_roofline.html']").first.wait_for()


def seen(picture) -> np.ndarray:
    """What the reader sees of a picture: rows of pixels of red, green and blue, from 0 to 1."""
    return imread(io.BytesIO(picture.screenshot()))[..., :3]


def test_in_the_dark_a_chart_is_dark_and_a_photograph_is_no_negative(page, folder) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    page.goto((folder / "notebooks" / "00_start_here.html").as_uri())
    chart = page.locator("img.course-chart").first
    photograph = page.get_by_alt_text("The photograph of this course")
    light, photograph_in_light = seen(chart), seen(photograph)
    page.emulate_media(color_scheme="dark")
    dark, photograph_in_dark = seen(chart), seen(photograph)
    assert np.median(light) > 0.9
    assert np.median(dark) < 0.15
    assert dark.max() > 0.9  # its letters
    coloured = rgb_to_hsv(light)[..., 1] > 0.5
    turned = np.abs(rgb_to_hsv(light) - rgb_to_hsv(dark))[..., 0][coloured]
    assert np.median(np.minimum(turned, 1 - turned)) < 0.05  # an orange bar is orange
    assert np.corrcoef(photograph_in_light.ravel(), photograph_in_dark.ravel())[0, 1] > 0.9
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert np.median(seen(chart)) > 0.9
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert np.median(seen(chart)) < 0.15


def test_a_check_is_folded_until_it_is_asked_for(page, folder) -> None:
    page.goto((folder / "notebooks" / "01_timing.html").as_uri())
    check = page.locator(".cell", has_text="Show the check").first
    code = check.get_by_text("# Check")
    assert check.get_by_text("✓").first.is_visible()
    assert not code.is_visible()
    check.get_by_text("Show the check").click()
    assert code.is_visible()


def test_a_button_opens_the_answer_and_the_tally_stays_until_it_is_forgotten(page, folder) -> None:
    page.goto((folder / "notebooks" / "01_timing.html").as_uri())
    questions, record = page.locator(".predict"), page.locator(".record-of")
    asked = questions.count()
    answer = page.locator("details", has_text="The answer is (b): process_time").first
    assert answer.get_attribute("open") is None
    assert f"predicted 0 of the {asked} answers" in record.inner_text()
    question = questions.first
    question.get_by_role("button", name="(c) Only thread_time").click()
    for _ in range(2):
        assert "You predicted (c), and the answer is (b)." in question.inner_text()
        assert question.locator("button.right").inner_text().startswith("(b)")
        assert question.locator("button.chosen").inner_text().startswith("(c)")
        assert f"predicted 1 of the {asked} answers on this page, and 0 of" in record.inner_text()
        assert answer.get_attribute("open") is not None
        page.reload()
        answer.evaluate("it => { it.open = true; }")  # on a new visit it is folded
    record.get_by_role("button", name="Forget my answers").click()
    page.wait_for_load_state()
    assert f"predicted 0 of the {asked} answers" in record.inner_text()
    assert question.locator("button:enabled").count() == 3
    assert 'predict("' not in page.content()
    assert "record_of(" not in page.content()


@pytest.mark.parametrize(("lesson", "value"), [(it[0], it[2]) for it in moving.SLIDERS])
def test_a_slider_is_turned(page, folder: Path, lesson: str, value: float) -> None:
    before, after = moving.turn(last_moving(page, folder, lesson), value)
    assert before != after


@pytest.mark.parametrize("lesson", [it[0] for it in moving.TIMELINES])
def test_a_timeline_is_zoomed(page, folder: Path, lesson: str) -> None:
    before, after, said = moving.zoom_and_point(page, last_moving(page, folder, lesson))
    assert before != after
    assert "start, ms" in said


def last_moving(page, folder: Path, lesson: str):
    """The last picture of a lesson that moves, when it is drawn."""
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto((folder / "notebooks" / f"{lesson}.html").as_uri())
    page.wait_for_function(
        "() => [...document.querySelectorAll('.moving')].every((it) => it.querySelector('svg'))"
    )
    return page.query_selector_all(".moving")[-1]
