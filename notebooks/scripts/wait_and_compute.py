"""Profile a program that waits and then computes, once for each of two clocks."""

import cProfile
import time


def wait():
    time.sleep(0.2)


def compute():
    total = 0
    for number in range(500_000):
        total += number * number
    return total


def main():
    wait()
    compute()


with cProfile.Profile() as usual:
    main()
usual.dump_stats("usual.prof")

with cProfile.Profile(timer=time.process_time) as cpu:
    main()
cpu.dump_stats("process_time.prof")
