"""A JupyterHub with the settings of deploy/, whose users are students of this computer.

The hub runs in a mount and a process namespace. So its users and homes exist nowhere else, and all
that it started ends with it.
"""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
import requests
import websocket
from nbformat import NotebookNode

from tools import exercise_sets, notebooks

PASSWORD = "measure"
HASH = (  # of the password: openssl passwd -6 -salt course measure
    "$6$course$hLR2VDAI6DD/nt1vD8ZfSrZQW8DmKWBgkqB4tq6VD32F4NtwJ2p5hxpJhEQafN/"
    "2sdARqH1zM5ERkCN5wqHo4/"
)
FIRST = 61_000  # the first student's uid
QUOTA = 48  # MB that the last student's home holds, as a tmpfs of this size
COPY = "measure-pytorch/work"


def problem() -> str:
    """Why no hub can be started here, or "" if one can."""
    environment = notebooks.ROOT / ".venv"
    if sys.platform != "linux" or os.geteuid():
        return "a hub with several users needs Linux, and root"
    parts = ("bin/jupyterhub", "node_modules/.bin/configurable-http-proxy")
    if not (shutil.which("node") and all((environment / part).exists() for part in parts)):
        return "JupyterHub or its proxy is missing: make .venv/hub, which needs Node and npm"
    if not exercise_sets.SOLUTIONS.exists():
        return "this copy of the course has no solutions to hand in"
    line = ["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt"]
    if subprocess.run(line, capture_output=True).returncode:
        return "this container may not mount, so it cannot hide the hub's users"
    return ""


class Hub:
    """A running hub with students of these names; its folder holds ``homes``, its ``log``, and
    what it stores."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.names = names
        self.folder, self.homes, self.log = folder, folder / "homes", folder / "log"
        ports = free_ports(3)
        self.address = f"http://127.0.0.1:{ports[0]}"
        config = folder / "config.py"
        config.write_text(f"""
load_subconfig({str(notebooks.ROOT / "deploy" / "jupyterhub_config.py")!r})
c.JupyterHub.bind_url = {self.address!r}
c.JupyterHub.hub_port = {ports[1]}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{ports[2]}"
c.Spawner.poll_interval = 1
c.Spawner.environment["TMPDIR"] = {str(folder / "tmp")!r}
""")
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o1777)
        script = folder / "script"
        hub = shlex.join([f"{notebooks.ROOT}/.venv/bin/jupyterhub", "--config", str(config)])
        script.write_text("\n".join(["set -e", *self.students(), *readable(folder), f"exec {hub}"]))
        line = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork"]
        line += ["--kill-child", "--mount-proc", "bash", str(script)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(line, cwd=folder, stdout=log, stderr=log)

    def students(self) -> Iterator[str]:
        """Lines that make the students, with a home for each; the last one's is small."""
        users = {name: FIRST + number for number, name in enumerate(self.names)}
        added = {
            "passwd": [f"{n}:x:{i}:{i}::{self.homes / n}:/bin/bash" for n, i in users.items()],
            "shadow": [f"{name}:{HASH}:20000:0:99999:7:::" for name in users],
            "group": [f"{name}:x:{i}:" for name, i in users.items()],
        }
        added["group"].append(f"students:x:{FIRST - 1}:{','.join(users)}")
        for name, entries in added.items():
            copy, original = self.folder / name, Path("/etc", name)
            shutil.copy(original, copy)
            copy.write_text(original.read_text() + "\n".join([*entries, ""]))
            yield f"mount --bind {copy} {original}"
        for name, user in users.items():
            home = self.homes / name
            home.mkdir(parents=True)
            if name == self.names[-1]:
                yield f"mount -t tmpfs -o size={QUOTA}m none {home}"
            yield f"chown {user}:{user} {home} && chmod 700 {home}"

    def answers(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"the hub ended:\n{self.log.read_text()}")
        try:
            return requests.get(f"{self.address}/hub/api", timeout=5).ok
        except requests.ConnectionError:
            return False

    def run(self, *line: str, user: str = "root") -> str:
        """What a command prints that a user of the hub calls in the home."""
        inside = ["nsenter", "--target", str(self.process.pid), "--mount", "runuser", "-u", user]
        where = notebooks.ROOT if user == "root" else self.homes / user
        environment = {**os.environ, "HOME": str(where)}
        if user == "root":  # nsenter leaves the course's folder
            environment["PYTHONPATH"] = str(notebooks.ROOT)
        done = subprocess.run(
            [*inside, "--", *line], cwd="/", env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


class Student:
    """A student who has logged in."""

    def __init__(self, hub: Hub, name: str) -> None:
        self.hub, self.name = hub, name
        login = {"username": name, "password": PASSWORD}
        with requests.Session() as browser:
            page = f"{hub.address}/hub/login"
            browser.get(page, timeout=300)
            form = {**login, "_xsrf": browser.cookies["_xsrf"]}
            assert (
                browser.post(page, data=form, allow_redirects=False, timeout=300).status_code == 302
            )
        tokens = f"hub/api/users/{name}/tokens"
        self.token = self.call("POST", tokens, json={"auth": login})["token"]

    def call(self, method: str, path: str, **options: object) -> dict:
        token = getattr(self, "token", "")
        headers = {"Authorization": f"token {token}"} if token else {}
        answer = requests.request(
            method, f"{self.hub.address}/{path}", headers=headers, timeout=300, **options
        )
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else {}

    def server(self) -> dict:
        return self.call("GET", f"hub/api/users/{self.name}")["servers"].get("", {})

    def start(self, seconds: float = 90) -> None:
        self.call("POST", f"hub/api/users/{self.name}/server")
        wait_for(lambda: self.server().get("ready"), f"{self.name}'s server", seconds)

    def stop(self) -> None:
        self.call("DELETE", f"hub/api/users/{self.name}/server")
        wait_for(lambda: not self.server(), f"the end of {self.name}'s server")

    def open(self, path: str) -> NotebookNode:
        model = self.call("GET", f"user/{self.name}/api/contents/{COPY}/{path}")
        return nbformat.from_dict(model["content"])

    def save(self, path: str, notebook: NotebookNode) -> None:
        model = {"type": "notebook", "format": "json", "content": notebook}
        self.call("PUT", f"user/{self.name}/api/contents/{COPY}/{path}", json=model)

    def write(self, path: str, sources: dict[str, str]) -> None:
        """Write other sources into cells, by their ids, and save the notebook."""
        notebook = self.open(path)
        for cell in notebook.cells:
            cell.source = sources.get(cell.id, cell.source)
        self.save(path, notebook)

    def run(self, path: str) -> list[str]:
        """Run a notebook's cells as JupyterLab does; return the errors."""
        return [
            f"{cell}: {message['content']['ename']}: {message['content']['evalue']}"
            for cell, message in self.messages(path)
            if message["msg_type"] == "error"
        ]

    def messages(self, path: str) -> Iterator[tuple[str, dict]]:
        """Run a notebook's cells as JupyterLab does: the id of a cell and what it answers."""
        cells = [cell for cell in self.open(path).cells if cell.cell_type == "code"]
        model = {"name": "python3", "path": f"{COPY}/{path}"}
        kernel = self.call("POST", f"user/{self.name}/api/kernels", json=model)["id"]
        address = self.hub.address.replace("http", "ws", 1)
        channels = websocket.create_connection(
            f"{address}/user/{self.name}/api/kernels/{kernel}/channels",
            header=[f"Authorization: token {self.token}"],
            timeout=notebooks.CELL_TIMEOUT,
        )
        for cell in cells:
            for message in execute(channels, cell):
                yield cell.id, message
        channels.close()
        self.call("DELETE", f"user/{self.name}/api/kernels/{kernel}")


def execute(channels: websocket.WebSocket, cell: NotebookNode) -> Iterator[dict]:
    """Run one cell in a kernel, and yield the messages that answer it."""
    header = {"msg_id": cell.id, "msg_type": "execute_request", "version": "5.3"}
    header |= {"session": "test", "username": ""}
    content = {"code": cell.source, "silent": False, "stop_on_error": False}
    parts = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    channels.send(json.dumps({**parts, "channel": "shell"}))
    state = ""
    while state != "idle":
        message = json.loads(channels.recv())
        if message["parent_header"].get("msg_id") == cell.id:
            state = message["content"].get("execution_state")
            yield message


def readable(folder: Path) -> Iterator[str]:
    """Lines that let students reach the course and its Python, if a parent folder is closed."""
    python = (notebooks.ROOT / ".venv/bin/python").resolve()
    needed = {notebooks.ROOT, (notebooks.ROOT / ".venv").resolve(), python.parent.parent}
    closed = {
        path: next((part for part in path.parents[::-1] if not part.stat().st_mode & 0o001), None)
        for path in needed
    }
    paths = [path for path in needed if closed[path]]
    for number, path in enumerate(paths):
        yield f"mkdir {folder}/{number} && mount --bind {path} {folder}/{number}"
    for parent in {closed[path] for path in paths}:
        yield f"mount -t tmpfs -o mode=755 none {parent}"
    for number, path in enumerate(paths):
        yield f"mkdir -p {path} && mount --bind {folder}/{number} {path}"


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not come in {seconds} s"
        time.sleep(0.2)


@contextmanager
def running(names: Sequence[str]) -> Iterator[Hub]:
    """A hub for students of these names, the last of whom has a small home."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="hub-"))
    folder.chmod(0o711)
    hub = Hub(folder, names)
    try:
        wait_for(hub.answers, "the hub")
        yield hub
    finally:
        hub.process.kill()
        hub.process.wait()
        shutil.rmtree(folder)
