"""What torch.compile costs and gains on this CPU: CSV, one line for each function.

Run it with ``python scripts/compile_some.py``, or with the names of some functions,
as in ``python scripts/compile_some.py chain matmul``. It needs Linux or macOS and a
C++ compiler, and takes about a minute the first time. It uses one thread, and CPU
time, which leaves out waits.

first_s: CPU seconds of the first call, which compiles, with the C++ compiler's. The
first function also starts PyTorch's compiler. What earlier runs have compiled is in
the folder TORCHINDUCTOR_CACHE_DIR. (Precompiled headers are stored elsewhere.)
eager_ms, compiled_ms: medians of 10 calls each, in random order (recorded: of 30).
difference: the largest one between the results of the two, for equal inputs.
"""

import os
import random
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch._inductor.exc import InductorError

from helpers import workloads

torch.set_num_threads(1)
torch.manual_seed(0)
values = torch.rand(2**24)  # 67 MB
matrix = torch.rand(1024, 1024)
images, labels = workloads.synthetic_cifar(64)
images = images.to(memory_format=torch.channels_last)
model = workloads.SmallCNN().to(memory_format=torch.channels_last)


def one_pass(x):
    return x.add_(0.1)


def chain(x):
    return x.mul_(0.5).add_(0.1).mul_(0.9).add_(0.1)


def matmul(x):
    return x @ x


def matmul_and_relu(x):
    return (x @ x - 256).relu()


def training_step(x):
    loss = F.cross_entropy(model(x), labels)
    loss.backward()
    return loss.detach()


INPUTS = {
    torch.neg: torch.ones(9),
    one_pass: values,
    chain: values,
    matmul: matrix,
    matmul_and_relu: matrix,
    training_step: images,
}


def cpu_seconds(call: Callable[[], object]) -> float:
    """Processor seconds of this process and of those that it waited for."""
    before = os.times()
    call()
    return sum(os.times()[:4]) - sum(before[:4])


def milliseconds(call: Callable[[], object]) -> float:
    start = time.thread_time()
    call()
    return 1e3 * (time.thread_time() - start)


def measured(function: Callable, x: torch.Tensor) -> list[float]:
    """The four numbers of a line."""
    compiled = torch.compile(function)
    first = cpu_seconds(lambda: compiled(x.clone()))
    results = [version(x.clone()).clone() for version in (function, compiled)]
    difference = (results[0] - results[1]).abs().max().item()
    times: dict[Callable, list[float]] = {function: [], compiled: []}
    for _ in range(10):
        for version in random.sample([function, compiled], 2):
            times[version].append(milliseconds(lambda v=version: v(x)))
    return [first, *map(statistics.median, times.values()), difference]


def main(names: list[str]) -> None:
    by_name = {function.__name__: function for function in INPUTS}
    if unknown := set(names) - set(by_name):
        sys.exit(
            f"no function is named {', '.join(unknown)}: give {', '.join(by_name)}"
        )
    print("function,first_s,eager_ms,compiled_ms,difference")
    for name in names or by_name:
        function = by_name[name]
        try:
            numbers = measured(function, INPUTS[function].clone())
        except InductorError as error:
            sys.exit(
                f"torch.compile found no C++ compiler that it can use: {error}"
            )
        print(name, *(f"{number:.5g}" for number in numbers), sep=",", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
