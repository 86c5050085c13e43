"""Screenshots of every screen, light, dark and narrow: python -m tests.studio.pictures [FOLDER [whole]].

The table has 12 columns and 20,000 rows that are drawn here. With `whole`, pages are shown to their end.
"""

from __future__ import annotations

import base64
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
WIDE, NARROW = {"width": 1280, "height": 820}, {"width": 390, "height": 844}
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


def survey(folder: Path, rows: int = 20_000) -> Path:
    """A table of twelve columns of people who do not exist; separated by semicolons."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    age = rng.integers(18, 95, rows)
    school = np.clip((rng.normal(2.2, 1.1, rows) - (age > 70)).round(), 0, 4).astype(int)
    health = np.clip((4.2 - age / 40 + rng.normal(0, 0.9, rows)).round(), 0, 4).astype(int)
    income = np.exp(rng.normal(7.1 + 0.22 * school, 0.5)).round(-1).clip(0, 20_000).astype(int)
    names = {
        "sex": ["f", "m"], "region": ["north", "east", "south", "west", "center"],
        "tenure": ["owner", "tenant", "other"], "smoker": ["never", "former", "daily"],
        "occupation": ["office", "trade", "care", "craft", "farm", "none"],
    }  # fmt: skip
    words = {
        name: np.array(texts)[rng.integers(0, len(texts), rows)] for name, texts in names.items()
    }
    table = {
        "age": age, **words, "school": np.array(["none", "basic", "middle", "high", "degree"])[school],
        "health": np.array(["bad", "poor", "fair", "good", "very good"])[health], "income": income,
        "household": rng.integers(1, 7, rows), "visits": rng.poisson(2 + (4 - health)).clip(0, 20),
        "height": rng.normal(170, 9, rows).round().clip(140, 210).astype(int),
    }  # fmt: skip
    path = folder / "survey.csv"
    pl.DataFrame(table).write_csv(path, separator=";")
    return path


def prepared(page: Any, address: str, table: Path) -> None:
    """Walk the whole way once: a file, facts, budget, run, report, zip, assessment, a fit, a study."""
    page.goto(address)
    page.wait_for_url("**/data")
    base = page.url.rpartition("/")[0]
    page.get_by_label("Choose a file").set_input_files(table)
    page.get_by_role("heading", name="Open:").wait_for()
    settled(page)
    page.get_by_role("button", name="Separator").click()
    settled(page)
    page.goto(f"{base}/describe")
    page.get_by_role("button", name="Fill in from names").click()
    settled(page)
    for name, low, high in (
        ("income", "0", "20000"),
        ("household", "1", "6"),
        ("visits", "0", "20"),
    ):
        column = page.locator("details.column", has=page.get_by_text(name, exact=True)).first
        column.locator("summary").click()
        column.get_by_label("Label", exact=True).fill(
            {"income": "Income of a month", "household": "People in the household"}.get(
                name, "Visits a year"
            )
        )
        column.locator('select[name="kind"]').select_option("numeric")
        column.get_by_label("Least value").fill(low)
        column.get_by_label("Greatest value").fill(high)
        column.locator('select[name="missing"]').select_option("no")
        column.get_by_label("How do you know?").fill("questionnaire of 2026, page 3")
        column.get_by_role("button", name="I know this").click()
    page.goto(f"{base}/budget")
    page.get_by_role("button", name="Save the unit").click()
    page.goto(f"{base}/budget")
    page.get_by_label("Rows to draw").fill("20000")
    page.get_by_label("Sets").fill("2")
    page.get_by_role("button", name="Take this budget").click()
    page.goto(f"{base}/run")
    page.get_by_label("Title").fill("Survey of people who do not exist")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_label("I accept that").check()
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
    page.get_by_label("Formula").fill("visits ~ age + health")
    page.get_by_role("button", name="Fit").click()
    settled(page)
    page.goto(f"{base}/compare")
    page.get_by_label("Repeats").fill("1")
    page.get_by_label("One more method").select_option("noisy_pegs")
    page.get_by_role("button", name="Add it").click()
    page.get_by_label("parents", exact=True).fill("1")
    page.get_by_role("button", name="Compare", exact=True).click()
    settled(page)
    page.goto(f"{base}/assess")
    for group, name in (
        ("keys", "age"),
        ("keys", "sex"),
        ("keys", "region"),
        ("sensitive", "health"),
    ):
        page.locator(f'input[name="{group}[]"][value="{name}"]').check()
    page.get_by_role("button", name="Compare with the records").click()
    settled(page)


def kept(page: Any, path: Path, *, whole: bool) -> None:
    """One picture; WebP takes half the bytes of PNG."""
    if whole:
        page.screenshot(path=path.with_suffix(".png"), full_page=True)
        return
    session = page.context.new_cdp_session(page)
    shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": 80})
    path.write_bytes(base64.b64decode(shot["data"]))


def main(folder: Path, *, whole: bool = False) -> None:
    """Make all of them."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work, sync_playwright() as driver:
        place, home = Path(work) / "claims", Path(work) / "home"
        place.mkdir()
        browser = driver.chromium.launch(executable_path=program(*BROWSERS), args=ARGUMENTS)
        with served(place, home=home) as studio:
            context = browser.new_context(viewport=WIDE)
            prepared(context.new_page(), studio.address, survey(Path(work)))
            state = context.storage_state()
            for look, (scheme, size) in LOOKS.items():
                context = browser.new_context(
                    viewport=size, color_scheme=scheme, storage_state=state
                )
                page = context.new_page()
                for screen in SCREENS:
                    page.goto(f"{studio.base}/{screen}")
                    page.wait_for_load_state("networkidle")
                    kept(page, folder / f"{screen}-{look}.webp", whole=whole)
                context.close()
        with served("--board", place / "release", home=home) as studio:
            for look, (scheme, size) in LOOKS.items():
                seen = None if look == "light" else state
                page = browser.new_context(
                    viewport=size, color_scheme=scheme, storage_state=seen
                ).new_page()
                page.goto(studio.address if look == "light" else f"{studio.base}/board")
                page.wait_for_url("**/board")
                if look == "light":
                    state = page.context.storage_state()
                    page.get_by_role("button", name="Verify").click()
                settled(page)
                kept(page, folder / f"board-{look}.webp", whole=whole)
                page.context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER, whole="whole" in sys.argv[2:])
