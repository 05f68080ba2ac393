"""Pictures that move: a slider to turn, or a timeline to zoom.

Each is a chart of Vega-Lite, as JSON, which JupyterLab and VS Code draw by themselves: without a
kernel, a widget or a network, and also from a stored notebook. Its text form says what the slider
shows at its first position; ``make refresh`` adds a still picture for decks and for GitHub.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pandas as pd
from IPython.display import display

from helpers import _input, units
from helpers.plotting._canvas import BLUE, GREEN, GREY, ORANGE, RED

KIND = "application/vnd.vegalite.v5+json"
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"  # a name: nothing is fetched
GIGABYTE = GIGA = 1e9
COLOURS = [BLUE, GREEN, "#7A5195", "black"]  # of what stands next to a red roof
WIDTH = 560  # pixels, so that a phone's page or a slide has room for it


def amdahl(first: int = 10) -> None:
    """How many times as fast a program becomes if one part of it becomes ``times`` as fast.

    x is the part's fraction of the time, and the slider, which begins at ``first``, says how many
    times as fast the part becomes. Amdahl, 1967: 1 / (1 - p + p / times).
    """
    _input.positive("first", first, what="a speedup")
    slider = _slider("times", first, 1, 100, "this part becomes … times as fast:")
    share = _quantity("p", "fraction of the time in this part", axis={"format": ".0%"})
    scale = {"type": "log", "domain": [1, 100]}
    axes = {
        "x": share,
        "y": _quantity("speedup", "speedup of the program (log scale)", scale=scale),
    }
    show_moving(
        {
            "title": "However fast one part becomes, the others set the limit",
            "params": [slider],
            "data": {"sequence": {"start": 0, "stop": 0.991, "step": 0.01, "as": "p"}},
            "layer": [
                {
                    "transform": [{"calculate": "1 / (1 - datum.p)", "as": "speedup"}],
                    "mark": {"type": "line", "color": GREY, "strokeDash": [6, 4]},
                    "encoding": axes,
                },
                {
                    "transform": [
                        {"calculate": "1 / (1 - datum.p + datum.p / times)", "as": "speedup"}
                    ],
                    "mark": {"type": "line", "color": BLUE, "strokeWidth": 3, "tooltip": True},
                    "encoding": axes,
                },
            ],
        },
        "A curve with a slider. Amdahl's law: the speedup of a program against the fraction of its "
        f"time in one part that becomes {first} times as fast (the slider goes from 1 to 100). The "
        "dashed curve is the limit, at which the part takes no time at all.",
    )


def budget(
    parts: Mapping[str, tuple[float, float]], cards: Sequence[float], *, first: int, most: int
) -> None:
    """How much memory a training step takes at its peak, and on which cards it fits.

    ``parts`` maps a name to (bytes for any batch, further bytes per image), ``cards`` are the bytes
    of each card's memory. The slider is the batch, from 1 to ``most``, and begins at ``first``.
    """
    _input.filled("parts", parts, what="part")
    _input.each(_input.positive, "cards", cards, what="bytes")
    rows = [
        {"part": name, "order": order, "fixed": fixed, "image": image}
        for order, (name, (fixed, image)) in enumerate(parts.items())
    ]
    fixed, image = (sum(row[key] for row in rows) for key in ("fixed", "image"))
    at_first = ", ".join(
        f"{row['part']} {(row['fixed'] + first * row['image']) / GIGABYTE:.2f} GB" for row in rows
    )
    lines = [{"card": card / GIGABYTE, "label": f"{card / GIGABYTE:g} GB"} for card in cards]
    x = {"type": "quantitative", "scale": {"domain": [0, 1.05 * max(cards) / GIGABYTE]}}
    fits = f"{fixed} + batch * {image} <= datum.card * {GIGABYTE}"
    limit = {
        "x": x | {"field": "card"},
        "color": {"condition": {"test": fits, "value": "black"}, "value": GREY},
    }
    size = f"(datum.fixed + batch * datum.image) / {GIGABYTE}"
    bar = {
        "data": {"values": rows},
        "transform": [{"calculate": size, "as": "size"}],
        "mark": {"type": "bar", "tooltip": True, "size": 44},
        "encoding": {
            "x": x | {"field": "size", "stack": "zero", "title": "memory at the peak, GB"},
            "color": {
                "field": "part",
                "type": "nominal",
                "title": None,
                "scale": {"domain": [*parts], "range": [BLUE, ORANGE, GREEN, RED, GREY]},
                "legend": {"orient": "top", "offset": 20},
            },
            "order": {"field": "order"},
        },
    }
    show_moving(
        {
            "title": "Only some parts grow with the batch, and each card has its limit",
            "height": 110,
            "params": [_slider("batch", first, 1, most, "images in a batch:")],
            "resolve": {"scale": {"color": "independent"}},
            "layer": [
                bar,
                {
                    "data": {"values": lines},
                    "mark": {"type": "rule", "strokeDash": [6, 4], "strokeWidth": 2},
                    "encoding": limit,
                },
                {
                    "data": {"values": lines},
                    "transform": [
                        {"calculate": f"datum.label + ({fits} ? ': fits' : ': no')", "as": "words"}
                    ],
                    "mark": {"type": "text", "baseline": "bottom", "y": 0, "dy": -3},
                    "encoding": limit | {"text": {"field": "words"}},
                },
                {
                    "data": {"values": [{}]},
                    "transform": [
                        {"calculate": f"({fixed} + batch * {image}) / {GIGABYTE}", "as": "sum"},
                        {"calculate": "batch + ' images'", "as": "words"},
                    ],
                    "mark": {"type": "text", "align": "right", "dy": 32},
                    "encoding": {"x": x | {"field": "sum"}, "text": {"field": "words"}},
                },
            ],
        },
        f"A bar with a slider for the batch, from 1 to {most} images. With {first}, the peak of a "
        f"step is {(fixed + first * image) / GIGABYTE:.2f} GB: {at_first}. Dashed lines are "
        f"the cards' limits: {', '.join(line['label'] for line in lines)}; a line is black if the "
        "step fits, and grey if not.",
    )


def users(
    weights: float, per_token: float, cards: Mapping[str, float], *, first: int, most: int
) -> None:
    """How many users' key-value caches fit on a card beside a language model's weights.

    ``weights`` are the number of weights, ``per_token`` the bytes of the cache per token, ``cards``
    maps names to bytes. The sliders are the tokens per user, from 256 to ``most``, and the bits
    per weight.
    """
    _input.positive("weights", weights, what="a number of weights")
    _input.positive("per_token", per_token, what="bytes")
    _input.filled("cards", cards, what="card")
    rows = [{"card": name, "bytes": size} for name, size in cards.items()]
    tokens = _slider("tokens", first, 256, most, "tokens per user:", step=256)
    bits = {
        "name": "bits",
        "value": 16,
        "bind": {"input": "select", "options": [4, 8, 16], "name": "bits per weight: "},
    }
    fitting = f"max(0, floor((datum.bytes - {weights} * bits / 8) / (tokens * {per_token})))"
    at_first = ", ".join(
        f"{name} {max(0, int((size - 2 * weights) // (first * per_token)))}"
        for name, size in cards.items()
    )
    encoding = {
        "y": {"field": "card", "type": "nominal", "title": None, "sort": None},
        "x": _quantity(
            "users",
            "users whose caches fit beside the weights (symmetric log scale, which has a 0)",
            scale={"type": "symlog", "domain": [0, 3000]},
            axis={"values": [0, 1, 3, 10, 30, 100, 300, 1000, 3000]},
        ),
    }
    show_moving(
        {
            "title": "Each user's cache takes memory, so longer texts leave room for fewer users",
            "height": {"step": 42},
            "params": [tokens, bits],
            "data": {"values": rows},
            "transform": [{"calculate": fitting, "as": "users"}],
            "layer": [
                {"mark": {"type": "circle", "size": 160, "color": BLUE, "tooltip": True}},
                {
                    "mark": {"type": "text", "align": "left", "dx": 12},
                    "encoding": {"text": {"field": "users"}},
                },
            ],
            "encoding": encoding,
        },
        f"Dots with a slider for the tokens per user, from 256 to {most}, and a choice of 4, 8 or "
        "16 bits per weight. Users whose key-value caches fit beside the weights, with "
        f"{first} tokens each and 16 bits: {at_first}.",
    )


def alarms(
    rates: Mapping[str, Mapping[tuple[float, int], float]], *, first: float, title: str
) -> None:
    """How often a limit raises an alarm, against the number of pairs that are measured.

    ``rates`` maps a kind of comparison to its chances by (limit, pairs), as ``helpers.alarms``
    computes them: one curve each. The slider is the limit, which begins at ``first``; the limits
    are fractions in equal steps.
    """
    _input.filled("rates", rates, what="kind of comparison")
    limits = sorted({round(100 * limit, 4) for by in rates.values() for limit, _ in by})
    first = round(100 * first, 4)
    if first not in limits:
        raise ValueError(f"first must be one of the limits, {limits} in %, but got {first} %")
    rows = _alarm_rows(rates)
    most = max(row["pairs"] for row in rows)
    pairs = _quantity(
        "pairs",
        "pairs of calls (log scale)",
        scale={"type": "log", "nice": False},
        axis={"values": sorted({row["pairs"] for row in rows}), "grid": False},
    )
    axes = _alarm_axes(rates, pairs)
    step = limits[1] - limits[0] if len(limits) > 1 else 1
    labels = [  # the first one below its curve's end and the next above: the ends may meet
        {
            "transform": [
                {"filter": {"and": [f"datum.pairs == {most}", {"field": "kind", "equal": kind}]}}
            ],
            "mark": {"type": "text", "align": "left", "dx": 8, "dy": 7 - 14 * place},
            "encoding": axes | {"text": {"field": "kind"}},
        }
        for place, kind in enumerate(rates)
    ]
    show_moving(
        {
            "title": title,
            "width": 470,  # with the labels as wide as the other charts
            "params": [_slider("limit", first, limits[0], limits[-1], "limit in %:", step=step)],
            "data": {"values": rows},
            "transform": [{"filter": "datum.limit == limit"}],
            "layer": [
                {"mark": {"type": "line", "point": True, "tooltip": True}, "encoding": axes},
                *labels,
            ],
        },
        f"Curves with a slider for the limit, from {limits[0]:g} to {limits[-1]:g} %. Title: "
        f"{title}. The chance of an alarm against the number of pairs. With a limit of {first:g} "
        "%: "
        + "; ".join(
            f"{kind}: "
            + ", ".join(
                f"{row['chance']:.0%} with {row['pairs']}"
                for row in rows
                if row["kind"] == kind and row["limit"] == first
            )
            for kind in rates
        )
        + ".",
    )


def alarms_by_limit(
    rates: Mapping[str, Mapping[tuple[float, int], float]], *, first: int, title: str
) -> None:
    """How often a limit raises an alarm, against the limit, for a number of pairs to choose.

    ``rates`` is as for ``alarms``, at most five kinds. There is a button for each number of pairs,
    and ``first`` is the one that is pressed at the beginning.
    """
    _input.filled("rates", rates, what="kind of comparison")
    rows = _alarm_rows(rates)
    numbers = sorted({row["pairs"] for row in rows})
    if first not in numbers:
        raise ValueError(f"first must be one of the numbers of pairs, {numbers}, but got {first}")
    axes = _alarm_axes(rates, _quantity("limit", "limit in %", scale={"nice": False}))
    axes["color"]["legend"] = {"title": None, "orient": "top", "columns": 2, "labelLimit": 0}
    limits = sorted({row["limit"] for row in rows})
    told = limits[:: max(1, len(limits) // 4)]  # a text with each limit would be long
    buttons = {"input": "radio", "options": numbers, "name": "pairs of calls: "}
    show_moving(
        {
            "title": title,
            "params": [{"name": "pairs", "value": first, "bind": buttons}],
            "data": {"values": rows},
            "transform": [{"filter": "datum.pairs == pairs"}],
            "mark": {"type": "line", "point": True, "tooltip": True},
            "encoding": axes,
        },
        f"Curves with a button for each number of pairs: {', '.join(map(str, numbers))}. Title: "
        f"{title}. The chance of an alarm against the limit. With {first}: "
        + "; ".join(
            f"{kind}: "
            + ", ".join(
                f"{row['chance']:.0%} at {row['limit']:g} %"
                for row in rows
                if row["kind"] == kind and row["pairs"] == first and row["limit"] in told
            )
            for kind in rates
        )
        + ".",
    )


def _alarm_rows(rates: Mapping[str, Mapping[tuple[float, int], float]]) -> list[dict]:
    """A row per point of all curves, with the limit in %."""
    return [
        {"kind": kind, "limit": round(100 * limit, 4), "pairs": pairs, "chance": round(chance, 4)}
        for kind, by in rates.items()
        for (limit, pairs), chance in by.items()
    ]


def _alarm_axes(kinds: Iterable[str], x: dict) -> dict:
    """The axes of curves of alarms, with a colour for each kind."""
    chance = _quantity(
        "chance",
        "fraction of tests with an alarm",
        scale={"domain": [0, 1]},
        axis={"format": ".0%"},
    )
    colours = {"domain": [*kinds], "range": [RED, BLUE, GREEN, ORANGE, GREY]}
    colour = {"field": "kind", "type": "nominal", "legend": None, "scale": colours}
    return {"x": x, "y": chance, "color": colour}


def roofline_by_batch(
    intensities: Mapping[str, Mapping[int, float]], *, peak: float, bandwidth: float, title: str
) -> None:
    """How fast each layer could be, under the roof of this computer, for one batch after another.

    ``intensities`` maps up to four layers to their arithmetic intensity (FLOP/B, exact) by batch;
    all have the same batches. ``peak`` (FLOP/s) and ``bandwidth`` (B/s) are measured, so the output
    is no exact one: its cell needs the tag ``nbval-ignore-output``. The slider is the batch.
    """
    _input.filled("intensities", intensities, what="layer")
    if len(intensities) > len(COLOURS):
        raise ValueError(f"intensities must hold at most four layers, but got {len(intensities)}")
    _input.positive("peak", peak, what="a rate in FLOP/s")
    _input.positive("bandwidth", bandwidth, what="a rate in B/s")
    batches = [*next(iter(intensities.values()))]
    rows = [
        {"layer": layer, "place": place, "batch": batch, "intensity": by_batch[batch]}
        for layer, by_batch in intensities.items()
        for place, batch in enumerate(batches)
    ]
    low, high = min(row["intensity"] for row in rows), max(row["intensity"] for row in rows)
    ridge = peak / bandwidth
    low, high = min(low, ridge) / 3, max(high, ridge) * 6
    roof = [{"x": low, "y": low * bandwidth}, {"x": ridge, "y": peak}, {"x": high, "y": peak}]
    roof = [{"x": point["x"], "y": point["y"] / GIGA} for point in roof]
    log = {"type": "log"}
    x = partial(
        _quantity,
        title="arithmetic intensity in FLOP/B (log scale)",
        scale=log | {"domain": [low, high]},
    )
    y = partial(_quantity, title="highest possible rate in GFLOP/s (log scale)", scale=log)
    at_place = [
        {"filter": "datum.place == place"},
        {"calculate": f"min({peak}, datum.intensity * {bandwidth}) / {GIGA}", "as": "rate"},
    ]
    encoding = {"x": x("intensity"), "y": y("rate")}
    label = {"calculate": "datum.layer + ', batch ' + datum.batch", "as": "label"}
    dots = []
    for number, (layer, colour) in enumerate(zip(intensities, COLOURS, strict=False)):
        its = {"data": {"values": [row for row in rows if row["layer"] == layer]}}
        words = {"type": "text", "align": "left", "dx": 10, "dy": 12 + 16 * number, "color": colour}
        dots += [
            its
            | {
                "transform": at_place,
                "mark": {"type": "circle", "size": 130, "color": colour, "tooltip": True},
                "encoding": encoding,
            },
            its
            | {
                "transform": [*at_place, label],
                "mark": words,
                "encoding": encoding | {"text": {"field": "label"}},
            },
        ]
    show_moving(
        {
            "title": title,
            "params": [_slider("place", 0, 0, len(batches) - 1, "a larger batch:")],
            "layer": [
                {
                    "data": {"values": roof},
                    "mark": {"type": "line", "color": RED, "strokeWidth": 2.5},
                    "encoding": {"x": x("x"), "y": y("y")},
                },
                *dots,
            ],
        },
        f"A roofline with a slider for the batch. Title: {title}. A roof that rises with "
        f"{units.rate(bandwidth, 'B')} and is flat at {units.rate(peak, 'FLOP')}. "
        + "; ".join(
            f"{layer}: {by[batches[0]]:.3g} FLOP/B at batch {batches[0]}, "
            f"{by[batches[-1]]:.3g} at {batches[-1]}"
            for layer, by in intensities.items()
        )
        + ".",
    )


def break_even(eager: float, compiled: float, *, first: float, title: str) -> None:
    """The total time of a program against its number of calls, eager and compiled.

    ``eager`` and ``compiled`` are the exact or recorded seconds of one call, and compiling makes
    calls faster. The slider, in steps of half a second up to 60, is the time of the first call,
    which compiles, and begins at ``first``.
    """
    _input.positive("compiled", compiled, what="the time of a call")
    if not eager > compiled:
        raise ValueError(f"eager must be longer than compiled, {compiled} s, but got {eager} s")
    saved = eager - compiled
    steps = [round(10 ** (power / 10)) for power in range(51)]
    rows = [
        {"calls": calls, "version": version, "per": per, "once": once}
        for version, per, once in (("eager", eager, 0), ("compiled", compiled, 1))
        for calls in dict.fromkeys(steps)
    ]
    log = {"type": "log"}
    axes = {
        "x": _quantity("calls", "calls (log scale)", scale=log),
        "y": _quantity("total", "total time in seconds (log scale)", scale=log),
        "color": {
            "field": "version",
            "type": "nominal",
            "title": None,
            "scale": {"domain": ["eager", "compiled"], "range": [GREY, BLUE]},
            "legend": {"orient": "top"},
        },
    }
    total = {"calculate": "datum.calls * datum.per + datum.once * first", "as": "total"}
    even = {"calculate": f"first / {saved}", "as": "calls"}
    words = {
        "calculate": "'equal after ' + format(datum.calls, ',.0f') + ' calls'",
        "as": "words",
    }
    rule = {"x": axes["x"]}
    show_moving(
        {
            "title": title,
            "params": [_slider("first", first, 0.5, 60, "seconds of the first call:", step=0.5)],
            "layer": [
                {
                    "data": {"values": rows},
                    "transform": [total],
                    "mark": {"type": "line", "strokeWidth": 2.5, "tooltip": True},
                    "encoding": axes,
                },
                {
                    "data": {"values": [{}]},
                    "transform": [even],
                    "mark": {"type": "rule", "strokeDash": [6, 4]},
                    "encoding": rule,
                },
                {
                    "data": {"values": [{}]},
                    "transform": [even, words],
                    "mark": {"type": "text", "align": "right", "dx": -6, "y": 12},
                    "encoding": rule | {"text": {"field": "words"}},
                },
            ],
        },
        f"Two lines with a slider for the time of the first call, from 0.5 to 60 s. Title: {title}."
        f" The total time against the number of calls; a call takes {eager * 1e3:.1f} ms eager "
        f"and {compiled * 1e3:.1f} ms compiled. If the first call takes {first:g} s, the lines "
        f"cross after {first / saved:,.0f} calls.",
    )


def zoomable(
    spans: Sequence[tuple[str, float, float, str]], *, title: str, links: Sequence = ()
) -> None:
    """A timeline to zoom with the mouse's wheel and to move, which names each span under the mouse.

    ``spans`` are (lane, start, end, name), in milliseconds; lanes are drawn in their order.
    ``links`` are pairs of places in ``spans``: a launch and its kernel are joined by a line.
    """
    _input.filled("spans", spans, what="span")
    lanes = [*dict.fromkeys(lane for lane, *_ in spans)]
    keys = ("lane", "start", "end", "name")
    rows = [dict(zip(keys, span, strict=True)) for span in spans]
    for row in rows:
        row["start"], row["end"] = round(row["start"], 4), round(row["end"], 4)
    joined = [
        {
            "lane": rows[a]["lane"],
            "to": rows[b]["lane"],
            "start": rows[a]["start"],
            "end": rows[b]["start"],
        }
        for a, b in links
    ]
    lane = {"field": "lane", "type": "nominal", "title": None, "sort": lanes}
    x = _quantity("start", "time, ms", scale={"zero": False})
    layers = [
        {
            "data": {"values": rows},
            "params": [
                {
                    "name": "zoom",
                    "select": {"type": "interval", "encodings": ["x"]},
                    "bind": "scales",
                }
            ],
            "mark": {"type": "bar", "height": {"band": 0.7}, "clip": True},
            "encoding": {
                "x": x,
                "x2": {"field": "end"},
                "y": lane,
                "color": lane
                | {"legend": None, "scale": {"range": [RED, BLUE, GREEN, ORANGE, GREY]}},
                "tooltip": [
                    {"field": "name"},
                    {"field": "start", "title": "start, ms"},
                    {"field": "end", "title": "end, ms"},
                ],
            },
        }
    ]
    if joined:
        layers.append(
            {
                "data": {"values": joined},
                "mark": {"type": "rule", "color": GREY, "opacity": 0.5, "clip": True},
                "encoding": {
                    "x": x,
                    "x2": {"field": "end"},
                    "y": lane | {"bandPosition": 0.85},
                    "y2": {"field": "to", "bandPosition": 0.15},
                },
            }
        )
    first, last = min(row["start"] for row in rows), max(row["end"] for row in rows)
    counts = ", ".join(f"{name} {sum(row['lane'] == name for row in rows)}" for name in lanes)
    show_moving(
        {"title": title, "height": {"step": 48}, "layer": layers},
        f"A timeline to zoom. Title: {title}. From {first:.3f} to {last:.3f} ms; spans per lane: "
        f"{counts}" + f"; {len(joined)} launches are joined to their kernels." * bool(joined),
    )


def recorded_lanes(
    lanes: Mapping[str, pd.DataFrame], name: str = "name"
) -> list[tuple[str, float, float, str]]:
    """The spans for ``zoomable`` of a recording, whose rows are the spans of each lane.

    The columns are ``start_us`` and ``end_us``, in microseconds, and ``name``.
    """
    return [
        (lane, start / 1e3, end / 1e3, span)
        for lane, rows in lanes.items()
        for start, end, span in zip(rows.start_us, rows.end_us, rows[name], strict=True)
    ]


def launches(pairs: pd.DataFrame) -> dict[str, Sequence]:
    """The spans and links for ``zoomable`` of GPU operations, each with the call that launched it.

    The columns are in microseconds: ``ts``, ``dur`` and ``name`` of the operation, and ``ts_call``,
    ``dur_call`` and ``name_call`` of its launch.
    """
    calls = [
        ("CPU: launches", row.ts_call / 1e3, (row.ts_call + row.dur_call) / 1e3, row.name_call)
        for row in pairs.itertuples()
    ]
    work = [("GPU", row.ts / 1e3, (row.ts + row.dur) / 1e3, row.name) for row in pairs.itertuples()]
    links = [(place, len(calls) + place) for place in range(len(calls))]
    return {"spans": [*calls, *work], "links": links}


def show_moving(spec: dict, description: str) -> None:
    """Display a chart of Vega-Lite with ``description`` as its text form."""
    full = {"$schema": SCHEMA, "description": description, "width": WIDTH, "height": 240}
    # Its colours are its own, because JupyterLab's dark theme would write in white, on white.
    black = {"fill": "black"}
    axis = {"gridColor": "#eeeeee", "domainColor": "#888888", "tickColor": "#888888"}
    full |= {
        "background": "white",
        "config": {
            "view": {"stroke": None},
            "axis": axis,
            "title": {"color": "black"},
            "style": {"guide-label": black, "guide-title": black},
        },
    }
    full["usermeta"] = {"embedOptions": {"actions": False, "renderer": "svg"}}
    display({KIND: full | spec, "text/plain": description}, raw=True)


def _quantity(field: str, title: str, **more: dict) -> dict:
    return {"field": field, "type": "quantitative", "title": title} | more


def _slider(name: str, first: float, low: float, high: float, label: str, step: float = 1) -> dict:
    bind = {"input": "range", "min": low, "max": high, "step": step, "name": f"{label} "}
    return {"name": name, "value": first, "bind": bind}
