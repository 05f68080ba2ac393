"""What runs in a student's kernel for the grader: it runs cells and calls functions, as data.

The student's code can change all of this, but then it changes only its own answers.
"""

import asyncio
import base64
import contextlib
import hashlib
import inspect
import io
import json
import os
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from IPython import get_ipython

from grading.remote import Stub
from tools.values import pack, unpack

SHOWN = 4_000  # characters of a cell's output that are stored
_sealed: dict[str, bytes] = {}  # the arguments of calls that will be timed


class Text(str):
    """A string that IPython shows as it is."""

    __repr__ = str.__str__


def run_with_await(cell: Coroutine) -> object:
    """Run a cell with ``await`` in a thread, because the kernel's own loop runs in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, cell).result()


def end_now() -> None:
    """End the kernel while a cell runs, so that it is known which one did it."""
    os._exit(0)


def run(source: str) -> Text:
    """Run a cell: {"printed": text, "error": the exception's name and text, or ""}."""
    get_ipython().loop_runner = run_with_await
    get_ipython().ask_exit = end_now  # what exit() and quit() call
    get_ipython().kernel.do_shutdown = lambda *_: end_now()
    with contextlib.redirect_stdout(io.StringIO()) as output:
        result = get_ipython().run_cell(source, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    error = f"{type(error).__name__}: {error}"[:2000] if error else ""
    return Text(json.dumps({"printed": output.getvalue()[: SHOWN + 1], "error": error}))


def fetch_values(names: list[str]) -> Text:
    """What each name is: {"value": data}, {"function": True}, {"refused": why}, or left out."""
    namespace, answers = get_ipython().user_ns, {}
    for name in namespace.keys() & set(names):
        if callable(namespace[name]):
            answers[name] = {"function": True}
            continue
        try:
            answers[name] = {"value": pack(namespace[name])}
        except Exception as error:
            answers[name] = {"refused": str(error)}
    return Text(json.dumps(answers))


def bring(number: str, sealed: str) -> Text:
    """Store the sealed arguments of a call that will be timed."""
    _sealed[number] = base64.b64decode(sealed)
    return Text("null")


def call(name: str, arguments: str) -> Text:
    """What the function gave or raised, and its arguments after the call if they changed."""
    try:
        parts = json.loads(arguments)
        given = [Stub(**part) if is_stub(part) else unpack(part) for part in parts]
        answer = {"gave": pack(get_ipython().user_ns[name](*given))}
        left = [None if isinstance(value, Stub) else pack(value) for value in given]
        if left != [None if is_stub(part) else part for part in parts]:
            answer["left"] = left
        return Text(json.dumps(answer))
    except BaseException as error:
        return Text(json.dumps({"raised": type(error).__name__, "why": str(error)[:2000]}))


def source(name: str) -> Text:
    """The text of a function, or null."""
    try:
        return Text(json.dumps(inspect.getsource(get_ipython().user_ns[name])))
    except (OSError, TypeError):
        return Text("null")


def is_stub(part: object) -> bool:
    return isinstance(part, dict) and "remote" in part


def call_brought(name: str, number: str, key: str) -> Text:
    """Call with stored arguments: only ``key`` opens them, so no code could read them before."""
    return call(name, sealed(_sealed.pop(number), key).decode())


def sealed(content: bytes, key: str) -> bytes:
    """``content`` that only ``key`` opens; sealing twice opens it."""
    stream = hashlib.shake_256(key.encode()).digest(len(content))
    return (np.frombuffer(content, np.uint8) ^ np.frombuffer(stream, np.uint8)).tobytes()
