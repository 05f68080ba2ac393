"""A function and a GPU that only pretend to work, for a known time: exercises let you time them."""

import time
from dataclasses import dataclass, field


@dataclass
class Work:
    """A function to be timed: its n-th call takes ``seconds[n]``, further ones as the last.

    It sleeps all that time, unless it is ``busy``: then it keeps the processor at work. If it works
    ``ahead``, as the worker of a loader does, each further one begins when the call before it has
    returned, so a call waits only for what is left. A call may take longer than it should, on a
    computer that is busy: how long each one really took is in ``taken``.
    """

    seconds: list[float]
    calls: int = 0
    busy: bool = False
    ahead: bool = False
    returned: float = 0.0  # when the last call did, on the clock of time.perf_counter
    taken: list[float] = field(default_factory=list)  # seconds, a value for each call

    def __call__(self) -> int:
        """Take the time, and return the number of calls so far."""
        called = time.perf_counter()
        begins = self.returned if self.ahead and self.calls else called
        end = begins + self.seconds[min(self.calls, len(self.seconds) - 1)]
        while self.busy and time.perf_counter() < end:
            pass
        time.sleep(max(0.0, end - time.perf_counter()))
        self.calls += 1
        self.returned = time.perf_counter()
        self.taken.append(self.returned - called)
        return self.calls


@dataclass
class Device:
    """A simulated GPU. Its n-th call requests ``seconds[n]`` of work, further ones as the last.

    A call returns after ``launch`` seconds, in which the device can do earlier work;
    ``synchronize`` returns when all is done. Before the first call, ``waiting`` seconds of another
    program's work are in the queue. ``breaks`` counts how often its caller synchronised between two
    calls; ``returns`` has when ``synchronize`` really returned, on the clock of time.perf_counter,
    but of several without a call between them only the first.
    """

    seconds: list[float]
    waiting: float = 0.0
    calls: int = 0
    free: float = 0.0  # when all is done, on the clock of time.perf_counter
    launch: float = 0.0
    breaks: int = 0
    synchronised: bool = False  # since the last call
    returns: list[float] = field(default_factory=list)

    def __call__(self) -> int:
        """Request one piece of work, and return the number of calls so far."""
        done = self._all_done()
        time.sleep(self.launch)
        begins = max(done, time.perf_counter())
        self.free = begins + self.seconds[min(self.calls, len(self.seconds) - 1)]
        self.breaks += self.calls > 0 and self.synchronised
        self.synchronised = False
        self.calls += 1
        return self.calls

    def synchronize(self) -> None:
        """Wait until all requested work is done."""
        time.sleep(max(0.0, self._all_done() - time.perf_counter()))
        if not self.synchronised:
            self.returns.append(time.perf_counter())
        self.synchronised = True

    def _all_done(self) -> float:
        self.free = self.free or time.perf_counter() + self.waiting
        return self.free
