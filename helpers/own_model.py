"""A reader's own model: load it, try it with its example, and take one call of it apart.

What cannot be measured is refused in one sentence: what came, what was expected, what to change.
"""

import importlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from IPython.display import HTML, display
from torch import Tensor, nn
from torch.autograd.profiler_util import FunctionEvent

from helpers import machine, units
from helpers.counting import Operators, tensors

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
    """``args`` and ``kwargs`` of the call ``model(*args, **kwargs)``, tried twice, in eval mode.

    An ``example`` that is a tuple holds several arguments, and a mapping (a dict, or what a
    tokenizer returns) holds them by name. All else, also a named tuple, is the only one.
    """
    if not isinstance(model, nn.Module):
        raise Refused(
            f"model must be an nn.Module, but got {_kind(model)}: put what you call with the "
            "example into an nn.Module, and make one, as in model = MyModel()"
        )
    _refuse_modules(model)
    args = example if type(example) is tuple else (example,)
    args, kwargs = ((), dict(example)) if isinstance(example, Mapping) else (args, {})
    given = tensors(example)
    _refuse_tensors([*model.parameters(), *model.buffers(), *given])
    sized = [tensor for tensor in given if tensor.dim()]
    if sized and not len(sized[0]):
        raise Refused(
            f"example must hold one sample or more, but got {described(example)}: give a batch of "
            "the size that you use"
        )
    printed = io.StringIO()
    try:
        with torch.no_grad(), redirect_stdout(printed):
            output = model.eval()(*args, **kwargs)
            shapes, copies = _shapes(model), [tensor.clone() for tensor in tensors(example)]
            model(*args, **kwargs)
    except Exception as error:
        raise Refused(
            f"model must take the example, but got {described(example)}, and {_summary(error)}: "
            "change the example (smaller, if memory ran out; moved by .to(device); "
            "a tuple is several arguments, a dict arguments by name) or the model's forward: "
            "calling it twice, under torch.no_grad() as here, shows the line"
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
    # What the first call prepares may stay, such as a table of positions, but not what the second
    # call changes.
    changed = "the example" if not _equal(copies, tensors(example)) else "the model's tensors"
    if changed == "the example" or shapes != _shapes(model):
        raise Refused(
            "each call must leave the example and the model as they were, because the report "
            f"repeats it, but a call changed {changed}: keep nothing from one call to the next, as "
            "a growing cache does, or let forward begin with a copy, as in copy.deepcopy(cache)"
        )
    return args, kwargs


def _shapes(model: nn.Module) -> list[torch.Size]:
    return [tensor.shape for tensor in tensors(model)]


def _equal(before: list[Tensor], after: list[Tensor]) -> bool:
    """Whether the tensors have the same shapes and values; nan is equal to nan."""
    if [tensor.shape for tensor in before] != [tensor.shape for tensor in after]:
        return False
    pairs = zip(before, after, strict=True)
    return all(bool(((a == b) | ((a != a) & (b != b))).all()) for a, b in pairs)


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
        if tensor.layout != torch.strided or tensor.is_nested:
            kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
            raise Refused(
                f"model and example must hold dense tensors, but got one of kind {kind}: convert "
                "it with .to_dense(), a nested one with .to_padded_tensor(0)"
            )


def work(model: nn.Module, args: tuple, kwargs: dict) -> tuple[pd.DataFrame, Operators]:
    """What one call of the model does: the rows of ``by_module``, and all of it.

    The rows have the columns ``MACs``, ``bytes`` and ``not counted`` instead of ``own``. If the
    call cannot be watched, these are 0, and the name of what is not counted says why.
    """
    operators = Operators()
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one operator for a layer has no formula
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"), operators:
            rows = by_module(model, args, kwargs, operators.read)
    except Exception as error:
        operators = Operators()
        operators.not_counted[f"any operator, because of {_summary(error)},"] = 1
        with torch.no_grad():
            rows = by_module(model, args, kwargs, operators.read)
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
    rows[["MACs", "bytes", "not counted"]] = np.stack(rows.pop("own").tolist())
    return rows, operators


def by_module(
    model: nn.Module,
    args: tuple,
    kwargs: dict,
    read: Callable[[], float | np.ndarray],
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


def shares(rows: pd.DataFrame, *, at_most: int) -> pd.DataFrame:
    """The slowest rows' shares of the time and MACs of all rows, in the order of the rows.

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
    return pd.DataFrame({"share of time": times, "share of MACs": macs})


def printed(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows`` as text: the column ``time`` in its unit, and counts with their commas."""
    texts = {"time": rows["time"].map(units.seconds)}
    texts |= {name: rows[name].map("{:,}".format) for name in rows.select_dtypes("integer")}
    return rows.assign(**texts).rename_axis(None)


def slowest_without_macs(layers: pd.DataFrame) -> tuple[str, float]:
    """Of the kinds whose modules are leaves without MACs, the slowest, and its share of the time.

    ``layers`` are rows of ``work`` with a column ``time``. The model itself and kinds with products
    that were not counted are none of these kinds; if there are none, it is ("none", 0.0).
    """
    layers = layers.assign(products=layers["MACs"] + layers["not counted"])
    kinds = layers.groupby("kind").agg({"leaf": "all", "products": "sum", "time": "sum"})
    times = kinds[kinds["leaf"] & (kinds["products"] == 0)]["time"].drop(ITSELF, errors="ignore")
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
