"""A computer's limits, a model's speed, and the steps of a training run, as charts."""

from collections.abc import Mapping
from functools import partial

from pandas import DataFrame

from helpers import _input, units
from helpers.machine import Ceilings
from helpers.plotting.bar_charts import bar_rows
from helpers.plotting.timelines import timeline


def limits_of_computer(one: Ceilings, every: Ceilings, *, title: str) -> None:
    """The rates that a computer reached with one thread, and with all its threads.

    The last row is what the computer could do, at its peak, while it copies one float32 value: such
    a copy reads 4 bytes and writes 4.
    """
    limits = {"one thread": one, "all threads": every}

    rows = {
        threads: {
            "matrix multiplication": rates.matrix_product,
            "convolution": rates.convolution,
            "copy (bandwidth)": rates.copy,
            "FLOP per copied value": rates.compute / (rates.copy / 8),
        }
        for threads, rates in limits.items()
    }
    in_flop, in_bytes = (partial(units.rate, unit=unit) for unit in ("FLOP", "B"))
    prints = [in_flop, in_flop, in_bytes, units.number]
    rows = DataFrame(rows).T
    unit = dict(zip(rows, prints, strict=True))
    bar_rows(rows, title=title, unit=unit, highlight=False)


def speed_by_batch(latency: Mapping[int, float], flop: float, *, peak: float, title: str) -> None:
    """Latency, throughput, achieved FLOP/s and utilisation for each size of a batch of images.

    ``latency`` maps a number of images to the seconds of one batch, ``flop`` is the work for one
    image, and ``peak`` the processor's FLOP/s; all above zero.
    """
    _input.filled("latency", latency, what="batch")
    _input.positive("peak", peak, what="a rate in FLOP/s")
    for count, seconds in latency.items():
        _input.positive(f"latency[{count}]", seconds, what="the time of a batch")
    rows = DataFrame({"latency": latency})
    rows["throughput"] = rows.index / rows.latency
    rows["achieved FLOP/s"] = flop * rows.throughput
    rows["utilisation"] = rows["achieved FLOP/s"] / peak
    rows.index = [f"batch of {count}" for count in latency]
    per_second = partial(units.rate, unit="images"), partial(units.rate, unit="FLOP")
    unit = dict(zip(rows, [units.seconds, *per_second, units.percent], strict=True))
    bar_rows(rows, title=title, unit=unit, highlight=False)


def training_steps(steps: DataFrame, *, title: str) -> None:
    """The steps of a recorded training run: a lane for the CPU, and one for the GPU.

    ``steps`` has a row per step, with its number as index, and the columns ``cpu_start_ms``,
    ``cpu_end_ms`` and ``gpu_end_ms``, in milliseconds of one clock. On the GPU, a step lasts from
    the end of the step before; the first step has no box there, because its start is not known. A
    line joins the end of a step on the CPU with its end on the GPU.
    """
    _input.filled("steps", steps.index, what="step")
    cpu, gpu, links, before = [], [], [], None
    for number, step in steps.iterrows():
        begin, end, done = (
            step[column] / 1e3 for column in ("cpu_start_ms", "cpu_end_ms", "gpu_end_ms")
        )
        cpu.append((begin, end - begin, str(number), 0))
        if before is not None:
            gpu.append((before, done - before, str(number), 0))
        links.append((("step on the CPU", end), ("step on the GPU", done)))
        before = done
    tracks = {"step on the CPU": cpu, "step on the GPU": gpu}
    timeline(tracks, title=title, unit=_milliseconds, links=links)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f}".removesuffix(".0") + " ms"
