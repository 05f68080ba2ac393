"""Run a profiler that may be missing, not permitted or unlucky, and say where its profile is."""

import json
import re
import subprocess
from pathlib import Path

from helpers import terminal


def record(command: str, folder: Path) -> tuple[Path | None, str]:
    """Run a profiler's ``command`` in ``folder``; return its profile, and what the program prints.

    The profile is the file after ``-o``, or None where Scalene or py-spy ends with an error: for
    example, it is not installed, or py-spy is not permitted. Scalene runs again, at most twice, if
    the program fails or the profile is empty: before Python 3.12 its signal can break an import
    (CPython issue 91351).
    """
    profile = Path(folder, re.search(r"-o (\S+)", command)[1])
    is_scalene = " scalene " in command
    settings = {}
    if is_scalene:
        # Scalene would set this variable, to its default, and then start Python once more.
        settings["SCALENE_ALLOCATION_SAMPLING_WINDOW"] = str(2**20)
        program = Path(folder, re.search(r"\S+\.py\b", command)[0])
        if not re.search(r"\b(torch|helpers)\b", program.read_text(encoding="utf-8")):
            settings["PYTHONPATH"] = _folder_without_torch(folder)
    goes = 3 if is_scalene else 1
    for _ in range(goes):
        try:
            printed = terminal.run(command, folder, **settings).stdout
            if not is_scalene or "files" in json.loads(profile.read_text(encoding="utf-8")):
                return profile, printed
        except (OSError, subprocess.CalledProcessError):
            if not is_scalene and not command.startswith("py-spy"):
                raise
    return None, ""


def _folder_without_torch(folder: Path) -> str:
    """A folder that hides torch from Scalene, which would import it in vain, and the program."""
    hiding = Path(folder, "without_torch").resolve()
    hiding.mkdir(exist_ok=True)
    (hiding / "torch.py").write_text("raise ImportError", encoding="utf-8")
    return str(hiding)
