"""Each function reads what its tool writes today."""

import cProfile
import json
import pstats
from pathlib import Path

import pytest
from pandas import DataFrame

from helpers import profiles


def test_cprofile_unfolded_divides_a_shared_callee() -> None:
    work, wait, top, half = (("m.py", n, name) for n, name in enumerate("awth", start=1))
    stats = pstats.Stats()
    stats.stats = {  # function: primitive, ncalls, tottime, cumtime, callers
        top: (1, 1, 1.0, 11.0, {}),
        half: (1, 1, 0.0, 4.0, {top: (1, 1, 0.0, 4.0)}),
        work: (2, 2, 2.0, 10.0, {top: (1, 1, 1.2, 6.0), half: (1, 1, 0.8, 4.0)}),
        wait: (2, 2, 8.0, 8.0, {work: (2, 2, 8.0, 8.0)}),
    }
    by_stack = profiles.call_stacks(stats, "m.t", least=0.0)
    assert by_stack == {
        ("m.t",): 1.0,
        ("m.t", "m.a"): pytest.approx(1.2),
        ("m.t", "m.a", "m.w"): pytest.approx(4.8),
        ("m.t", "m.h"): 0.0,
        ("m.t", "m.h", "m.a"): pytest.approx(0.8),
        ("m.t", "m.h", "m.a", "m.w"): pytest.approx(3.2),
    }
    cut = profiles.call_stacks(stats, "m.t", least=0.5)  # half is too small to be unfolded
    assert cut["m.t", "m.h"] == 4.0
    assert sum(cut.values()) == pytest.approx(sum(by_stack.values())) == pytest.approx(11.0)
    with pytest.raises(ValueError, match="root must name one function, but 'x' names 0"):
        profiles.call_stacks(stats, "x")


def test_times_of_a_function_are_added_up_and_a_recursion_counts_once(tmp_path: Path) -> None:
    called = {"function": "leaf", "time": 2.0, "children": []}
    root = {"function": "main", "time": 3.0, "children": [called, called]}
    (tmp_path / "p.tree").write_text(json.dumps({"root_frame": root}), encoding="utf-8")
    assert profiles.times_by_function(tmp_path / "p.tree") == {"main": 3, "leaf": 4}

    sampled = "main (a.py:1);f (a.py:2);f (a.py:2) 3\nmain (a.py:4) 1\n"
    (tmp_path / "p.raw").write_text(sampled, encoding="utf-8")
    assert profiles.times_by_function(tmp_path / "p.raw") == {"main": 4, "f": 3}
    assert profiles.samples_of(tmp_path / "p.raw") == 4


def test_collapsed_stacks_have_frames_of_their_own_and_files_of_children(tmp_path: Path) -> None:
    main = "tid:7;<frozen runpy>:_run_code:87;C:\\a.py:main:1"
    stacks = f"{main};a.py:A.f:2;a.py:A.f:3 3\n{main};<GC> 1\ntid:9;a.py:A.f:2 5\n"
    (tmp_path / "w.collapsed").write_text(stacks, encoding="utf-8")
    (tmp_path / "w_4711.collapsed").write_text("tid:8;a.py:child:9 2\n", encoding="utf-8")
    (tmp_path / "w_old.collapsed").write_text("tid:8;a.py:other:9 2\n", encoding="utf-8")
    times = profiles.times_by_function(tmp_path / "w.collapsed")
    assert times == {"_run_code": 4, "main": 4, "A.f": 8, "child": 2}
    assert profiles.samples_of(tmp_path / "w.collapsed") == 9  # not the child's


def test_scalene_s_functions_are_the_sums_of_their_lines(tmp_path: Path) -> None:
    parts = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")
    lines = [
        {"start_function_line": start} | dict.fromkeys(parts, share)
        for start, share in ((0, 1.0), (3, 2.0), (3, 4.0), (7, 8.0))
    ]
    functions = [{"line": "loop", "lineno": 3}, {"line": "other", "lineno": 7}]
    stacks = [[["a.py main:9;"], {"count": 5}], [["a.py main:9;", "a.py loop:4;"], {"count": 6}]]
    profile = {"files": {"a.py": {"lines": lines, "functions": functions}}, "stacks": stacks}
    (tmp_path / "p.json").write_text(json.dumps(profile), encoding="utf-8")
    assert profiles.times_by_function(tmp_path / "p.json") == {"loop": 18, "other": 24}
    assert profiles.samples_of(tmp_path / "p.json") == 11


def test_the_way_up_from_a_library_s_function_ends_where_it_divides() -> None:
    calls = DataFrame(
        [("layer", "pool", 4), ("call", "layer", 4), ("main", "call", 9), ("step", "call", 1)],
        columns=["caller", "callee", "ncalls"],
    )
    way = profiles.callers_up(calls, "pool")
    assert way.caller.tolist() == ["layer", "call", "step", "main"]
    assert len(profiles.callers_up(calls, "main")) == 0  # which nothing called
    circle = DataFrame([("b", "a", 1), ("a", "b", 1)], columns=["caller", "callee", "ncalls"])
    with pytest.raises(ValueError, match="the only caller of 'a' is one that it calls"):
        profiles.callers_up(circle, "a")


def _caller() -> None:
    for _ in range(3):
        _called()


def _called() -> None:
    pass


def test_the_overhead_of_a_row_grows_with_the_calls_that_it_makes() -> None:
    profile = cProfile.Profile()
    profile.runcall(_caller)
    stats = pstats.Stats(profile).strip_dirs()
    rows = profiles.overhead_in_rows(stats, per_call=1e-3)
    assert rows["calls made"][["test_profiles._caller", "test_profiles._called"]].tolist() == [3, 0]
    row = rows.loc["test_profiles._caller"]
    assert row.overhead == pytest.approx(3e-3)
    assert row["overhead / tottime"] == pytest.approx(3e-3 / row.tottime)
    assert profiles.profile_key(_caller) in stats.stats


def test_imports_are_divided_at_the_end_of_a_module() -> None:
    listing = "".join(
        f"import time: {own:9} | {own:10} | {name}\n"
        for own, name in ((100, "  torch._C"), (300, "torch"), (50, "torch._dynamo"))
    )
    parts = profiles.import_seconds(profiles.import_times(listing), "torch")
    assert parts == pytest.approx((400e-6, 50e-6))


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (r"C:\work\train.py", "train.main"),
        (r"\\server\share\package\__init__.py", "package.main"),
        ("/work/package/__init__.py", "package.main"),
        ("train.py", "train.main"),
        ("<string>", "<string>.main"),
    ],
)
def test_a_profile_of_any_system_names_its_functions(file: str, name: str) -> None:
    stats = pstats.Stats()
    stats.stats = {(file, 10, "main"): (1, 1, 0.1, 2.0, {})}
    assert profiles.function_rows(stats).index.tolist() == [name]


def test_folded_stacks_may_have_fractions_and_empty_lines() -> None:
    assert profiles.folded_stacks("a;b 1\r\na;b 2\r\n\r\na 0.5\n\n") == {("a", "b"): 3, ("a",): 0.5}
    sentence = "text must hold lines such as 'main;work 17', but got 'main;work'"
    with pytest.raises(ValueError, match=sentence):
        profiles.folded_stacks("a;b 1\nmain;work\n")


def test_memory_profiler_before_0_58_had_no_occurrences() -> None:
    old = """Line #    Mem usage    Increment   Line Contents
================================================
     5     38.9 MiB      0.0 MiB   @profile
     6                             # a comment
     7     46.5 MiB     -7.5 MiB       3   # a table of today would have a count here
"""
    table = profiles.memory_profiler(old)
    assert table["Increment"].to_dict() == {5: 0.0, 7: -7.5 * 2**20}
    assert "Occurrences" not in table
    new = old.replace("  Line Contents", " Occurrences   Line Contents")
    assert profiles.memory_profiler(new)["Occurrences"].to_dict() == {7: 3}
    with pytest.raises(ValueError, match="text must hold a table of memory_profiler, but got 'x'"):
        profiles.memory_profiler("x")
