"""The lock agrees with the requirements, and an installation that fails says why."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import install, notebooks

ROOT = notebooks.ROOT


def requirements(*names: str) -> list[Requirement]:
    lines = [line for name in names for line in (ROOT / name).read_text("utf-8").splitlines()]
    return [Requirement(line.split(" #")[0]) for line in lines if line and line[0] not in "#-"]


KINDS = ("", "-make", "-grade", "-hub")
PINNED = requirements(*(f"requirements{kind}.txt" for kind in KINDS))
LOCKED = requirements("constraints.txt")
SYSTEMS = ["linux Linux x86_64", "darwin Darwin arm64", "win32 Windows AMD64"]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_the_lock_agrees_with_the_requirements(python: str) -> None:
    for system in SYSTEMS:
        names = ("sys_platform", "platform_system", "platform_machine")
        there = dict(zip(names, system.split(), strict=True))
        there |= {"python_version": python, "python_full_version": f"{python}.1"}

        def versions(listed: list[Requirement], there: dict = there) -> set[tuple[str, str]]:
            here = (it for it in listed if it.marker is None or it.marker.evaluate(there))
            return {(canonicalize_name(it.name), str(it.specifier)) for it in here}

        assert versions(PINNED) <= versions(LOCKED), "run make lock"


TORCH = next(f"torch{pin.specifier}" for pin in PINNED if pin.name == "torch")
LOCK = install.EVERYTHING[-1]
NOT_FOUND = "ERROR: No matching distribution found for torch"
FULL = f"Could not install packages due to an OSError: [Errno {errno.ENOSPC}] No space left"


SCRIPTS = pytest.mark.skipif(
    sys.platform == "win32", reason="a script cannot replace Python on Windows"
)


@SCRIPTS
@pytest.mark.parametrize(
    ("installed", "failure", "end", "calls", "sentence"),
    [
        (True, "", "0", [LOCK], ""),
        (False, "", "0", [TORCH, LOCK], f"{TORCH} is the CPU build.\n"),
        (False, NOT_FOUND, "0", [TORCH, LOCK], "could not be fetched"),
        (False, FULL, "The disk is full, so the course could not be installed", [TORCH], ""),
    ],
)
def test_the_cpu_build_comes_first_where_there_is_no_gpu(
    installed, failure, end, calls, sentence, tmp_path: Path, monkeypatch, capfd
) -> None:
    """In place of Python a script notes its last word, and fails where the CPU index is named."""
    python = tmp_path / "python"
    python.write_text(f"""#!{sys.executable}
import pathlib, sys
with pathlib.Path(__file__).with_name("calls").open("a") as calls:
    print(sys.argv[-1], file=calls)
sys.exit("--index-url" in sys.argv and {failure!r} or None)
""")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(install, "wants_cpu_build", lambda system: True)
    monkeypatch.setattr(install, "is_installed", lambda pin: installed)
    with pytest.raises(SystemExit) as error:
        install.main()
    assert str(error.value.code).startswith(end)
    assert (tmp_path / "calls").read_text().splitlines() == calls
    output = capfd.readouterr()
    assert sentence in output.out
    assert failure in output.err
    assert ("could not be fetched" in output.out) == (failure == NOT_FOUND)


RETRIES = "".join(f"WARNING: Retrying (Retry(total={n}, connect=None))\\n" for n in (1, 0))
CONFLICT = "ERROR: ResolutionImpossible: conflicting dependencies\\n"


@SCRIPTS
@pytest.mark.parametrize(
    ("printed", "status", "end", "shown"),
    [
        (RETRIES + CONFLICT, 1, "The installation needs a network", False),
        (RETRIES[: RETRIES.index("total=0") - 24] + CONFLICT, 1, "of pip above say why", True),
        (CONFLICT, 1, "of pip above say why", True),
        (RETRIES, 0, "0", False),
    ],
)
def test_without_a_network_an_installation_ends_in_a_sentence(
    printed, status, end, shown, tmp_path: Path, monkeypatch, capfd
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nprintf '%b' '{printed}' >&2\nexit {status}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(SystemExit) as error:
        install.main(["requirements-grade.txt"])
    assert end in str(error.value.code)
    assert ("conflicting" in capfd.readouterr().err) == shown


@pytest.mark.parametrize("module", ["tools.lab", "tools.slides", "tools.collect", "grading"])
@pytest.mark.parametrize("python", [f"{sys.executable} -S", "python2 -B", "python3.10 -S"])
def test_another_python_ends_in_a_sentence(module: str, python: str) -> None:
    """This one without its packages, and older ones where they are."""
    line = python.rsplit(" ", 1)
    if not shutil.which(line[0]) or subprocess.run([*line, "-V"], capture_output=True).returncode:
        pytest.skip(f"there is no {python} here")
    done = subprocess.run([*line, "-m", module], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("The course is not installed in this Python")
    assert done.stderr.count("\n") == 1


def test_half_an_installation_does_not_count(tmp_path: Path) -> None:
    information = tmp_path / "torch-2.13.0+cpu.dist-info"
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()  # so that it can be imported
    assert not install.is_installed("torch==2.13.0", [str(tmp_path)])
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.4\nName: torch\nVersion: 2.13.0+cpu")
    assert not install.is_installed("torch==2.13.0", [str(tmp_path)])
    (information / "RECORD").write_text("torch/__init__.py,,\n")
    assert install.is_installed("torch==2.13.0", [str(tmp_path)])
    assert not install.is_installed("torch==2.14.0", [str(tmp_path)])


def test_a_gpu_is_seen_by_its_driver(tmp_path: Path) -> None:
    assert install.wants_cpu_build("Linux", tmp_path)
    assert not install.wants_cpu_build("Darwin", tmp_path)
    (tmp_path / "dxg").touch()
    assert not install.wants_cpu_build("Linux", tmp_path)


@pytest.mark.parametrize("python", [(3, 10), (3, 15)])
def test_a_wrong_python_ends_in_a_sentence(python: tuple[int, int]) -> None:
    install.main(["--check"], python=(3, 11))
    sentence = f"needs Python 3.11 to 3.14, but .* is 3.{python[1]}. Name another one"
    with pytest.raises(SystemExit, match=sentence):
        install.main(["--check"], python=python)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("python", ["python3.7", "python3.9", "python3.10"])
def test_make_refuses_an_older_python(python: str, tmp_path: Path) -> None:
    if not shutil.which(python) or subprocess.run([python, "-V"], capture_output=True).returncode:
        pytest.skip(f"there is no {python} here")
    (tmp_path / "tools").mkdir()
    for name in ("Makefile", "requirements.txt", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copy(ROOT / "tools" / "install.py", tmp_path / "tools")
    words = ["make", "--no-print-directory", "lab", f"PYTHON={python}"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    sentence, end, *more = done.stderr.splitlines()
    assert sentence.startswith("This course needs Python 3.11 to 3.14, but")
    assert end.startswith("make: ***")
    assert more == []


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_installs_once_in_a_folder_with_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "ein Kurs für Größen"
    (folder / ".venv").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)

    def make_lab() -> str:
        words = ["make", "--no-print-directory", "--dry-run", "lab"]  # also within a make
        done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout

    assert "tools/install.py\n" in make_lab()
    (folder / ".venv" / "ready").touch()
    assert make_lab().strip() == ".venv/bin/python -m tools.lab"
    os.utime(folder / ".venv" / "ready", (0, 0))  # older than the lock
    assert "tools/install.py\n" in make_lab()
