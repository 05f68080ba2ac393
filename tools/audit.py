"""``make audit``: are weaknesses known of any package that the course locks? Needs the network.

pip-audit asks PyPI's advisories about every line of constraints.txt, those for other systems too.
By itself it leaves out what it gets no answer for and passes; here that fails, and is said.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement

from tools.notebooks import ROOT

# By uv, in an environment apart: it brings a pip of its own, which would replace the course's.
PIP_AUDIT = [sys.executable, "-m", "uv", "tool", "run", "--quiet", "pip-audit@2.10.1"]
PIP_AUDIT += ["--format", "json", "--progress-spinner", "off"]
PIP_AUDIT += ["--no-deps", "--disable-pip", "--requirement"]


def main(lock: Path = ROOT / "constraints.txt") -> int:
    lines = lock.read_text(encoding="utf-8").splitlines()
    answers, errors = [], []
    with TemporaryDirectory() as folder:
        for part in parts(map(Requirement, lines)):
            asked = Path(folder, "asked.txt")
            asked.write_text("\n".join(part), encoding="utf-8")
            done = subprocess.run([*PIP_AUDIT, str(asked)], capture_output=True, text=True)
            if done.stdout:
                answers += json.loads(done.stdout)["dependencies"]
            else:
                errors += done.stderr.strip().splitlines()[-1:] or ["pip-audit said nothing"]
    text, status = verdict(answers, errors)
    print(text, file=sys.stderr if status else sys.stdout)
    return status


def parts(locked: Iterable[Requirement]) -> list[list[str]]:
    """``name==version`` of every line, without its marker; a package's second version apart."""
    found: list[dict[str, str]] = [{}]
    for one in locked:
        part = next((part for part in found if one.name not in part), None)
        if part is None:
            found.append(part := {})
        part[one.name] = f"{one.name}{one.specifier}"
    return [list(part.values()) for part in found]


def verdict(answers: list[dict], errors: list[str]) -> tuple[str, int]:
    """What to say of pip-audit's answers, and the exit status."""
    weak = {f"{it['name']} {it['version']}": it["vulns"] for it in answers if it.get("vulns")}
    unknown = [it for it in answers if "skip_reason" in it]
    checked = len(answers) - len(unknown)
    said = [
        f"{name}: {one['id']}, mended in {', '.join(one['fix_versions']) or 'no version yet'}"
        for name, ones in weak.items()
        for one in ones
    ]
    said += dict.fromkeys(errors)  # each once
    if not checked:
        said += [
            "Nothing was checked: the advisories could not be reached for a single package. "
            "That is no pass. Call make audit again from where pypi.org can be reached."
        ]
    else:
        if unknown:
            said += [f"{it['name']}: not checked. {it['skip_reason']}" for it in unknown]
        said += [f"{checked} packages checked, {len(unknown)} not, {len(weak)} with weaknesses."]
    return "\n".join(said), 1 if weak or errors or unknown or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
