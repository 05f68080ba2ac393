"""What a folder of recordings says, in a page: to see at once whether it can be right."""

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from helpers import units
from recording import common
from recording.profiles import ON_GPU

Content = dict[str, Any]
median = statistics.median


def ceilings(found: Content, folder: Path) -> Iterator[str]:
    for precision, by_size in found["matrix product"].items():
        best = max(2 * int(size) ** 3 / min(samples) for size, samples in by_size.items())
        yield f"matrix product, {precision}: {units.rate(best, 'FLOP')}"
    best = max(2 * int(size) / min(samples) for size, samples in found["copy"].items())
    yield f"copy, read and written: {units.rate(best, 'B')}"
    for name, samples in found["launch"].items():
        yield f"smallest kernel, {name}: {units.seconds(median(samples))}"


def timing(found: Content, folder: Path) -> Iterator[str]:
    for case, ways in found.items():
        if case == "provenance":
            continue
        yield case
        for way, samples in ways.items():
            low, high = units.seconds(min(samples)), units.seconds(max(samples))
            yield f"  {way}: {units.seconds(median(samples))} ({low} to {high})"


def small_cnn(found: Content, folder: Path) -> Iterator[str]:
    events = common.load(folder / found["trace"])["traceEvents"]
    yield from busy([event for event in events if event.get("cat") in ON_GPU])
    yield from slowest(found["operators"])


def busy(events: list[Content]) -> Iterator[str]:
    """How much of the time between the first and the last kernel the GPU had work."""
    spans = sorted((event["ts"], event["ts"] + event["dur"]) for event in events)
    worked, end = 0.0, spans[0][0]
    for opened, closed in spans:
        worked += max(0.0, closed - max(end, opened))
        end = max(end, closed)
    share = worked / max(end - spans[0][0], 1e-9)
    typical = units.seconds(median(event["dur"] for event in events) / 1e6)
    yield f"on the GPU: {len(spans)} pieces of work, median {typical}, {units.percent(share)} busy"


def slowest(operators: list[Content]) -> Iterator[str]:
    for row in operators[:3]:
        time = units.seconds(row["self_device_time_total"] / 1e6)
        yield f"  {time} in {row['count']} of {row['name'][:70]}"


def models(found: Content, folder: Path) -> Iterator[str]:
    yield f"{found['FLOP, one image, forward']:,} FLOP for one image"
    for run in found["runs"]:
        yield f"{run['mode']}, batch {run['batch']}, {run['format']}"
        if "trace" in run:
            events = common.load(folder / run["trace"])["traceEvents"]
            yield from busy([event for event in events if event.get("cat") in ON_GPU])
            yield from slowest(run["operators"])
        else:
            yield f"  {run['message']}"


def lines(found: Content, folder: Path) -> Iterator[str]:
    for way, rows in found["rows"].items():
        total = sum(seconds for _, _, seconds in rows)
        number, _, seconds = max(rows, key=lambda row: row[2])
        text = found["source"][number - 1].strip()
        yield f"{way}: {units.percent(seconds / total)} in {text}"


def memory(found: Content, folder: Path) -> Iterator[str]:
    for model in ("SmallCNN", "ResNet-50"):
        if "message" in found[model]:
            yield f"{model}: {found[model]['message']}"
            continue
        sizes = {name: n for name, n in found[model].items() if isinstance(n, int)}
        shown = [f"{name} {units.size(n)}" for name, n in sizes.items() if name != "batch"]
        yield f"{model}, batch {sizes['batch']}: {', '.join(shown)}"


def nsys(found: Content, folder: Path) -> Iterator[str]:
    rows = found["rows before stripping"]
    tables = ("NVTX_EVENTS", "OSRT_API", "CUPTI_ACTIVITY_KIND_KERNEL")
    yield ", ".join(f"{rows.get(table, 0)} rows of {table}" for table in tables)
    yield f"a step: {units.seconds(median(found['steps']))}"


def ncu(found: Content, folder: Path) -> Iterator[str]:
    wanted = (
        "gpu__time_duration.sum",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    )
    counters = common.load(folder / "ncu.counters.json.gz")
    for case in found["cases"]:
        for kernel in counters[case]:
            values = [" ".join(kernel["metrics"].get(name, ["none"])) for name in wanted]
            yield f"{case}: {kernel['kernel'][:50]}: {', '.join(values)}"


def roofline(found: Content, folder: Path) -> Iterator[str]:
    for title in ("the lesson's", "a GPU's"):
        for name, row in found[title]["operators"].items():
            rates = [
                f"{kind} {units.rate(row['flop'] / min(samples), 'FLOP')}"
                for kind, samples in row["seconds"].items()
            ]
            yield f"{title} {name}, {row['flop'] / row['bytes']:.3g} FLOP/B: {', '.join(rates)}"


def copies(found: Content, folder: Path) -> Iterator[str]:
    largest = max(row["bytes"] for row in found["copies"])
    for row in found["copies"]:
        if row["bytes"] == largest:
            rate = units.rate(largest / median(row["done"]), "B")
            back = units.seconds(median(row["returned"]))
            yield f"{row['memory']}, {row['direction']}: {rate}, the call is back after {back}"


def loader(found: Content, folder: Path) -> Iterator[str]:
    for run in found["runs"]:
        events = [{"ts": at, "dur": length} for _, at, length in run["on the GPU"]]
        waits = [length / 1e6 for name, _, length in run["marks"] if name == "data"]
        yield f"{run['workers']} workers, a wait of {units.seconds(median(waits))} a batch"
        yield from busy(events)


def sweep(found: Content, folder: Path) -> Iterator[str]:
    for point in found["points"]:
        name = f"{point['format']}, batch {point['batch']}"
        if point["fits"]:
            seconds = median(point["seconds"])
            images = units.rate(point["batch"] / seconds, "images")
            peak = units.size(point["allocated at most"])
            yield f"{name}: {units.seconds(seconds)}, {images}, {peak}"
        else:
            yield f"{name}: {point['message']}"
    for point in found["no time for"]:
        yield f"{point['format']}, batch {point['batch']}: no time"


def compiled(found: Content, folder: Path) -> Iterator[str]:
    for way, row in found["ways"].items():
        if "error" in row:
            yield f"{way}: {row['error']}"
            continue
        first = units.seconds(row["first call"])
        yield f"{way}: {units.seconds(median(row['seconds']))}, first call {first}"


WRITERS: dict[str, Callable[[Content, Path], Iterator[str]]] = {
    "ceilings": ceilings,
    "timing": timing,
    "small_cnn": small_cnn,
    "lines": lines,
    "memory": memory,
    "nsys": nsys,
    "ncu": ncu,
    "roofline": roofline,
    "copies": copies,
    "resnet50": models,
    "vit": models,
    "loader": loader,
    "compiled": compiled,
}


def of(part: str, folder: Path) -> list[str]:
    """A few lines about one recorded part."""
    write = sweep if part.startswith("sweep_") else WRITERS[part]
    return list(write(common.load(folder / f"{part}.json"), folder))
