"""The work of operators while they run: multiply-accumulates (MACs), and bytes read and written.

The formulas are those of PyTorch's own registry, and those of ``FORMULAS`` that it lacks.
"""

import math
import re
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import numpy as np
import torch
from torch import Tensor
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.flop_counter import flop_registry


def _operators(names: str) -> set:
    """The operators of ``torch.ops.aten`` with these names, as far as this PyTorch has them."""
    found = (getattr(torch.ops.aten, name, None) for name in names.split())
    return {operator for operator in found if operator is not None}


# Of their first argument, these operators read some rows, set some rows, or read nothing.
LOOK_UPS = _operators(
    "embedding _embedding_bag _embedding_bag_forward_only index index_select gather take"
)
SETTERS = _operators(
    "index_put_ index_copy_ index_add_ index_fill_ scatter_ scatter_add_ scatter_reduce_"
)
FILLS = _operators(
    "copy_ fill_ zero_ uniform_ normal_ log_normal_ exponential_ bernoulli_ random_ zeros_like "
    "ones_like full_like rand_like randn_like randint_like new_zeros new_ones new_full"
)
FIRST_NOT_READ = LOOK_UPS | SETTERS | FILLS


def _product(left: Tensor, *_, out_val: Tensor, **__) -> int:
    """Each value of the output is a sum of as many products as ``left`` has columns."""
    return 2 * out_val.numel() * left.shape[-1]


def _sum_of_products(_, left: Tensor, right: Tensor, *__, out_val: Tensor, **___) -> int:
    """A product that is added to the first argument; ``addbmm`` sums a batch of them."""
    batch = left.shape[0] if right.dim() > out_val.dim() else 1
    return _product(left, out_val=out_val) * batch


def _grouped_product(left: Tensor, right: Tensor, *_, out_val: Tensor, **__) -> int:
    """Two matrices have the columns of the first, not those of the output, in groups."""
    groups = out_val.shape[0] if left.dim() == right.dim() == 2 else 1
    return _product(left, out_val=out_val) // groups


def _distances(points: Tensor, *others, out_val: Tensor, **__) -> int:
    """Euclidean ones are sums of squares; the others, with a p of their own, have no products."""
    p = next((float(other) for other in others if isinstance(other, int | float)), 2.0)
    return _product(points, out_val=out_val) if p == 2 else 0


def _trilinear(*factors_and_dimensions, out_val: Tensor, **__) -> int:
    """One MAC for each product of three factors that are expanded to one shape."""
    shapes = []
    for factor, dimensions in zip(
        factors_and_dimensions[:3], factors_and_dimensions[3:6], strict=True
    ):
        for dimension in dimensions:
            factor = factor.unsqueeze(dimension)
        shapes.append(factor.shape)
    return 2 * math.prod(torch.broadcast_shapes(*shapes))


def _conv_tbc(_, weight: Tensor, *__, out_val: Tensor, **___) -> int:
    return 2 * out_val.numel() * weight[..., 0].numel()


def _recurrent(x: Tensor, *weights, out_val: object, **__) -> int:
    """A whole recurrent layer: every row of ``x`` meets every weight once."""
    weights = weights[0] if isinstance(weights[0], list | tuple) else weights[:4]
    return 2 * math.prod(x.shape[:-1]) * sum(w.numel() for w in weights if w.dim() == 2)


def _convolution_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, *rest, out_val: object, **__
) -> int:
    """As many as the forward pass, for the input and for the weight; the registry's multiplies
    those of the weight by the number of groups."""
    (*_, transposed, _, _, mask) = rest
    return 2 * (x if transposed else gradient).numel() * weight[0].numel() * sum(mask[:2])


FORMULAS = dict(flop_registry)  # an operator's FLOP, two for each MAC, from its arguments
for formula, names in {
    _product: "mv dot vdot _int_mm _scaled_mm_v2 _weight_int8pack_mm _weight_int4pack_mm "
    "_weight_int4pack_mm_for_cpu _euclidean_dist mkldnn_linear",
    _sum_of_products: "addmv addmv_ addmm_ baddbmm_ addbmm addbmm_ _addmm_activation",
    _grouped_product: "_grouped_mm _scaled_grouped_mm _scaled_grouped_mm_v2",
    _distances: "_cdist_forward _pdist_forward",
    _trilinear: "_trilinear",
    _conv_tbc: "conv_tbc",
    _recurrent: "_cudnn_rnn miopen_rnn mkldnn_rnn_layer",
    _convolution_backward: "convolution_backward",
    flop_registry[torch.ops.aten._scaled_dot_product_flash_attention]: (
        "_scaled_dot_product_flash_attention_for_cpu "
        "_scaled_dot_product_fused_attention_overrideable"
    ),
    flop_registry[torch.ops.aten._scaled_dot_product_flash_attention_backward]: (
        "_scaled_dot_product_flash_attention_for_cpu_backward "
        "_scaled_dot_product_fused_attention_overrideable_backward"
    ),
}.items():
    FORMULAS |= dict.fromkeys(_operators(names), formula)

# Without a formula, these multiply; those of other libraries may, too, except for LIBRARIES.
MULTIPLIES = re.compile(
    r"(mm|mv|dot|matmul|linear|attention|rnn|lstm|gru|cholesky|solve|ormqr|geqrf|inverse)(_|$)"
    r"|conv\w*\dd|convolution|linalg_(?!cross)|mm_reduce|mm_4bit|dist_|layer_fwd|^_fft_"
)
CELLS = re.compile(r"_thnn_fused_|_flatten_|_check_")  # their products are operators of their own
LIBRARIES = re.compile(r"prims?\.|profiler\.|_?c10d\w*\.|torchvision\.(nms|roi_\w+)")


class Operators(TorchDispatchMode):
    """While it is entered, it counts the work of each operator that runs.

    ``macs`` counts a complex product as four, and that of a convolution as PyTorch computes it, as
    three. ``not_counted`` has the names of the operators that
    multiply, but have no formula, and how often they ran; ``others`` has the names of those that
    have no MACs by convention, such as ``relu``, but no views.

    ``bytes`` are those of the tensors that operators read and write. An argument counts once, and
    again if it is also written. A table of which some rows are looked up or set does not count.
    """

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.macs = self.bytes = 0
        self.not_counted: Counter = Counter()
        self.others: set[str] = set()

    def read(self) -> np.ndarray:
        """MACs, bytes, and the calls of operators that were not counted, up to now."""
        return np.array([self.macs, self.bytes, self.not_counted.total()])

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(hasattr(kind, "__tensor_flatten__") for kind in types):
            return NotImplemented  # a tensor made of others: their operators come here
        if isinstance(func, HigherOrderOperator):
            return self._run_functions(func, args, kwargs)
        if func.overloadpacket not in FORMULAS and func.namespace == "aten":
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        self._count_macs(func.overloadpacket, func, args, kwargs, result)
        self._count_bytes(func, args, kwargs, result)
        return result

    def _run_functions(self, func: HigherOrderOperator, args: tuple, kwargs: dict) -> object:
        """Run an operator such as ``cond``, and count what the functions that it is given call."""
        if func in FORMULAS:
            result = func(*args, **kwargs)
            self._count_macs(func, func, args, kwargs, result)
            self.bytes += sum(storages([args, kwargs]).values()) + sum(storages(result).values())
            return result
        ran = []

        def watched(function: Callable) -> Callable:
            def run(*args, **kwargs):
                ran.append(function)
                with self:
                    return function(*args, **kwargs)

            return run

        def is_function(value: object) -> bool:
            return callable(value) and not isinstance(value, type | Tensor)

        args, kwargs = tree_map_only(is_function, watched, (args, kwargs))
        result = func(*args, **kwargs)
        if not ran:
            self.not_counted[str(func)] += 1
        return result

    def _count_macs(self, operator, func, args: tuple, kwargs: dict, result: object) -> None:
        name = str(operator).removeprefix("aten.")
        factors = tensors([args, kwargs])
        is_dense = all(tensor.layout == torch.strided for tensor in factors)
        if operator in FORMULAS and is_dense:
            with suppress(Exception):  # a formula does not know all forms of an argument
                flop = FORMULAS[operator](*args, **kwargs, out_val=result)
                is_complex = any(tensor.is_complex() for tensor in factors)
                self.macs += flop // 2 * (4 if is_complex else 1)
                return
        if operator in FORMULAS or _multiplies(name, func):
            self.not_counted[name] += 1
        elif not func.is_view:
            self.others.add(name)

    def _count_bytes(self, func, args: tuple, kwargs: dict, result: object) -> None:
        operator = func.overloadpacket
        out = {argument.name for argument in func._schema.arguments if argument.is_out}
        inputs = [args[1:] if operator in FIRST_NOT_READ else args]
        read = storages([inputs, [kwargs[name] for name in kwargs.keys() - out]])
        written = storages([] if operator in SETTERS else result)
        # A view returns what it got, and changes nothing; an empty tensor is not written.
        is_view = (
            written and not func._schema.is_mutable and written.keys() <= storages([args]).keys()
        )
        if not is_view and "empty" not in str(func):
            self.bytes += sum(read.values()) + sum(written.values())


def _multiplies(name: str, func) -> bool:
    """Whether an operator without a formula multiplies, or may do so."""
    if func.namespace != "aten":
        return not LIBRARIES.match(name)
    tags = set(func.tags) & {torch.Tag.pointwise, getattr(torch.Tag, "reduction", None)}
    return (
        not func.is_view and not tags and not CELLS.search(name) and bool(MULTIPLIES.search(name))
    )


def tensors(value: object) -> list[Tensor]:
    """The tensors in ``value``, in order, however deep in containers and objects' attributes."""
    found, entered, waiting = [], set(), [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Tensor):
            found.append(item)
            continue
        if isinstance(item, Mapping):
            parts = item.values()
        elif isinstance(item, list | tuple | set | frozenset | deque):
            parts = item
        elif isinstance(item, _NO_OBJECTS) or not hasattr(item, "__dict__"):
            continue
        else:
            parts = vars(item).values()
        if id(item) not in entered:
            entered.add(id(item))
            waiting += reversed(list(parts))
    return found


_NO_OBJECTS = (type, FunctionType, MethodType, BuiltinFunctionType, ModuleType)


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
