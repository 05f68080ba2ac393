"""A student's page: nbgrader's own, with points and comments, and without the hidden tests.

What a student wrote is text on it: Markdown is reduced to tags without code and images, and the
browser is told to load nothing and to run nothing.
"""

import re
from collections import defaultdict
from copy import deepcopy
from html import escape
from pathlib import Path

import bleach
import nbgrader
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.preprocessors import ClearHiddenTests

from grading import tables
from tools import exercise_sets

TEMPLATES = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader"
STYLES = TEMPLATES / "static" / "node_modules" / "bootstrap" / "dist" / "css"
TAGS = bleach.ALLOWED_TAGS | {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "del"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *("div", "span"),  # of coloured code
}
SHOWN = 20_000  # characters of a cell
POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:\">"
)


LETTER = re.compile(r"expected '[a-z]', but got ('[a-z]')")
CONTENTS = re.compile(r'(<div id="toc">).*?(</div>)', re.S)


class FeedbackExporter(HTMLExporter):
    """Markdown becomes formatted text; other HTML is shown as it was written."""

    @pass_context
    def markdown2html(self, context: Context, source: str) -> str:
        page = super().markdown2html(context, source)
        return bleach.clean(page, tags=TAGS, attributes=ATTRIBUTES)


def leads_somewhere(_: str, name: str, value: str) -> bool:
    """Whether an attribute of a link is kept: a path in the course leads nowhere from this page."""
    return name == "title" or (name == "href" and value.startswith(("https://", "http://", "#")))


def colours(_: str, name: str, value: str) -> bool:
    """Whether an attribute is a class of Pygments, such as ``highlight`` or ``nn``."""
    return name == "class" and re.fullmatch(r"highlight|[a-z][a-z0-9]{0,2}", value) is not None


ATTRIBUTES = {"a": leads_somewhere, "div": colours, "span": colours}


def page(notebook: NotebookNode, result: dict) -> str:
    """The HTML of a result's page; ``notebook`` is the graded one."""
    notebook = deepcopy(notebook)
    for cell in notebook.cells:  # colouring takes long, and nobody reads more
        cell.source = cell.source[:SHOWN]
        if not result["closed"]:
            hold_back(cell)
    score = most = 0.0
    marks = {task: points for task, (points, _) in result["marks"].items()}
    for cell in filter(utils.is_grade, notebook.cells):
        about, task = cell.metadata.nbgrader, exercise_sets.split_id(cell.id)[0]
        if task in result["marks"]:  # the first graded cell shows the mark of the whole task
            about["score"] = marks.pop(task, 0.0)
        else:
            failed = utils.is_solution(cell) or cell.id in result["failures"]
            about["score"] = 0.0 if failed else about["points"]
        score, most = score + about["score"], most + about["points"]
    for cell in filter(utils.is_solution, notebook.cells):
        task = exercise_sets.split_id(cell.id)[0]
        comments = [*result["marks"].get(task, ["", ""])[1:], *result["notes"].get(task, [])]
        if task in result.get("outdated", {}):
            comments.append(tables.out_of_date(result["outdated"][task]))
        comments += [] if task else [result["late"]]
        cell.metadata.nbgrader["comment"] = "\n\n".join(map(as_markdown, filter(None, comments)))
    notebook, _ = ClearHiddenTests().preprocess(notebook, {})
    exporter = FeedbackExporter(
        template_name="feedback",
        extra_template_basedirs=[str(TEMPLATES / "templates")],
        extra_template_paths=[str(STYLES)],
    )
    penalty = score * result["penalty"]
    about = {"notebook": result["lesson"], "score": score, "max_score": most}
    about["late_penalty"] = penalty
    html = exporter.from_notebook_node(notebook, {"nbgrader": about})[0]
    html = CONTENTS.sub(lambda found: found[1] + contents(notebook, result) + found[2], html, 1)
    return html.replace("<head>", f"<head>\n{POLICY}", 1)


def contents(notebook: NotebookNode, result: dict) -> str:
    """A line for each task: a mark, its name as a link, its points, and what a person wrote."""
    titles, places = {}, defaultdict(str)
    for cell in notebook.cells:
        task, kind = ("", "") if cell.id == "title" else exercise_sets.split_id(cell.id)
        if kind == "text":  # a task's first one has its title
            titles.setdefault(task, cell.source.partition("\n")[0].lstrip("# "))
        if utils.is_grade(cell) and not places[task]:
            places[task] = cell.metadata.nbgrader.grade_id
    lines = []
    for task, row in result["rows"].items():
        points, comment = result["marks"].get(task, [row["points"], ""])
        mark, colour = ("✓", "#1a7f37") if points >= row["of"] else ("✗", "#cf222e")
        lines.append(
            f'<li><b style="color: {colour}">{mark}</b> <a href="#{places[task]}">'
            f"{escape(titles.get(task, task))}</a>: {points:g} of {row['of']:g} points"
            f"{escape(': ' + comment) if comment else ''}</li>"
        )
    if result["late"]:
        lines.append(f"<li>{escape(result['late'])}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def hold_back(cell: NotebookNode) -> None:
    """Take the right letter out of what a check said: in a class it is often the same for all."""
    for output in cell.get("outputs", []):
        for key in ("text", "evalue"):
            if key in output:
                output[key] = LETTER.sub(r"\1 is not right", output[key])
        if "traceback" in output:
            output.traceback = [LETTER.sub(r"\1 is not right", line) for line in output.traceback]


def as_markdown(text: str) -> str:
    """Markdown that shows ``text`` as it is."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
