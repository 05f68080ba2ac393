"""The real browser of these tests: Debian's Chromium, driven by Playwright, for all files here."""

import shutil
from collections.abc import Iterator

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Nothing is asked of the network.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-dev-shm-usage"]


@pytest.fixture(scope="package")  # not longer: Playwright's event loop would be in nbval's way
def chromium() -> Iterator:
    """Playwright's ``Browser``; a test that needs it is skipped where it cannot be had."""
    words = "Playwright is missing: pip install -r requirements-make.txt -c constraints.txt"
    api = pytest.importorskip("playwright.sync_api", reason=words)
    if not CHROMIUM:
        pytest.skip("Chromium is missing: on Debian, apt-get install chromium")
    with api.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
