"""A reader's own model: load it, try it with its example, and take one call of it apart.

What cannot be measured is refused in one sentence: what came, what was expected, what to change.
"""

import dataclasses
import importlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from IPython.display import HTML, display
from torch import Tensor, nn
from torch.autograd.profiler_util import FunctionEvent
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from helpers import machine, units


def _operators(names: str) -> set:
    return {getattr(torch.ops.aten, name) for name in names.split()}


COPIES = _operators("clone copy_ _to_copy empty cat _unsafe_view")
# Of their first argument, these operators read some rows, set some rows, or read nothing.
LOOK_UPS = _operators(
    "embedding _embedding_bag _embedding_bag_forward_only index index_select gather take"
)
SETTERS = _operators(
    "index_put_ index_copy_ index_add_ index_fill_ scatter_ scatter_add_ scatter_reduce_"
)
FILLS = _operators(
    "copy_ fill_ zero_ uniform_ normal_ bernoulli_ random_ zeros_like ones_like full_like "
    "rand_like randn_like randint_like new_zeros new_ones new_full"
)
FIRST_NOT_READ = LOOK_UPS | SETTERS | FILLS
DEVICES = "cpu|cuda"  # on which the report knows how to measure
ITSELF = "the model itself"  # what runs in the model, but in no module inside it


class Question(NamedTuple):
    """What to ask next if a measurement is above its ``limit``, which is a rule of thumb."""

    limit: float
    words: str
    lesson: str
    chart: str  # the cell of the template whose chart shows why
    reason: str  # with the value in the place of {}


QUESTIONS = {
    "other programs": Question(
        1 / 4,
        "Is this computer quiet enough for measurements?",
        "01_timing Timing",
        "whole-time-chart",
        "Other programs used {} of the CPU",
    ),
    "spread": Question(
        3,
        "Why do equal calls take different times?",
        "01_timing Timing",
        "whole-time-chart",
        "The p95 latency is {} that of the fastest call",
    ),
    "training memory": Question(
        1 / 2,
        "Will training fit in memory?",
        "09_memory_of_a_network Memory of a network",
        "memory-chart",
        "A training step needs at least {} of the memory of this device",
    ),
    "outside operators": Question(
        1 / 2,
        "Which line of Python takes the time?",
        "07_line_profiler line_profiler",
        "operators-table",
        "A call spends {} of its time outside operators",
    ),
    "call overhead": Question(
        0.15,
        "How can the model make fewer and larger calls?",
        "04_roofline The roofline",
        "operators-table",
        "The estimated call overhead is {} of the latency",
    ),
    "slowest leaf without MACs": Question(
        1 / 3,
        "Why is a layer without MACs slow?",
        "05_torch_profiler The torch profiler",
        "layers-kinds",
        "The slowest kind of layer without MACs, {kind}, takes {} of the time",
    ),
    "memory bandwidth": Question(
        1 / 3,
        "Which memory traffic is not necessary?",
        "04_roofline The roofline",
        "roof-draw",
        "The model reaches {} of the memory bandwidth",
    ),
    "peak FLOP/s": Question(
        1 / 2,
        "Which work is not necessary?",
        "03_macs_and_flops MACs and FLOPs",
        "roof-draw",
        "The model reaches {} of the peak FLOP/s",
    ),
}
OTHERWISE = Question(
    1,
    "Which operator is far below its roof?",
    "05_torch_profiler The torch profiler",
    "roof-draw",
    "No measurement is above its limit",
)


class Refused(ValueError):
    """A model, an example or a name that must be changed; the message says how."""


def load(name: str) -> tuple[nn.Module, object]:
    """The model and the example that a function returns, by its name: ``package.module:function``.

    The module is looked for in this folder, too.
    """
    module, _, function = name.partition(":")
    if not re.fullmatch(r"[\w.]+:\w+", name):
        came = repr(name) if name else "nothing"
        raise Refused(
            f"MODEL must be package.module:function, but got {came}: give the function that "
            "returns your model and an example, as in MODEL=mine:build for build() in mine.py"
        )
    try:
        built = getattr(importlib.import_module(module), function)()
    except (Exception, SystemExit) as error:
        raise Refused(
            f"{name} must be a function that can be called without arguments, but got "
            f"{_summary(error)}: call it alone, which shows the line; {module} must be in "
            f"{Path.cwd()} or in a folder on PYTHONPATH"
        ) from error
    if not isinstance(built, tuple) or len(built) != 2:
        raise Refused(
            f"{name} must return a model and an example, but got {_kind(built)}: end it with "
            "return model, example"
        )
    return built


def arguments(model: nn.Module, example: object) -> tuple[tuple, dict]:
    """``args`` and ``kwargs`` of the call ``model(*args, **kwargs)``, tried once, in eval mode.

    An ``example`` that is a tuple holds several arguments, a dict holds them by name, and all else
    is the only one.
    """
    if not isinstance(model, nn.Module):
        raise Refused(
            f"model must be an nn.Module, but got {_kind(model)}: put what you call with the "
            "example into an nn.Module, and make one, as in model = MyModel()"
        )
    _refuse_modules(model)
    _refuse_tensors([*model.parameters(), *model.buffers(), *tensors(example)])
    if hidden := [leaf for leaf in tree_leaves(example) if dataclasses.is_dataclass(leaf)]:
        raise Refused(
            f"example must hold its tensors in tuples, lists and dicts, where they can be counted, "
            f"but got {_kind(hidden[0])}: wrap the model in an nn.Module that takes tensors and "
            "makes the object itself"
        )
    args = example if isinstance(example, tuple) else (example,)
    args, kwargs = ((), example) if isinstance(example, dict) else (args, {})
    sized = [tensor for tensor in tensors(example) if tensor.dim()]
    if sized and not len(sized[0]):
        raise Refused(
            f"example must hold one sample or more, but got {described(example)}: give a batch of "
            "the size that you use"
        )
    printed = io.StringIO()
    try:
        with torch.no_grad(), redirect_stdout(printed):
            output = model.eval()(*args, **kwargs)
    except Exception as error:
        raise Refused(
            f"model must take the example, but got {described(example)}, and {_summary(error)}: "
            "change the example (smaller, if memory ran out; moved by .to(device); "
            "a tuple is several arguments, a dict arguments by name) or the model's forward: "
            "calling it alone, under torch.no_grad() as here, shows the line"
        ) from error
    if isinstance(output, Iterator):
        raise Refused(
            f"model must return when its work is done, but got {_kind(output)}: return a list, as "
            "in return list(...)"
        )
    if text := printed.getvalue():
        raise Refused(
            f"forward must not print, because the time of printing would be measured too, but "
            f"{text.splitlines()[0][:60]!r} was printed: remove the print from the model"
        )
    return args, kwargs


def _refuse_modules(model: nn.Module) -> None:
    """Refuse modules whose inside cannot be watched, or whose weights cannot be counted."""
    for module in model.modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise Refused(
                "model must be one that can be watched inside, but got a ScriptModule: give the "
                "nn.Module from before torch.jit.script or torch.jit.trace"
            )
        if hasattr(module, "_orig_mod") or module._compiled_call_impl is not None:
            raise Refused(
                "model must be one that can be watched inside, but got a compiled one: give the "
                "nn.Module from before torch.compile, which runs operator by operator"
            )
        if any(isinstance(value, torch.ScriptObject) for value in vars(module).values()):
            raise Refused(
                "model must hold its weights as tensors, but got "
                f"{_kind(module)} with packed weights: give the model from before it was quantised"
            )


def _refuse_tensors(tensors: list[Tensor]) -> None:
    """Refuse tensors that cannot be measured: their device, their layout, their restrictions."""
    for tensor in tensors:
        if nn.parameter.is_lazy(tensor):
            continue  # its shape is not known before the first call
        if not re.match(DEVICES, str(tensor.device)):
            raise Refused(
                f"model and example must be on the CPU or on a CUDA GPU, but got a tensor on "
                f'{tensor.device}: move both, as in model.to("cpu") and example.to("cpu")'
            )
        if tensor.device.type == "cuda" and (problem := machine.gpu_problem()):
            raise Refused(
                "model and example must be on a device that this PyTorch can use, but got a tensor "
                f"on {tensor.device}, and {problem}; until then, move both to the CPU, as in "
                'model.to("cpu") and example.to("cpu")'
            )
        if tensor.is_complex():
            raise Refused(
                "model and example must hold real numbers, but got complex ones: their products "
                "are counted wrongly, so give the real and the imaginary parts as two tensors"
            )
        if tensor.layout != torch.strided or tensor.is_nested:
            kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
            raise Refused(
                f"model and example must hold dense tensors, but got one of kind {kind}: convert "
                "it with .to_dense(), a nested one with .to_padded_tensor(0)"
            )


class Operators(TorchDispatchMode):
    """While it is entered, it notes which operators run, but for views and copies.

    ``bytes`` are those of the tensors that they read and write, copies too. An operator's argument
    counts once, and again if it is also written. A table of which some rows are looked up or set
    does not count. Enter it before FlopCounterMode, and it sees what that counts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: set = set()
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if not func.is_view and func.overloadpacket not in COPIES:
            self.seen.add(func.overloadpacket)
        operator = func.overloadpacket
        read = storages([args[1:] if operator in FIRST_NOT_READ else args, kwargs])
        written = storages([] if operator in SETTERS else result)
        # A view returns what it got, and changes nothing; an empty tensor is not written.
        is_view = (
            written and not func._schema.is_mutable and written.keys() <= storages([args]).keys()
        )
        if not is_view and "empty" not in str(func):
            self.bytes += sum(read.values()) + sum(written.values())
        return result

    def without_formula(self) -> list[str]:
        """The names of those that FlopCounterMode counts as 0: ``["batch_norm", "relu"]``."""
        return sorted(str(name).removeprefix("aten.") for name in self.seen - set(flop_registry))


def attempted(call: Callable, *arguments: object) -> object:
    """What ``call`` returns; a model whose operators cannot be watched is refused."""
    try:
        return call(*arguments)
    except Exception as error:
        raise Refused(
            f"model must be one whose operators can be counted, but got {_summary(error)}: give a "
            "smaller example, or the part of the model without gradients and torch.vmap"
        ) from error


def by_module(
    model: nn.Module,
    args: tuple,
    kwargs: dict,
    read: Callable[[], float],
) -> pd.DataFrame:
    """One call of the model, a row for each call of a module in it, in the order of their ends.

    The index is the module's name, and from its second call on ``name (2)``. Columns: ``kind``, its
    class, or ``ITSELF`` for the model; ``leaf``, whether it contains no other module; ``output``,
    what it returned; ``own``, by how much ``read()`` rose while it ran, without the modules that it
    called itself, but with a part of these hooks' cost.
    """
    names = {module: name or "the model" for name, module in model.named_modules()}
    rows: dict[str, dict] = {}
    running, calls = [], Counter()

    def before(module: nn.Module, args: tuple) -> None:
        running.append([0, read()])  # the first is what rises in the modules that it calls

    def after(module: nn.Module, args: tuple, output: object) -> None:
        inside, start = running.pop()
        rose = read() - start
        calls[module] += 1
        nth = f" ({calls[module]})" if calls[module] > 1 else ""
        rows[names[module] + nth] = {
            "kind": ITSELF if module is model else type(module).__name__,
            "leaf": not list(module.children()),
            "output": described(output),
            "own": rose - inside,
        }
        if running:
            running[-1][0] += read() - start

    hooks = [module.register_forward_pre_hook(before, prepend=True) for module in names]
    hooks += [module.register_forward_hook(after, always_call=True) for module in names]
    try:
        model(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return pd.DataFrame.from_dict(rows, orient="index")


def parameters_by_kind(model: nn.Module, rows: pd.DataFrame) -> pd.Series:
    """How many parameters each kind of module has in ``rows``, which are those of ``by_module``.

    The parameters of a module that was not called count for the nearest one around it that was.
    """
    counts: Counter = Counter(dict.fromkeys(rows.kind, 0))
    for name, parameter in model.named_parameters():
        owner = name.rpartition(".")[0]
        while owner and owner not in rows.index:
            owner = owner.rpartition(".")[0]
        counts[rows.kind[owner or "the model"]] += parameter.numel()
    return pd.Series(counts)


def shares(rows: pd.DataFrame, *, at_most: int) -> dict[str, tuple]:
    """For ``plotting.bar_columns``: the slowest rows' shares of the time and MACs of all rows.

    ``rows`` have the columns ``time`` and ``MACs``; if they have a ``kind``, it is added to the
    name.
    """
    longest = rows[rows["time"].rank(ascending=False, method="first") <= at_most]
    if "kind" in rows:
        kinds = zip(longest.index, longest["kind"], strict=True)
        names = [name if kind == ITSELF else f"{name}, {kind}" for name, kind in kinds]
        longest = longest.set_axis([name.replace("the model", ITSELF) for name in names])
    times = longest["time"] / (rows["time"].sum() or 1)
    macs = longest["MACs"] / (rows["MACs"].sum() or 1)
    return {
        "share of time": (times.to_dict(), units.percent),
        "share of MACs": (macs.to_dict(), "{:.0%}".format),
    }


def printed(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows`` as text: the column ``time`` in its unit, and counts with their commas."""
    texts = {"time": rows["time"].map(units.seconds)}
    texts |= {name: rows[name].map("{:,}".format) for name in rows.select_dtypes("integer")}
    return rows.assign(**texts).rename_axis(None)


def slowest_without_macs(layers: pd.DataFrame) -> tuple[str, float]:
    """Of the kinds whose modules are leaves without MACs, the slowest, and its share of the time.

    ``layers`` are rows of ``by_module`` with the columns ``MACs`` and ``time``. The model itself is
    none of these kinds; if there are none, it is ("none", 0.0).
    """
    kinds = layers.groupby("kind").agg({"leaf": "all", "MACs": "sum", "time": "sum"})
    times = kinds[kinds["leaf"] & (kinds["MACs"] == 0)]["time"].drop(ITSELF, errors="ignore")
    return (times.idxmax(), times.max() / layers["time"].sum()) if len(times) else ("none", 0.0)


def next_question(values: Mapping[str, float], kind: str) -> None:
    """Show what to ask next, and why: what is farthest above its limit in ``QUESTIONS``.

    ``values`` has the keys of ``QUESTIONS``, and ``kind`` is the slowest kind without MACs. The
    output's metadata names the cell of the template whose chart shows why.
    """
    rows = against_limits(values)
    name = max(rows, key=lambda key: rows[key][0])
    quotient, value, limit = rows[name]
    question, reason = OTHERWISE, OTHERWISE.reason
    if quotient > 1:
        question = QUESTIONS[name]
        reason = f"{question.reason.format(value, kind=kind)}, and the limit is {limit}"
    sentence = f"<b>Next: {_link(question)}</b> {reason} ({_lesson(question)})."
    display(HTML(units.name(sentence)), metadata={"chart": question.chart})


def against_limits(values: Mapping[str, float]) -> dict[str, tuple[float, str, str]]:
    """For ``plotting.against_limits``: value / limit, and the two as text."""
    rows = {}
    for name, value in values.items():
        limit = QUESTIONS[name].limit
        text = units.ratio(value) if name == "spread" else units.percent(value)
        rows[name] = value / limit, text, _limit(name)
    return rows


def questions() -> HTML:
    """A table of the measurements, their limits and the questions."""
    rows = {
        name: {"limit": _limit(name), "question": f"{_link(question)} ({_lesson(question)})"}
        for name, question in QUESTIONS.items()
    }
    return HTML(pd.DataFrame.from_dict(rows, orient="index").to_html(escape=False))


def _limit(name: str) -> str:
    limit = QUESTIONS[name].limit
    return f"{limit}×" if name == "spread" else f"{100 * limit:.0f} %"


def _link(question: Question) -> str:
    return f'<a href="{question.lesson.split(" ")[0]}.ipynb">{question.words}</a>'


def _lesson(question: Question) -> str:
    file, name = question.lesson.split(" ", 1)
    return f"lesson {file[:2]}, {name}"


def home(model: nn.Module, example: object = ()) -> tuple[str, torch.dtype]:
    """The device, such as "cuda:1", and the type that most of the model's parameters have.

    Of a model without parameters, those of its buffers or else of the example count.
    """
    numbers: Counter = Counter()
    for group in (model.parameters(), model.buffers(), tensors(example)):
        for tensor in group:
            numbers[str(tensor.device), tensor.dtype] += tensor.numel()
        if numbers:
            return numbers.most_common(1)[0][0]
    return "cpu", torch.float32


def operators_called(event: FunctionEvent) -> tuple[int, float]:
    """How many operators run in a profiler's event, but in no other operator, and the rest in µs.

    A range of ``record_function`` and an ``autograd.Function`` are no operators. An operator that
    calls more than ten others directly, such as a GRU or a fused encoder layer, counts as these.
    """
    if "::" in event.name and not event.is_user_annotation:
        inner = len(event.cpu_children)
        return inner if inner > 10 else 1, 0.0
    calls, rest = 0, event.self_cpu_time_total
    for child in event.cpu_children:
        calls_inside, rest_inside = operators_called(child)
        calls += calls_inside
        rest += rest_inside
    return calls, rest


def storages(value: object, *, whole: bool = False) -> dict[int, int]:
    """The storages of the tensors in ``value``, and how many bytes of each the tensors show.

    Instead, ``whole``: how many bytes each storage has, which one small view keeps in memory.
    """
    sizes: dict[int, int] = {}
    views: dict[int, dict[int, int]] = {}  # of each storage: where a view begins, and its bytes
    for tensor in tensors(value):
        with suppress(NotImplementedError, RuntimeError):  # a tensor of vmap has none
            storage, start = tensor.untyped_storage(), tensor.storage_offset()
            sizes[storage._cdata] = storage.nbytes()
            of_storage = views.setdefault(storage._cdata, {})
            of_storage[start] = max(tensor.nbytes, of_storage.get(start, 0))
    if whole:
        return sizes
    # The views of an expanded tensor would have more bytes than there are.
    return {key: min(sum(views[key].values()), size) for key, size in sizes.items()}


def tensors(value: object) -> list[Tensor]:
    """The tensors in ``value``, however deep in tuples, lists and dicts."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def described(value: object) -> str:
    """The shapes and types of the tensors in ``value``: ``(8, 3, 32, 32) float32``."""
    shapes = [("nested" if t.is_nested else tuple(t.shape), t.dtype) for t in tensors(value)]
    parts = [f"{shape} {str(dtype).removeprefix('torch.')}" for shape, dtype in shapes]
    if len(parts) > 3:
        parts[3:] = [f"and {len(parts) - 3} more"]
    return ", ".join(parts) or _kind(value)


def _kind(value: object) -> str:
    """What kind of thing ``value`` is: "the class SmallCNN", "a SmallCNN"."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a {type(value).__name__}"


def _summary(error: Exception) -> str:
    """The type and the first line of an error."""
    lines = str(error).splitlines() or ["no message"]
    return f"{type(error).__name__} ({lines[0].rstrip('.:')})"
