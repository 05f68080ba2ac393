"""The lock agrees with the requirements, and an installation that fails says why."""

import errno
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
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


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14", "3.15"])
def test_the_lock_agrees_with_the_requirements(python: str) -> None:
    for system in SYSTEMS:
        names = ("sys_platform", "platform_system", "platform_machine")
        there = dict(zip(names, system.split(), strict=True))
        there |= {"python_version": python, "python_full_version": f"{python}.1"}

        def versions(listed: list[Requirement], there: dict = there) -> set[tuple[str, str]]:
            here = (it for it in listed if it.marker is None or it.marker.evaluate(there))
            return {(canonicalize_name(it.name), str(it.specifier)) for it in here}

        assert versions(PINNED) <= versions(LOCKED), "run make lock"


HERE = [pin for pin in PINNED if pin.marker is None or pin.marker.evaluate()]
TORCH = next(f"torch{pin.specifier}" for pin in HERE if pin.name == "torch")
LOCK = install.LOCK[-1]
REAL = sys.executable
NO_GPU = "there is no NVIDIA GPU here"
NOT_FOUND = "ERROR: No matching distribution found for torch"
FULL = f"Could not install packages due to an OSError: [Errno {errno.ENOSPC}] No space left"
SCRIPTS = pytest.mark.skipif(
    sys.platform == "win32", reason="a script cannot replace Python on Windows"
)


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a test puts a script in place of Python; the environment is ``tmp_path``."""
    path = tmp_path / "python"
    path.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return path


@SCRIPTS
@pytest.mark.parametrize(
    ("installed", "reason", "failure", "end", "calls", "sentence"),
    [
        (True, NO_GPU, "", "0", [LOCK], "is installed already\n"),
        (False, NO_GPU, "", "0", [TORCH, LOCK], f"CPU build, because {NO_GPU}\n"),
        (False, "", "", "0", [LOCK, LOCK], "about 2,700 MB to download\n"),
        (False, NO_GPU, NOT_FOUND, "0", [TORCH, LOCK, LOCK], f"CPU build of {TORCH} could not"),
        (False, NO_GPU, FULL, "The disk is full, so the course could not", [TORCH], "[1/2]"),
    ],
)
def test_the_cpu_build_comes_first_where_there_is_no_gpu(
    installed, reason, failure, end, calls, sentence, python: Path, monkeypatch, capsys
) -> None:
    """The script notes its last word, and fails where the CPU index is named."""
    python.write_text(f"""#!{REAL}
import pathlib, sys
with pathlib.Path(__file__).with_name("calls").open("a") as calls:
    print(sys.argv[-1], file=calls)
sys.exit("--index-url" in sys.argv and {failure!r} or None)
""")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(install, "reason_for_cpu_build", lambda system: reason)
    monkeypatch.setattr(install, "is_installed", lambda pin: installed)
    with pytest.raises(SystemExit) as error:
        install.main([])
    assert str(error.value.code).startswith(end)
    assert python.with_name("calls").read_text().splitlines() == calls
    output = capsys.readouterr().out
    assert sentence in output
    assert ("could not be fetched" in output) == (failure == NOT_FOUND)
    assert len(output.splitlines()) <= 5
    assert failure in python.with_name("install.log").read_text()


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
    printed, status, end, shown, python: Path, capsys
) -> None:
    python.write_text(f"#!/bin/sh\nprintf '%b' '{printed}' >&2\nexit {status}\n")
    with pytest.raises(SystemExit) as error:
        install.main(["requirements-grade.txt"])
    assert end in str(error.value.code)
    assert ("conflicting" in capsys.readouterr().err) == shown
    log = python.with_name("install.log")
    assert (str(log) in str(error.value.code)) == (status == 1)
    assert "Retrying" in log.read_text() or "conflicting" in log.read_text()


@pytest.mark.everything
@SCRIPTS
@pytest.mark.parametrize("in_terminal", [False, True])
def test_a_long_step_shows_how_far_it_is(
    python: Path, in_terminal: bool, monkeypatch, capsys
) -> None:
    """pip downloads three megabytes, and installs one of two packages."""
    python.write_text("""#!/bin/sh
head -c 3000000 /dev/zero > "$TMPDIR/wheel"
sleep 0.5
echo "Installing collected packages: a, b"
mkdir "$(dirname "$0")/a.dist-info"
sleep 0.5
""")
    monkeypatch.setattr(install, "PAUSE", {True: 0.2, False: 0.2})
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(python.parent))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: in_terminal)
    with pytest.raises(SystemExit):
        install.main(["requirements-grade.txt"])
    output = capsys.readouterr().out
    assert "      0:00  3 MB fetched so far" in output
    assert "1 of 2 packages installed" in output
    assert ("\r" in output) == in_terminal
    assert output.splitlines()[-1].endswith("\033[K" if in_terminal else "installed")


GPU, OLD_GPU, TWO = "580.65.06, 8.6\n", "580.65.06, 7.0\n", "581.0, 6.1\n581.0, 8.0\n"


@SCRIPTS
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (GPU, ""),
        (TWO, ""),
        (OLD_GPU, "compute capability 7.5 or more, and this one has 7.0"),
        ("535.183.01, 8.6\n", "driver from 580 on, and this one is 535"),
        ("NVIDIA-SMI has failed because it could not communicate with the driver.\n", ""),
        ("580.65.06, [N/A]\n", ""),
        (None, ""),
    ],
)
def test_a_gpu_that_the_cuda_build_cannot_use_gets_the_cpu_build(
    answer: str | None, reason: str, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "nvidiactl").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    if answer:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '%s' '{answer}'\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    found = install.reason_for_cpu_build("Linux", tmp_path)
    assert reason in found
    assert bool(reason) == bool(found)


def test_a_gpu_is_seen_by_its_driver(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert install.reason_for_cpu_build("Linux", tmp_path) == NO_GPU
    assert install.reason_for_cpu_build("Darwin", tmp_path) == ""
    (tmp_path / "dxg").touch()
    assert install.reason_for_cpu_build("Linux", tmp_path) == ""


@pytest.mark.parametrize("module", ["tools.lab", "tools.slides", "grading.collect", "grading"])
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


@pytest.mark.parametrize("python", [(3, 10), (3, 16)])
def test_a_wrong_python_ends_in_a_sentence(python: tuple[int, int]) -> None:
    install.main(["--check"], python=(3, 11))
    sentence = f"needs Python 3.11 to 3.15, but .* is 3.{python[1]}. Name another one"
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
    assert sentence.startswith("This course needs Python 3.11 to 3.15, but")
    assert end.startswith("make: ***")
    assert more == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that has what make needs to install, with a name that needs quotes."""
    folder = tmp_path / "ein Kurs für Größen"
    (folder / "tools").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copy(ROOT / "tools" / "install.py", folder / "tools")
    return folder


def make(folder: Path, *words: str) -> str:
    line = ["make", "--no-print-directory", *words]  # also within a make
    done = subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_installs_once_in_a_folder_with_any_name(folder: Path) -> None:
    (folder / ".venv").mkdir()
    assert "tools/install.py" in make(folder, "--dry-run", "lab")
    (folder / ".venv" / "ready").touch()
    assert make(folder, "--dry-run", "lab").strip() == ".venv/bin/python -m tools.lab"
    os.utime(folder / ".venv" / "ready", (0, 0))  # older than the lock
    assert "tools/install.py" in make(folder, "--dry-run", "lab")


@pytest.mark.everything
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_copied_environment_is_made_anew(folder: Path) -> None:
    """Both folders have the installer's steps, without pip's: nothing is downloaded."""
    installer = folder / "tools" / "install.py"
    text = installer.read_text(encoding="utf-8")
    installer.write_text(text.replace("def pip_install(", "def pip_install(*_): return ''\ndef _("))
    python = folder.parent / "a b" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    answer = make(folder, ".venv/ready", f"PYTHON={python}")
    assert "[1/3] A virtual environment in .venv\n" in answer
    assert "is a copy of" not in answer
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy, symlinks=True)
    (copy / ".venv" / "old").touch()
    assert f"a copy of {folder / '.venv'}" in make(copy, ".venv/ready", f"PYTHON={python}")
    assert not (copy / ".venv" / "old").exists()
    for installed in (folder, copy):
        assert make(installed, "--dry-run", "lab").strip() == ".venv/bin/python -m tools.lab"
