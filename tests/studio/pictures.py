"""Screenshots of every screen, light, dark and narrow: python -m tests.studio.pictures [FOLDER]."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.browser.test_reports import ARGUMENTS
from tests.frame.tree import ROOT
from tests.needs import BROWSERS, program
from tests.studio.serving import served

FOLDER = ROOT / "docs" / "how-to" / "studio"
WIDE, NARROW = {"width": 1180, "height": 820}, {"width": 390, "height": 844}
SCREENS = (
    "data", "describe", "budget", "method", "run", "release", "assess", "compare", "analyse",
    "ledger",
)  # fmt: skip
LOOKS = {"light": ("light", WIDE), "dark": ("dark", WIDE), "narrow": ("light", NARROW)}


def settled(page: Any, patience: float = 400) -> None:
    """Wait until no job runs on this screen."""
    deadline = time.monotonic() + patience
    page.wait_for_timeout(400)  # the form that was sent is answered by another page
    page.wait_for_load_state("load")
    while page.locator('[data-state="running"]').count():
        assert time.monotonic() < deadline, page.url
        page.wait_for_timeout(500)
    page.wait_for_timeout(400)
    page.wait_for_load_state("networkidle")


def prepared(page: Any, address: str) -> None:
    """Walk the whole way once: demonstration data, budget, run, report, zip, assessment, a fit, a study."""
    page.goto(address)
    page.wait_for_url("**/data")
    page.get_by_role("button", name="Take the demonstration data").click()
    page.goto(page.url.rpartition("/")[0] + "/budget")
    base = page.url.rpartition("/")[0]
    page.get_by_label("Rows to draw").fill("20000")
    page.get_by_label("Sets").fill("3")
    page.get_by_role("button", name="Take this budget").click()
    page.goto(f"{base}/run")
    page.get_by_label("Type 1 to confirm").fill("1")
    page.get_by_role("button", name="Spend and run").click()
    settled(page)
    for screen, button in (
        ("release", "Verify"),
        ("release", "Write the public report"),
        ("release", "Verify"),
        ("release", "Make the zip"),
    ):
        page.goto(f"{base}/{screen}")
        page.get_by_role("button", name=button, exact=True).click()
        settled(page)
    page.goto(f"{base}/analyse")
    page.get_by_label("Formula").fill("mdvis ~ hlthp + physlm")
    page.get_by_role("button", name="Fit").click()
    settled(page)
    page.goto(f"{base}/compare")
    page.get_by_label("Repeats").fill("2")
    page.get_by_role("button", name="Compare").click()
    settled(page)
    page.goto(f"{base}/assess")
    page.get_by_role("button", name="Compare with the records").click()
    settled(page)


def main(folder: Path) -> None:
    """Make all of them."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work, sync_playwright() as driver:
        place, home = Path(work) / "claims", Path(work) / "home"
        place.mkdir()
        browser = driver.chromium.launch(executable_path=program(*BROWSERS), args=ARGUMENTS)
        with served(place, home=home) as studio:
            context = browser.new_context(viewport=WIDE)
            prepared(context.new_page(), studio.address)
            state = context.storage_state()
            for look, (scheme, size) in LOOKS.items():
                context = browser.new_context(
                    viewport=size, color_scheme=scheme, storage_state=state
                )
                page = context.new_page()
                for screen in SCREENS:
                    page.goto(f"{studio.base}/{screen}")
                    page.wait_for_load_state("networkidle")
                    page.screenshot(path=folder / f"{screen}-{look}.png", full_page=False)
                context.close()
        with served("--board", place / "release", home=home) as studio:
            for look, (scheme, size) in LOOKS.items():
                if look != "light":
                    continue
                page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
                page.goto(studio.address)
                page.wait_for_url("**/board")
                page.get_by_role("button", name="Verify").click()
                settled(page)
                page.screenshot(path=folder / f"board-{look}.png")
                page.context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
