"""What runs in a student's kernel for the grader: hand out values, call functions, as data.

The student's code can change all of this. It can change what it answers; nothing else.
"""

import base64
import hashlib
import json

import numpy as np
from IPython import get_ipython

from tools.values import pack, unpack

_brought: dict[int, bytes] = {}


class Text:
    """A string that IPython shows as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def look(names: list[str]) -> Text:
    """What each name is: {"value": data}, {"function": True}, {"refused": why}, or left out."""
    space, found = get_ipython().user_ns, {}
    for name in names:
        if name not in space:
            continue
        if callable(space[name]):
            found[name] = {"function": True}
            continue
        try:
            found[name] = {"value": pack(space[name])}
        except Exception as error:
            found[name] = {"refused": str(error)}
    return Text(json.dumps(found))


def bring(number: int, sealed: str) -> Text:
    """Keep the sealed arguments of a call that will be timed."""
    _brought[number] = base64.b64decode(sealed)
    return Text("null")


def call(name: str, arguments: str) -> Text:
    try:
        result = get_ipython().user_ns[name](*unpack(json.loads(arguments)))
        return Text(json.dumps({"gave": pack(result)}))
    except BaseException as error:
        return Text(json.dumps({"raised": type(error).__name__, "why": str(error)[:2000]}))


def call_brought(name: str, number: int, key: str) -> Text:
    """Call with the arguments that were brought: only ``key`` opens them, so none looked before."""
    return call(name, sealed(_brought.pop(number), key).decode())


def sealed(content: bytes, key: str) -> bytes:
    """``content`` that only ``key`` opens; sealing twice opens."""
    stream = hashlib.shake_256(key.encode()).digest(len(content))
    return (np.frombuffer(content, np.uint8) ^ np.frombuffer(stream, np.uint8)).tobytes()
