"""Pictures that move: the right numbers at first, and another picture when a slider is turned."""

import copy

import pandas as pd
import pytest

from helpers import alarms
from helpers.plotting import moving

PARTS = {"parameters": (1e9, 0.0), "activations": (0.0, 1e8)}
SPANS = [("CPU", 0.0, 1.0, "launch"), ("GPU", 2.0, 5.0, "kernel")]
INTENSITIES = {"a layer": {1: 0.5, 64: 32.0}, "a second": {1: 20.0, 64: 21.0}}
RATES = alarms.rates({"false": [0.9, 1.04], "found": [1.01, 1.2]}, [0, 0.02, 0.04], [1, 3])
FALSE_ALARMS = {"false": {(0.0, 1): 0.5, (0.02, 1): 0.4, (0.0, 3): 0.5, (0.02, 3): 0.25}}
CHARTS = {
    "roofline": lambda: moving.roofline_by_batch(
        INTENSITIES, peak=8e10, bandwidth=1e10, title="A roof"
    ),
    "alarms": lambda: moving.alarms(RATES, first=0.02, title="A limit"),
    "by_limit": lambda: moving.alarms_by_limit(FALSE_ALARMS, first=1, title="Pairs"),
    "amdahl": lambda: moving.amdahl(first=4),
    "budget": lambda: moving.budget(PARTS, [8e9, 16e9], first=32, most=256),
    # 16 GB of weights leave 4 GB: 2 users of 16,384 tokens with 131,072 bytes each take 4.29 GB.
    "users": lambda: moving.users(8e9, 131_072, {"a card": 20e9}, first=16_384, most=32_768),
    # A first call of 4 s is saved by 1,000 calls that save 4 ms each.
    "even": lambda: moving.break_even(5e-3, 1e-3, first=4, title="Even"),
    "zoomable": lambda: moving.zoomable(SPANS, title="A launch", links=[(0, 1)]),
}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch):
    """``shown(name)``: the chart, as JSON, and its text form."""
    bundles = []
    monkeypatch.setattr(moving, "display", lambda bundle, raw: bundles.append(bundle))

    def show(name: str) -> tuple[dict, str]:
        CHARTS[name]()
        bundle = bundles.pop()
        assert bundle[moving.KIND]["description"] == bundle["text/plain"]
        return bundle[moving.KIND], bundle["text/plain"]

    return show


def test_the_text_says_what_is_seen_at_first(shown) -> None:
    assert "in one part that becomes 4 times as fast" in shown("amdahl")[1]
    words = "With 32, the peak of a step is 4.20 GB: parameters 1.00 GB, activations 3.20 GB."
    assert words in shown("budget")[1]
    assert shown("users")[1].endswith("with 16384 tokens each and 16 bits: a card 1.")
    assert shown("even")[1].endswith("takes 4 s, the lines cross after 1,000 calls.")
    assert "spans per lane: CPU 1, GPU 1; 1 launches are joined" in shown("zoomable")[1]
    # Half of the ratios are above 1.02; of three pairs, two or three are in 4 of 8 cases.
    assert "With a limit of 2 %: false: 50% with 1, 50% with 3; found: 50%" in shown("alarms")[1]
    assert shown("by_limit")[1].endswith("With 1: false: 50% at 0 %, 40% at 2 %.")
    words = "rises with ~10.0 GB/s and is flat at ~80.0 GFLOP/s. a layer: 0.5 FLOP/B at batch 1"
    assert words in shown("roofline")[1]


@pytest.mark.parametrize(
    ("name", "values", "seen"),
    [
        ("alarms", {"limit": 0}, "an alarm: 100%; kind: found"),  # both are above 1
        ("by_limit", {"pairs": 3}, "an alarm: 25%; kind: false"),
        ("amdahl", {"times": 100}, ""),
        ("even", {"first": 8}, "equal after 2,000 calls"),
        ("budget", {"batch": 200}, "16 GB: no"),  # it takes 21 GB
        ("users", {"tokens": 4096}, ">7<"),
        ("users", {"bits": 4}, ">7<"),
        ("roofline", {"place": 1}, "a layer, batch 64"),
        ("roofline", {"place": 1}, "a second, batch 64"),
    ],
)
def test_turning_a_slider_changes_the_picture(shown, name: str, values: dict, seen: str) -> None:
    svg = pytest.importorskip("vl_convert", reason="requirements-make.txt").vegalite_to_svg
    before, _ = shown(name)
    after = copy.deepcopy(before)
    for param in after["params"]:
        param["value"] = values.get(param["name"], param["value"])
    first, turned = (svg(chart, vl_version="5.20") for chart in (before, after))
    assert first != turned
    assert seen in turned


def test_a_launch_is_joined_to_its_kernel(shown) -> None:
    svg = pytest.importorskip("vl_convert", reason="requirements-make.txt").vegalite_to_svg
    drawn = svg(shown("zoomable")[0], vl_version="5.20")
    for name in ("launch", "kernel"):  # the text of each span, for the mouse and a screen reader
        assert f"name: {name}" in drawn


def test_a_launch_comes_with_its_operation_from_microseconds() -> None:
    row = {"ts": 2000.0, "dur": 500.0, "name": "k", "ts_call": 1000.0, "dur_call": 10.0}
    found = moving.launches(pd.DataFrame([row | {"name_call": "launch"}]))
    assert found["spans"] == [("CPU: launches", 1.0, 1.01, "launch"), ("GPU", 2.0, 2.5, "k")]
    assert found["links"] == [(0, 1)]


def test_a_recording_in_microseconds_becomes_spans_in_milliseconds() -> None:
    rows = pd.DataFrame({"start_us": [2000.0], "end_us": [2500.0], "kind": ["matmul"]})
    found = moving.recorded_lanes({"CPU": rows[:0], "GPU": rows}, name="kind")
    assert found == [("GPU", 2.0, 2.5, "matmul")]


def test_a_chart_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="spans"):
        moving.zoomable([], title="")
    with pytest.raises(ValueError, match="cards"):
        moving.budget(PARTS, [0], first=1, most=2)
    with pytest.raises(ValueError, match="at most four layers, but got 5"):
        moving.roofline_by_batch(
            {layer: {1: 1} for layer in "abcde"}, peak=1, bandwidth=1, title=""
        )
    with pytest.raises(ValueError, match="first must be one of the limits"):
        moving.alarms(RATES, first=0.03, title="")
    with pytest.raises(ValueError, match=r"one of the numbers of pairs, \[1, 3\], but got 5"):
        moving.alarms_by_limit(RATES, first=5, title="")
    with pytest.raises(ValueError, match="eager must be longer than compiled, 2 s, but got 1 s"):
        moving.break_even(1, 2, first=1, title="")
    with pytest.raises(ValueError, match="per_token"):
        moving.users(1, 0, {"a card": 1}, first=1, most=2)
