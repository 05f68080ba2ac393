"""A student's page: nbgrader's own, with points and comments, and without the hidden tests.

What a student wrote is text on it: Markdown is reduced to tags without code and images, and the
browser is told to load nothing and to run nothing.
"""

import re
from copy import deepcopy
from pathlib import Path

import bleach
import nbgrader
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.preprocessors import ClearHiddenTests

from tools import exercises

TEMPLATES = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader"
STYLES = TEMPLATES / "static" / "node_modules" / "bootstrap" / "dist" / "css"
TAGS = bleach.ALLOWED_TAGS | {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "del"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
SHOWN = 20_000  # characters of a cell
POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:\">"
)


class FeedbackExporter(HTMLExporter):
    """Markdown becomes formatted text; other HTML is shown as it was written."""

    @pass_context
    def markdown2html(self, context: Context, source: str) -> str:
        page = super().markdown2html(context, source)
        return bleach.clean(page, tags=TAGS, attributes={"a": ["href", "title"]})


def page(notebook: NotebookNode, result: dict) -> str:
    """The HTML of a result's page; ``notebook`` is the graded one."""
    notebook = deepcopy(notebook)
    for cell in notebook.cells:  # colouring takes long, and nobody reads more
        cell.source = cell.source[:SHOWN]
    score = most = 0.0
    marks = {task: points for task, (points, _) in result["marks"].items()}
    for cell in filter(utils.is_grade, notebook.cells):
        about, task = cell.metadata.nbgrader, exercises.parts(cell.id)[0]
        if task in result["marks"]:  # the first graded cell shows the mark of the whole task
            about["score"] = marks.pop(task, 0.0)
        else:
            failed = utils.is_solution(cell) or cell.id in result["failures"]
            about["score"] = 0.0 if failed else about["points"]
        score, most = score + about["score"], most + about["points"]
    for cell in filter(utils.is_solution, notebook.cells):
        task = exercises.parts(cell.id)[0]
        comments = [*result["marks"].get(task, ["", ""])[1:], *result["notes"].get(task, [])]
        comments += [] if task else [result["late"]]
        cell.metadata.nbgrader["comment"] = "\n\n".join(map(as_markdown, filter(None, comments)))
    notebook, _ = ClearHiddenTests().preprocess(notebook, {})
    exporter = FeedbackExporter(
        template_name="feedback",
        extra_template_basedirs=[str(TEMPLATES / "templates")],
        extra_template_paths=[str(STYLES)],
    )
    about = {"notebook": result["lesson"], "score": score, "max_score": most, "late_penalty": 0}
    html = exporter.from_notebook_node(notebook, {"nbgrader": about})[0]
    return html.replace("<head>", f"<head>\n{POLICY}", 1)


def as_markdown(text: str) -> str:
    """Markdown that shows ``text`` as it is."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
