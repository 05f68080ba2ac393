"""Many submissions at a time, each in a process of its own, which may be stopped at any time."""

import contextlib
import importlib
import multiprocessing
import os
import resource
import signal
import tempfile
import threading
import time
from multiprocessing.connection import wait

import torch

from grading.results import Grader
from grading.submissions import Submission


def grade(submissions: list[Submission], grader: Grader, at_once: int) -> None:
    """Grade what is new or changed."""
    # A worker starts with all that is imported here, and torch has computed nothing yet.
    context = multiprocessing.get_context("fork")
    todo = [submission for submission in submissions if not grader.is_up_to_date(submission)]
    if len(todo) < len(submissions):
        print(f"{len(submissions) - len(todo)} are graded already, and unchanged", flush=True)
    if len(todo) > at_once:  # also with this, which checks import
        importlib.import_module("torch._dynamo")
    running: dict[int, tuple] = {}
    waiting, finished = list(reversed(todo)), 0
    # An exception of a signal is lost where it meets the callback of a weak reference, so Ctrl+C
    # is only noted here, and ends the loop.
    interrupted = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        while waiting or running:
            if interrupted.is_set():
                raise KeyboardInterrupt
            while waiting and len(running) < at_once:
                submission = waiting.pop()
                process = context.Process(target=work, args=(grader, submission))
                process.start()
                running[process.sentinel] = (process, submission, time.monotonic())
            for sentinel in wait(list(running), timeout=0.5):
                process, submission, start = running.pop(sentinel)
                process.join()
                finished += 1
                if code := process.exitcode:
                    reason = f"grading it ended by force ({code}): too large or too slow"
                    grader.fail(submission, reason)
                progress = f"[{finished:3}/{len(todo)}] {summary(grader.result(submission))}"
                print(f"{progress} {time.monotonic() - start:6.1f} s", flush=True)
    finally:
        signal.signal(signal.SIGINT, before)
        for process, *_ in running.values():
            process.kill()
            process.join()


def summary(result: dict) -> str:
    points = sum(row["points"] for row in result["rows"].values())
    most = sum(row["of"] for row in result["rows"].values())
    return f"{result['student']:20} {result['lesson']:28} {points:5g} of {most:g}"


def work(grader: Grader, submission: Submission) -> None:
    """Grade one submission in this process, which a student's data may make large or slow."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    seconds = int(grader.limits.submission * 2) + 60
    for kind, most in [(resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, 16 * 10**9)]:
        with contextlib.suppress(ValueError):  # where less is allowed already
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
    os.chdir(tempfile.mkdtemp(dir=grader.scratch))  # what checks write goes there
    grader.grade(submission)


def end_with_parent() -> None:
    """A grader that was killed leaves no worker, because a kernel ends with its worker."""
    wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
