"""A student's kernel, shut in by bubblewrap, spoken to over sockets in a folder of its own."""

import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import zmq
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

from tools import notebooks

BIG = 64 * 2**20  # the bytes of one reply; nothing larger is received
SHOWN = 4_000  # the characters of a cell's output that are kept
DISK = 256 * 2**20  # the bytes of a file, and of a kernel's temporary folder
TASKS = 256  # its processes and threads
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/sys/devices/system"),
    *("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime"),
)
INSTALL = (
    "bubblewrap, which shuts a student's code in, is not installed: apt-get install bubblewrap, or "
    "dnf install bubblewrap; it is for Linux only. --no-sandbox grades without it: only for code "
    "that you trust."
)


class Gone(BaseException):
    """The kernel ended or was ended; says why. No ``except Exception`` of a check takes it."""


@dataclass(frozen=True)
class Limits:
    cell: float = 60.0  # seconds
    submission: float = 300.0
    memory: float = 4.0  # GB, of all processes together
    sandbox: bool = True
    see: tuple[str, ...] = ()  # more folders that are to be seen, read-only
    hide: tuple[str, ...] = ()  # what must not be seen, even inside of those that are


def trouble(limits: Limits) -> str:
    """Why no sandbox can be made here, in a sentence; "" if one can."""
    if not limits.sandbox:
        return ""
    if shutil.which("bwrap") is None or shutil.which("prlimit") is None:
        return INSTALL
    with tempfile.TemporaryDirectory() as folder:
        line = shut_in(Path(folder), limits, ["true"])
        tried = subprocess.run(line, capture_output=True, text=True, env=environment())
    if tried.returncode == 0:
        return ""
    said = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
    return (
        f"bubblewrap cannot make a sandbox here ({said}): this system or container forbids user "
        "namespaces. Ask for kernel.unprivileged_userns_clone=1 (on Ubuntu also "
        "kernel.apparmor_restrict_unprivileged_userns=0), or grade with --no-sandbox code that "
        "you trust."
    )


def environment() -> dict[str, str]:
    """All that the kernel sees of the environment: nothing of the grader's own."""
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {
        **notebooks.KERNEL_ENVIRONMENT,
        **dict.fromkeys(threads, "1"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "PYTHONPATH": str(notebooks.ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "USER": "student",
    }


def shut_in(folder: Path, limits: Limits, words: list[str]) -> list[str]:
    """The command that runs ``words`` in a sandbox, where ``folder`` can be written to."""
    if not limits.sandbox:
        return words
    root, owner = notebooks.ROOT, folder.stat().st_uid if os.getuid() == 0 else None
    course = [root / name for name in ("helpers", "tools", "assets", "notebooks/scripts")]
    seen = [*SYSTEM, *limits.see, *course, sys.base_prefix, sys.prefix]
    seen = [Path(path).absolute() for path in seen if Path(path).exists()]
    # As root, bubblewrap needs no user namespace, and its processes get the folder's owner,
    # because Linux never limits the processes of root.
    spaces = [f"--unshare-{kind}" for kind in ("pid", "net", "ipc", "uts", "cgroup-try")]
    line = ["bwrap", *(["--unshare-all"] if owner is None else spaces)]
    line += ["--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
    size = ["--size", str(DISK)] if "--size" in _help() else []
    for place in ("/tmp", "/dev/shm"):
        line += ["--perms", "1777", *size, "--tmpfs", place]
    above = {parent for path in (*seen, folder) for parent in path.parents}
    for parent in sorted(above - {Path("/"), Path("/tmp")}):
        if not any(parent == path or path in parent.parents for path in seen):
            line += ["--perms", "0755", "--dir", str(parent)]
    for path in seen:
        line += ["--ro-bind", str(path), str(path)]
    for hidden in map(Path, (*limits.hide, root / ".git", root / "notebooks" / "solutions")):
        if hidden.exists() and any(path in hidden.resolve().parents for path in seen):
            line += ["--tmpfs", str(hidden.resolve())]
    line += ["--bind", str(folder), str(folder), "--chdir", "/tmp", "--remount-ro", "/"]
    if owner is not None:
        line += ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups"]
        line += ["--bounding-set=-all", "--no-new-privs"]
    release = tuple(int("".join(filter(str.isdigit, n))) for n in platform.release().split(".")[:2])
    others = 0 if owner is not None or release >= (5, 14) else 8192  # an old kernel counts them
    memory = int(limits.memory * 1e9) + 4 * 10**9  # of addresses; torch reserves many
    line += ["prlimit", f"--as={memory}", f"--nproc={TASKS + others}", f"--fsize={DISK}"]
    return [*line, f"--cpu={int(limits.submission) + 30}", "--core=0", *words]


def _help() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True).stdout


class Kernel:
    """One kernel. What comes from it was written by a student, and is taken as data."""

    def __init__(self, scratch: Path, limits: Limits, deadline: float) -> None:
        self.limits, self.deadline, self.why = limits, deadline, ""
        self.folder = Path(tempfile.mkdtemp(dir=scratch))
        self.session = Session()
        path, self.connection = write_connection_file(
            str(self.folder / "c"),  # all short: a socket's path has 107 characters at most
            transport="ipc",
            ip=str(self.folder / "s"),
            key=self.session.key,
        )
        if limits.sandbox and os.getuid() == 0:
            nobody = 1_900_000_000 + secrets.randbelow(100_000_000)  # who has nothing else
            for mine in (self.folder, path):
                os.chown(mine, nobody, nobody)
        words = [sys.executable, "-m", "ipykernel_launcher", "-f", path]
        words += ["--HistoryManager.hist_file=:memory:", "--InteractiveShell.colors=nocolor"]
        here = environment()
        if not limits.sandbox:
            here |= {"JPY_PARENT_PID": str(os.getpid())}  # a kernel ends with its worker
        self.process = subprocess.Popen(
            shut_in(self.folder, limits, words),
            env=here,
            cwd=self.folder,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.context = zmq.Context()
        self.shell = self._connect(zmq.DEALER, "shell_port", BIG, 4)
        self.iopub = self._connect(zmq.SUB, "iopub_port", BIG // 8, 8)
        self.iopub.subscribe(b"")
        self.stopped = threading.Event()
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.watch.start()
        self._request("kernel_info_request", {}, 60, "the kernel did not start")

    def _connect(self, kind: int, port: str, largest: int, most: int) -> zmq.Socket:
        socket = self.context.socket(kind)
        for option, value in [
            *((zmq.MAXMSGSIZE, largest), (zmq.RCVHWM, most)),
            *((zmq.LINGER, 0), (zmq.RECONNECT_IVL, 20), (zmq.IDENTITY, self.session.bsession)),
        ]:
            socket.setsockopt(option, value)
        socket.connect(f"ipc://{self.connection['ip']}-{self.connection[port]}")
        return socket

    def run(self, source: str, seconds: float) -> tuple[str, tuple[str, str] | None]:
        """What a cell printed, cut, and the (name, text) of its error."""
        content = {"code": source, "silent": False, "store_history": True}
        content |= {"user_expressions": {}, "allow_stdin": False, "stop_on_error": False}
        printed: list[str] = []
        reply = self._request("execute_request", content, seconds, "", printed)
        text = "".join(printed)
        if len(text) > SHOWN:
            text = text[:SHOWN] + "\n… (cut here)\n"
        if reply.get("status") == "ok":
            return text, None
        return text, (str(reply.get("ename"))[:100], str(reply.get("evalue"))[:2000])

    def ask(self, what: str, *arguments: object) -> object:
        """What a function of tools.grading.inside answers, out of JSON."""
        words = f"*__import__('json').loads({json.dumps(arguments)!r})"
        asked = f"__import__('tools.grading.inside', fromlist=['_']).{what}({words})"
        content = {"code": "", "silent": True, "store_history": False}
        content |= {"user_expressions": {"it": asked}, "allow_stdin": False}
        reply = self._request("execute_request", content, self.limits.cell, "")
        try:
            answer = reply["user_expressions"]["it"]
            if answer["status"] == "ok":
                return json.loads(answer["data"]["text/plain"])
            said = f"{answer['ename']}: {answer['evalue']}"[:500]
        except (KeyError, TypeError, ValueError, RecursionError):
            said = "what came back is not data"
        raise ValueError(said)

    def _request(
        self, kind: str, content: dict, seconds: float, what: str, printed: list | None = None
    ) -> dict:
        end = min(time.monotonic() + seconds, self.deadline)
        sent = self.session.send(self.shell, kind, content)["header"]["msg_id"]
        poller, reply = zmq.Poller(), None
        poller.register(self.shell, zmq.POLLIN)
        if printed is not None:
            poller.register(self.iopub, zmq.POLLIN)
        while True:
            if reply is None and self.process.poll() is not None:
                raise self._gone()
            if time.monotonic() >= end:
                if reply is not None:
                    return reply
                over = f"took more than {seconds:g} s"
                if self.deadline <= end:
                    over = f"all cells together took more than {self.limits.submission:g} s"
                self.end(what or over)
                raise self._gone()
            for socket, _ in poller.poll(100):
                try:
                    message = self.session.recv(socket, mode=0)[1]
                    if message["parent_header"].get("msg_id") != sent:
                        continue
                    body, type_ = dict(message["content"]), message["header"]["msg_type"]
                    if socket is self.shell:
                        reply = body
                        if printed is None:
                            return reply
                        end = min(end, time.monotonic() + 0.5)  # for what it printed last
                    elif body.get("execution_state") == "idle" and reply is not None:
                        return reply
                    elif sum(map(len, printed)) <= SHOWN:
                        if type_ == "stream":
                            printed.append(str(body["text"])[: SHOWN + 1])
                        elif type_ in ("execute_result", "display_data"):
                            printed.append(str(body["data"]["text/plain"])[: SHOWN + 1] + "\n")
                except Exception:  # a forged message, of whatever shape, is none
                    continue

    def _gone(self) -> Gone:
        status = self.process.wait()
        self.end("")
        if not self.why:
            signal = -status if status < 0 else status - 128
            self.why = f"the kernel ended (exit status {status})"
            if signal in (9, 24):
                self.why = "the kernel was killed: too much memory or CPU time"
        return Gone(self.why)

    def _watch(self) -> None:
        """End the kernel that takes too much memory or disk."""
        while not self.stopped.wait(0.2):
            most = self.limits.memory * 1e9
            # what processes share counts once, but that takes longer to find out
            if self._taken("memory_info") > most and self._taken("memory_full_info") > most:
                self.end(f"more than {self.limits.memory:g} GB of memory")
            try:
                found = [entry.lstat().st_size for entry in self.folder.rglob("*")]
                if len(found) > 1000 or sum(found) > DISK:
                    self.end("too many or too large files")
            except RecursionError:
                self.end("too many folders")
            except OSError:  # one went while we looked
                continue

    def _taken(self, how: str) -> int:
        taken = 0
        for process in self.processes():
            with suppress(psutil.Error):
                found = getattr(process, how)()
                taken += getattr(found, "pss", found.rss)
        return taken

    def processes(self) -> list[psutil.Process]:
        with suppress(psutil.Error):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def pause(self, go_on: bool = False) -> None:
        """Stop all that the student left running, while another's speed is measured."""
        for process in self.processes():
            with suppress(psutil.Error):
                process.resume() if go_on else process.suspend()

    def end(self, why: str) -> None:
        """Kill it and all that it started; what it was killed for is said once."""
        self.why = self.why or why
        self.stopped.set()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait()
        if threading.current_thread() is not self.watch:
            self.context.destroy(linger=0)
            shutil.rmtree(self.folder, ignore_errors=True)
