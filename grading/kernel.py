"""A student's kernel: runs cells, calls functions, and is replaced when it ends."""

import builtins
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psutil
from jupyter_client import BlockingKernelClient
from zmq import MAXMSGSIZE, RCVHWM, Context

from grading import kernel_side, remote, sandbox
from tools import notebooks, values

LONGEST_ADDRESS = 107  # bytes of a socket's path on Linux
IN_SCRATCH = "/tmp12345678/s-5"  # such a path, in the folder of all kernels
LARGEST_REPLY = 64 * 2**20  # bytes; nothing larger is received
START_SECONDS = 60.0  # for a kernel and its imports
NO_DATA = "what came back is not data"


def scratch_folder() -> tempfile.TemporaryDirectory:
    """A folder for all kernels, in TMPDIR, or in /tmp if TMPDIR is too long for their sockets."""
    folder = tempfile.TemporaryDirectory(prefix="grade-")
    surplus = len(os.fsencode(folder.name + IN_SCRATCH)) - LONGEST_ADDRESS
    if surplus > 0:
        folder.cleanup()
        most = len(os.fsencode(tempfile.gettempdir())) - surplus
        print(f"TMPDIR has more than {most} bytes, too many for a socket: /tmp is used instead")
        folder = tempfile.TemporaryDirectory(prefix="grade-", dir="/tmp")
    return folder


class KernelEnded(BaseException):
    """The kernel ended or was ended; says why. No ``except Exception`` in a check catches it."""


class StudentKernel:
    """Where a submission runs: a process, and after that one has ended a new one.

    A new one first runs again every cell that ran in the old one, but for a cell that ends it.
    """

    def __init__(self, scratch: Path, limits: sandbox.Limits) -> None:
        self.scratch, self.limits = scratch, limits
        self.deadline = time.monotonic() + limits.submission
        self.ran: list[tuple[str, float]] = []
        self.served: list[object] = []  # what stays here, and the kernel can call
        self.process: subprocess.Popen | None = None
        self.reason = ""  # why the process was ended

    def run(self, source: str, seconds: float) -> tuple[str, str]:
        """Run a cell; return what it printed, cut, and its error or "".

        Raises KernelEnded if the cell ends the kernel or takes too long; it will not run again.
        """
        try:
            answer = self.ask("run", source, seconds=seconds)
        except ValueError as problem:
            return "", str(problem)
        self.ran.append((source, seconds))
        match answer:
            case {"printed": str(printed), "error": str(error)}:
                return cut(printed), encodable(error[:2000])
        return "", NO_DATA

    def ask(self, function: str, *arguments: object, seconds: float | None = None) -> object:
        """What a function of ``grading.kernel_side`` answers, from JSON, in at most ``seconds``."""
        if self.process is None:
            self._start()
            self.ask("fetch_values", [], seconds=START_SECONDS)
            self._run_again()
        words = f"*__import__('json').loads({json.dumps(arguments)!r})"
        call = f"__import__('grading.kernel_side', fromlist=['_']).{function}({words})"
        asked = {"user_expressions": {"answer": call}, "allow_stdin": False}
        request = self.client.execute("", silent=True, **asked)
        match self._reply(request, seconds or self.limits.cell).get("user_expressions"):
            case {"answer": {"data": {"text/plain": str(text)}}}:
                with suppress(ValueError, RecursionError):
                    return json.loads(text)
            case {"answer": {"ename": str(name), "evalue": str(text)}}:
                raise ValueError(f"{name}: {text}"[:500])
        raise ValueError(NO_DATA)

    def _run_again(self) -> None:
        """In a new kernel, run what ran before; one that a cell ends is replaced by one without."""
        for number, (cell, seconds) in enumerate(self.ran):
            try:
                self.ask("run", cell, seconds=seconds)
                self.ask("fetch_values", [])  # no answer comes if the cell ends the kernel later
            except KernelEnded:
                if self.process or time.monotonic() > self.deadline:  # all took too long
                    raise
                del self.ran[number]
                self.ask("fetch_values", [], seconds=START_SECONDS)  # starts a new one
                return

    def _start(self) -> None:
        self.reason, self.folder = "", Path(tempfile.mkdtemp(dir=self.scratch))
        context = Context()
        context.setsockopt(MAXMSGSIZE, LARGEST_REPLY)
        context.setsockopt(RCVHWM, 8)  # messages that wait; a kernel may send without end
        path = str(self.folder / "c")  # short names, because a socket's path has 107 characters
        self.client = BlockingKernelClient(
            context=context, transport="ipc", ip=str(self.folder / "s"), connection_file=path
        )
        self.client.write_connection_file()
        self.server = remote.Server(self.folder / "w", self.served)
        if self.limits.sandbox and os.getuid() == 0:
            user = 1_900_000_000 + secrets.randbelow(100_000_000)  # owns nothing else
            for owned in (self.folder, path):
                os.chown(owned, user, user)
        words = [sys.executable, "-m", "ipykernel_launcher", "-f", path]
        words += [*notebooks.KERNEL_ARGUMENTS, "--HistoryManager.hist_file=:memory:"]
        words += ["--InteractiveShell.colors=nocolor"]
        # A kernel ends with its worker.
        parent = {} if self.limits.sandbox else {"JPY_PARENT_PID": str(os.getpid())}
        self.process = subprocess.Popen(
            sandbox.command(self.folder, self.limits, words),
            env=sandbox.environment() | parent | {remote.ADDRESS: str(self.folder / "w")},
            cwd=self.folder,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        threading.Thread(target=self._watch, args=(self.process,), daemon=True).start()

    def _reply(self, request: str, seconds: float) -> dict:
        """The content of the message that replies to ``request``."""
        end = min(time.monotonic() + seconds, self.deadline)
        while time.monotonic() < end:
            if (status := self.process.poll()) is not None:
                reason = f"the kernel ended (exit status {status})"
                match -status if status < 0 else status - 128:
                    case signal.SIGXCPU:
                        reason = "the kernel was killed: too much CPU time"
                    case signal.SIGKILL:
                        reason = "the kernel was killed: by its own code, or for too much memory"
                self.end()
                raise KernelEnded(self.reason or reason)
            with suppress(Exception):  # none came yet, or a forged one of whatever shape
                message = self.client.shell_channel.get_msg(timeout=0.1)
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

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the process and all that it started, so that the processors are free."""
        stopped: list[psutil.Process] = []
        try:
            while started := [child for child in self.children() if child not in stopped]:
                for child in started:
                    with suppress(psutil.Error):
                        child.suspend()
                stopped += started
            yield
        finally:
            for child in stopped:
                with suppress(psutil.Error):
                    child.resume()

    def children(self) -> list[psutil.Process]:
        """The process and all that it started."""
        if self.process is None:
            return []
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.process.pid)
            return [process, *process.children(recursive=True)]
        return []

    def end(self) -> None:
        """Kill the process and all that it started."""
        if self.process:
            kill(self.process)
            self.process = None
            self.server.close()
            self.client.context.destroy(linger=0)
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
    text = encodable(text)
    return (
        text if len(text) <= kernel_side.SHOWN else f"{text[: kernel_side.SHOWN]}\n… (cut here)\n"
    )


def encodable(text: str) -> str:
    """A text that a file can hold: half of a character, as in "\\ud800", becomes what was typed."""
    return text.encode(errors="backslashreplace").decode()


class StudentFunction:
    """A student's function as a check sees it: arguments go to the kernel and results come as data.

    Arguments of ``helpers.simulated`` stay here; the student's function calls them from afar.
    ``helpers.exercises`` looks for ``prepared`` and ``paused`` in order to time calls, and for
    ``source`` in order to run the function elsewhere, and sets ``in_place``.
    """

    def __init__(self, kernel: StudentKernel, name: str) -> None:
        self.kernel, self.name = kernel, name
        self.asked: set[str] = set()
        self.in_place = False

    def __call__(self, *arguments: object) -> object:
        parts = [remote.described(value, self.kernel.served) for value in arguments]
        parts = [part or values.pack(value) for part, value in zip(parts, arguments, strict=True)]
        packed = json.dumps(parts)
        self.asked.add(packed)
        answer = self.kernel.ask("call", self.name, packed)
        if self.in_place and isinstance(answer, dict) and "left" in answer:
            values.give_back(unpacked(self.name, answer["left"]), arguments)
        return self._result(answer)

    def source(self) -> str:
        """Its text; an OSError if there is none."""
        text = self.kernel.ask("source", self.name)
        if not isinstance(text, str):
            raise OSError(f"{self.name} has no text")
        return text

    def paused(self) -> AbstractContextManager[None]:
        """While it lasts, nothing of the student's runs."""
        return self.kernel.paused()

    def prepared(self, *arguments: object) -> Callable[[], object]:
        """A call that can be timed: its arguments are in the kernel already, but sealed.

        Arguments that were sent before go to a new kernel, which cannot remember the answer.
        """
        packed = json.dumps(values.pack(list(arguments)))
        if packed in self.asked:
            self.kernel.end()
            self.asked.clear()
        self.asked.add(packed)
        number, key = secrets.token_hex(), secrets.token_hex()
        self.kernel.ask(
            "bring", number, b64encode(kernel_side.sealed(packed.encode(), key)).decode()
        )
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
        raise ValueError(f"{self.name}: {NO_DATA}")


def unpacked(name: str, value: object) -> object:
    try:
        return values.unpack(value)
    except Exception as error:  # of any kind, because a student's kernel wrote the value
        raise ValueError(f"{name}: {NO_DATA} ({error})"[:500]) from None
