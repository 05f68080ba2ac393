"""Functions that a check hands to a student's function: they stay in the grader's process.

A ``Work`` or a ``Device`` knows how long its calls take, and counts them. The student's kernel gets
a ``Stub`` instead, which asks for each call through a socket, and waits as long as it takes.
"""

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

from helpers import simulated

ADDRESS = "REMOTE_CALLS"  # the variable that names the socket
METHODS = {"call": "__call__", "synchronize": "synchronize"}
LONGEST = 64  # bytes of a request and of an answer


class Stub:
    """What the student's function gets: it can be called, or synchronised, and knows no time."""

    def __init__(self, remote: int, busy: bool) -> None:
        self._number, self._busy = remote, busy

    def __call__(self) -> int:
        return int(self._ask("call"))

    def synchronize(self) -> None:
        self._ask("synchronize")

    def _ask(self, method: str) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.environ[ADDRESS])
            connection.sendall(f"{self._number} {method}\n".encode())
            connection.setblocking(not self._busy)
            while True:  # a busy one keeps the processor at work until the answer comes
                with suppress(BlockingIOError):
                    return connection.recv(LONGEST).decode()


def described(value: object, objects: list[object]) -> dict | None:
    """What the kernel makes a stub of, if the value stays here; it is then one of ``objects``."""
    if not isinstance(value, simulated.Work | simulated.Device):
        return None
    stub = {"remote": len(objects), "busy": getattr(value, "busy", False)}
    if stub["busy"]:
        value.busy = False  # the stub keeps the student's processor at work, not the grader's
    objects.append(value)
    return stub


class Server:
    """Answers the calls of one kernel's stubs, one after the other."""

    def __init__(self, path: Path, objects: list[object]) -> None:
        self.objects = objects
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        path.chmod(0o777)  # the kernel may run as another user
        self.listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # closing alone wakes no thread that waits
        self.listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:  # it was closed
                return
            with suppress(Exception), connection:  # of any kind, because a student's code asks
                connection.settimeout(5)
                number, method = connection.recv(LONGEST).decode().split()
                answer = getattr(self.objects[int(number)], METHODS[method])()
                connection.sendall(str(answer).encode())
