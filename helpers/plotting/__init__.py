"""The pictures. Each function draws a figure and shows it.

Each picture comes with a text that says what it shows: title, axes, marks and values. It is the
picture's alt text, which a reader who cannot see the picture reads, and which the tests compare;
measured values in it carry the ``~`` mark of ``helpers.units``.
"""

# ruff: noqa: F401 - the public names
from helpers.plotting.distributions import (
    bar_rows,
    bars,
    dumbbells,
    histogram,
    images,
    intervals,
    profiler_shares,
    spread,
    stacked_bars,
)
from helpers.plotting.grids import errors
from helpers.plotting.limits import memory, roofline
from helpers.plotting.points import points
from helpers.plotting.traces import icicle, launch_queues, line_heat_map, strip, timeline
