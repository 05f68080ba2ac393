"""Programs whose graphs are known by a rule: the compiler that is installed agrees."""

import logging
import os
import random
import sys
import time

import numpy as np
import pytest
import torch

from helpers import compiling

NEEDED = {"torch": torch, "np": np, "time": time, "os": os, "sys": sys}
NEEDED |= {"log": logging.getLogger("program")}


def each(statements: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("statement", statements)


@each(compiling.OUTSIDE + compiling.VALUE)
@pytest.mark.filterwarnings("ignore:Dynamo does not know")
@torch.no_grad()
def test_a_statement_that_breaks_the_graph_does_so_at_its_first_line(statement: str) -> None:
    found = explained(statement)
    assert (found.graph_count, [reason.user_stack[0].lineno for reason in found.break_reasons]) == (
        2,
        [3],
    )


@each(compiling.HARMLESS)
@torch.no_grad()
def test_a_harmless_statement_is_part_of_one_graph(statement: str) -> None:
    assert (explained(statement).graph_count, explained(statement).graph_break_count) == (1, 0)


def explained(statement: str) -> object:
    """What ``explain`` finds in a function with operators before and after the statement."""
    torch.compiler.reset()
    lines = ["def f(x):", "x = x - 1", *statement.split("|"), "return x * 2"]
    names = dict(NEEDED)
    exec(compile("\n    ".join(lines), "program", "exec"), names)
    return torch._dynamo.explain(names["f"])(torch.linspace(0, 2, 20).reshape(5, 4))


def test_a_drawn_program_breaks_three_times_for_both_reasons() -> None:
    for number in range(50):
        program = compiling.broken_program(random.Random(number))
        pairs = compiling.breaks_of_program(random.Random(number))
        lines = program.splitlines()
        assert len(pairs) == 3
        assert {reason for _, reason in pairs} == {"value", "outside"}
        starts = [statement.split("|")[0] for statement in compiling.OUTSIDE]
        for line, reason in pairs:
            assert (lines[line - 1].strip() in starts) == (reason == "outside")


@pytest.mark.everything
@torch.no_grad()
def test_eight_programs_follow_the_rules_of_the_lesson() -> None:
    for number in range(6):
        programs = compiling.eight_programs(random.Random(number))
        counts = {name: compiling.count_graphs(text) for name, text in programs.items()}
        assert {0, 1, 2} <= {counts[name] for name in "ABCD"} <= {0, 1, 2, 3}
        assert 1 in (several := {counts[name] for name in "EFGH"})
        assert max(several) > 2


@torch.no_grad()
def test_a_counter_compiles_for_each_step_until_the_limit() -> None:
    for steps, graphs in ((3, 3), (12, 8)):
        found = compiling.trained("", 10, ["train"] * steps)
        assert (found["graphs"], found["steps"], found["errors"]) == (graphs, [steps, 0], [])
        eager = compiling.trained("", 10, ["train"] * steps, compiling=False)
        torch.testing.assert_close(found["outputs"], eager["outputs"])


@pytest.mark.parametrize(
    ("text", "graphs", "errors"),
    [
        ("def double(x): return [2 * x]", 1, []),
        ("def double(x): return [2 * y]", 0, ["NameError: name 'y' is not defined"]),
        ("def other(x): return [2 * x]", 0, ["KeyError: 'double'"]),
        ("@torch.compiler.disable\ndef double(x): return [2 * x]", 0, None),
        ("def double(x): return [x.mul_(2)]", 1, ["ValueError: double has changed its argument"]),
        ("def double(x): return [2 * x if x.sum() > 0 else x]", 0, None),
    ],
)
def test_a_function_is_compiled_whole_or_there_is_an_error(
    text: str, graphs: int, errors: list[str] | None
) -> None:
    results, counted, found = compiling.compiled_calls(text, "double", [[torch.ones(3)]] * 2)
    assert counted == graphs
    assert len(found) == 1 if errors is None else found == errors
    assert len(results) == (0 if found else 2)


def test_a_function_that_is_not_compiled_gives_the_same() -> None:
    text = "def double(x): return [2 * x if x.sum() > 0 else x]"
    results, graphs, errors = compiling.compiled_calls(text, "double", [[torch.ones(3)]], False)
    assert (graphs, errors) == (0, [])
    assert results[0][0].tolist() == [2, 2, 2]
