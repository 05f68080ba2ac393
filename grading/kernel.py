"""A student's kernel: runs cells, calls functions, and is replaced when it ends."""

import builtins
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import psutil
import zmq
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

from grading import inside, sandbox, values

LARGEST_REPLY = 64 * 2**20  # bytes; nothing larger is received
START_SECONDS = 60.0  # for a kernel and its imports


class KernelEnded(BaseException):
    """The kernel ended or was ended; says why. No ``except Exception`` in a check catches it."""


class StudentKernel:
    """Where a submission runs: a process, and after that one has ended a new one.

    A new one first runs again every cell that ended well in the old one. All that comes from a
    process was written by a student, and is taken as data.
    """

    def __init__(self, scratch: Path, limits: sandbox.Limits) -> None:
        self.scratch, self.limits = scratch, limits
        self.deadline = time.monotonic() + limits.submission
        self.ran: list[tuple[str, float]] = []
        self.process: subprocess.Popen | None = None
        self.reason = ""  # why the process was ended

    def run(self, source: str, seconds: float) -> tuple[str, str]:
        """Run a cell; return what it printed, cut, and its error or ""."""
        try:
            answer = self.ask("run", source, seconds=seconds)
        except ValueError as problem:
            return "", str(problem)
        self.ran.append((source, seconds))
        match answer:
            case {"printed": str(printed), "error": str(error)}:
                return cut(printed), error[:2000]
        return "", "what came back is not data"

    def ask(self, function: str, *arguments: object, seconds: float | None = None) -> object:
        """What a function of ``grading.inside`` answers, from JSON, in at most ``seconds``."""
        if self.process is None:
            self._start()
        return self._ask(seconds or self.limits.cell, function, *arguments)

    def _start(self) -> None:
        self.reason, self.folder = "", Path(tempfile.mkdtemp(dir=self.scratch))
        self.session = Session()
        path, connection = write_connection_file(
            str(self.folder / "c"),  # short names, because a socket's path has 107 characters
            transport="ipc",
            ip=str(self.folder / "s"),
            key=self.session.key,
        )
        if self.limits.sandbox and os.getuid() == 0:
            user = 1_900_000_000 + secrets.randbelow(100_000_000)  # owns nothing else
            for owned in (self.folder, path):
                os.chown(owned, user, user)
        words = [sys.executable, "-m", "ipykernel_launcher", "-f", path]
        words += ["--HistoryManager.hist_file=:memory:", "--InteractiveShell.colors=nocolor"]
        environment = sandbox.environment()
        if not self.limits.sandbox:
            environment["JPY_PARENT_PID"] = str(os.getpid())  # a kernel ends with its worker
        self.process = subprocess.Popen(
            sandbox.command(self.folder, self.limits, words),
            env=environment,
            cwd=self.folder,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        threading.Thread(target=self._watch, args=(self.process,), daemon=True).start()
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        for option, value in (
            *((zmq.MAXMSGSIZE, LARGEST_REPLY), (zmq.RCVHWM, 8), (zmq.LINGER, 0)),
            *((zmq.RECONNECT_IVL, 20), (zmq.IDENTITY, self.session.bsession)),
        ):
            self.socket.setsockopt(option, value)
        self.socket.connect(f"ipc://{connection['ip']}-{connection['shell_port']}")
        self._ask(START_SECONDS, "look", [])
        for source, seconds in self.ran:
            self._ask(seconds, "run", source)

    def _ask(self, seconds: float, function: str, *arguments: object) -> object:
        words = f"*__import__('json').loads({json.dumps(arguments)!r})"
        call = f"__import__('grading.inside', fromlist=['_']).{function}({words})"
        content = {"code": "", "silent": True, "store_history": False}
        content |= {"user_expressions": {"answer": call}, "allow_stdin": False}
        request = self.session.send(self.socket, "execute_request", content)
        reply = self._reply(request["header"]["msg_id"], seconds)
        try:
            answer = reply["user_expressions"]["answer"]
            if answer["status"] == "ok":
                return json.loads(answer["data"]["text/plain"])
            problem = f"{answer['ename']}: {answer['evalue']}"[:500]
        except (KeyError, TypeError, ValueError, RecursionError):
            problem = "what came back is not data"
        raise ValueError(problem)

    def _reply(self, request: str, seconds: float) -> dict:
        """The content of the message that replies to ``request``."""
        end = min(time.monotonic() + seconds, self.deadline)
        while time.monotonic() < end:
            if (status := self.process.poll()) is not None:
                reason = f"the kernel ended (exit status {status})"
                if (-status if status < 0 else status - 128) in (9, 24):
                    reason = "the kernel was killed: too much memory or CPU time"
                self.end()
                raise KernelEnded(self.reason or reason)
            if not self.socket.poll(100):
                continue
            with suppress(Exception):  # a forged message of whatever shape is ignored
                message = self.session.recv(self.socket, mode=0)[1]
                if message["parent_header"]["msg_id"] == request:
                    return dict(message["content"])
        self.end()
        if self.deadline <= end:
            raise KernelEnded(f"all cells together took more than {self.limits.submission:g} s")
        raise KernelEnded(f"took more than {seconds:g} s")

    def _watch(self, process: subprocess.Popen) -> None:
        """Kill the process when it takes too much memory or disk."""
        folder, most, reason = self.folder, self.limits.memory * 1e9, ""
        while process.poll() is None and not reason:
            time.sleep(0.2)
            # Counting what processes share only once takes longer, so it is done second.
            if memory(process, "memory_info") > most and memory(process, "memory_full_info") > most:
                reason = f"more than {self.limits.memory:g} GB of memory"
            try:
                sizes = [entry.lstat().st_size for entry in folder.rglob("*")]
                if len(sizes) > 1000 or sum(sizes) > sandbox.DISK:
                    reason = "too many or too large files"
            except RecursionError:
                reason = "too many folders"
            except OSError:  # a file was deleted meanwhile
                continue
        if reason:
            self.reason = reason
            kill(process)

    def extend(self, seconds: float) -> None:
        """Do not count time in which the kernel only waited for its turn."""
        self.deadline += seconds

    def end(self) -> None:
        """Kill the process and all that it started."""
        if self.process:
            kill(self.process)
            self.process = None
            self.context.destroy(linger=0)
            shutil.rmtree(self.folder, ignore_errors=True)


def kill(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def memory(process: subprocess.Popen, method: str) -> int:
    """The bytes that all processes below this one have together."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                taken = getattr(child, method)()
                total += getattr(taken, "pss", taken.rss)
    return total


def cut(text: str) -> str:
    return text if len(text) <= inside.SHOWN else text[: inside.SHOWN] + "\n… (cut here)\n"


class StudentFunction:
    """A student's function as a check sees it: arguments go to the kernel and results come as data.

    ``prepared`` is what ``helpers.exercises.faster`` looks for in order to time a call.
    """

    numbers = count(1)

    def __init__(self, kernel: StudentKernel, name: str) -> None:
        self.kernel, self.name = kernel, name
        self.asked: set[str] = set()

    def __call__(self, *arguments: object) -> object:
        packed = json.dumps(values.pack(list(arguments)))
        self.asked.add(packed)
        return self._result(self.kernel.ask("call", self.name, packed))

    def prepared(self, *arguments: object) -> Callable[[], object]:
        """A call that can be timed: its arguments are in the kernel already, but sealed.

        Arguments that were sent before go to a new kernel, which cannot remember the answer.
        """
        packed = json.dumps(values.pack(list(arguments)))
        if packed in self.asked:
            self.kernel.end()
            self.asked.clear()
        self.asked.add(packed)
        number, key = next(self.numbers), secrets.token_hex(16)
        self.kernel.ask("bring", number, b64encode(inside.sealed(packed.encode(), key)).decode())
        return lambda: self._result(self.kernel.ask("call_brought", self.name, number, key))

    def _result(self, answer: object) -> object:
        match answer:
            case {"gave": value}:
                return unpacked(self.name, value)
            case {"raised": str(kind), "why": str(text)}:
                error = getattr(builtins, kind, None)
                if isinstance(error, type) and issubclass(error, Exception):
                    with suppress(TypeError):  # some need more than a text
                        raise error(text)
                raise RuntimeError(f"{kind}: {text}")
        raise ValueError(f"{self.name}: what came back is not data")


def unpacked(name: str, value: object) -> object:
    try:
        return values.unpack(value)
    except Exception as error:  # of any kind, because a student's kernel wrote the value
        raise ValueError(f"{name}: what came back is not data ({error})"[:500]) from None
