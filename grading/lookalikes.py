"""Pairs of submissions for a person to look at, because they share what few others have."""

import ast
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations

ALIKE = 0.8  # the share of their rarer parts that two near-identical submissions have in common
LONGEST = 50_000  # characters of an answer that are compared
LENGTH = 5  # consecutive nodes of an answer's syntax tree that are compared as one part


def find_pairs(results: Iterable[dict]) -> Iterator[list]:
    """(lesson, student, other student, share of their rarer parts that they have in common)."""
    by_lesson: dict[str, dict[str, set]] = defaultdict(dict)
    for result in results:
        sources = [source[:LONGEST] for source in result["answers"].values()]
        parts = set().union(*map(parts_of, sources))
        if parts:
            by_lesson[result["lesson"]][result["student"]] = parts
    for lesson, students in sorted(by_lesson.items()):
        counts = Counter(part for parts in students.values() for part in parts)
        rare = max(2, len(students) // 4)  # what more students have comes from the task itself
        own = {
            student: {part for part in parts if counts[part] <= rare}
            for student, parts in students.items()
        }
        for one, other in combinations(sorted(own), 2):
            both = own[one] | own[other]
            share = len(own[one] & own[other]) / len(both) if len(both) >= 2 * LENGTH else 0
            if share >= ALIKE:
                yield [lesson, one, other, f"{share:.0%}"]


def parts_of(source: str) -> set[str]:
    """The parts of an answer, whatever its names, comments and layout."""
    try:
        names: dict[str, str] = {}
        nodes = []
        for node in ast.walk(ast.parse(source)):
            name = getattr(node, "id", getattr(node, "arg", None))
            if name is not None:
                name = names.setdefault(name, f"name {len(names)}")
            value = repr(node.value)[:80] if isinstance(node, ast.Constant) else ""
            nodes.append(f"{type(node).__name__} {name or getattr(node, 'attr', '')} {value}")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        nodes = re.findall(r"\w+", source)
    parts = ["\n".join(nodes[k : k + LENGTH]) for k in range(max(1, len(nodes) - LENGTH + 1))]
    return {hashlib.sha256(part.encode(errors="replace")).hexdigest()[:16] for part in parts}
