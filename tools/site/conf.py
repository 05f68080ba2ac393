"""What Sphinx is told for ``make site``: the course as pages to read, in ``site/html/``.

The source is the course's own folder. The notebooks are shown with the outputs that are stored in
them, and nothing is executed. Solutions and instructors' notes are left out. The pages ask nothing
of the network.
"""

import base64
import html
import json
import re
import tomllib
from itertools import chain
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from vl_convert import javascript_bundle

from helpers.questions import CELL, as_html, asked_in

project = html_title = "Measure PyTorch"
language = "en"
smartquotes = False
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "notebooks/*.ipynb", "notebooks/exercises/*/*.ipynb"]
exclude_patterns = [".*"]  # .venv holds thousands of files
extensions = ["myst_nb"]
suppress_warnings = ["misc.highlighting_failure"]  # %cd is not Python

nb_execution_mode = "off"
nb_merge_streams = True
nb_code_prompt_show = "Show the check"
nb_code_prompt_hide = "Hide the check"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # for links such as README.md#for-students

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "navbar_start": ["home.html"],
    "navbar_center": [],
    "navbar_align": "right",
    "navbar_end": ["theme-switcher"],
    "article_header_start": [],
    "article_header_end": ["download.html"],
    "primary_sidebar_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": [],
    "footer_end": [],
    "search_bar_text": "Search the course",
}
html_sidebars = {"**": ["contents.html"], "index": []}
html_additional_pages = {"index": "index.html"}
html_sourcelink_suffix = ""
html_use_index = False
html_static_path = ["site.css", "predictions.js", "phone.js", "paper.js"]
html_css_files = ["site.css"]
html_js_files = ["predictions.js", "phone.js", "paper.js"]
html_math_renderer = "mathml"
templates_path = ["."]

CONTENTS = """
```{toctree}
:hidden:
:glob:
:caption: Lessons
notebooks/*
```
```{toctree}
:hidden:
:glob:
:caption: Exercises
notebooks/exercises/*/*
```
```{toctree}
:hidden:
:glob:
:caption: About the course
docs/*
*
```
"""


def front_page(app: Sphinx, page: str, template: str, context: dict, doctree: None) -> None:
    """Give the landing page a chart of each lesson, and the pages about the course."""
    if page != "index":
        return
    out = Path(app.outdir, "gallery")
    out.mkdir(parents=True, exist_ok=True)
    lessons = tomllib.loads(Path("lessons.toml").read_text(encoding="utf-8"))["lesson"]
    for lesson in lessons:
        notebook = json.loads(
            Path("notebooks", f"{lesson['name']}.ipynb").read_text(encoding="utf-8")
        )
        (cell,) = [cell for cell in notebook["cells"] if cell["id"] == lesson["picture"]]
        shown = "".join("".join(o.get("data", {}).get("text/html", "")) for o in cell["outputs"])
        alt, chart = re.search(r'alt="([^"]+)".+?base64,([^"]+)', shown).groups()
        (out / f"{lesson['name']}.png").write_bytes(base64.b64decode(chart))
        lesson["alt"], lesson["says"] = alt, re.search(r"Title: (.+?)\. ", alt)[1]
        lesson["asks"] = as_html(lesson["question"])
    about = [name for name in sorted(app.env.titles) if not name.startswith("notebooks/")]
    context["lessons"] = {lesson["name"]: lesson for lesson in lessons}
    context["about"] = {name: app.env.titles[name].astext() for name in about if name != root_doc}


BUTTON = '<button type="button" value="{}">({}) {}</button>'
QUESTION = """\
<div class="predict" data-question="{}" data-right="{}">
{}
<p aria-live="polite"></p>
</div>
"""
RECORD = """\
<div class="record-of"><p></p><button type="button" hidden>Forget my answers</button></div>
"""


def with_buttons(cells: list[dict]) -> list[dict]:
    """A lesson's cells with its options as buttons in place of the cells that keep an answer."""
    asked = {question.name: question for question in asked_in(cells)}
    shown = []
    for cell in cells:
        source = "".join(cell["source"])
        if called := CELL.fullmatch(source):
            question = asked[called["name"]]
            buttons = [BUTTON.format(a, a, as_html(text)) for a, text in question.options.items()]
            above = "".join(shown[-1]["source"]).rpartition("**Predict.**")[0]
            shown[-1]["source"] = f"{above}**Predict.** {question.text}"
            source = QUESTION.format(question.name, question.right, "\n".join(buttons))
        elif source.startswith("record_of("):
            source = RECORD
        else:
            shown.append(cell)
            continue
        shown.append({"cell_type": "markdown", "id": cell["id"], "metadata": {}, "source": source})
    return shown


MOVING = "application/vnd.vegalite.v5+json"
CHART = """\
<div class="moving" data-chart="{}">
<img class="course-chart" alt="{}" src="data:image/png;base64,{}">
</div>
"""
DRAW = """
for (const place of document.querySelectorAll(".moving"))
  vegaEmbed(place, JSON.parse(place.dataset.chart), { actions: false, renderer: "svg" });
"""


def with_charts(cells: list[dict]) -> list[dict]:
    """The cells, in which a script draws the pictures that move; without it they are still."""
    for output in chain(*(cell.get("outputs", []) for cell in cells)):
        if chart := output.get("data", {}).get(MOVING):
            parts = json.dumps(chart), chart["description"], "".join(output["data"]["image/png"])
            output["data"] = {"text/html": CHART.format(*map(html.escape, parts))}
    return cells


def add_script(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """The script that draws pictures that move goes to the pages that have one."""
    if 'class="moving"' in context.get("body", ""):
        app.add_js_file("moving.js", loading_method="defer")


def write_script(app: Sphinx, error: Exception | None) -> None:
    if not error:
        script = javascript_bundle(DRAW, vl_version="5.20")
        alone = f"(() => {{{script}}})();"  # its names are not the page's
        Path(app.outdir, "_static", "moving.js").write_text(alone, encoding="utf-8")


def prepare_source(app: Sphinx, page: str, source: list[str]) -> None:
    """Give the README the table of contents, the questions buttons, and tables their links."""
    if page == root_doc:
        source[0] += CONTENTS
    elif page.startswith("notebooks/"):
        notebook = json.loads(source[0])
        cells = with_charts(with_buttons(notebook["cells"]))
        source[0] = json.dumps(notebook | {"cells": cells})
        # MyST follows the links of the text, but not those of a table that a cell puts out.
        source[0] = re.sub(r'(href=\\"\w+)\.ipynb\\"', r'\1.html\\"', source[0])


def visit_formula(writer, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw and read aloud without a script."""
    block = isinstance(node, nodes.math_block)
    formula = convert(node.astext(), display="block" if block else "inline")
    # A formula that is too wide for a phone scrolls, also from the keyboard.
    writer.body.append(f'<div class="formula" tabindex="0">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.connect("source-read", prepare_source)
    app.connect("html-page-context", front_page)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_script)
    app.add_html_math_renderer("mathml", (visit_formula, None), (visit_formula, None))
