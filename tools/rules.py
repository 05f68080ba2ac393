"""The rules of a notebook that a program can check, beyond what nbval compares.

    python -m tools.rules [NOTEBOOK ...]      without a notebook, all that are executed

Each rule takes a notebook and its path, and yields one complaint for each place that breaks it.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from helpers import questions
from tools import notebooks

LONGEST_CELL, WIDEST_LINE, TALLEST_OUTPUT = 25, 84, 32
LONGEST_OF_A_TASK = 48  # what an exercise gives is a program, and a check asks for several things
MOST_MINUTES, MOST_AT_HOME = 38, 15
MOST_NUMBERS = 3  # of a result that needs no picture
LONGEST_QUESTION = 80  # words with its options, so that it fits a slide
IGNORED, FOLDED = "nbval-ignore-output", "hide-input"
LINES = ("claim", "outcome")  # what a check displays
TABLE = tomllib.loads((notebooks.ROOT / "lessons.toml").read_text(encoding="utf-8"))["lesson"]
TITLES = {row["number"]: row["title"] for row in TABLE}
# Tags and comments that would take a cell out of the strict comparison without a trace.
LOOPHOLES = re.compile(r"#\s*(PYTEST_VALIDATE_|NBVAL_)|nbval-(skip|raises)|raises-exception")


def execution_counts_run_from_1(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """nbval never compares a cell without an execution count."""
    counts = [cell.execution_count for cell in _code(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"the execution counts are {counts}, not 1 to {len(counts)}; make refresh"


def nothing_escapes_the_comparison(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """An ignored output is soon followed by a claim, and no other loophole of nbval is used."""
    code = [cell for cell in _code(notebook) if not notebooks.is_prediction(cell)]
    for number, cell in enumerate(code, 1):
        tags = cell.metadata.get("tags", [])
        if LOOPHOLES.search(cell.source) or LOOPHOLES.search(" ".join(tags)):
            yield f"{cell.id}: a marker that takes the cell out of the comparison"
        next_two = code[number : number + 2]
        if IGNORED in tags and not any(_claims(parsed(after)) for after in next_two):
            yield f"{cell.id}: tagged {IGNORED}, but none of the next two code cells makes a claim"
        if cell.source.rstrip().endswith(";"):
            yield f"{cell.id}: ends in a semicolon, which nbval ignores: the value would be output"


def the_file_is_canonical(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Cell ids, one kernelspec, no times, no widget state: what make refresh writes."""
    ids = [cell.get("id", "") for cell in notebook.cells]
    if odd := [id_ for id_ in ids if not re.fullmatch(r"[a-z][a-z0-9-]{2,40}", id_)]:
        yield f"cell ids must be short lower-case names, but there are {odd}"
    if notebooks.as_text(notebooks.canonical(notebook)) != path.read_text(encoding="utf-8"):
        yield "the file holds metadata of an editor or an execution; make refresh"


def every_figure_has_alt_text(notebook: NotebookNode, path: Path) -> Iterator[str]:
    for cell in notebook.cells:
        found = cell.source if cell.cell_type == "markdown" else ""
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for kind in {"image/png", "image/jpeg", "image/svg+xml"} & set(data):
                if not output.metadata.get(kind, {}).get("alt"):
                    yield f"{cell.id}: an {kind} without alt text; show it with helpers.plotting"
            if notebooks.MOVING in data and "image/png" not in data:
                yield f"{cell.id}: a picture that moves without a still one; make refresh"
            found += data.get("text/html", "")
        for tag in re.findall(r"<img\b[^>]*>", found):
            if not re.search(r'\balt="[^"]{10,}"', tag):
                yield f"{cell.id}: an <img> without alt text"
        for alt in re.findall(r"!\[([^\]]*)\]\(", found):
            if len(alt) < 10:
                yield f"{cell.id}: a picture whose alt text is {alt!r}"


def outputs_name_no_machine(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """No absolute path of the computer that ran the notebook last."""
    innocent = r"data:image/png;base64,[A-Za-z0-9+/=]+|\S*ipykernel_\d+[\\/]\d+\.py"
    for cell in _code(notebook):
        for _, text in notebooks.texts(cell.outputs):
            for found in absolute_paths(re.sub(innocent, "", text)):
                yield f"{cell.id}: {found} in an output"


def nothing_is_warned(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """No library warns: a reader would look for a fault, and some warnings come only once."""
    for cell in _code(notebook):
        for output in cell.outputs:
            if output.get("name") == "stderr":
                yield f"{cell.id}: on stderr: {output.text.strip()[:80]}"


def absolute_paths(text: str) -> Iterator[str]:
    """Each absolute path in ``text``, on any system, and each of an installed package."""
    roots = "home|Users|root|tmp|work|opt|usr|var|private|mnt|srv|proc|lib|etc|scratch|nfs"
    pattern = rf"(?<![\w.~<:/])/(?:{roots})/[\w.-]|\b[A-Z]:\\\w|site-packages|\.venv/"
    yield from (f"an absolute path: {match!r}" for match in re.findall(pattern, text))


def cells_are_short(notebook: NotebookNode, path: Path) -> Iterator[str]:
    longest = LONGEST_OF_A_TASK if "solutions" in path.parts else LONGEST_CELL
    for cell in _code(notebook):
        lines = cell.source.splitlines()
        if len(lines) > longest:
            yield f"{cell.id}: {len(lines)} lines; {longest} at most"
        if (widest := max(map(len, lines), default=0)) > WIDEST_LINE:
            yield f"{cell.id}: a line of {widest} columns; {WIDEST_LINE} at most"
        texts = [text for kind, text in notebooks.texts(cell.outputs) if kind != "text/html"]
        if (shown := sum(text.count("\n") for text in texts)) > TALLEST_OUTPUT:
            yield f"{cell.id}: {shown} lines of output; {TALLEST_OUTPUT} at most"


def a_lesson_fits_its_class(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """What is done in class takes 38 minutes to read and predict, and states 1.3 times that."""
    if not _number(path):
        return
    in_class, at_home = minutes(notebook)
    if in_class > MOST_MINUTES:
        yield f"{in_class:.1f} minutes; {MOST_MINUTES} at most"
    if at_home > MOST_AT_HOME:
        yield f"{at_home:.1f} minutes at home; {MOST_AT_HOME} at most"
    stated = f"**Time** {round(1.3 * in_class)} minutes"
    stated += f", and {round(1.3 * at_home)} at home." if round(1.3 * at_home) else "."
    if stated not in notebook.cells[0].source:
        yield f"the first cell must say {stated!r}"


def minutes(notebook: NotebookNode) -> tuple[float, float]:
    """Words / 130 + lines of code / 15 + 0.75 per prediction: above "## At home", and from there.

    Only what is seen counts: neither the source of a check nor the notes for instructors. The 0.75
    minutes of a prediction are for its cell, too.
    """
    spent, home = [0.0, 0.0], 0
    for cell in notebook.cells:
        if cell.cell_type == "code" and not (_is_folded(cell) or notebooks.is_prediction(cell)):
            spent[home] += sum(bool(line.strip()) for line in cell.source.splitlines()) / 15
        elif cell.cell_type == "markdown" and not _is_note(cell):
            home = int(home or cell.source.startswith("## At home"))
            spent[home] += len(re.findall(r"[A-Za-z0-9'’-]+", prose(cell.source))) / 130
            spent[home] += 0.75 * cell.source.count("**Predict.**")
    return spent[0], spent[1]


def prose(source: str) -> str:
    """The sentences of a Markdown cell: without code blocks, headings, tables, tags and targets."""
    source = re.sub(r"```.*?```|<[^>]+>", " ", source, flags=re.S)
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("|", "#"))]
    text = re.sub(r"\$[^$]*\$", "x", " ".join(lines))
    return re.sub(r"[*`_]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))


def checks_are_folded(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A cell with a claim only asserts, and its source is hidden; no other source is."""
    for cell in _code(notebook):
        tree = parsed(cell)
        hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        if len({bool(_claims(tree)), hidden, _is_folded(cell)}) > 1:
            yield f"{cell.id}: source_hidden and the tag {FOLDED} belong to cells with a claim"
        if _claims(tree):
            if not cell.source.startswith("# Check\n"):
                yield f"{cell.id}: begin with # Check: JupyterLab shows a folded cell's first line"
            for statement in filter(_does_more_than_assert, tree.body):
                yield f"{cell.id}: measure in a cell above: {ast.unparse(statement)[:60]}"


def _does_more_than_assert(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If | ast.For):
        return any(map(_does_more_than_assert, [*statement.body, *statement.orelse]))
    is_line = isinstance(statement, ast.Expr) and statement.value in _calls(statement, *LINES)
    return not (is_line or isinstance(statement, ast.Assign))


def claims_can_fail(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Each part of a condition compares something that a cell above the check has measured."""
    measured: set[str] = set()
    for cell in _code(notebook):
        bound = _bindings(parsed(cell))
        for call in (claims := _claims(parsed(cell))):
            for part in _parts(call.args[1], bound):
                if complaint := _vacuous(part, bound, measured):
                    yield f"{cell.id}: {ast.unparse(part)!r} {complaint}"
        if not claims:
            measured |= {name for name, where in bound.items() if not all(map(_is_literal, where))}


def checks_can_run_twice(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """No cell from a check on binds a name again that the check reads, itself or in a function.

    A check may use a name of its own, for example a loop variable, if it binds it first.
    """
    cells = [(cell.id, parsed(cell)) for cell in _code(notebook)]
    bound = {id_: symbols(tree)[1] for id_, tree in cells}
    functions: dict[str, set[str]] = {}  # what each function that a cell has defined reads
    for number, (check, tree) in enumerate(cells):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                functions[node.name] = symbols(node)[0]
        read, more = set(), read_first(tree.body, set()) if _claims(tree) else set()
        while more:
            read |= more
            more = set().union(*(functions.get(name, set()) for name in more)) - read
        for later, _ in cells[number:]:
            for name in sorted(read & bound[later]):
                yield f"{check}: reads {name!r}, which {later} binds again: rename one of them"


def read_first(statements: list[ast.stmt], bound: set[str]) -> set[str]:
    """The names that a check reads and has not surely bound before; it has ``bound`` already."""
    read, bound = set(), set(bound)
    for statement in statements:
        if isinstance(statement, ast.For):
            read |= symbols(statement.iter)[0] - bound
            read |= read_first(statement.body, bound | _names(statement.target))
            read |= read_first(statement.orelse, bound)
        elif isinstance(statement, ast.If):
            read |= symbols(statement.test)[0] - bound
            read |= read_first(statement.body, bound) | read_first(statement.orelse, bound)
        else:
            its_read, its_bound = symbols(statement)
            read |= its_read - bound
            bound |= its_bound
    return read


def symbols(tree: ast.AST) -> tuple[set[str], set[str]]:
    """The global names that ``tree`` reads, and those that it binds or deletes in any way."""
    parts = [symbols(child) for child in ast.iter_child_nodes(tree)]
    read = set().union(*(part[0] for part in parts))
    bound = set().union(*(part[1] for part in parts))
    match tree:
        case ast.Name(id=name, ctx=ast.Load()) | ast.AugAssign(target=ast.Name(id=name)):
            read.add(name)
        case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
            bound.add(name)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            bound.add(name)
        case ast.MatchMapping(rest=str(name)):
            bound.add(name)
        case ast.alias(name=name, asname=other):
            bound.add(other or name.partition(".")[0])
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
            shared = [node.names for node in ast.walk(tree) if isinstance(node, ast.Global)]
            local = bound - set(chain(*shared))
            read, bound = read - local, bound - local
            if hasattr(tree, "args"):  # the defaults are read outside
                defaults = filter(None, [*tree.args.defaults, *tree.args.kw_defaults])
                read |= set().union(*(symbols(default)[0] for default in defaults))
            if hasattr(tree, "name"):
                bound.add(tree.name)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            local = set().union(*(_names(generator.target) for generator in tree.generators))
            read = read - local | symbols(tree.generators[0].iter)[0]
            bound = bound - local  # without a walrus's target
        case ast.Call(func=ast.Attribute(attr=name)) if name.endswith("_magic"):
            bound |= set().union(*(symbols(code)[1] for code in _run_by_a_magic(tree)))
    return read, bound


def _run_by_a_magic(call: ast.Call) -> Iterator[ast.Module]:
    """The code in the arguments of a magic, for example of ``%time total = f()``."""
    for argument in call.args:
        words = ast.literal_eval(argument).split(" ")
        for first in range(len(words)):  # switches come before the code
            try:
                yield ast.parse(" ".join(words[first:]))
                break
            except SyntaxError:
                continue


def _bindings(tree: ast.AST) -> dict[str, list[ast.AST]]:
    """The statements that bind each name, or write into what it names; no imports or functions."""
    found: dict[str, list[ast.AST]] = {}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.NamedExpr | ast.For | ast.With):
            for node in ast.walk(statement):
                if isinstance(getattr(node, "ctx", None), ast.Store):
                    name = next(
                        (part.id for part in ast.walk(node) if isinstance(part, ast.Name)), ""
                    )
                    found.setdefault(name, []).append(statement)
    return found


def _is_literal(statement: ast.AST) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)


def _parts(condition: ast.AST, bound: dict[str, list[ast.AST]]) -> Iterator[ast.AST]:
    """What ``and``, ``or`` and ``if`` join in a condition, also where the check has named it."""
    if isinstance(condition, ast.Name) and condition.id in bound:
        yield from _parts(getattr(bound[condition.id][-1], "value", condition), {})
    elif isinstance(condition, ast.BoolOp):
        yield from chain(*(_parts(value, bound) for value in condition.values))
    elif isinstance(condition, ast.IfExp):
        yield from chain(_parts(condition.body, bound), _parts(condition.orelse, bound))
    else:
        yield condition


def _vacuous(part: ast.AST, bound: dict[str, list[ast.AST]], measured: set[str]) -> str:
    """Why ``part`` of a condition cannot fail, or nothing."""
    names, seen = _names(part), set()
    while names - seen:
        seen = set(names)
        names |= set().union(*(_names(where) for name in seen for where in bound.get(name, [])))
    if not names & measured:
        return "rests on nothing that a cell above measured"
    if not isinstance(part, ast.Compare | ast.Call | ast.UnaryOp):
        return "compares nothing"
    if re.fullmatch(r"len\(.*\) (>= 0|> -1)|0 <= len\(.*\)", ast.unparse(part)):
        return "holds for every length"
    if isinstance(part, ast.Compare) and ast.dump(part.left) in map(ast.dump, part.comparators):
        return "compares a value with itself"
    return ""


def a_prediction_is_measured_before_it_is_read(notebook: NotebookNode, path: Path) -> Iterator[str]:
    asked = ""
    for cell in notebook.cells:
        marks = re.findall(r"\*\*(Predict|Read)\.\*\*", cell.source)
        for mark in marks if cell.cell_type == "markdown" else []:
            if asked:
                yield f"{asked}: no code cell before the next **{mark}.**"
            asked = cell.id if mark == "Predict" else ""
        if cell.cell_type == "code" and not notebooks.is_prediction(cell):
            asked = ""
    if asked:
        yield f"{asked}: no code cell after the prediction"


def predictions_are_kept(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Below each **Predict.** its cell; after the answer a check that shows it; and the record."""
    if not (number := _number(path)):
        return
    open_questions: list[str] = []
    for above, cell in pairwise(notebook.cells):
        called = questions.CELL.fullmatch(cell.source)
        if ("**Predict.**" in above.source) != bool(called):
            yield f"{above.id}: a question and a cell predict(...) belong together"
        elif called and (called["answer"] != "?" or called["name"][:2] != number[1]):
            yield f'{cell.id}: must read predict("{number[1]} a-word", "?")'
        elif called:
            open_questions.append(called["name"])
        shown = (
            [call.args[0].value for call in _calls(parsed(cell), "outcome")]
            if _is_folded(cell)
            else []
        )
        if missing := set(shown) - set(open_questions):
            yield f"{cell.id}: the outcome of {missing}, which is not asked above, or shown already"
        open_questions = [name for name in open_questions if name not in shown]
    if open_questions:
        yield f"no check shows the outcome of {open_questions}"
    if f'record_of("{number[1]}")' not in [cell.source for cell in _code(notebook)]:
        yield f'no cell record_of("{number[1]}")'
    try:
        asked = list(questions.asked_in(notebook.cells))
    except ValueError as error:
        yield str(error)
        return
    for question in asked:
        words = len(" ".join([question.text, *question.options.values()]).split())
        if words > LONGEST_QUESTION:
            yield f"{question.name!r} has {words} words; {LONGEST_QUESTION} at most"
    letters = [question.right for question in asked]
    for letter in set(letters):
        if letters.count(letter) > len(letters) / 2:
            yield f"({letter}) is the answer to {letters.count(letter)} of {len(letters)} questions"


def lessons_are_named(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A number says nothing: a cell that speaks of lesson 02 says "cProfile", too."""
    for cell in _markdown(notebook):
        for label, number in re.findall(r"\[([^\]]*)\]\([./]*(\d\d)_\w+\.ipynb", cell.source):
            if re.search(r"\d\d", label) and number not in label:
                yield f"{cell.id}: {label!r} is a link to {number}"
        words = " ".join(cell.source.replace("’", "'").split()).lower()
        for numbers in re.findall(r"\blessons? (\d\d(?:(?:, | and | or )\d\d)*)\b", words):
            for number in re.findall(r"\d\d", numbers):
                if TITLES.get(number, "no such lesson").lower() not in words:
                    yield f"{cell.id}: lesson {number} without its name"


def the_mark_comes_from_units(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A cell that writes ``~`` itself could hide an exact count from the comparison."""
    for cell in _code(notebook):
        for node in ast.walk(parsed(cell)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "~" in node.value:
                yield f"{cell.id}: the string {node.value!r} holds a ~; print through helpers.units"


def prose_holds_no_measurement(notebook: NotebookNode, path: Path) -> Iterator[str]:
    measured = re.compile(r"(?<![~\w.])\d+(?:\.\d+)? ?(?:ns|µs|us|ms|[kMG]FLOP/s|[kMG]B/s)\b")
    for cell in _markdown(notebook):
        if _is_note(cell):
            continue
        for found in measured.findall(re.sub(r"`[^`]*`|https?://\S+", "", cell.source)):
            yield f"{cell.id}: {found!r} will rot; say an order or a ratio that a claim confirms"


def notes_are_folded(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """What the instructor says is on no slide and no web page, and does not trip up a student."""
    for cell in _markdown(notebook):
        marks = {
            cell.source.startswith(notebooks.NOTES),
            _is_note(cell),
            "remove-cell" in cell.metadata.get("tags", []),
        }
        if len(marks) > 1:
            yield f"{cell.id}: notes are a <details> cell, slide type notes, tagged remove-cell"


def a_lesson_has_its_anatomy(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Title with number and question; sections that predict and check; a recap; At home."""
    number = _number(path)
    if not number:
        return
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type != "raw")
    first, *sections = re.split(r"^## (?=\S)", text, flags=re.M)
    if not re.match(rf"# {number[1]} · [^\n]*\?\n", first):
        yield f"the title must read '# {number[1]} · Subject: question?'"
    for part in ("You will be able to", "You need", "Tools"):
        if part not in first:
            yield f"the first cell does not say {part!r}"
    if sections and sections[-1].startswith("At home"):
        sections.pop()
    *taught, limits, recap = sections if len(sections) > 1 else ["", ""]
    if "cannot" not in limits.partition("\n")[0] or not recap.startswith("Recap"):
        yield "it must close with 'What … cannot tell you', 'Recap' and perhaps 'At home'"
    if not 4 <= len(taught) <= 7:
        yield f"it has {len(taught)} sections; four to seven"
    for section in taught:
        for part in ("**Predict.**", "**Read.**", "claim("):
            if part not in section:
                yield f"section {section.partition(chr(10))[0]!r} has no {part}"


def a_section_ends_in_a_picture(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A section's result is a picture, unless it is at most three exact numbers."""
    if not _number(path):
        return
    heading, pictures, printed = "", 0, []
    for cell in [*notebook.cells, new_markdown_cell("## ")]:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            taught = heading and "cannot" not in heading and not heading.startswith("Recap")
            words = " ".join(text for _, text in printed)
            numbers = len(re.findall(r"\d[\d.,]*", words))
            if taught and not pictures and (numbers > MOST_NUMBERS or "~" in words):
                yield f"section {heading!r} shows no picture, and {numbers} numbers"
            heading = cell.source[3:].partition("\n")[0]
            pictures, printed = 0, []
            if heading.startswith("At home"):
                return
        elif cell.cell_type == "code" and not (_is_folded(cell) or notebooks.is_prediction(cell)):
            pictures += sum(map(notebooks.is_picture, cell.outputs))
            printed += notebooks.texts(cell.outputs)


def a_set_has_a_picture(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A picture shows the data or the result of at least one task of a set of exercises."""
    if "solutions" in path.parts:
        outputs = [output for cell in _code(notebook) for output in cell.outputs]
        if not any(map(notebooks.is_picture, outputs)):
            yield "no task shows its data or its result as a picture"


def _number(path: Path) -> re.Match | None:
    """A lesson's number, as [1]; none for the exercises, which have its name."""
    return None if "solutions" in path.parts else re.match(r"(\d\d)_", path.name)


def _is_note(cell: NotebookNode) -> bool:
    return cell.metadata.get("slideshow", {}).get("slide_type") == "notes"


def _is_folded(cell: NotebookNode) -> bool:
    return FOLDED in cell.metadata.get("tags", [])


def parsed(cell: NotebookNode) -> ast.Module:
    return _parsed(cell.source)


@cache  # most rules ask for each cell
def _parsed(source: str) -> ast.Module:
    return ast.parse(TransformerManager().transform_cell(source))


@cache
def _claims(tree: ast.AST) -> list[ast.Call]:
    return _calls(tree, "claim")


def _calls(tree: ast.AST, *functions: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if getattr(call.func, "id", "") in functions]


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _markdown(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


ALL = (
    execution_counts_run_from_1,
    nothing_escapes_the_comparison,
    the_file_is_canonical,
    every_figure_has_alt_text,
    outputs_name_no_machine,
    nothing_is_warned,
    cells_are_short,
    a_lesson_fits_its_class,
    checks_are_folded,
    claims_can_fail,
    checks_can_run_twice,
    a_prediction_is_measured_before_it_is_read,
    predictions_are_kept,
    a_section_ends_in_a_picture,
    a_set_has_a_picture,
    lessons_are_named,
    the_mark_comes_from_units,
    prose_holds_no_measurement,
    notes_are_folded,
    a_lesson_has_its_anatomy,
)


def complaints(path: Path) -> Iterator[str]:
    """``rule: what breaks it, and where`` for each place of the notebook that breaks a rule."""
    notebook = notebooks.read(path)
    for rule in ALL:
        for complaint in rule(notebook, path):
            yield f"{rule.__name__}: {complaint}"


def main(words: list[str]) -> int:
    paths = list(map(notebooks.named, words)) or notebooks.all_of_them()
    found = [f"{path.name}: {text}" for path in paths for text in complaints(path)]
    print(*found or [f"{len(paths)} notebooks keep the rules"], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
