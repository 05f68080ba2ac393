"""Five functions whose work is known: a program to test profilers on.

Run it with ``python scripts/known_split.py --rounds 5``. ``one``, ``two`` and
``three`` do 1, 2 and 3 equal units of work. ``calls`` does one unit, and calls a
function for each number. ``native`` is one call into C, with no event in between.
The output is what the program's own clock says: for each function the seconds of
each round, as JSON.
"""

import argparse
import json
import time

COUNT = 150_000


def one() -> None:
    total = 0
    for number in range(COUNT):
        total += number & 7


def two() -> None:
    total = 0
    for number in range(2 * COUNT):
        total += number & 7


def three() -> None:
    total = 0
    for number in range(3 * COUNT):
        total += number & 7


def calls() -> None:
    total = 0
    for number in range(COUNT):
        total += low_bits(number)


def low_bits(number: int) -> int:
    return number & 7


def native() -> None:
    sum(range(3 * COUNT))


def main() -> None:
    parser = argparse.ArgumentParser(description="Spin in five functions.")
    parser.add_argument(
        "--rounds", type=int, default=5, help="how many (default: 5)"
    )
    rounds = parser.parse_args().rounds

    parts = [one, two, three, calls, native]
    seconds: dict[str, list[float]] = {part.__name__: [] for part in parts}
    for _ in range(rounds):
        for part in parts:
            start = time.perf_counter()
            part()
            seconds[part.__name__].append(time.perf_counter() - start)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
