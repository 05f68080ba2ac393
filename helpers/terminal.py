"""A terminal for a notebook: one line in, what it printed out."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import psutil


def terminal(line: str, folder: Path, timeout: float = 110, **variables: str) -> str:
    """What a terminal that is open in ``folder`` prints for ``line``, errors too.

    ``python`` is the Python that runs this. ``variables`` are added to the environment. The
    folder's own path is left out of the answer. A kernel asks for colours; a pipe wants none.
    After ``timeout`` seconds, or when interrupted, it ends the program and all that it started.
    """
    command = shlex.split(line)
    if command[:1] == ["python"]:
        command[0] = sys.executable
    environment = {**os.environ, **variables}
    # As in an activated environment: a tool that looks for python finds this one first.
    search = [str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
    environment["PATH"] = os.pathsep.join(search)
    for name in {"FORCE_COLOR", "CLICOLOR_FORCE"} - set(variables):
        environment.pop(name, None)
    child = psutil.Popen(
        command, cwd=folder, env=environment, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        printed = child.communicate(timeout=timeout)[0]
    except BaseException:
        started = [*child.children(recursive=True), child]
        for process in started:
            process.kill()
        psutil.wait_procs(started, timeout=5)
        raise
    printed = printed.replace(f"{Path(folder).resolve()}{os.sep}", "")
    # kernprof quotes a path with spaces
    return printed.replace(shlex.quote(sys.executable), "python").replace(sys.executable, "python")
