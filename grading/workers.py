"""Many submissions at a time, each in a process of its own, which may be stopped at any time."""

import contextlib
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from multiprocessing.connection import Connection, wait

import torch

from grading.results import Grader
from grading.submissions import Submission
from grading.tables import one_line, points

MEMORY = 16  # GB of addresses that a worker may have


def grade(submissions: list[Submission], grader: Grader, at_once: int) -> None:
    """Grade what is new or changed."""
    # A worker starts with all that is imported here, and torch has computed nothing yet.
    context = multiprocessing.get_context("fork")
    todo = [item for item in submissions if grader.again or not grader.is_up_to_date(item)]
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
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=work, args=(grader, submission, sender))
                process.start()
                sender.close()  # the worker has it
                running[process.sentinel] = (process, receiver, submission, time.monotonic())
            for sentinel in wait(list(running), timeout=0.5):
                process, receiver, submission, start = running.pop(sentinel)
                process.join()
                finished += 1
                if reason := failure(process.exitcode, receiver):
                    grader.fail(submission, reason)
                receiver.close()
                progress = f"[{finished:3}/{len(todo)}] {summary(grader.result(submission))}"
                progress += f" {time.monotonic() - start:6.1f} s"
                print(f"{progress}  {one_line(reason)}".rstrip(), flush=True)
    finally:
        signal.signal(signal.SIGINT, before)
        for process, *_ in running.values():
            process.kill()
            process.join()


def summary(result: dict) -> str:
    came, most = points(result)
    return f"{result['student']:20} {result['lesson']:28} {came:5g} of {most:g}"


def failure(code: int, receiver: Connection) -> str:
    """Why a worker could not grade a submission, or ""."""
    if code == 0:
        return ""
    with contextlib.suppress(EOFError, OSError):  # it was killed, and sent nothing
        return receiver.recv_bytes().decode()
    match -code:
        case signal.SIGXCPU:
            return "grading it took too much CPU time"
        case signal.SIGKILL:
            return "grading it was killed, as Linux does when a computer's memory is full"
    return f"grading it ended by force ({signal.strsignal(-code) if code < 0 else code})"


def work(grader: Grader, submission: Submission, sender: Connection) -> None:
    """Grade one submission in this process, which a student's data may make large or slow.

    If this fails, send the reason, because it may be the grader's or the computer's own.
    """
    try:
        grade_one(grader, submission)
    except MemoryError:
        sender.send_bytes(f"grading it took more than {MEMORY} GB of memory".encode())
        sys.exit(1)
    except BaseException as error:
        if not isinstance(error, OSError):  # which says all, such as that a disk is full
            traceback.print_exc()
        sentence = f"grading it failed: {type(error).__name__}: {error}"[:2000]
        sender.send_bytes(sentence.encode(errors="backslashreplace"))
        sys.exit(1)


def grade_one(grader: Grader, submission: Submission) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    seconds = int(grader.limits.submission * 2) + 60
    for kind, most in [(resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, MEMORY * 10**9)]:
        with contextlib.suppress(ValueError):  # where less is allowed already
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
    os.chdir(tempfile.mkdtemp(dir=grader.scratch))  # what checks write goes there
    grader.grade(submission)


def end_with_parent() -> None:
    """A grader that was killed leaves no worker, because a kernel ends with its worker."""
    wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
