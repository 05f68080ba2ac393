"""Every claim of a lesson fails when what it rests on is perturbed.

The lesson is executed once. After each of its cells a hook in the kernel takes the condition of
every ``claim`` there, perturbs one measured part of it at a time (a name, an attribute, a call),
and asks whether the condition can become false.
"""

import json
import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests import notebooks
from tests.refresh import execute

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


def verdicts(notebook: nbformat.NotebookNode, folder: Path) -> list[tuple[str, bool]]:
    """(claim, whether it can fail) of every claim in ``notebook``, executed in ``folder``."""
    os.environ.update(notebooks.KERNEL_ENVIRONMENT)
    report = "print(json.dumps(_verdicts))"
    cells = [new_code_cell(HOOK), *notebook.cells, new_code_cell(report)]
    executed = execute(new_notebook(cells=cells, metadata=notebooks.METADATA), folder)
    return [tuple(verdict) for verdict in json.loads(executed.cells[-1].outputs[-1].text)]


@pytest.mark.parametrize("path", notebooks.all_of_them(), ids=lambda path: path.name)
def test_every_claim_can_fail(path: Path) -> None:
    found = verdicts(notebooks.read(path), path.parent)
    written = sum(cell.source.count("claim(") for cell in notebooks.read(path).cells)
    assert len(found) == written > 0
    assert [text for text, can_fail in found if not can_fail] == []


def test_a_claim_that_cannot_fail_is_noticed(tmp_path: Path) -> None:
    source = """from helpers.checks import claim
a, b = 3.0, [1.0, 2.0]
claim("a constant", True, a=a)
claim("an alternative that is always true", a > 1 or not a > 1, a=a)
claim("a measurement", a > 1 and max(b) < 5, a=a)
claim("a list", all(value < 5 for value in b), a=a)"""
    found = verdicts(new_notebook(cells=[new_code_cell(source)]), tmp_path)
    assert [can_fail for _, can_fail in found] == [False, False, True, True]
