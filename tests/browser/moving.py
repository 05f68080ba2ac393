"""What a reader does to a picture that moves, in JupyterLab and on the site."""

# Lesson, cell, and where its slider is turned to, or which of its buttons is pressed.
SLIDERS = [
    ("01_timing", "alarms-slider", 3),
    ("09_memory_of_a_network", "batch-slider", 320),
    ("13_resnet50_and_vit", "batch-slider", 3),
    ("16_compiler", "even-slider", 1),
    ("17_keep_it_fast", "limit-curves", 101),
]
# Lesson and cell; each is its lesson's last picture that moves.
TIMELINES = [
    ("06_gpu_timeline", "launches-zoom"),
    ("10_data_and_processes", "gpus-zoom"),
    ("14_language_model", "cpu-recorded"),
]


def turn(place, value: float) -> tuple[str, str]:
    """Turn a picture's slider or press its button: what it showed before, and what it shows now."""
    before = drawn(place)
    if button := place.query_selector(f"input[type=radio][value='{value}']"):
        button.click()
        return before, drawn(place)
    slider = place.query_selector("input[type=range]")
    slider.evaluate(
        "(it, value) => { it.value = value; it.dispatchEvent(new Event('input')); }", value
    )
    return before, drawn(place)


def zoom_and_point(page, place) -> tuple[str, str, str]:
    """Zoom into a timeline with the wheel and point at a span: what was shown before and is shown
    then, and what is said of the span."""
    before = drawn(place)
    place.scroll_into_view_if_needed()
    box = place.query_selector("svg .mark-rect path").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(300)  # the picture follows
    after = drawn(place)
    place.query_selector("svg .mark-rect path").hover(force=True)
    tip = page.wait_for_selector("#vg-tooltip-element.visible")
    return before, after, tip.inner_text()


def drawn(place) -> str:
    return place.query_selector("svg.marks").inner_html()  # not an icon of a folded cell
