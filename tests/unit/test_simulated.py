"""What only pretends to work takes the time that it was given."""

import time

from helpers.simulated import Device, Work


def test_work_keeps_the_processor_at_work_only_if_it_is_busy() -> None:
    taken = []
    for busy in (False, True):
        start = time.process_time()
        assert Work([0.1], busy=busy)() == 1
        taken.append(time.process_time() - start)
    assert taken[1] > 3 * taken[0]


def test_work_that_is_done_ahead_makes_its_caller_wait_only_for_the_rest(clock) -> None:
    work, waits = Work([0.5, 0.25], ahead=True), []
    for elsewhere in (0.0, 0.125, 1.0, 0.0):
        clock.sleep(elsewhere)
        start = clock.now
        work()
        waits.append(clock.now - start)
    assert waits == [0.5, 0.125, 0.0, 0.25]
    assert work.taken == waits


def test_work_keeps_how_long_its_calls_really_took(clock, monkeypatch) -> None:
    late = iter([0.0, 0.25])  # how much later than asked for the system wakes a sleeper
    sleep = clock.sleep
    monkeypatch.setattr(clock, "sleep", lambda seconds: sleep(seconds + next(late)))
    work = Work([0.5])
    work()
    work()
    assert work.taken == [0.5, 0.75]


def test_a_device_works_through_its_queue_while_its_caller_goes_on(clock) -> None:
    device, start = Device([0.5, 0.25], waiting=1.0, launch=0.125), clock.now
    for _ in range(3):
        device()
    assert clock.now - start == 3 * 0.125
    device.synchronize()
    assert clock.now - start == 1.0 + 0.5 + 2 * 0.25
    finished = clock.now
    clock.sleep(1.0)
    device.synchronize()
    assert device.returns == [finished]


def test_a_device_counts_how_often_its_caller_synchronises_between_two_calls(clock) -> None:
    device = Device([0.5])
    device.synchronize()  # before the first call
    for times in (0, 1, 2):  # after each of three calls
        device()
        for _ in range(times):
            device.synchronize()
    assert device.breaks == 1  # not after the last call
    device()
    assert device.breaks == 2
