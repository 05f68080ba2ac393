"""What a profile of torch.profiler holds, as tables and for charts."""

from pandas import DataFrame
from torch.profiler import profile


def operator_table(prof: profile) -> DataFrame:
    """A row for each name, with the columns of the profiler's own table; times in microseconds."""
    columns = ["Name", "Self CPU in µs", "CPU total in µs", "# of Calls"]
    rows = [
        (row.key, row.self_cpu_time_total, row.cpu_time_total, row.count)
        for row in prof.key_averages()
    ]
    return DataFrame(rows, columns=columns).set_index("Name")


def self_seconds(prof: profile) -> dict[str, float]:
    """The time in seconds of each operator or range, without those that it called."""
    return {row.key: row.self_cpu_time_total / 1e6 for row in prof.key_averages()}


def longest_chain(prof: profile, name: str, depth: int) -> dict[tuple[str, ...], float]:
    """The first call of an operator and, level by level, the longest of the calls below it.

    At most ``depth`` levels, each with its own ("self") time in seconds, for ``plotting.icicle``.
    Raises a StopIteration if the profile holds no event of this ``name``.
    """
    event = next(event for event in prof.events() if event.name == name)
    chain, stacks = [], {}
    while event is not None and len(chain) < depth:
        chain.append(event.name)
        stacks[tuple(chain)] = event.self_cpu_time_total / 1e6
        event = max(event.cpu_children, key=lambda child: child.cpu_time_total, default=None)
    return stacks


def counted_flop(prof: profile) -> DataFrame:
    """The operators for which the profiler has counted FLOP, most first, with their shapes.

    The profile was recorded with ``with_flops`` and ``record_shapes``.
    """
    rows = [row for row in prof.key_averages(group_by_input_shape=True) if row.flops]
    counted = [(row.key, _as_text(row.input_shapes[:2]), row.flops) for row in rows]
    counted.sort(key=lambda row: (-row[2], row[1]))
    table = DataFrame(counted, columns=["operator", "shapes of the first two inputs", "FLOP"])
    return table.assign(FLOP=table.FLOP.map("{:,}".format))


def _as_text(shapes: list[list[int]]) -> str:
    return ", ".join("×".join(map(str, shape)) for shape in shapes)
