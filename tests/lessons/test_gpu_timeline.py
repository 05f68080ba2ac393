"""Each number that lesson 06 prints, once more and in another way: from the recordings' JSON, with
plain Python, a sweep over starts and ends instead of a union, and HolisticTraceAnalysis.
"""

import gzip
import json
import logging
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median

import pandas as pd
import pytest

from helpers import readers
from tools import notebooks

GPU = notebooks.ROOT / "assets" / "recordings" / "gpu"
LESSON = notebooks.NOTEBOOKS / "06_gpu_timeline.ipynb"
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
CALLS = {"cuda_runtime", "cuda_driver", "Runtime"}


@cache
def printed() -> dict[str, str]:
    """What each cell printed, numbers without the commas between their thousands."""
    said = {
        cell.id: "\n".join(t for kind, t in notebooks.texts(cell.outputs) if kind != "text/html")
        for cell in notebooks.read(LESSON).cells
        if cell.cell_type == "code"
    }
    return {name: re.sub(r"(?<=\d),(?=\d{3})", "", text) for name, text in said.items()}


def said(cell: str, row: str) -> list[float]:
    """The numbers behind the first ``row`` of what a cell printed."""
    line = next(line for line in printed()[cell].splitlines() if row in line).split(row, 1)[1]
    return [float(number) for number in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", line)]


@cache
def trace(name: str) -> tuple[list, list, list]:
    """All rows, those of the device, and the calls: in order, from the first row on."""
    rows = json.loads(gzip.decompress((GPU / f"{name}.json.gz").read_bytes()))["traceEvents"]
    rows.sort(key=lambda row: row["ts"])
    device, calls = ([r for r in rows if r["cat"] in kinds] for kinds in (DEVICE, CALLS))
    return rows, device, calls


def steps(name: str) -> list:
    return [row for row in trace(name)[0] if row["name"].startswith("ProfilerStep")]


@cache
def pairs(name: str) -> list[tuple[dict, dict]]:
    _, device, calls = trace(name)
    by_number = {call["args"]["correlation"]: call for call in calls}
    return [(row, by_number[row["args"]["correlation"]]) for row in device]


def delays(name: str) -> list[float]:
    return [row["ts"] - call["ts"] for row, call in pairs(name)]


def window(name: str) -> tuple[float, float]:
    device = trace(name)[1]
    return device[0]["ts"], max(row["ts"] + row["dur"] for row in device)


@cache
def busy(name: str, start: float, end: float) -> float:
    """Time with at least one row of the device: +1 at each start, -1 at each end, in order."""
    device = trace(name)[1]
    changes = [(r["ts"], 1) for r in device] + [(r["ts"] + r["dur"], -1) for r in device]
    total, running, before = 0.0, 0, start
    for time, change in sorted(changes):
        time = min(max(time, start), end)
        total += (time - before) * (running > 0)
        running, before = running + change, time
    return total


def share(name: str) -> float:
    start, end = window(name)
    return busy(name, start, end) / (end - start)


def step_ends(name: str) -> list[float]:
    """When the device had done all that was asked for before the end of each step."""
    marks = [*(mark["ts"] for mark in steps(name)[1:]), float("inf")]
    return [max(r["ts"] + r["dur"] for r, c in pairs(name) if c["ts"] < mark) for mark in marks]


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


def near(*numbers: float, digits: int) -> object:
    return pytest.approx([round(number, digits) for number in numbers], abs=0.51 * 10**-digits)


def five_digits(numbers: list[float]) -> list[float]:
    return [float(f"{number:.5g}") for number in numbers]


def test_two_clocks() -> None:
    three = [[c["ts"], c["ts"] + c["dur"], r["ts"], r["ts"] + r["dur"]] for r, c in
             pairs("v100_resnet50")[:3]]  # fmt: skip
    for row, times in zip(("LaunchKernel",) * 2 + ("MemcpyAsync",), three, strict=True):
        assert said("clocks-pairs", row) in [near(*one, digits=2) for one in three], times
    table: dict[str, list[float]] = {}
    for name in ("v100_resnet50", "a100_resnet50"):
        asked = sorted((call["ts"], 1) for _, call in pairs(name))
        begun = sorted((row["ts"], -1) for row, _ in pairs(name))
        depth, queue = 0, []
        for _, change in sorted([*asked, *begun]):
            if change > 0:
                queue.append(depth)
            depth += change
        calls = [call["dur"] for _, call in pairs(name)]
        table[name] = [median(delays(name)), median(queue), max(queue), median(calls), max(calls)]
    for number, row in enumerate(("median delay, µs", "median queue", "longest queue",
                                  "median call, µs", "longest call, µs")):  # fmt: skip
        both = [column[number] for column in table.values()]
        assert said("clocks-measure", row) == near(*both, digits=1)
    assert said("clocks-check", "delay = ") == near(median(delays("v100_resnet50")), digits=0)
    slow = [c["ts"] for _, c in pairs("v100_resnet50") if c["dur"] > 200]
    assert said("clocks-check", "of = ") == [len(slow)]
    both = pairs("v100_resnet50")
    for at in slow:
        assert sum(c["ts"] < at for _, c in both) - sum(r["ts"] < at for r, _ in both) >= 1000


def test_the_stopwatch_that_did_not_wait() -> None:
    table = pd.read_csv(GPU / "v100_resnet50_steps.csv")  # computed for lesson 01
    took = table.gpu_end_ms.diff()
    read_off = table.cpu_end_ms[0] - table.cpu_start_ms[0]
    assert said("clocks-steps", "stopwatch = ") == near(read_off, took.min(), took.max(), digits=1)


def test_into_an_idle_device() -> None:
    free, idle, behind = float("-inf"), [], []
    for row, call in pairs("v100_resnet50"):
        if free > 0:
            (idle if call["ts"] > free else behind).append((row["ts"] - free, row, call))
        free = max(free, row["ts"] + row["dur"])
    assert said("clocks-idle", "pieces = ") == [len(idle)]
    assert max(row["ts"] - call["ts"] for _, row, call in idle) < 50
    assert said("clocks-idle", "median = ") == near(median(gap for gap, *_ in behind), digits=1)


@pytest.mark.parametrize("name", ["v100_resnet50", "a100_resnet50"])
def test_busy_or_idle(name: str) -> None:
    took = median(gaps(step_ends(name))) / 1e3
    expected = [took, share(name), share(name) * took, median(delays(name))]
    assert said("busy-measure", name[:4].upper()) == near(*five_digits(expected), digits=2)
    if name.startswith("a100"):
        assert said("busy-check", "twice as long  (ms = ") == near(took, digits=1)
        assert said("busy-check", "less time  (ms = ") == near(expected[2], digits=1)
        assert said("busy-check", "busy = ") == near(100 * share(name), digits=0)
    else:
        end = max(row["ts"] + row["dur"] for row in trace(name)[0])
        both = 100 * share(name), 100 * busy(name, 0, end) / end
        assert said("busy-window", "device = ") == near(*both, digits=1)


def test_the_input() -> None:
    columns = []
    for name in ("v100_workers0", "v100_workers4"):
        rows = trace(name)[0]
        loading = [row for row in rows if "DataLoader" in row["name"]][1:5]
        idle = [r["dur"] - busy(name, r["ts"], r["ts"] + r["dur"]) for r in loading]
        copies = [(r, c) for r, c in pairs(name) if "HtoD" in r["name"]]
        pictures = [(c["dur"], r["ts"] - c["ts"]) for r, c in copies if r["args"]["bytes"] > 1e6][
            1:5
        ]
        lasted = [mark["dur"] for mark in steps(name)]
        assert len(lasted) == 6
        columns.append([median(lasted[1:5]), median(r["dur"] for r in loading), median(idle)])
        columns[-1] += [*map(median, zip(*pictures, strict=True)), sum(lasted) / 6]
        if name == "v100_workers0":
            table = [
                t for r, mark in zip(loading, lasted[1:5], strict=True) for t in (mark, r["dur"])
            ]
            shown = [float(number) for number in re.findall(r"\d+\.\d", printed()["input-none"])]
            assert shown == near(*(time / 1e3 for time in table), digits=1)
    rows = ["step", "loader", "GPU idle in it", "copy's call", "until it copies"]
    rows += ["mean of all six"]
    for row, none, four in zip(rows, *columns, strict=True):
        assert said("input-measure", f"{row} ") == near(none / 1e3, four / 1e3, digits=1)
    gained, loader, idle, *_ = [(none - four) / 1e3 for none, four in zip(*columns, strict=True)]
    assert said("input-check", "gained = ") == near(gained, idle, loader, digits=1)
    grown = [(columns[1][number] - columns[0][number]) / 1e3 for number in (3, 4)]
    assert said("input-check", "(call = ") == near(*grown, digits=1)
    ratios = [columns[0][number] / columns[1][number] for number in (0, 5)]
    assert said("input-check", "middle = ") == near(*ratios, digits=2)


def test_the_launches() -> None:
    columns = []
    for name in ("h100_bert", "h100_timesformer"):
        start, end = window(name)
        kernels = [row["dur"] for row in trace(name)[1] if row["cat"] == "kernel"]
        calls = [call["dur"] for _, call in pairs(name)]
        columns.append([len(kernels), share(name), median(kernels)])
        columns[-1] += [(end - start) / len(calls), median(calls), median(delays(name))]
    rows = ["kernels", "busy", "median kernel, µs", "one every … µs"]
    for row, *both in zip([*rows, "median call, µs", "median delay, µs"], *columns, strict=True):
        assert said("launches-measure", row) == near(*five_digits(both), digits=2)
    assert said("launches-check", "BERT: busy for ")[0] == round(100 * share("h100_bert"))
    graphs = [call for call in trace("a100_sam")[2] if call["name"] == "cudaGraphLaunch"]
    pieces = [row for row, call in pairs("a100_sam") if call is graphs[0]]
    launch = median(c["dur"] for _, c in pairs("a100_sam") if c["name"] == "cudaLaunchKernel")
    assert (len(graphs), len(pieces)) == (1, 554)
    expected = near(554, graphs[0]["dur"] / 554, launch, digits=1)
    assert said("launches-graph", "asked for") == expected
    own = [row for row in pieces if "triton" in row["name"]]
    assert said("launches-graph", "kernels = ") == [len(own)]


def test_the_wait() -> None:
    rows, _, calls = trace("a100_sam")
    start, end = window("a100_sam")
    for name in ("cudaMemcpyAsync", "cudaStreamSynchronize", "cudaLaunchKernel"):
        times = [call["dur"] for call in calls if call["name"] == name]
        expected = near(
            len(times), round(sum(times) / 1e3, 1), sum(times) / (end - start), digits=2
        )
        assert said("wait-calls", name) == expected
    copies = [call for call in calls if call["name"] == "cudaMemcpyAsync"]
    idle = sum(c["dur"] - busy("a100_sam", c["ts"], c["ts"] + c["dur"]) for c in copies)
    all_of_them = sum(call["dur"] for call in copies)
    assert said("wait-measure", "calls = ")[0] == round(all_of_them / 1e3)
    assert said("wait-measure", "idle = ") == near(idle / 1e3, digits=1)
    call = max(copies, key=lambda call: call["dur"])
    (copy,) = [row for row, asked in pairs("a100_sam") if asked is call]
    assert (copy["args"]["bytes"], copy["dur"]) == (4, 2)
    assert said("wait-measure", "call = ") == [round(call["dur"] / 1e3)]
    after = call["ts"] + call["dur"]
    around = [r["name"] for r in rows if r["ts"] <= call["ts"] and r["ts"] + r["dur"] >= after]
    operators = [name for name in around if name.startswith("aten")]
    assert str(operators) in printed()["wait-who"]


def test_a_step_counts_once(tmp_path: Path) -> None:
    """A trace of one's own has each mark a second time, as long as the GPU's work on it."""
    mark = {"ph": "X", "name": "ProfilerStep#1", "ts": 0, "dur": 9, "args": {"correlation": 1}}
    events = [mark | {"cat": cat} for cat in ("user_annotation", "gpu_user_annotation", "kernel")]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    (cell,) = [cell for cell in notebooks.read(LESSON).cells if cell.id == "setup-read"]
    lesson = {"readers": readers}
    exec(cell.source.split("names =")[0], lesson)
    rows, *_ = lesson["read"](tmp_path / "trace.json")
    assert sorted(rows.cat) == ["kernel", "user_annotation"]


def kernels(name: str) -> list[tuple[str, float]]:
    own = [row for row in trace(name)[1] if row["cat"] == "kernel" and "nccl" not in row["name"]]
    return [(row["name"], row["dur"]) for row in own]


def part(name: str, *words: str) -> float:
    """Percent of the kernels' time in those with one of the words in the name."""
    found = sum(t for n, t in kernels(name) if any(w in n.lower() for w in words))
    return 100 * found / sum(time for _, time in kernels(name))


def test_which_kernels() -> None:
    for name in ("a100_sam", "v100_resnet50", "h100_bert"):
        times = sorted(time for _, time in kernels(name))
        short = [time for time in times if time < 5]
        shares = 100 * len(short) / len(times), 100 * sum(short) / sum(times)
        assert said("kernels-short", name) == near(*shares, digits=1)
    assert said("kernels-short-check", "time = ") == near(
        100 * sum(t for _, t in kernels("a100_sam") if t < 5)
        / sum(t for _, t in kernels("a100_sam")), digits=1)  # fmt: skip
    assert said("kernels-top-check", "two fifths  (share = ") == near(
        part("h100_timesformer", "softmax"), digits=0
    )
    unaligned = part("h100_timesformer", "align1>")
    assert said("kernels-top-check", "quarter  (share = ") == near(unaligned, digits=0)
    on_tensor_cores = ("tensorop", "_tensor16", "s1688gemm", "s16816gemm", "s161616gemm", "warpgr")
    changed = ("nchwtonhwc", "nhwctonchw")
    for name in ("v100_resnet50", "a100_resnet50", "h100_timesformer", "a100_sam"):
        kinds = [on_tensor_cores, ("softmax",), changed, ("nhwc",)]
        expected = near(*(part(name, *words) for words in kinds), digits=1)
        assert said("kernels-kinds", name) == expected
    third = part("a100_resnet50", *on_tensor_cores)
    assert said("kernels-kinds-check", "third  (share = ") == near(third, digits=0)
    both = part("a100_resnet50", *changed), part("a100_resnet50", "nhwc")
    assert said("kernels-kinds-check", "changed = ") == near(*both, digits=0)


def test_which_operators_ask_for_them() -> None:
    rows, device, _ = trace("h100_timesformer")
    operators = {
        r["args"]["External id"]: r
        for r in rows
        if r["cat"] == "cpu_op" and "Input Dims" in r["args"]
    }
    times: dict[tuple[str, str], list[float]] = {}
    for row in device:
        if (asked := operators.get(row["args"].get("External id"))) and row["cat"] == "kernel":
            shape = str(asked["args"]["Input Dims"][0])
            times.setdefault((asked["name"], shape), []).append(row["dur"])
    whole = sum(time for _, time in kernels("h100_timesformer"))
    for (name, shape), took in sorted(times.items(), key=lambda item: -sum(item[1]))[:3]:
        assert name in printed()["kernels-top"]
        assert said("kernels-top", shape) == near(len(took), sum(took) / whole, digits=2)


def test_yours() -> None:
    for name in ("h100_bert", "a100_sam"):
        answer = printed()["yours-read"].split(f"{name}: ")[1].splitlines()[:2]
        numbers = [int(number) for number in re.findall(r"\d+", " ".join(answer))]
        count = len(trace(name)[1])
        assert numbers == [round(100 * share(name)), count, count, round(median(delays(name)))]
    assert "No row of a GPU" in printed()["yours-read"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pandas to HTA
@pytest.mark.parametrize("name", ["a100_resnet50", "h100_bert", "h100_timesformer", "a100_sam"])
def test_a_library_says_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from hta.trace_analysis import TraceAnalysis

    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    monkeypatch.setenv("HTA_DISABLE_NS_ROUNDING", "1")
    files = {0: str(GPU / f"{name}.json.gz")}
    found = TraceAnalysis(trace_files=files, include_last_profiler_step=True)
    row = found.get_temporal_breakdown(visualize=False).iloc[0]
    ours = share(name) * (window(name)[1] - window(name)[0])
    theirs = row["compute_time(us)"] + row["non_compute_time(us)"]
    assert theirs == pytest.approx(ours, rel=1e-6)
    if name in printed()["hta-measure"]:
        assert said("hta-measure", name)[::2] == near(ours, theirs, digits=1)
