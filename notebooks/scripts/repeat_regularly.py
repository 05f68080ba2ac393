"""Repeat the same 20 milliseconds: a program to test regular samples on.

Run it with ``python scripts/repeat_regularly.py --seconds 3``. Every 20
milliseconds, ``first`` waits for 10 milliseconds and then ``second`` for 10
milliseconds. They wait, because a busy computer disturbs waits less than work. When
the program begins, it prints ``ready``.
"""

import argparse
import time

PERIOD = 0.02


def first(end: float) -> None:
    time.sleep(max(0, end - time.perf_counter()))


def second(end: float) -> None:
    time.sleep(max(0, end - time.perf_counter()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Repeat the same 20 ms.")
    parser.add_argument(
        "--seconds", type=float, default=3, help="how long (default: 3)"
    )
    seconds = parser.parse_args().seconds

    print("ready", flush=True)
    start = time.perf_counter()
    for number in range(round(seconds / PERIOD)):
        begin = start + number * PERIOD
        first(begin + PERIOD / 2)
        second(begin + PERIOD)


if __name__ == "__main__":
    main()
