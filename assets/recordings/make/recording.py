"""What the recorders share: tools, provenance, and a search for what is personal.

The recorders were run by hand. After another run, ``python assets/recordings/make/recording.py``
renews SHA256SUMS, and tests/tools/test_recordings.py examines every file.
"""

import datetime
import getpass
import hashlib
import json
import os
import platform
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from helpers.terminal import started

MAKE = Path(__file__).resolve().parent
RECORDINGS = MAKE.parent
ROOT = RECORDINGS.parent.parent
SCRIPTS = ROOT / "notebooks" / "scripts"


def tool(name: str) -> str | None:
    """The absolute path of nsys or ncu, from $NSYS, $NCU or the PATH."""
    path = shutil.which(os.environ.get(name.upper(), name))
    return path and str(Path(path).absolute())


def run(words: list[str | Path], folder: Path, **variables: str) -> tuple[int, str]:
    """Exit status and output of a command that sees almost nothing of our environment."""
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(folder)} | variables
    for name in {"LD_LIBRARY_PATH", "PYTHONPATH"} & os.environ.keys():
        variables[name] = os.environ[name]
    given = [f"{name}={value}" for name, value in variables.items()]
    with started(["env", "-i", *given, *words], folder, stderr=subprocess.STDOUT) as child:
        text = child.communicate(timeout=300)[0]
    return child.returncode, text


def version(path: str) -> str:
    """The version that a tool reports, for example 2023.4.4.54."""
    text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    return re.search(r"[Vv]ersion (\d+\.\d+\.\d+[.\d]*)", text)[1]


def provenance(recorder: str, device: str, command: str, **more: str) -> dict[str, str]:
    """Where a recording comes from; the lessons' captions name the ``device``."""
    return {
        "device": device,
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **more,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "recorder": f"assets/recordings/make/{Path(recorder).name}",
    }


def save(path: Path, content: dict[str, Any]) -> None:
    """Write JSON for people to read."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
    warn_of_personal_words(text, path.name)


def warn_of_personal_words(text: str, name: str) -> None:
    """Print what in a new recording may name this machine or its user.

    Only the person who records can judge this: a login may be a word of the course.
    """
    host, home = socket.gethostname(), str(Path.home())
    words = {getpass.getuser(), host, host.split(".")[0], home, str(ROOT)}
    words |= {value for value in os.environ.values() if len(value) > 11}
    for word in words:
        if len(word) > 2 and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            print(f"{name} contains {word!r}: does this say where it was recorded?")


def write_checksums() -> None:
    """Write SHA256SUMS, which ``sha256sum --check`` reads: a line for each recording."""
    sums, lines = RECORDINGS / "SHA256SUMS", []
    for path in sorted(set(RECORDINGS.rglob("*")) - set(MAKE.rglob("*")) - {sums}):
        if path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{digest}  {path.relative_to(RECORDINGS).as_posix()}\n")
    sums.write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_checksums()
