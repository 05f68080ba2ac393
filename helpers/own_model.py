"""A reader's own model: load it, try it with its example, and take one call of it apart.

What cannot be measured is refused in one sentence: what came, what was expected, what to change.
"""

import dataclasses
import importlib
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

DEVICES = "cpu|cuda"  # on which the report knows how to measure


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
            f"MODEL must be package.module:function, but {came} came: give the function that "
            "returns your model and an example, as in MODEL=mine:build for build() in mine.py"
        )
    try:
        built = getattr(importlib.import_module(module), function)()
    except Exception as error:
        raise Refused(
            f"{name} must be a function that can be called without arguments, but "
            f"{_summary(error)} came: start in the folder that holds {module} (this is "
            f"{Path.cwd()}) or put that folder on PYTHONPATH, and call the function alone: that "
            "shows the line"
        ) from error
    if not isinstance(built, tuple) or len(built) != 2:
        raise Refused(
            f"{name} must return a model and an example, but {_kind(built)} came: end it with "
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
            f"model must be an nn.Module, but {_kind(model)} came: put what you call with the "
            "example into an nn.Module, and make one, as in model = MyModel()"
        )
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        raise Refused(
            "model must be one that can be watched inside, but a ScriptModule came: give the "
            "nn.Module from before torch.jit.script or torch.jit.trace"
        )
    _refuse_tensors([*model.parameters(), *model.buffers(), *tensors(example)])
    if hidden := [leaf for leaf in tree_leaves(example) if dataclasses.is_dataclass(leaf)]:
        raise Refused(
            f"example must hold its tensors in tuples, lists and dicts, where they can be counted, "
            f"but {_kind(hidden[0])} came: wrap the model in an nn.Module that takes tensors and "
            "makes the object itself"
        )
    args = example if isinstance(example, tuple) else (example,)
    args, kwargs = ((), example) if isinstance(example, dict) else (args, {})
    try:
        with torch.no_grad():
            model.eval()(*args, **kwargs)
    except Exception as error:
        raise Refused(
            f"model must take the example, but {described(example)} came, and {_summary(error)}: "
            "change the example (smaller, if memory ran out; moved by .to(device); "
            "a tuple is several arguments, a dict arguments by name) or the model's forward: "
            "calling it alone, under torch.no_grad() as here, shows the line"
        ) from error
    return args, kwargs


def _refuse_tensors(tensors: list[Tensor]) -> None:
    """Refuse tensors that cannot be measured: their device, their layout, their restrictions."""
    for tensor in tensors:
        if not re.match(DEVICES, str(tensor.device)):
            raise Refused(
                f"model and example must be on the CPU or on a CUDA GPU, but a tensor on "
                f'{tensor.device} came: move both, as in model.to("cpu") and example.to("cpu")'
            )
        if tensor.layout != torch.strided or tensor.is_nested or tensor.is_inference():
            layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
            kind = "inference" if tensor.is_inference() else layout
            raise Refused(
                f"model and example must hold ordinary tensors, but one of kind {kind} came: "
                "convert it with .to_dense(), or make it outside torch.inference_mode()"
            )


def by_module(
    model: nn.Module, args: tuple, kwargs: dict, read: Callable[[], float]
) -> pd.DataFrame:
    """One call of the model, a row for each call of a module in it, in the order of their ends.

    The index is the module's name, and from its second call on ``name (2)``. Columns: ``kind``, its
    class; ``gives``, what it returned; ``leaf``, whether it has no modules in it; ``bytes`` of its
    arguments, its result and its own parameters, without an embedding's table; ``own``, by how much
    ``read()`` rose while it ran, without the modules that it called itself. The bytes are those of
    shapes: a tensor that is passed twice, or returned as it came, is counted twice.
    """
    names = {module: name or "the model" for name, module in model.named_modules()}
    rows: dict[str, dict] = {}
    running, calls = [], Counter()

    def before(module: nn.Module, args: tuple) -> None:
        running.append([0, read()])  # the first is what rises in the modules that it calls

    def after(module: nn.Module, args: tuple, kwargs: dict, output: object) -> None:
        inside, start = running.pop()
        rose = read() - start
        if running:
            running[-1][0] += rose
        calls[module] += 1
        nth = f" ({calls[module]})" if calls[module] > 1 else ""
        touched = tensors([args, kwargs, output])
        if not isinstance(module, (nn.Embedding, nn.EmbeddingBag)):  # of these, some rows are read
            touched += module.parameters(recurse=False)
        rows[names[module] + nth] = {
            "kind": type(module).__name__,
            "gives": described(output),
            "leaf": not any(module.children()),
            "bytes": sum(tensor.nbytes for tensor in touched),
            "own": rose - inside,
        }

    hooks = [module.register_forward_pre_hook(before) for module in names]
    hooks += [module.register_forward_hook(after, with_kwargs=True) for module in names]
    try:
        model(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return pd.DataFrame.from_dict(rows, orient="index")


def home(model: nn.Module) -> tuple[str, torch.dtype]:
    """The kind of device that the model is on, and the type that most of its parameters have.

    "cpu" and float32 for a model without any.
    """
    numbers: Counter = Counter()
    for parameter in model.parameters():
        numbers[parameter.device.type, parameter.dtype] += parameter.numel()
    return numbers.most_common(1)[0][0] if numbers else ("cpu", torch.float32)


def tensors(value: object) -> list[Tensor]:
    """The tensors in ``value``, however deep in tuples, lists and dicts."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def described(value: object) -> str:
    """The shapes and types of the tensors in ``value``: ``(8, 3, 32, 32) float32``."""
    parts = [
        f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
        for tensor in tensors(value)
    ]
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
