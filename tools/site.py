"""``make site``: the course as a web site to read, in ``site/``.

    python -m tools.site [FOLDER]

Sphinx reads the notebooks as they are stored, outputs and all, and executes nothing. The README is
the first page; every other ``*.md`` beside it and in ``docs/`` is a page, too. The solutions and
the instructor's notes stay out. The pages ask nothing of the network.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

import nbformat

from tools import notebooks
from tools.lab import NOTES

README = notebooks.ROOT / "README.md"
LINK = re.compile(r"(?<=\]\()([^()\s#]*)(#[^()\s]*|)(?=\))")
NOTEBOOK = re.compile(r"""(?<=href=")([^":]+)\.ipynb(?=["#])""")  # in a table that a cell shows
THEME = Path(__file__).with_name("theme")
CONFIGURATION = {
    "project": "Measure PyTorch",
    "language": "en",
    "smartquotes": False,
    "html_title": "Measure PyTorch",
    "extensions": ["myst_nb", "tools.site"],
    "suppress_warnings": ["misc.highlighting_failure"],  # a cell's %cd in a page's Python
    "nb_execution_mode": "off",
    "nb_merge_streams": True,
    "myst_enable_extensions": ["dollarmath"],
    "myst_heading_anchors": 4,  # for links such as README.md#for-students
    "html_math_renderer": "mathml",
    "html_theme": "pydata_sphinx_theme",
    "html_theme_options": {
        "navbar_center": [],
        "navbar_align": "right",
        "navbar_end": ["theme-switcher"],
        "article_header_start": [],
        "article_header_end": ["download.html"],
        "primary_sidebar_end": [],
        "secondary_sidebar_items": ["page-toc"],
        "footer_start": [],
        "footer_end": [],
        "search_bar_text": "Search the course",
    },
    "html_sidebars": {"**": ["contents.html"]},
    "html_sourcelink_suffix": "",
    "html_use_index": False,
    "html_css_files": ["site.css"],
    "html_static_path": [str(THEME / "site.css")],
    "templates_path": [str(THEME)],
}


def main(arguments: list[str]) -> int:
    try:
        import myst_nb  # noqa: F401
        import pydata_sphinx_theme  # noqa: F401
        from sphinx.application import Sphinx
        from sphinx.util.docutils import docutils_namespace
    except ImportError as error:
        install = "pip install -r requirements-make.txt -c constraints.txt"
        print(f"The site needs {error.name}, which is not installed: {install}", file=sys.stderr)
        return 1
    out = Path(arguments[0] if arguments else notebooks.ROOT / "site").resolve()
    with tempfile.TemporaryDirectory() as folder, docutils_namespace():
        source, made = Path(folder, "source"), Path(folder, "site")  # myst-nb also writes beside it
        write_source(source)
        app = Sphinx(
            source, None, made, Path(folder, "doctrees"), "html", CONFIGURATION,
            status=None, warning=sys.stderr, freshenv=True, warningiserror=True,
        )  # fmt: skip
        app.build()
        if app.statuscode == 0:
            if (out / ".buildinfo").exists():  # Sphinx wrote it: no page that is gone stays
                shutil.rmtree(out)
            shutil.copytree(made, out, dirs_exist_ok=True)
            print(f"written: {out / 'index.html'}")
    return app.statuscode


def write_source(folder: Path) -> None:
    """What Sphinx reads: every page, the files that pages link to, and the table of contents."""
    contents = README.read_text(encoding="utf-8")
    for chapter, paths in pages().items():
        entries = "\n".join(f"{short_title(path)} <{name(path)}>" for path in paths)
        contents += f"\n```{{toctree}}\n:hidden:\n:caption: {chapter}\n\n{entries}\n```\n"
    for path in [README, *(path for paths in pages().values() for path in paths)]:
        copy(path, folder)
        for target, _ in LINK.findall(path.read_text(encoding="utf-8")):
            linked = (path.parent / unquote(target)).resolve()
            if target and linked.is_file() and linked.suffix not in (".md", ".ipynb"):
                copy(linked, folder)
    (folder / README.name).rename(folder / "index.md").write_text(contents, encoding="utf-8")


def pages() -> dict[str, list[Path]]:
    """The pages after the first one, by chapter, in the order in which they are read."""
    about = [*notebooks.ROOT.glob("docs/*.md"), *notebooks.ROOT.glob("*.md")]
    about.remove(README)
    first_named = README.read_text(encoding="utf-8").partition
    return {
        "Lessons": sorted(notebooks.NOTEBOOKS.glob("*.ipynb")),
        "Exercises": sorted(notebooks.NOTEBOOKS.glob("exercises/*/*.ipynb")),
        "About the course": sorted(about, key=lambda path: len(first_named(path.name)[0])),
    }


def copy(path: Path, folder: Path) -> None:
    """To the same place below ``folder``, so that links between files stay true."""
    target = folder / path.relative_to(notebooks.ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)


def name(path: Path) -> str:
    return path.relative_to(notebooks.ROOT).with_suffix("").as_posix()


def short_title(path: Path) -> str:
    """``01 · Timing`` of ``# 01 · Timing: how long does a convolution take?``"""
    notebook = path.suffix == ".ipynb"
    text = notebooks.read(path).cells[0].source if notebook else path.read_text(encoding="utf-8")
    return re.search(r"^# (?:Exercises )?(.+?)(:|$)", text, re.M)[1]


def as_read(source: str, folder: Path) -> str:
    """A page of ``folder`` as the site shows it; a notebook's download is the stored one."""
    if not source.startswith("{"):
        # GitHub can show a folder, the site cannot: only the words of such a link stay.
        words = r"\[([^][]*)\]\(([^()\s#]+)\)"
        source = re.sub(words, lambda it: it[1] if (folder / it[2]).is_dir() else it[0], source)
        return LINK.sub(lambda link: link[0].replace("README.md", "index.md"), source)
    notebook = nbformat.reads(source, 4)
    notebook.cells = [cell for cell in notebook.cells if not cell.source.startswith(NOTES)]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(lambda link: link[1] + anchor(link[2]), cell.source)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = NOTEBOOK.sub(r"\1.html", data["text/html"])
    return nbformat.writes(notebook)


def anchor(place: str) -> str:
    """``#which-clock`` of JupyterLab's ``#Which-clock?``"""
    return re.sub(r"[^#\w-]", "", unquote(place)).lower()


def formula(self, node) -> None:
    """MathML, which browsers draw and read aloud without a script."""
    from docutils.nodes import SkipNode
    from docutils.utils.math.latex2mathml import tex2mathml

    block = node.tagname == "math_block"
    math = tex2mathml(node.astext(), as_block=block)
    # A wide one scrolls on a phone, by keyboard, too.
    self.body.append(f'<div class="formula" tabindex="0">{math}</div>' if block else math)
    raise SkipNode


def setup(app) -> dict:
    """What Sphinx calls, because CONFIGURATION names this module among its extensions."""

    def prepare(app, page: str, source: list[str]) -> None:
        source[0] = as_read(source[0], (notebooks.ROOT / page).parent)

    app.connect("source-read", prepare)
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
