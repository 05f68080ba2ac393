"""Groups of submissions for a person to look at, because they share what few others have."""

import ast
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

from tools import exercises

SAME = 0.9  # the part of their parts that copies of one submission have in common
ALIKE = 0.8  # the part of their rarer parts that two near-identical submissions have in common
LONGEST = 50_000  # characters of an answer that are compared
LENGTH = 5  # consecutive nodes of an answer's syntax tree that are compared as one part
SOLUTION = "the solution"
Names = dict[str, set[str]]  # a submission to its parts


def find_groups(results: Iterable[dict], sets: Path) -> Iterator[list]:
    """(lesson, group, student, whom they are most like, the common part) for each in a group.

    A group is found among what is neither in the notebook that students received nor, with whatever
    names, in the solution. Those who hand in the solution with its own names are a group as well.
    """
    by_lesson: dict[str, dict[str, dict]] = defaultdict(dict)
    for result in results:
        by_lesson[result["lesson"]][result["student"]] = result["answers"]
    for lesson, answers in sorted(by_lesson.items()):
        solution, known = of_the_course(sets / lesson / f"{lesson}.ipynb")
        number = 0
        parts = {student: parts_of_all(of.values()) - known for student, of in answers.items()}
        for group in groups(parts):
            number += 1
            for student in sorted(group):
                others = {one: common(parts[student], parts[one]) for one in group - {student}}
                most = max(sorted(others), key=others.get)
                yield [lesson, number, student, most, f"{others[most]:.0%}"]
        for student, of in sorted(answers.items()):
            if solution and solution <= parts_of_all(of.values(), renamed=False):
                yield [lesson, number + 1, student, SOLUTION, "100%"]


def of_the_course(path: Path) -> tuple[set[str], set[str]]:
    """The parts of a set's longer solutions, with names, and all parts that the course gave."""
    if not path.exists():
        return set(), set()
    cells = [cell.source for cell in exercises.Set(path).code if cell.id.endswith("-answer")]
    found = set().union(*(parts_of(source, renamed=False) for source in cells))
    # All that a student was given: an answer that is not written yet, and the course's own one.
    given = [exercises.SOLUTION.sub(r"\1...", source) for source in cells]
    return found if len(found) >= 4 * LENGTH else set(), parts_of_all([*cells, *given])


def groups(parts: Names) -> list[set[str]]:
    """Submissions that are copies of one another, or that share most of what few others have."""
    copies = connected(parts, lambda one, other: common(parts[one], parts[other]) >= SAME)
    # What many have comes from the task itself, but copies of one submission count once.
    counts = Counter(part for group in copies for part in set().union(*(parts[s] for s in group)))
    rare = max(2, len(copies) // 4)
    own = {name: {part for part in of if counts[part] <= rare} for name, of in parts.items()}

    def alike(one: str, other: str) -> bool:
        return len(own[one] | own[other]) >= 2 * LENGTH and common(own[one], own[other]) >= ALIKE

    return [group for group in connected(own, alike) if len(group) > 1]


def connected(names: Iterable[str], alike: object) -> list[set[str]]:
    """The groups into which pairs that are alike divide the names."""
    group = {name: {name} for name in names}
    for one, other in combinations(sorted(group), 2):
        if group[one] is not group[other] and alike(one, other):
            group[one] |= group[other]
            for name in group[other]:
                group[name] = group[one]
    return [each for name, each in sorted(group.items()) if name == min(each)]


def common(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def parts_of_all(sources: Iterable[str], renamed: bool = True) -> set[str]:
    return set().union(*(parts_of(source[:LONGEST], renamed) for source in sources))


def parts_of(source: str, renamed: bool = True) -> set[str]:
    """The parts of an answer, whatever its comments, its layout and, if ``renamed``, its names."""
    try:
        statements = [nodes_of(statement, renamed) for statement in ast.parse(source).body]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        statements = [re.findall(r"\w+", source)]
    parts = {
        "\n".join(nodes[k : k + LENGTH])
        for nodes in statements
        for k in range(max(1, len(nodes) - LENGTH + 1))
    }
    return {hashlib.sha256(part.encode(errors="replace")).hexdigest()[:16] for part in parts}


def nodes_of(statement: ast.stmt, renamed: bool) -> list[str]:
    """The nodes of a statement's syntax tree, without docstrings."""
    names: dict[str, str] = {}
    nodes = []
    for node in ast.walk(statement):
        if hasattr(node, "body") and isinstance(node.body, list) and len(node.body) > 1:
            first = getattr(node.body[0], "value", None)
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                node.body = node.body[1:]
        name = getattr(node, "id", getattr(node, "arg", None))
        if name is not None and renamed:
            name = names.setdefault(name, f"name {len(names)}")
        value = repr(node.value)[:80] if isinstance(node, ast.Constant) else ""
        nodes.append(f"{type(node).__name__} {name or getattr(node, 'attr', '')} {value}")
    return nodes
