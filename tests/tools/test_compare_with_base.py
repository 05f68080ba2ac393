"""The workflow assets/jobs/github/compare-with-base.yml, run step by step in a real repository."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from helpers import terminal
from tools import notebooks

WORKFLOW = notebooks.ROOT / "assets" / "jobs" / "github" / "compare-with-base.yml"
TEXT = WORKFLOW.read_text(encoding="utf-8")
JOB = yaml.safe_load(TEXT)["jobs"]["compare"]
JOB_SECONDS = 60 * JOB["timeout-minutes"]
# Ten convolutions of about 1 ms. One more is 10 % more work.
NETWORK = """
import torch

LAYERS = 10
kernels = torch.rand(16, 16, 3, 3)

def run(images):
    for _ in range(LAYERS):
        images = torch.relu(torch.conv2d(images, kernels, padding=1))
    return images
"""
BENCHMARK = """
import torch

RUNS = 1
images = torch.rand(1, 16, 96, 96)

def step():
    import network  # each version imports its own, although only the call imports it
    for _ in range(RUNS):
        network.run(images)
"""
ELEVEN = NETWORK.replace("LAYERS = 10", "LAYERS = 11")
HARMLESS = NETWORK.replace("torch.relu(torch.conv2d(images, kernels, padding=1))", "layer(images)")
HARMLESS += """
def layer(images):
    return torch.relu(torch.conv2d(images, kernels, padding=1))
"""
UNSTABLE = """
from pathlib import Path

processes = Path("processes")
count = len(processes.read_text()) if processes.exists() else 0
processes.write_text("." * (count + 1))
length = 100_000 if count % 2 == 0 else 300_000

def step():
    sum(range(length))
"""
FILES = {"network.py": NETWORK, "benchmark.py": BENCHMARK}


@dataclass
class Run:
    """How a run of the job ended, what it printed, and its summary."""

    passed: bool
    output: str
    summary: str


def git(folder: Path, *words: str | Path) -> None:
    who = ["-c", "user.name=reader", "-c", "user.email=reader@example.org"]
    terminal.run(["git", *who, *words], folder)


def commit(repository: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (repository / name).write_text(text)
    git(repository, "add", ".")
    git(repository, "commit", "--message", "a change", "--allow-empty")


def pull_request(folder: Path, base: dict, change: dict, base_later: dict | None = None) -> Path:
    """A repository with a pull request, and with the commit that GitHub makes to merge it."""
    repository = folder / "repository"
    repository.mkdir()
    git(repository, "init", "--initial-branch=main")
    copy_program(repository)
    commit(repository, base)
    git(repository, "checkout", "-b", "change")
    commit(repository, change)
    git(repository, "checkout", "main")
    if base_later:
        commit(repository, base_later)
    git(repository, "merge", "--no-ff", "--message", "merge", "change")
    git(repository, "update-ref", "refs/pull/1/merge", "HEAD")
    git(repository, "reset", "--hard", "HEAD^1")
    return repository


def copy_program(repository: Path) -> None:
    """What the comment at the top of the workflow says, run by bash in the course's folder."""
    commands = [line[1:] for line in TEXT.splitlines() if re.match(r"# +(mkdir|cp) ", line)]
    assert len(commands) == 2
    script = "\n".join(commands).replace("REPOSITORY", f"'{repository}'")
    terminal.run(["bash", "-e", "-c", script], notebooks.ROOT)


def environment(workspace: Path) -> dict[str, str]:
    """The variables of the job; ``workspace`` is all that its expressions may ask for."""
    variables = {}
    for name, value in JOB["env"].items():
        variables[name] = str(value).replace("${{ github.workspace }}", str(workspace))
        assert "${{" not in variables[name]
    files = {name: str(workspace / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    return {**variables, **files}


def check_out(options: dict, repository: Path, workspace: Path) -> None:
    """What actions/checkout does for a pull request."""
    assert set(options) == {"path", "fetch-depth", "persist-credentials"}
    folder = workspace / options["path"]
    git(workspace, "init", folder)
    depth = f"--depth={options['fetch-depth']}"
    git(folder, "fetch", depth, repository.as_uri(), "refs/pull/1/merge")
    git(folder, "checkout", "--detach", "FETCH_HEAD")


def run_job(folder: Path, repository: Path) -> Run:
    """Run the steps of the job as GitHub does, until one fails.

    Left out are actions/setup-python, and a step that only calls pip install, because the course's
    own environment has these packages.
    """
    workspace = folder / "workspace"
    workspace.mkdir()
    variables = environment(workspace)
    outputs, summary = (Path(variables[n]) for n in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"))
    outputs.touch()
    summary.touch()
    printed, passed = [], True
    for step in JOB["steps"]:
        action = step.get("uses", "").partition("@")[0]
        if action == "actions/checkout":
            check_out(step["with"], repository, workspace)
        elif action:
            assert action == "actions/setup-python"
        elif not installs(step) and is_wanted(step, outputs.read_text()):
            script = folder / "step.sh"
            script.write_text(step["run"])
            command = ["bash", "-e", script]  # GitHub's default
            with terminal.started(command, workspace, subprocess.STDOUT, **variables) as child:
                printed.append(child.communicate(timeout=JOB_SECONDS)[0])
            passed = child.returncode == 0
            if not passed:
                break
    return Run(passed, "".join(printed), summary.read_text())


def installs(step: dict) -> bool:
    return all(line.startswith("pip install ") for line in step["run"].splitlines())


def is_wanted(step: dict, outputs: str) -> bool:
    """Whether the condition of a step holds, which is an output of the step ``calls``."""
    if "if" not in step:
        return True
    name = re.fullmatch(r"steps\.calls\.outputs\.(\w+)", step["if"])[1]
    return f"{name}=true\n" in outputs


def test_the_workflow_installs_what_the_course_is_pinned_to() -> None:
    lines = (notebooks.ROOT / "requirements.txt").read_text().splitlines()
    pinned = [Requirement(line.partition("#")[0]) for line in lines if "==" in line]
    (python,) = [step["with"] for step in JOB["steps"] if "python" in step.get("uses", "")]
    with_marker = {"python_version": python["python-version"]}
    wanted = {
        each.name: each.specifier
        for each in pinned
        if not each.marker or each.marker.evaluate(with_marker)
    }
    (install,) = [step["run"] for step in JOB["steps"] if "run" in step and installs(step)]
    asked = [Requirement(word) for word in install.split() if "==" in word]
    assert {each.name for each in asked} == {"torch", "numpy", "psutil"}
    assert all(wanted[each.name] == each.specifier for each in asked)


def test_the_copied_files_are_all_that_the_program_imports_of_the_course(tmp_path: Path) -> None:
    copy_program(tmp_path)
    program = "import sys, helpers.compare; print(*(m.__file__ for n, m in sys.modules.items() "
    program += "if n.partition('.')[0] == 'helpers'), sep='\\n')"
    copies = tmp_path / ".github" / "compare"
    done = terminal.run(["python", "-c", program], tmp_path, PYTHONPATH=str(copies))
    assert {Path(line) for line in done.stdout.splitlines()} == {*copies.glob("helpers/*.py")}


@pytest.mark.everything
def test_ten_percent_more_work_fails_with_a_sentence(tmp_path: Path) -> None:
    for attempt in range(3):  # beside busy programs, the answer may be that it is not known
        folder = tmp_path / str(attempt)
        folder.mkdir()
        run = run_job(folder, pull_request(folder, FILES, {"network.py": ELEVEN}))
        if not run.passed:
            break
        assert "::warning::It is not known whether" in run.output, run.output
    assert not run.passed
    sentence = "head/benchmark:step exceeds the limit of 5 % more time: it takes ~"
    assert f"::error::{sentence}" in run.output, run.output
    assert sentence in run.summary
    assert "CPU time: old ~" in run.summary


@pytest.mark.everything
def test_a_harmless_change_passes_although_base_has_become_slower_since(tmp_path: Path) -> None:
    twice = {"benchmark.py": BENCHMARK.replace("RUNS = 1", "RUNS = 2")}
    run = run_job(tmp_path, pull_request(tmp_path, FILES, {"network.py": HARMLESS}, twice))
    assert run.passed, run.output
    assert "::error::" not in run.output
    kept = "head/benchmark:step keeps the limit of 5 % more time" in run.summary
    assert kept != ("::warning::It is not known" in run.output), run.output
    assert "CPU time: old ~" in run.summary


@pytest.mark.everything
def test_the_first_pull_request_passes_with_a_warning(tmp_path: Path) -> None:
    run = run_job(tmp_path, pull_request(tmp_path, {"network.py": NETWORK}, FILES))
    assert run.passed, run.output
    sentence = "Nothing was compared: in base, benchmark:step cannot be called: ModuleNotFoundError"
    assert f"::warning::{sentence}" in run.output, run.output
    assert run.summary.startswith(sentence)
    assert "helpers.compare" not in run.output


@pytest.mark.everything
def test_a_head_whose_function_fails_fails_the_job(tmp_path: Path) -> None:
    broken = {"network.py": "raise SystemError('broken by the change')"}
    run = run_job(tmp_path, pull_request(tmp_path, FILES, broken))
    assert not run.passed
    assert "SystemError: broken by the change" in run.output
    assert run.output.endswith(
        "::error::In head, benchmark:step cannot be called: see the message above.\n"
    )


@pytest.mark.everything
def test_what_is_not_known_passes_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From process to process, head takes a third of the time of base, or three times as long."""
    short = [{**step} for step in JOB["steps"]]
    short[-1]["run"] = short[-1]["run"].replace("--seconds 40", "--seconds 2")
    assert short[-1] != JOB["steps"][-1]
    monkeypatch.setitem(JOB, "steps", short)
    change = {"benchmark.py": UNSTABLE.replace("== 0", "== 1")}
    run = run_job(tmp_path, pull_request(tmp_path, {"benchmark.py": UNSTABLE}, change))
    assert run.passed, run.output
    sentence = "It is not known whether head/benchmark:step exceeds the limit of 5 % more time: it "
    assert f"::warning::{sentence}" in run.output, run.output
    assert sentence in run.summary
