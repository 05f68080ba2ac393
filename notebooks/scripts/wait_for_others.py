"""Wait, or let a thread and a process compute: a program to test profilers on.

Run it with ``python scripts/wait_for_others.py``. ``computes`` keeps one core busy,
``sleeps`` sleeps, and ``waits_in_one_call`` waits in a single call into C. A child
process computes meanwhile (not on Windows), and a thread computes at the end. With
``--warm-up``, it first computes for a while, because Scalene's first samples take
long.
"""

import argparse
import ctypes
import multiprocessing
import threading
import time

SECONDS = 0.15


def warms_up(seconds: float) -> None:
    end = time.perf_counter() + 3 * seconds
    while time.perf_counter() < end:
        sum(range(1_000))


def computes(seconds: float = SECONDS) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1_000))


def sleeps(seconds: float = SECONDS) -> None:
    time.sleep(seconds)


def waits_in_one_call(seconds: float = SECONDS) -> None:
    """Wait in C for a lock that nothing releases, until the time is over."""
    python = ctypes.CDLL("Python itself", handle=ctypes.pythonapi._handle)
    python.PyThread_allocate_lock.restype = ctypes.c_void_p
    lock = ctypes.c_void_p(python.PyThread_allocate_lock())
    python.PyThread_acquire_lock(lock, 1)
    microseconds = ctypes.c_longlong(int(1e6 * seconds))
    python.PyThread_acquire_lock_timed(lock, microseconds, 0)


def computes_in_thread(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1_000))


def computes_in_child(seconds: float) -> None:
    end = time.perf_counter() + 3 * seconds  # py-spy takes some time to find it
    while time.perf_counter() < end:
        sum(range(1_000))


def main() -> None:
    parser = argparse.ArgumentParser(description="Compute, sleep and wait.")
    parser.add_argument("--warm-up", action="store_true", help="compute first")
    words = f"what each wait takes (default: {SECONDS})"
    parser.add_argument("--seconds", type=float, default=SECONDS, help=words)
    options = parser.parse_args()
    seconds = options.seconds
    if options.warm_up:
        warms_up(seconds)

    computes(seconds)
    child = None
    if "fork" in multiprocessing.get_all_start_methods():  # not on Windows
        context = multiprocessing.get_context("fork")
        child = context.Process(target=computes_in_child, args=[seconds])
        child.start()
    sleeps(seconds)
    waits_in_one_call(seconds)
    thread = threading.Thread(target=computes_in_thread, args=[seconds])
    thread.start()
    thread.join()
    if child:
        child.join()


if __name__ == "__main__":
    main()
