"""The old names of ``helpers.profiles`` and ``helpers.traces``, until the lessons use the new."""

# ruff: noqa: F401
from helpers.profiles import call_rows as profile_calls
from helpers.profiles import call_stacks as profile_stacks
from helpers.profiles import equal_batches as same_batch
from helpers.profiles import folded_stacks as stacks
from helpers.profiles import function_rows as profile_rows
from helpers.profiles import (
    import_times,
    line_rows,
    memory_profiler,
    memray,
    scalene_lines,
    times_by_function,
)
from helpers.traces import chrome_trace, nsys_command, spans
from helpers.traces import require_tables as nsys_has
