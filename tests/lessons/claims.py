"""Whether the condition of a ``claim`` could have been false: conjunct by conjunct.

A condition is split into its conjuncts. Each is evaluated again and again while the measured values
that it reads (names, attributes, items, results of calls: its leaves) are changed, one by one and
several at once, until it is false. Only innermost leaves are changed: in ``len(times) >= 0`` it is
``times``, as no list has a negative length; and no change makes a number negative that was none,
so ``seconds >= 0`` cannot fail either. A boolean is never changed: how it came about must stand in
the claim. The engine runs this in the kernel, after the cell.
"""

import ast
import contextlib
import io
import random
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral, Number
from pathlib import PurePath
from typing import Any

CONTAINERS = {"list", "tuple", "set", "frozenset", "dict", "deque", "Size"}
CONTAINERS |= {"Counter", "defaultdict", "OrderedDict"}
MOST_CHANGES, MOST_DRAWS, SECONDS = 300, 300, 10.0
LEAF = "_leaf_of_a_claim"
Change = Callable[[], Any]


def examine(source: str, scope: dict[str, Any]) -> None:
    """Raise AssertionError with a line for each conjunct in a cell's claims that cannot be false.

    ``scope`` holds the names as they are after the cell has run.
    """
    if found := list(complaints(source, scope)):
        raise AssertionError("\n".join(found))


def complaints(source: str, scope: dict[str, Any]) -> Iterator[str]:
    for call in claims(ast.parse(source), scope):
        text, holds = call.args
        for conjunct in conjuncts(holds):
            if why := complaint(conjunct, scope):
                yield f"claim {ast.unparse(text)}: {ast.unparse(conjunct)}: {why}"


def claims(node: ast.AST, scope: dict[str, Any]) -> Iterator[ast.Call]:
    """The calls of ``claim`` that were reached: not those in a branch that was not taken."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "claim":
        yield node
    not_taken: list[ast.stmt] = []
    if isinstance(node, ast.If):
        with contextlib.suppress(Exception):
            not_taken = node.orelse if eval(ast.unparse(node.test), dict(scope)) else node.body
    for child in ast.iter_child_nodes(node):
        if child not in not_taken:
            yield from claims(child, scope)


def conjuncts(node: ast.expr) -> Iterator[ast.expr]:
    """What must hold, piece by piece, for ``node`` to hold."""
    match node:
        case ast.BoolOp(op=ast.And()):
            parts = node.values
        case ast.BinOp(op=ast.BitAnd()):
            parts = [node.left, node.right]
        case ast.Compare(ops=[_, _, *_]):
            sides = [node.left, *node.comparators]
            parts = [ast.Compare(sides[i], [op], [sides[i + 1]]) for i, op in enumerate(node.ops)]
        case ast.UnaryOp(op=ast.Not(), operand=ast.BoolOp(op=ast.Or(), values=values)):
            parts = [ast.UnaryOp(ast.Not(), value) for value in values]
        case ast.UnaryOp(op=ast.Not(), operand=ast.UnaryOp(op=ast.Not(), operand=operand)):
            parts = [operand]
        case ast.Call(
            func=ast.Name("all"), args=[ast.List(elts=[_, *_]) | ast.Tuple(elts=[_, *_])]
        ):
            parts = node.args[0].elts
        case _:
            yield node
            return
    for part in parts:
        yield from conjuncts(part)


def complaint(conjunct: ast.expr, scope: dict[str, Any]) -> str | None:
    """Why ``conjunct`` cannot be false, or None."""
    bare = conjunct.operand if isinstance(conjunct, ast.UnaryOp) else conjunct
    trial = Trial(conjunct, scope)
    try:
        if not trial.run():
            return "it is no longer true after its cell: what it reads must keep its value there"
    except Exception as error:
        return f"it cannot be evaluated after its cell: {type(error).__name__}: {error}"
    if (
        isinstance(bare, ast.Name | ast.Attribute | ast.Subscript)
        and trial.leaves[0].kind == "boolean"
    ):
        return "it rests on a boolean computed elsewhere: write the comparison into the claim"
    end, tried = time.monotonic() + SECONDS, []
    while (leaves := [leaf for leaf in trial.leaves if leaf.can_change(scope)]) != tried:
        for chosen in trial.choices(leaves):
            with contextlib.suppress(Exception):
                if not trial.run(chosen):
                    return None
            if time.monotonic() > end:
                break
        tried = leaves
    if not tried:
        return "nothing in it was measured"
    return f"no change of {', '.join(ast.unparse(leaf.node) for leaf in tried)} makes it false"


@dataclass(eq=False)
class Leaf:
    """An expression that is read, wherever in the conjunct it stands."""

    node: ast.expr
    base: "Leaf | None" = None  # what it is an attribute, an item or a method's result of
    inside: "list[Leaf]" = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return kind_of(self.values[0]) if self.values else "unread"

    def can_change(self, scope: dict[str, Any]) -> bool:
        if self.kind not in ("measured", "opaque"):
            return False
        of_object = self.base is not None and self.base.kind == "opaque"
        if isinstance(self.node, ast.Name) or self.values[0] is None or of_object:
            return True
        home, inside = "", {leaf.kind for leaf in self.inside}
        if isinstance(self.node, ast.Call):
            with contextlib.suppress(Exception):
                home = eval(ast.unparse(self.node.func), dict(scope)).__module__ or ""
        if home.split(".")[0] in ("__main__", "helpers"):  # the lesson's own measurement
            return True
        # What builtins return has limits of its own; of constants it is a constant.
        known = "measured" in inside or (home in ("builtins", "math") and "opaque" not in inside)
        return not known


class Trial(ast.NodeTransformer):
    """A conjunct in which every value that is read passes through ``_pass``."""

    def __init__(self, conjunct: ast.expr, scope: dict[str, Any]) -> None:
        self.leaves: list[Leaf] = []
        self._number: dict[str, int] = {}
        self._around: list[Leaf] = []
        self._chosen: dict[int, int] | None = None
        self._others = [n.value for n in ast.walk(conjunct) if isinstance(n, ast.Constant)]
        self._nan = any(word in ast.unparse(conjunct) for word in ("nan", "finite"))
        self._scope = {**scope, LEAF: self._pass}
        tree = self.visit(ast.parse(ast.unparse(conjunct), mode="eval"))
        self._code = compile(ast.fix_missing_locations(tree), "claim", "eval")

    def run(self, chosen: dict[int, int] | None = None) -> bool:
        """The conjunct's truth, with the given changes of the given leaves, by their numbers."""
        self._chosen, self._made = chosen, {}
        quiet = contextlib.redirect_stdout(io.StringIO())
        with quiet, contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(eval(self._code, self._scope))

    def choices(self, leaves: list[Leaf]) -> Iterator[dict[int, int]]:
        """Every change of each leaf, the same of all at once, and draws of several."""
        counts = {
            number: max((len(self._changes(value)) for value in leaf.values), default=0) or 1
            for number, leaf in enumerate(self.leaves)
            if leaf in leaves
        }
        for number, count in counts.items():
            yield from ({number: which} for which in range(count))
        for which in range(max(counts.values(), default=0)):
            yield dict.fromkeys(counts, which)
        draw = random.Random(0)
        for _ in range(MOST_DRAWS if len(counts) > 1 else 0):
            some = draw.sample(list(counts), draw.randint(2, len(counts)))
            yield {number: draw.randrange(counts[number]) for number in some}

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Call):  # a function is no leaf; what it is a method of may be one
            node.func.is_function = True
        reads = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
        stores = not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if not reads or stores or hasattr(node, "is_function"):
            return self.generic_visit(node)
        key = ast.dump(node)
        if key not in self._number:
            self._number[key] = len(self.leaves)
            self.leaves.append(Leaf(ast.parse(ast.unparse(node), mode="eval").body))
        leaf = self.leaves[self._number[key]]
        if self._around:
            self._around[-1].inside.append(leaf)
        holder = node.func if isinstance(node, ast.Call) else node
        base = ast.dump(holder.value) if hasattr(holder, "value") else ""
        self._around.append(leaf)
        self.generic_visit(node)
        self._around.pop()
        if base in self._number:
            leaf.base = self.leaves[self._number[base]]
        number = ast.Constant(self._number[key])
        return ast.Call(ast.Name(LEAF, ast.Load()), [number, node], [])

    def _pass(self, number: int, value: Any) -> Any:
        leaf = self.leaves[number]
        # What stands behind an "or" is read for the first time when what stands before it changed.
        if len(leaf.values) < (100 if self._chosen is None else 1):
            leaf.values.append(value)
            if isinstance(value, str | Number) and value not in self._others:
                self._others.append(value)
        if self._chosen and number in self._chosen:
            key = number, id(value)  # the same value changes alike wherever it stands
            if key not in self._made:
                changes = self._changes(value)
                which = self._chosen[number] % max(len(changes), 1)
                self._made[key] = value, changes[which]() if changes else value
            return self._made[key][1]
        return value

    def _changes(self, value: Any) -> list[Change]:
        found = list(islice(changes_of(value, self._others[:20]), MOST_CHANGES))
        if self._nan and isinstance(value, float):
            found += [lambda: float("nan"), lambda: float("inf")]
        return found


def kind_of(value: Any) -> str:
    """boolean; code (a function, a class, a module); measured; or opaque: any other object.

    Of an opaque object the attributes and what its methods return are measured.
    """
    if is_boolean(value):
        return "boolean"
    code = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)
    if isinstance(value, (*code, types.MethodType)):
        return "code"
    plain = isinstance(value, Number | str | bytes | range) or hasattr(value, "_fields")
    known = plain or type(value).__name__ in CONTAINERS or is_a(value, "numpy.ndarray")
    tables = ("torch.Tensor", "pandas.DataFrame", "pandas.Series")
    return "measured" if known or any(is_a(value, name) for name in tables) else "opaque"


def is_boolean(value: Any) -> bool:
    """A boolean, or a container or an array of nothing else."""
    if type(value).__name__ in CONTAINERS:
        items = list(value.values() if isinstance(value, dict) else value)
        return bool(items) and all(map(is_boolean, items))
    name = str(getattr(value, "dtype", "")) or type(value).__name__
    return name in ("bool", "bool_", "torch.bool")


def is_a(value: Any, name: str) -> bool:
    """Whether ``value`` is, say, a torch.Tensor, without an import that the lesson did not make."""
    module, _, kind = name.partition(".")
    return module in sys.modules and isinstance(value, getattr(sys.modules[module], kind))


def changes_of(value: Any, others: list[Any]) -> Iterator[Change]:
    """What ``value`` might have been instead; it may be compared with ``others``."""
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        yield lambda: not value
    elif isinstance(value, Number):
        yield from _numbers(value)
        for other in others:
            if isinstance(other, Number) and not (value >= 0 > other):
                yield lambda other=other: type(value)(other)
    elif isinstance(value, str):
        yield from (lambda: value + "?", lambda: "?" + value, lambda: "")
        for other in others:
            if isinstance(other, str):
                yield from (lambda other=other: value + other, lambda other=other: other)
    elif isinstance(value, bytes):
        yield from (lambda: value + b"?", lambda: b"")
    elif is_a(value, "torch.Tensor") or is_a(value, "numpy.ndarray"):
        yield from _arrays(value)
    elif is_a(value, "pandas.DataFrame") or is_a(value, "pandas.Series"):
        yield from _tables(value)
    elif isinstance(value, dict):
        yield from (lambda: type(value)(), lambda: {**value, "?": 0})
        for other in others:
            yield lambda other=other: {**value, other: 0}
        for items in _items(list(value.values()), others):
            yield lambda items=items: dict(zip(value, items(), strict=True))
        for keys in _items(list(value), others):
            yield lambda keys=keys: dict(zip(keys(), value.values(), strict=True))
    elif kind_of(value) == "measured":
        kind = getattr(value, "_make", list if isinstance(value, range) else type(value))
        listed = list(value)
        yield from (lambda: kind([]), lambda: kind([*listed, *listed]), lambda: kind(listed[::-1]))
        yield from (lambda: kind([*listed, *(listed[-1:] or [0])]), lambda: kind(listed[:-1]))
        for other in others:
            yield lambda other=other: kind([*listed, other])
        for items in _items(listed, others):
            yield lambda items=items: kind(items())
    elif isinstance(value, PurePath):
        yield from (lambda: value / "missing", lambda: type(value)("."))
    elif kind_of(value) == "opaque":
        yield from (object, lambda: None)


def _numbers(value: Any) -> Iterator[Change]:
    if isinstance(value, Integral):
        value = int(value)
        yield from (lambda: value * 10**9, lambda: value + 1, lambda: 0, lambda: value // 2)
        if value:
            yield lambda: value - 1
    else:
        yield from (lambda: value * 1e9, lambda: value * 1e-9, lambda: value + 1, lambda: value * 0)
    if not isinstance(value, complex) and value < 0:
        yield lambda: -value


def _items(values: list[Any], others: list[Any]) -> Iterator[Callable[[], list[Any]]]:
    """Every item changed at once, and each of the first and of the last alone."""
    for which in range(12):
        yield lambda which=which: [[*changes_of(v, others)][which]() for v in values]
    numbers = range(len(values))
    for at in {*numbers[:20], *numbers[-20:]}:
        for change in islice(changes_of(values[at], others), 5):
            yield lambda at=at, change=change: [*values[:at], change(), *values[at + 1 :]]


def _arrays(value: Any) -> Iterator[Change]:
    yield from (lambda: value * 0, lambda: value + 1_000_000, lambda: -value)
    if is_a(value, "torch.Tensor"):
        torch, value = sys.modules["torch"], value.detach()
        yield from (value.clone, value.double, value.half, lambda: value.transpose(0, -1))
        yield from (lambda: torch.cat([value, value]), lambda: value.flip(0))
        yield lambda: torch.stack([value, value], -1)[..., 0]
        yield lambda: value.contiguous(memory_format=torch.channels_last)
        yield lambda: value.clone().requires_grad_() + 0
    else:
        numpy = sys.modules["numpy"]
        yield from (value.copy, lambda: value.astype("float64"), lambda: value.astype("float16"))
        yield from (lambda: numpy.concatenate([value, value]), lambda: value[::-1])
        yield lambda: value.T
    if value.ndim and len(value) > 1:  # an empty one has a NaN as its mean, and NaN fails anything
        yield from (lambda: value[1:], lambda: value[:1])


def _tables(value: Any) -> Iterator[Change]:
    yield from (lambda: sys.modules["pandas"].concat([value, value]), lambda: value.iloc[::-1])
    if len(value) > 1:
        yield from (lambda: value.iloc[1:], lambda: value.iloc[:1])
    for which in range(5):
        yield lambda which=which: value.map(lambda cell: [*changes_of(cell, [])][which]())
