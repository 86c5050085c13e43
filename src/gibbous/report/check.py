"""The public report in a release, held against the one that the rest of the release gives."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from gibbous import __version__
from gibbous.core.documents import json_value, read_text
from gibbous.core.errors import EngineFailure, ModelRejected
from gibbous.core.json_values import plain
from gibbous.report import page
from gibbous.report.public import opened, public_page
from gibbous.write.files import read_json, refusing, rejected, untrusted
from gibbous.write.papers import same

NAME = "report.public.html"
MAX_BYTES = 64 << 20
_CHART = re.compile(r"<svg\b.*?</svg\s*>", re.DOTALL | re.IGNORECASE)


def check_report(folder: Path) -> str:
    """Make the public report of a release again and compare.

    Numbers and words must be the same. A chart may differ where fonts do, and holds nothing that
    charts made here do not hold.

    Returns:
        What could not be compared, as a sentence; "" where nothing is left.
    Raises:
        ModelRejected: this version of gibbous wrote the report, and would have written another.
    """
    twin = page.twin_path(folder / NAME)
    told = read_json(twin)
    with refusing("REPORT", f"{twin.name} is not a public report"):
        writer, mapped = (
            str(told["gibbous"]),
            any(one["name"] == "flows" for one in told["sections"]),
        )
    if writer != __version__:
        return (
            f"texts could not be regenerated (written by gibbous {writer[:40]!r}, this is "
            f"{__version__}): {NAME} may say anything"
        )
    try:
        made = public_page(opened(folder))
        text, wanted = page.html(made), page.twin(made)
    except EngineFailure:
        return f"{NAME} was not compared: the extra 'report' of gibbous is not installed"
    if mapped:
        _compare_mapped(told, json_value(wanted))
        return f"{NAME} has maps of public places that are not in the release: it was not compared"
    if not same(twin, wanted.encode("utf-8", "replace")):
        raise _other(twin.name)
    return _compared(folder / NAME, text)


def _compared(path: Path, wanted: str) -> str:
    if same(path, wanted.encode("utf-8", "replace")):
        return ""
    with untrusted(path.name, "REPORT"):
        found = read_text(path, MAX_BYTES)
    charts = len(_CHART.findall(found)) == len(_CHART.findall(wanted))
    if not charts or _CHART.sub("", found) != _CHART.sub("", wanted):
        raise _other(path.name)
    if not _vocabulary(found) <= _vocabulary(wanted):
        raise rejected("REPORT", f"a chart in {path.name} holds what no chart holds")
    return f"charts in {path.name} were drawn with other fonts: their labels were not compared"


def _compare_mapped(told: Any, wanted: Any) -> None:
    """Compare everything but the maps, and the sentence that names them."""
    for one in (told, wanted):
        one.pop("foot", None)
        one["sections"] = [section for section in one["sections"] if section["name"] != "flows"]
    if plain(told) != plain(wanted):
        raise _other("report.public.json")


def _other(name: str) -> ModelRejected:
    return rejected("REPORT", f"{name} is not the report that the rest of the release gives")


def _vocabulary(text: str) -> set[str]:
    """Names of elements and attributes in the charts of a page."""
    found: set[str] = set()

    class Names(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.add(tag)
            found.update(f"{tag} {name}" for name, _ in attrs)

    for chart in _CHART.findall(text):
        Names().feed(chart)
    return found
