"""Twelve small functions for lesson 16: which of them become one graph?

Each adds to a tensor and multiplies it, and does something else before, between or
in these operations.
"""

import logging

import numpy as np
import torch


def nothing_else(x):
    x = x + 1
    return x * 2


def loop(x):
    for _ in range(3):
        x = x + 1
    return x * 2


def branch_on_shape(x):
    x = x + 1
    if x.shape[0] > 2:
        x = -x
    return x * 2


def numpy_function(x):
    x = x + 1
    x = torch.from_numpy(np.sin(x.numpy()))
    return x * 2


def print_first(x):
    print(end="")
    x = x + 1
    return x * 2


def print_between(x):
    x = x + 1
    print(end="")
    return x * 2


def branch_on_value(x):
    x = x + 1
    if x.sum() > 0:
        x = -x
    return x * 2


def item(x):
    x = x + 1
    return x * x.sum().item()


def log_between(x):
    x = x + 1
    logging.info("an addition is done")
    return x * 2


def helper_that_prints(x):
    x = print_between(x)
    return x * 2


def print_in_loop(x):
    x = x * 2
    for _ in range(3):
        x = x + 1
        print(end="")
    return x


def item_in_loop(x):
    x = x * 2
    for _ in range(3):
        x = x + x.sum().item()
    return x


FUNCTIONS = [
    nothing_else,
    loop,
    branch_on_shape,
    numpy_function,
    print_first,
    print_between,
    branch_on_value,
    item,
    log_between,
    helper_that_prints,
    print_in_loop,
    item_in_loop,
]
