"""Do the tests of ``helpers/`` notice small edits? By hand: python -m tools.mutate [units ...]

Of every module a seeded sample of small edits is tried, each against the module's own tests in a
copy of the course. An edit that only moves a pixel or a word is left out, by rule, never by hand.
"""

import ast
import gc
import os
import random
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SEED, EDITS, SECONDS = 0, 60, 60  # edits a module; CPU time for the tests of one
# Their tests are not tests/unit/test_MODULE.py; and this one is no helper, but asked for by name.
TESTS = {"faults": "lessons/test_faults", "tools/values": "unit/test_exercises"}
HEAVY = """torch.fx torch._dynamo torch.utils.flop_counter matplotlib.figure matplotlib.legend
    pandas IPython.display PIL.Image psutil pytest nbval.plugin"""
SWAPS = """Lt:LtE Lt:Gt LtE:Lt LtE:Gt Gt:GtE Gt:Lt GtE:Gt GtE:Lt Eq:NotEq NotEq:Eq In:NotIn
    NotIn:In Is:IsNot IsNot:Is And:Or Or:And Add:Sub Sub:Add Mult:Div Div:Mult FloorDiv:Mult
    Mod:Mult Pow:Mult"""
SWAPS = [pair.split(":") for pair in SWAPS.split()]
# Left out are words: docstrings, the texts of errors, the literal parts of f-strings, what an
# argument is said to be; imports, annotations, seeds and zip's strict; and in pictures these
# arguments and variables, what stands in these calls, and the constants of layout and palette.
ANYWHERE = "strict what manual_seed default_rng".split()  # noqa: SIM905
COSMETIC = """alpha annotate bbox_to_anchor canvas color dpi edgecolor family fontsize foreground
    frameon ha height inches labelsize layout length letters linewidth loc markeredgewidth ncols
    markersize pad padding path_effects place sheet size solid_capstyle text textcoords va xycoords
    zorder""".split()  # noqa: SIM905


def left_out(node: ast.AST, picture: bool) -> bool:
    name = getattr(node, "arg", None)
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case (
            ast.Call(func=ast.Attribute(attr=it) | ast.Name(id=it))
            | ast.Assign(targets=[ast.Name(id=it) | ast.Tuple(elts=[ast.Name(id=it), *_])])
        ):
            name = it
    return name in ANYWHERE or (picture and (name in COSMETIC or str(name).isupper()))


def edits(node: ast.AST, picture: bool) -> Iterator[tuple[ast.AST, str, object]]:
    """(node, field, new value) for every small edit of ``node`` and of all below it."""
    if left_out(node, picture):
        return
    op = type(node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)).__name__
    swapped = [getattr(ast, new)() for old, new in SWAPS if old == op]
    match node:
        case ast.Constant(value=bool()):
            yield node, "value", not node.value
        case ast.Constant(value=str()):
            yield node, "value", node.value + "_"
        case ast.Constant(value=int() | float()):
            yield node, "value", node.value + 1
        case ast.Compare():
            yield from ((node, "ops", [new, *node.ops[1:]]) for new in swapped)
        case ast.BinOp() | ast.BoolOp():
            yield from ((node, "op", new) for new in swapped)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield node, "test", ast.UnaryOp(ast.Not(), test)
        case ast.comprehension(ifs=[test]):
            yield node, "ifs", [ast.UnaryOp(ast.Not(), test)]
        case ast.UnaryOp(op=ast.USub()):
            yield node, "op", ast.UAdd()
        case ast.Name(id="min" | "max"):
            yield node, "id", {"min": "max", "max": "min"}[node.id]
        case ast.Call(keywords=given):
            for keyword in (keyword for keyword in given if not left_out(keyword, picture)):
                yield node, "keywords", [other for other in given if other is not keyword]
    for field, value in ast.iter_fields(node):
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            statement = isinstance(child, ast.Return | ast.Raise | ast.Expr)
            if statement and not left_out(child, picture):
                yield node, field, [*value[:index], ast.Pass(), *value[index + 1 :]]
            word = isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)
            skipped = field in ("annotation", "returns", "format_spec", "exc") or word
            if isinstance(child, ast.AST) and not skipped:
                yield from edits(child, picture)


def place(root: Path, module: str) -> Path:
    return root / ("" if module.startswith("tools/") else "helpers") / f"{module}.py"


def noticed(module: str, source: str, copy: Path) -> bool:
    """Whether the module's tests fail where ``source`` is its text; in a fork, to be quick."""
    place(copy, module).write_text(source)
    tests = TESTS.get(module, f"unit/test_{Path(module).name.strip('_')}")
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.chdir(copy)
        sys.path.insert(0, str(copy))
        sys.modules.pop("tools", None)  # the copy's
        options = f"-x -q -o addopts= -p no:cacheprovider --confcutdir=tests tests/{tests}.py"
        os._exit(__import__("pytest").main(options.split()))
    return os.waitpid(child, 0)[1] != 0


def score(module: str, copy: Path) -> None:
    source = place(ROOT, module).read_text()
    tree, missed = ast.parse(source), []
    found = list(edits(tree, picture=module.startswith("plotting")))
    chosen = random.Random(f"{SEED} {module}").sample(found, min(EDITS, len(found)))
    if not noticed(module, "raise OSError", copy) or noticed(module, source, copy):
        sys.exit(f"{module}: its tests must pass as it stands, and fail where it is broken")
    for node, field, new in chosen:
        before, old = ast.unparse(tree), getattr(node, field)
        setattr(node, field, new)
        after = ast.unparse(tree)
        if not noticed(module, after, copy):
            lines = zip(before.splitlines(), after.splitlines(), strict=False)
            missed += [f"  {was}\n->{now}" for was, now in lines if was != now][:1]
        setattr(node, field, old)
    noticed(module, source, copy)
    share = f"{len(chosen) - len(missed)} of {len(chosen)} edits noticed, {len(found)} possible"
    print(f"{module}: {share}", *missed, sep="\n", flush=True)


if __name__ == "__main__":
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True  # two edits in one second may have the same size
    for name in HEAVY.split():
        __import__(name)
    gc.freeze()
    files = (path.relative_to(ROOT / "helpers") for path in (ROOT / "helpers").rglob("*.py"))
    modules = sorted(str(path.with_suffix("")) for path in files if path.stem != "__init__")
    with tempfile.TemporaryDirectory() as folder:
        for part in ("assets", "helpers", "notebooks", "tests", "tools"):
            shutil.copytree(ROOT / part, Path(folder) / part)
        for module in sys.argv[1:] or modules:
            score(module, Path(folder))
