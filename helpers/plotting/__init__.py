"""The pictures. Each function draws a figure of its own and shows it, or draws on a given ``ax``.

With every picture goes a sentence that says what it shows: title, axes, marks and values. It is
the picture's alt text, what a reader who cannot see it reads, and what the tests compare; measured
values in it carry the ``~`` mark of ``helpers.units``. A function that was given an ``ax`` shows
nothing and returns that sentence, for the caller to put together with others and ``show``.
"""

# ruff: noqa: F401 - the public names
from helpers.plotting._canvas import show
from helpers.plotting.distributions import bars, histogram, images, spread
from helpers.plotting.limits import memory, roofline
from helpers.plotting.traces import icicle, line_heat_map, timeline
