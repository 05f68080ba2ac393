"""The files that a hub uses: what starts a student's server, and what is set."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tools import lab, notebooks

if sys.platform == "win32":
    pytest.skip("a hub does not run on Windows", allow_module_level=True)

DEPLOY = notebooks.ROOT / "deploy"
SERVER = """#!/bin/sh
umask; pwd; echo "$JUPYTERHUB_DEFAULT_URL"; echo "$@"; test -w "$JUPYTER_RUNTIME_DIR" && echo ready
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A shared course of one lesson, in which a script stands in for jupyterhub-singleuser."""
    folder = tmp_path / "course"
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("tools", "helpers"):
        shutil.copytree(notebooks.ROOT / name, folder / name)
    for name in ("deploy/start", "notebooks/00_start_here.ipynb"):
        (folder / name).parent.mkdir()
        (folder / name).write_bytes((notebooks.ROOT / name).read_bytes())
    scripts = {
        "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
        "jupyterhub-singleuser": SERVER,
    }
    for name, script in scripts.items():
        (folder / ".venv" / "bin" / name).write_text(script)
    for path in (*(folder / ".venv" / "bin").iterdir(), folder / "deploy" / "start"):
        path.chmod(0o755)
    return folder


@pytest.mark.parametrize("can_write", [True, False])
def test_a_students_server_starts_with_a_copy_or_a_sentence(
    course: Path, tmp_path: Path, can_write: bool
) -> None:
    home = tmp_path / "a home"
    home.mkdir()
    if not can_write:
        (home / "measure-pytorch").touch()  # where the folder should be
    environment = {
        **os.environ,
        "HOME": str(home),
        "JUPYTERHUB_USER": "ada",
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [course / "deploy" / "start", "--port=1"], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    *said, mask, folder, page, options, ready = done.stdout.splitlines()
    assert (mask, folder, ready) == ("0077", str(home), "ready")
    assert options.endswith("--port=1")
    if can_write:
        assert said == []
        lesson = home / page.removeprefix("/lab/tree/")
        assert lesson.exists()
        assert lesson.stat().st_mode & 0o077 == 0
    else:
        assert len(said) == 1
        assert said[0].startswith("ada: The reader's copy cannot be written to")


def test_the_hubs_settings_refuse_a_course_that_students_cannot_read(course: Path) -> None:
    config = course / "deploy" / "jupyterhub_config.py"
    config.write_text((DEPLOY / "jupyterhub_config.py").read_text())
    course.chmod(0o700)
    names = {"__file__": str(config), "get_config": SimpleNamespace}
    with pytest.raises(SystemExit, match=r"Students cannot use .* they may not enter .*umask 022"):
        exec(compile(config.read_text(), config, "exec"), names)


def test_the_image_and_the_values_for_kubernetes_agree() -> None:
    image = (DEPLOY / "Containerfile.hub").read_text()
    values = yaml.safe_load((DEPLOY / "kubernetes.yaml").read_text())["singleuser"]
    start = re.search(r'CMD \["(.+)"\]', image)[1]
    assert start == values["cmd"] == f"{re.search(r'WORKDIR (.+)', image)[1]}/deploy/start"
    assert f"ENV HOME={values['storage']['homeMountPath']}\n" in image
    assert f"USER {values['uid']}\n" in image


@pytest.mark.parametrize("name", ["deploy/jupyterhub_config.py", "deploy/kubernetes.yaml"])
def test_a_student_has_one_thread_of_openmp_and_of_mkl(name: str) -> None:
    """MKL's variable wins over OpenMP's, so a hub that sets only one may get another number."""
    text = (notebooks.ROOT / name).read_text()
    threads = dict(re.findall(r"(\w+_NUM_THREADS)\W+(\d+)", text))
    assert threads == {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def test_a_hub_shows_the_course_with_the_settings_of_make_lab() -> None:
    """What tools/lab.py gives to JupyterLab, the script gives to a student's server."""
    script = (DEPLOY / "start").read_text()
    for option, path in (
        ("app_settings_dir", lab.DEFAULTS),
        ("extra_labextensions_path", lab.EXTENSIONS),
    ):
        inside = path.relative_to(notebooks.ROOT).as_posix()
        assert f'--LabApp.{option}="$course/{inside}"' in script
