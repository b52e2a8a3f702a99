"""A real browser for the tests of the viewer: Chromium without a window, driven by playwright."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import playwright
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROGRAMS = ("chromium", "google-chrome-stable", "google-chrome")
NODE = Path(playwright.__file__).parent / "driver" / ("node.exe" if sys.platform == "win32" else "node")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the browser; skip the test where there is none, as on a Mac (Linux: see `conftest.py`)."""
    from playwright.sync_api import sync_playwright

    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no browser is installed: apt-get install chromium")
    arguments = ["--no-sandbox", "--autoplay-policy=no-user-gesture-required", "--mute-audio"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@dataclass
class Window:
    """A page that is open in the browser, with everything that went wrong in it or left it."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, address: str | Path) -> Window:
        """Open a file or an address, and wait until it is shown."""
        self.page.goto(address.as_uri() if isinstance(address, Path) else address)
        self.page.wait_for_selector("body.ready")
        return self

    def seek(self, seconds: float) -> None:
        self.page.evaluate(
            """seconds => {
                const slider = document.getElementById("seek");
                slider.value = seconds;
                slider.dispatchEvent(new Event("input"));
            }""",
            seconds,
        )

    def until(self, condition: str, timeout_sec: float = 10.0) -> None:
        """Wait until an expression holds; the policy of the page forbids playwright's own way of waiting."""
        end = time.monotonic() + timeout_sec
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"in vain waited for {condition}"
            self.page.wait_for_timeout(20)

    @property
    def seconds(self) -> float:
        """The second of the recording that the page shows."""
        return float(self.page.evaluate("Number(document.getElementById('seek').value)"))

    def cursor(self) -> dict[str, Any]:
        """Return the page and the middle of the line that shows where the music is, in pixels of the page."""
        found: dict[str, Any] = self.page.evaluate(
            """() => {
                const line = document.querySelector(".cursor line");
                const at = (name) => Number(line.getAttribute(name));
                const page = Number(line.closest("figure").dataset.page);
                return { page, x: (at("x1") + at("x2")) / 2, y: (at("y1") + at("y2")) / 2 };
            }"""
        )
        return found

    def click_score(self, page: int, x: float, y: float) -> None:
        """Click at pixels of a page."""
        sheet = self.page.locator(f'figure[data-page="{page}"]')
        box = sheet.evaluate("e => ({ scale: e.clientWidth / e.querySelector('svg').viewBox.baseVal.width })")
        sheet.click(position={"x": x * box["scale"], "y": y * box["scale"]})
