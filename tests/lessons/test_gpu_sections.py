"""What a reader with a GPU, or with PyTorch built for one, meets: here without one.

The cells for GPUs run on a pretended one, so that no name is wrong. What they measure there is the
CPU's. That a real GPU gives what the text says of it is checked by whoever has one.
"""

import ast
import json
import os
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbformat.v4 import new_code_cell, new_notebook

from helpers import terminal
from tools import gpu_check, notebooks, refresh
from tools.gpu_check import for_gpus, gpu_part

PRETENDED = Path(__file__).with_name("pretended_gpu")


@pytest.mark.everything
def test_the_pretended_gpu_refuses_what_a_real_one_would() -> None:
    program = """import torch
torch.zeros(2, device="cuda").sum(), torch.cuda.synchronize(0)
try:
    torch.cuda.memory_allocated(devise=0)
except TypeError as error:
    print(error)
"""
    printed = terminal.terminal(["python", "-c", program], PYTHONPATH=str(PRETENDED))
    assert printed == "got an unexpected keyword argument 'devise'\n"


# What cells did before, what they do now, and a part of the refusal.
MISTAKES = {
    "CUDA starts for a CPU profile": (
        "with profile(): ones.sum()",
        "with profile(activities=[ProfilerActivity.CPU]): ones.sum()",
        "profile() without activities",
    ),
    "CUPTI starts in the profile": (
        "with profile(activities=both): ones.sum()",
        "with profile(activities=both, schedule=second_step): ones.sum()",
        "begin with a step of warm-up",
    ),
    "stacks of C++": (
        "torch.cuda.memory._record_memory_history(max_entries=10)",
        "torch.cuda.memory._record_memory_history(stacks='python', max_entries=10)",
        "pass stacks='python'",
    ),
    "an event that was not waited for": (
        "first.record(); last.record(); first.elapsed_time(last)",
        "first.record(); last.record(); torch.cuda.synchronize(); first.elapsed_time(last)",
        "synchronise before elapsed_time",
    ),
    "a clock that waits for another GPU": (
        "ones.to('cuda:1'); torch.cuda.synchronize()",
        "torch.cuda.set_device(1); ones.to('cuda:1'); torch.cuda.synchronize()",
        "the work is on cuda:1, but synchronize() waits for cuda:0",
    ),
    "more ranks than GPUs": (
        "torch.cuda.set_device(2)",
        "torch.cuda.set_device(0)",
        "invalid device ordinal",
    ),
    "the memory of an earlier run": (
        "model_twice(freed=False)",
        "model_twice(freed=True)",
        "-105984",
    ),
}
SETTING = """
import json, sys, torch
from torch.profiler import ProfilerActivity, profile, schedule
from helpers import units, workloads

ones, both = torch.ones(4), [ProfilerActivity.CPU, ProfilerActivity.CUDA]
second_step = schedule(wait=0, warmup=1, active=1)
first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

def model_twice(freed):
    global model
    for _ in range(2):
        if freed:
            model = None
        before = torch.cuda.memory_allocated()
        model = workloads.SmallCNN().cuda()
        units.size(torch.cuda.memory_allocated() - before)
        model(torch.ones(1, 3, 32, 32).cuda()).sum().backward()

answers = {}
for name, snippets in json.loads(sys.argv[1]).items():
    answers[name] = []
    for snippet in snippets[:2]:
        try:
            exec(snippet)
            answers[name].append("")
        except (RuntimeError, ValueError) as error:
            answers[name].append(str(error))
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def refusals() -> dict[str, list[str]]:
    """What the pretended GPU says of each mistake, and of what is right."""
    environment = {"PYTHONPATH": os.pathsep.join([str(PRETENDED), str(notebooks.ROOT)])}
    program = ["python", "-c", SETTING, json.dumps(MISTAKES)]
    done = terminal.run(program, PRETENDED_GPUS="2", **environment)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.everything
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_and_what_is_right_is_not(name: str, refusals: dict) -> None:
    mistake, right = refusals[name]
    assert MISTAKES[name][2] in mistake
    assert right == ""


def test_the_part_for_gpus_has_what_its_cells_read() -> None:
    sources = ["import torch", "n = 1", "n = 2", "x = [n for n in range(n)]", "y = 0"]
    ask = "if torch.cuda.is_available():\n    print(x)"
    part = gpu_part(new_notebook(cells=[*map(new_code_cell, sources), new_code_cell(ask)]))
    assert [cell.source for cell in part.cells] == [sources[0], *sources[2:4], ask, ask]


@pytest.mark.everything
@pytest.mark.parametrize("path", gpu_check.lessons(), ids=lambda path: path.stem)
def test_cells_for_gpus_run_on_a_pretended_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PRETENDED), prepend=os.pathsep)
    # A claim on a time of the GPU may fail, because the time is the CPU's.
    part = refresh.execute(gpu_part(notebooks.read(path)), path.parent, failing=True)
    for cell in part.cells:
        errors = [out.ename for out in cell.outputs if out.output_type == "error"]
        assert set(errors) <= {"ClaimError"} or not for_gpus(cell), (cell.id, errors)
        if for_gpus(cell):
            printed = "".join(text for _, text in notebooks.texts(cell.outputs))
            assert "no cuda gpu here" not in printed.lower(), cell.id


@pytest.mark.everything
def test_an_owner_of_a_gpu_gets_one_small_file(tmp_path: Path) -> None:
    program = """import sys
from pathlib import Path
from tools import gpu_check

gpu_check.REPORT = gpu_check.notebooks.ROOT / "reports" / sys.argv[1]
gpu_check.lessons = lambda: [gpu_check.notebooks.named("01")]
sys.exit(gpu_check.main())
"""
    name = f"{tmp_path.parent.name}-gpu.json"  # runs of these tests may overlap
    report = notebooks.ROOT / "reports" / name
    environment = {"PYTHONPATH": os.pathsep.join([str(PRETENDED), str(notebooks.ROOT)])}
    printed = terminal.terminal(["python", "-c", program, name], notebooks.ROOT, **environment)
    try:
        text = report.read_text(encoding="utf-8")
    finally:
        report.unlink(missing_ok=True)
    assert "4 cells, no errors" in printed
    assert "attach it to an issue" in printed
    cells = json.loads(text)["lessons"]["01_timing.ipynb"]["cells"]
    assert {cell["printed"].split()[0] for cell in cells.values()} == {"without", "CUDA"}
    assert cells.keys() == {"gpu-synchronize", "gpu-events"} | {
        "gpu-synchronize-again",
        "gpu-events-again",
    }
    assert len(text) < 10_000
    assert str(Path.home()) not in text


def test_without_a_gpu_the_check_says_so(capsys: pytest.CaptureFixture) -> None:
    if gpu_check.torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert gpu_check.main() == 1
    assert capsys.readouterr().out.startswith("This PyTorch finds no CUDA GPU, so there is")


def profiles_of_everything(source: str) -> list[int]:
    """The lines on which torch.profiler's ``profile`` is called without ``activities``."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imports = [node for node in imports if node.module == "torch.profiler"]
    if not any(name.name == "profile" for node in imports for name in node.names):
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if ast.unparse(call.func) == "profile"
        and not {"activities", "use_cuda"} & {keyword.arg for keyword in call.keywords}
    ]


def test_a_profile_of_everything_is_found() -> None:
    source = "from torch.profiler import profile\nprofile(activities=[])\nprofile(with_stack=True)"
    assert profiles_of_everything(source) == [3]
    assert profiles_of_everything("from thop import profile\nprofile(model)") == []


@pytest.mark.parametrize(
    "path",
    sorted([*notebooks.all_of_them(), *notebooks.NOTEBOOKS.glob("scripts/*.py")]),
    ids=lambda path: path.stem,
)
def test_a_profile_says_what_it_records(path: Path) -> None:
    """Without activities, a profile of the CPU starts CUDA and occupies memory on the GPU."""
    if path.suffix == ".py":
        source = path.read_text(encoding="utf-8")
    else:
        code = [cell.source for cell in notebooks.read(path).cells if cell.cell_type == "code"]
        cells = [source for source in code if "profile" in source]  # no other can import or call it
        source = "\n".join(map(TransformerManager().transform_cell, cells))  # %magic to Python
    assert profiles_of_everything(source) == []


AS_IF_BUILT_FOR_CUDA = """
import torch
torch.version.cuda = "13.0"
torch._C._cuda_getDeviceCount = lambda: 0
"""


@pytest.mark.everything
@pytest.mark.parametrize("name", ["01_timing", "11_nsight"])
def test_the_set_up_warns_of_nothing_on_a_login_node(name: str, tmp_path: Path) -> None:
    """torch.utils.benchmark imports cpp_extension, which logs that it found no CUDA runtime."""
    notebook = notebooks.read(notebooks.NOTEBOOKS / f"{name}.ipynb")
    (cell, *_) = (cell for cell in notebook.cells if "from torch.utils" in cell.source)
    setup = cell.source.partition("\n\n\n")[0]  # its imports
    program = tmp_path / "setup.py"
    program.write_text(AS_IF_BUILT_FOR_CUDA + setup)
    done = terminal.run(
        ["python", program], CUDA_HOME=str(tmp_path), PYTHONPATH=str(notebooks.ROOT)
    )
    assert done.stderr == ""
