"""A student's values as data: JSON, with tensors and arrays as raw bytes; never as pickles."""

import base64
import math
from dataclasses import fields, is_dataclass
from numbers import Integral, Real

import numpy as np
import torch

from helpers import exercises

MOST = 16_000_000  # bytes of one tensor, or characters of one string
DTYPES = {
    str(kind).removeprefix("torch."): kind
    for kind in (
        *(torch.float16, torch.float32, torch.float64, torch.bool),
        *(torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    )
}


def pack(value: object) -> object:
    """``value`` as JSON can hold it; a ValueError says what cannot be sent."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, str):
        if len(value) > MOST:
            raise ValueError(f"a string of {len(value):,} characters came; at most {MOST:,} can")
        return value
    if isinstance(value, torch.Tensor | np.ndarray):
        return _packed_tensor(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if value is ...:
        return {"not answered": True}
    if isinstance(value, list | tuple):
        return [pack(part) for part in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str | Integral) for key in value):
            raise ValueError("a dictionary came whose keys are neither strings nor whole numbers")
        return {"dict": [[pack(key), pack(part)] for key, part in value.items()]}
    if is_dataclass(value) and vars(exercises).get(type(value).__name__) is type(value):
        parts = {field.name: pack(getattr(value, field.name)) for field in fields(value)}
        return {"given": type(value).__name__, "fields": parts}
    raise ValueError(f"a {type(value).__name__} came; expected numbers, strings, lists, "
                     "dictionaries or tensors")  # fmt: skip


def unpack(value: object) -> object:
    """What ``pack`` was given; a ValueError for anything that ``pack`` does not write."""
    if isinstance(value, list):
        return [unpack(part) for part in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"float": str(text)}:
            return float(text)
        case {"not answered": True}:
            return ...
        case {"dict": list(pairs)}:
            return {unpack(key): unpack(part) for key, part in pairs}
        case {"given": str(name), "fields": dict(parts)} if is_dataclass(vars(exercises).get(name)):
            return vars(exercises)[name](**{key: unpack(part) for key, part in parts.items()})
        case {"tensor": str(raw), "shape": list(shape), "dtype": str(dtype)} if dtype in DTYPES:
            content = bytearray(base64.b64decode(raw, validate=True))
            if not content:
                return torch.empty(shape, dtype=DTYPES[dtype])
            return torch.frombuffer(content, dtype=DTYPES[dtype]).reshape(shape)
    raise ValueError("something came that is not data")


def _packed_tensor(value: torch.Tensor | np.ndarray) -> object:
    try:
        # A copy in C's order, because torch takes neither negative strides nor locked memory.
        is_tensor = isinstance(value, torch.Tensor)
        tensor = value if is_tensor else torch.from_numpy(np.array(value, order="C"))
    except TypeError:
        raise ValueError(f"an array of {value.dtype} came; expected numbers") from None
    tensor = tensor.detach().cpu().contiguous()
    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    dtype, size = str(tensor.dtype).removeprefix("torch."), tensor.numel() * tensor.element_size()
    if dtype not in DTYPES:
        raise ValueError(f"a tensor of {dtype} came; expected one of {', '.join(DTYPES)}")
    if size > MOST:
        raise ValueError(f"a tensor of {size:,} bytes came; at most {MOST:,} can")
    raw = base64.b64encode(tensor.numpy().tobytes()).decode()
    return {"tensor": raw, "shape": list(tensor.shape), "dtype": dtype}
