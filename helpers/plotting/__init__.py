"""The pictures. Each function draws a figure and shows it.

Each picture comes with a text that says what it shows: title, axes, marks and values. It is the
picture's alt text, which a reader who cannot see the picture reads, and which the tests compare;
measured values in it carry the ``~`` mark of ``helpers.units``.
"""

# ruff: noqa: F401 - the public names
from helpers.plotting.bar_charts import bar_columns, bar_rows, bars, stacked_bars
from helpers.plotting.comparisons import compared, curves, dots, function_lines, ladder, requests
from helpers.plotting.distributions import histogram, intervals, spread
from helpers.plotting.grids import counts, errors, images, outcomes
from helpers.plotting.histories import history
from helpers.plotting.hot_spots import icicle, line_heat_map
from helpers.plotting.lanes import activity
from helpers.plotting.limits import memory, roofline
from helpers.plotting.moving import (
    alarms,
    alarms_by_limit,
    amdahl,
    break_even,
    budget,
    launches,
    recorded_lanes,
    roofline_by_batch,
    users,
    zoomable,
)
from helpers.plotting.pairs import points, profiler_shares
from helpers.plotting.reports import against_limits, calls
from helpers.plotting.timelines import launch_queues, strip, timeline
from helpers.plotting.work import limits_of_computer, speed_by_batch, training_steps
