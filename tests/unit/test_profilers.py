import cProfile
import json
import pstats
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from helpers import profilers, profiles, terminal

CPU = [ProfilerActivity.CPU]


def test_a_profiler_that_is_not_here_has_no_profile(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert profilers.record("py-spy-of-nobody -o p.raw -- python p.py", tmp_path) == (None, "")
    monkeypatch.setattr(profilers, "find_spec", lambda name: None)
    assert profilers.record("python -m pyinstrument -o p.tree p.py", tmp_path) == (None, "")
    monkeypatch.setattr(sys, "version_info", (3, 14))
    sampling = "python -m profiling.sampling run --collapsed -o p.collapsed p.py"
    assert profilers.record(sampling, tmp_path) == (None, "")
    with pytest.raises(subprocess.CalledProcessError):
        profilers.record("python missing.py -o p.prof", tmp_path)


def test_a_recording_of_python_s_sampling_profiler_reads_like_a_profile(tmp_path: Path) -> None:
    without, row = profilers.recorded_share_of_calls(tmp_path)
    assert 0 < without < 0.5
    assert row.reported == pytest.approx(row.profiled, abs=0.1)
    assert 0.5 < row.slowdown < 2
    times = profiles.times_by_function(profilers.recorded("w.collapsed", tmp_path))
    assert {"computes", "computes_in_thread", "computes_in_child"} <= set(times)
    with pytest.raises(KeyError, match="other"):
        profilers.recorded("other.collapsed", tmp_path)


@pytest.mark.skipif(sys.version_info < (3, 15), reason="profiling.sampling is new in Python 3.15")
def test_python_s_sampling_profiler_runs_and_forgets_earlier_children(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("for _ in range(3_000_000): pass\n", encoding="utf-8")
    (tmp_path / "p_1.collapsed").write_text("tid:8;p.py:old:9 2\n", encoding="utf-8")
    command = "python -m profiling.sampling run --collapsed -o p.collapsed p.py"
    profile, _ = profilers.record(command, tmp_path)
    times = profiles.times_by_function(profile)
    assert times["<module>"] > 0
    assert "old" not in times
    failing = "python -m profiling.sampling attach 0 --collapsed -o p.collapsed"
    assert profilers.record(failing, tmp_path) == (None, "")


def test_scalene_imports_no_torch_beside_a_program_without_it(tmp_path: Path) -> None:
    pytest.importorskip("scalene")
    text = "import sys, time\nend = time.time() + 0.3\nwhile time.time() < end: pass\n"
    (tmp_path / "p.py").write_text(text + "print([name for name in sys.modules if name[0] == 't'])")
    command = "python -m scalene run --cpu-only -o p.json p.py"
    profile, printed = profilers.record(command, tmp_path)
    assert profile, printed
    assert "'time'" in printed
    assert "'torch'" not in printed


def test_a_function_s_time_is_compared_with_another_s() -> None:
    times = {"cProfile": {"computes": 2.0, "sleeps": 1.0}, "py-spy": {"computes": 50}}
    table = profilers.compared_with("computes", times, ["sleeps"])
    assert table.to_dict("index") == {"cProfile": {"sleeps": 0.5}, "py-spy": {"sleeps": 0}}


def test_samples_of_py_spy_are_found_at_their_lines(tmp_path: Path) -> None:
    raw = "main (a.py:9);erase (b.py:13) 7\nmain (a.py:9);erase (b.py:13) 1\nmain (a.py:9) 5\n"
    (tmp_path / "p.raw").write_text(raw)
    assert profilers.samples_by_line(tmp_path / "p.raw", "erase").to_dict() == {13: 8}
    assert profilers.samples_by_line(None, "erase").sum() == 0


def test_the_share_of_calls_comes_from_the_script_and_from_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(Path(__file__, "../../../notebooks/scripts/known_split.py").resolve(), tmp_path)
    command = "python -m cProfile -o s.prof known_split.py --rounds 1"
    runs, run = [], terminal.run
    monkeypatch.setattr(terminal, "run", lambda *words: runs.append(run(*words)) or runs[-1])
    without, table = profilers.shares_of_calls({"cProfile": command}, tmp_path)
    row = table.loc["cProfile"]
    _, plain = runs  # the profiled run, and then the one without a profiler
    seconds = {name: sum(times) for name, times in json.loads(plain.stdout).items()}
    assert without == pytest.approx(seconds["calls"] / sum(seconds.values()))
    assert row.slowdown > 1.2
    assert row.reported == pytest.approx(row.profiled, abs=0.1)


def work(times: int) -> int:
    return sum(abs(number) for number in range(times))


def test_calls_to_other_modules_are_told_from_a_module_s_own() -> None:
    profiler = cProfile.Profile()
    profiler.runcall(work, 10)
    stats = pstats.Stats(profiler)
    assert profilers.share_of_callees(stats, "test_profilers.work").share["builtins.sum"] <= 1
    found = profilers.calls_out_of(stats, "test_profilers").set_index("callee").label
    assert found["builtins.abs"].startswith("abs in ")
    assert found["builtins.abs"].endswith(", 10 calls")


def test_a_profile_s_peak_is_the_most_bytes_at_once() -> None:
    with profile(activities=CPU, profile_memory=True) as prof:
        for _ in range(3):
            torch.ones(1000)  # freed at once
        kept = torch.ones(500)
    assert 4_000 <= profilers.peak_bytes(prof) < 6_000
    assert kept.nbytes == 2_000


def test_only_the_outermost_operators_count_once_per_round() -> None:
    x = torch.rand(8, 8)
    with profile(activities=CPU) as prof:
        for _ in range(2):
            torch.nn.functional.linear(x, x).relu()
    table = profilers.outermost_operators(prof, rounds=2)
    assert table["calls"].to_dict() == {"linear": 1, "relu": 1}
    assert table["time"].sum() == pytest.approx(1)


def test_operators_are_divided_by_the_dtype_of_their_input() -> None:
    with profile(activities=CPU, record_shapes=True) as prof:
        torch.rand(8).double().exp()
        torch.rand(8).exp()
    counts = profilers.operators_by_dtype(prof)["count"]
    assert counts["aten::exp"].to_dict() == {"double": 1, "float": 1}
