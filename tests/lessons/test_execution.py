"""Every cell can be run again, and every claim fails when what it rests on is perturbed.

The lesson is executed as in front of a class: every cell twice, then all of them once more. After
each run a hook in the kernel takes the condition of every ``claim`` in the cell, perturbs one
measured part of it at a time (a name, an attribute, a call), and asks whether the condition can
become false.
"""

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from tools import notebooks
from tools.refresh import execute

HOOK = """
import ast, json
from IPython.core.inputtransformer2 import TransformerManager
_verdicts = []

def _perturbed(value):
    import numbers, torch
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, numbers.Number):
        yield from (value * 1e9, value * 1e-9, -value, value + 1, 0)
    elif isinstance(value, str):
        yield value + "?"
    elif isinstance(value, torch.Tensor):
        yield from (value + 1e6, value * 0)
    elif isinstance(value, dict):
        yield {}
        yield from (dict(zip(value, new)) for new in _perturbed(list(value.values())))
    elif isinstance(value, (list, tuple, set, frozenset, range)):
        yield type(value)() if not isinstance(value, range) else []
        streams = [list(_perturbed(item)) for item in value]
        for k in range(min(map(len, streams), default=0)):
            yield [stream[k] for stream in streams]
    elif value is None:
        yield object()

def _can_fail(condition, scope):
    parts = [
        node for node in ast.walk(condition)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    ]
    for part in parts:
        class Replace(ast.NodeTransformer):
            def visit(self, node):
                if ast.dump(node) == ast.dump(part):
                    return ast.copy_location(ast.Name("_perturbed_value", ast.Load()), node)
                return self.generic_visit(node)
        try:
            value = eval(compile(ast.Expression(part), "part", "eval"), scope)
        except Exception:
            continue  # a name of a comprehension: the whole comprehension's parts come too
        copy = ast.parse(ast.unparse(condition), mode="eval").body
        tree = ast.fix_missing_locations(ast.Expression(Replace().visit(copy)))
        for other in _perturbed(value):
            try:
                if not eval(compile(tree, "claim", "eval"), {**scope, "_perturbed_value": other}):
                    return True
            except Exception:
                continue
    return False

def _examine(result):
    if result.error_in_exec or "claim(" not in (result.info.raw_cell or ""):
        return
    tree = ast.parse(TransformerManager().transform_cell(result.info.raw_cell))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "claim":
            scope = dict(get_ipython().user_ns)
            _verdicts.append([ast.unparse(node.args[0]), _can_fail(node.args[1], scope)])

get_ipython().events.register("post_run_cell", _examine)
"""


@dataclass(frozen=True)
class Execution:
    failed: list[str]
    """A line for each cell that failed: in which run, and how."""
    verdicts: list[tuple[str, bool]]
    """For each claim that was made, whether it can fail."""


def executed(cells: list[NotebookNode], folder: Path) -> Execution:
    """Execute code cells in ``folder``: each of them twice, then all of them once more."""
    os.environ.update(notebooks.KERNEL_ENVIRONMENT)
    runs = [(cell, run) for cell in cells for run in ("first", "second")]
    runs += [(cell, "third") for cell in cells]
    copies = [new_code_cell(cell.source) for cell, _ in runs]
    around = [new_code_cell(HOOK), *copies, new_code_cell("print(json.dumps(_verdicts))")]
    lesson = execute(new_notebook(cells=around, metadata=notebooks.METADATA), folder, failing=True)
    failed = [
        f"{cell.id}, {run} run: {output.ename}: {output.evalue}"
        for (cell, run), copy in zip(runs, lesson.cells[1:-1], strict=True)
        for output in copy.outputs
        if output.output_type == "error"
    ]
    verdicts = json.loads(lesson.cells[-1].outputs[-1].text)
    return Execution(failed, [(text, can_fail) for text, can_fail in verdicts])


@functools.cache
def lesson(path: Path) -> tuple[list[NotebookNode], Execution]:
    """The code cells of the notebook at ``path``, and what became of them."""
    cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "code"]
    return cells, executed(cells, path.parent)


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
def test_every_cell_can_run_again(path: Path) -> None:
    _, execution = lesson(path)
    assert execution.failed == []


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
def test_every_claim_can_fail(path: Path) -> None:
    cells, execution = lesson(path)
    written = sum(cell.source.count("claim(") for cell in cells)
    assert len(execution.verdicts) == 3 * written > 0
    assert [text for text, can_fail in execution.verdicts if not can_fail] == []


def test_a_claim_that_cannot_fail_is_noticed(tmp_path: Path) -> None:
    source = """from helpers.checks import claim
a, b = 3.0, [1.0, 2.0]
claim("a constant", True, a=a)
claim("an alternative that is always true", a > 1 or not a > 1, a=a)
claim("a measurement", a > 1 and max(b) < 5, a=a)
claim("a list", all(value < 5 for value in b), a=a)"""
    found = executed([new_code_cell(source)], tmp_path)
    assert found.failed == []
    assert [can_fail for _, can_fail in found.verdicts] == 3 * [False, False, True, True]


def test_a_cell_that_cannot_run_again_is_noticed(tmp_path: Path) -> None:
    sources = {"make": "things = [1, 2]", "use-up": "things.pop()", "lose": "del things"}
    cells = [new_code_cell(source, id=name) for name, source in sources.items()]
    assert executed(cells, tmp_path).failed == [
        "lose, second run: NameError: name 'things' is not defined"
    ]
    assert executed([*cells[:2], new_code_cell("things.pop()", id="again")], tmp_path).failed == [
        "again, first run: IndexError: pop from empty list",
        "again, second run: IndexError: pop from empty list",
    ]
