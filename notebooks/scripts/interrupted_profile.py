"""Profile a function while another thread, which began earlier, returns.

It prints the names of this file's functions that have a row in the profile.
"""

import cProfile
import pstats
import threading

started, finish = threading.Event(), threading.Event()


def background():
    started.set()
    finish.wait()


def outer():
    inner()


def inner():
    let_the_thread_return()
    last()


def let_the_thread_return():
    finish.set()
    thread.join()


def last():
    sum(range(1_000))


thread = threading.Thread(target=background)
thread.start()
started.wait()
profile = cProfile.Profile()
profile.enable()
outer()
profile.disable()

names = {name for file, _, name in pstats.Stats(profile).stats if file == __file__}
print(*sorted(names))
