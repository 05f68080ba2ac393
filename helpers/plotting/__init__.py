"""The pictures. Each function draws a figure and shows it.

Each picture comes with a text that says what it shows: title, axes, marks and values. It is the
picture's alt text, which a reader who cannot see the picture reads, and which the tests compare;
measured values in it carry the ``~`` mark of ``helpers.units``.
"""

# ruff: noqa: F401 - the public names
from helpers.plotting.bar_charts import bar_rows, bars, stacked_bars
from helpers.plotting.comparisons import (
    against,
    compared,
    curves,
    dots,
    function_lines,
    ladder,
    requests,
)
from helpers.plotting.distributions import histogram, intervals, spread
from helpers.plotting.grids import errors, images
from helpers.plotting.hot_spots import icicle, line_heat_map
from helpers.plotting.lanes import activity
from helpers.plotting.limits import memory, roofline
from helpers.plotting.moving import (
    amdahl,
    budget,
    launches,
    roofline_by_batch,
    users,
    zoomable,
)
from helpers.plotting.pairs import dumbbells, points, profiler_shares
from helpers.plotting.reports import against_limits, bar_columns, calls
from helpers.plotting.timelines import launch_queues, strip, timeline
from helpers.plotting.tool_results import bar_grid, outcomes
from helpers.plotting.work import (
    columns_of_profiles,
    count_errors,
    counts,
    forward_and_step,
    limits_of_computer,
    numbers,
    overhead_of_rows,
    pairs_of_times,
    parts_of_time,
    ratio_intervals,
    ratios,
    rows_of_numbers,
    rows_of_times,
    speed_by_batch,
    time_ratios,
    times,
    training_steps,
)
