"""A student's values as data: JSON, with tensors and arrays as raw bytes; never as pickles."""

import base64
import math
from numbers import Integral, Real

import numpy as np
import torch

MOST = 16_000_000  # bytes of one tensor, or characters of one string
NUMBERS = "biuf"  # numpy's kinds of dtype that are sent: bool, integers and floating point


def pack(value: object) -> object:
    """``value`` as JSON can hold it; a ValueError says what cannot be sent."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, str):
        if len(value) > MOST:
            raise ValueError(
                f"got a string of {len(value):,} characters; at most {MOST:,} are allowed"
            )
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
            raise ValueError("got a dictionary whose keys are neither strings nor whole numbers")
        return {"dict": [[pack(key), pack(part)] for key, part in value.items()]}
    raise ValueError(f"got a {type(value).__name__}; expected numbers, strings, lists, "
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
        case {"tensor": str(raw), "shape": list(shape), "dtype": str(name)}:
            dtype, content = np.dtype(name), base64.b64decode(raw, validate=True)
            if dtype.kind in NUMBERS:
                return torch.from_numpy(np.ndarray(shape, dtype, content).copy())
    raise ValueError("got something that is not data")


def give_back(left: object, arguments: tuple) -> None:
    """Change the tensors and lists of a call as the student's function changed its copies."""
    for after, argument in zip(left if isinstance(left, list) else [], arguments, strict=False):
        if isinstance(argument, torch.Tensor) and isinstance(after, torch.Tensor):
            if after.shape == argument.shape:
                argument.data.copy_(after)
        elif isinstance(argument, list) and isinstance(after, list):
            argument[:] = after


def _packed_tensor(value: torch.Tensor | np.ndarray) -> object:
    array = value
    if isinstance(value, torch.Tensor):
        tensor = value.detach().cpu()
        array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    if array.dtype.kind not in NUMBERS:
        raise ValueError(f"got a tensor of {array.dtype}; expected numbers")
    if array.nbytes > MOST:
        raise ValueError(f"got a tensor of {array.nbytes:,} bytes; at most {MOST:,} are allowed")
    raw = base64.b64encode(array.tobytes()).decode()
    return {"tensor": raw, "shape": list(array.shape), "dtype": array.dtype.str}
