"""Run a program from a notebook, as a terminal would.

Every command that a lesson starts is started here, in a process group of its own. If it takes too
long, or if you interrupt the cell, the program ends together with its process group and children.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

SECONDS = 110  # the usual time limit; nbval allows a cell 120 seconds

Command = str | Sequence[str | Path]


def terminal(
    command: Command, folder: str | Path = ".", timeout: float = SECONDS, **variables: str
) -> str:
    """Return what a terminal that is open in ``folder`` prints for ``command``, errors included.

    ``command`` is a line or a list of words, whose ``python`` is the Python that runs this.
    ``variables`` are added to the environment. The path of ``folder`` itself is removed from the
    text. A program that fails does not raise an error here, because its message is in the text;
    see ``run`` for the opposite.

    Raises FileNotFoundError if there is no such program, and subprocess.TimeoutExpired if it takes
    longer than ``timeout`` seconds.
    """
    with started(command, folder, stderr=subprocess.STDOUT, **variables) as child:
        text = _communicate(child, timeout)[0].replace(f"{Path(folder).resolve()}{os.sep}", "")
    # kernprof quotes a path that contains spaces.
    return text.replace(shlex.quote(sys.executable), "python").replace(sys.executable, "python")


def run(
    command: Command, folder: str | Path = ".", timeout: float = SECONDS, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program whose result is needed, and return its output as ``stdout`` and ``stderr``.

    The arguments are those of ``terminal``. Raises subprocess.CalledProcessError if the program
    fails, with its last lines; FileNotFoundError and subprocess.TimeoutExpired as ``terminal``.
    """
    with started(command, folder, **variables) as child:
        output, errors = _communicate(child, timeout)
    if child.returncode:
        error = subprocess.CalledProcessError(child.returncode, child.args, output, errors)
        error.add_note(_last_lines(output, errors))
        raise error
    return subprocess.CompletedProcess(child.args, child.returncode, output, errors)


@contextlib.contextmanager
def started(
    command: Command, folder: str | Path = ".", stderr: int = subprocess.PIPE, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """Start a program, for example a server, that ends at the latest when the block ends.

    Its output is in the pipes ``stdout`` and ``stderr`` of the process that the block receives.
    """
    words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    if words[:1] == ["python"]:
        words[0] = sys.executable
    environment = _environment(variables)
    # Windows would search the PATH of this process.
    words[0] = shutil.which(words[0], path=environment["PATH"]) or words[0]
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    options |= {"encoding": "utf-8", "errors": "replace", "start_new_session": True}
    with subprocess.Popen(words, cwd=folder, env=environment, stderr=stderr, **options) as child:
        try:
            yield child
        except BaseException:
            _end(child)
            raise
        if child.poll() is None:
            _end(child)


def _environment(variables: dict[str, str]) -> dict[str, str]:
    """The environment of an activated terminal, in which a pipe gets no colours."""
    environment = {**os.environ, **variables}
    # A tool that looks for Python finds this one first.
    search = [str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
    environment["PATH"] = os.pathsep.join(search)
    for name in {"FORCE_COLOR", "CLICOLOR_FORCE"} - set(variables):  # set by Jupyter
        environment.pop(name, None)
    return environment


def _communicate(child: subprocess.Popen[str], timeout: float) -> tuple[str, str]:
    """The output and the errors of a program that ends within ``timeout`` seconds."""
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        error.add_note(_last_lines(error.output, error.stderr))
        raise
    return output, errors or ""


def _last_lines(*texts: str | bytes | None) -> str:
    """The last lines of a program's output, for the message of an error."""
    texts = [text.decode(errors="replace") if isinstance(text, bytes) else text for text in texts]
    lines = "\n".join(text for text in texts if text).splitlines()[-10:]
    return "\n".join(["The last lines of the program:", *lines]) if lines else "It printed nothing."


def _end(child: subprocess.Popen[str]) -> None:
    """End a program, its process group, and children that have left the group."""
    processes = []
    with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended before what it started
        program = psutil.Process(child.pid)
        processes = [*program.children(recursive=True), program]
    if hasattr(os, "killpg"):  # not on Windows
        # A group whose last process has just ended does not exist; macOS then forbids to end it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes[:-1], timeout=5)
