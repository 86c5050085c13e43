"""A report as one HTML file that asks for nothing outside itself, and as JSON: the same content twice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from gibbous import __version__
from gibbous.core import durable
from gibbous.core.errors import OutputNotWritten, UsageError
from gibbous.core.json_values import plain
from gibbous.reporting import theme
from gibbous.reporting.page_parts import Page, to_json
from gibbous.write import durable_files
from gibbous.write.rendering import render

FORMAT: Final = "gibbous-report/1"
PACKAGE: Final = __name__.rpartition(".")[0]  # whose templates reports are made of
# `gibbous verify` refuses a release that holds a file which begins with these words.
INTERNAL: Final = "contains unprotected statistics of the confidential data: internal"


def html(page: Page) -> str:
    """The page as one HTML document; every value in it is escaped."""
    text = templated("page.html", page.audience, style_sheet(page.audience), page=page)
    return "\n".join(line for line in text.split("\n") if line.strip()) + "\n"


def style_sheet(audience: str) -> str:
    """What all pages look like."""
    return render(PACKAGE, "style.css", dark=theme.DARK, audience=audience)


def templated(name: str, audience: str, style: str, **facts: Any) -> str:
    """A page out of its template; every value in it is escaped."""
    frame = {"audience": audience, "style": style, "internal": INTERNAL, "version": __version__}
    return render(PACKAGE, name, **frame, **facts)


def twin(page: Page) -> str:
    """Everything that the page shows, as JSON."""
    values: dict[str, Any] = {"format": FORMAT, "gibbous": __version__, "audience": page.audience}
    if page.audience == "internal":
        values["notice"] = INTERNAL
    values |= {
        "title": page.title,
        "subtitle": page.subtitle,
        "headline": page.headline,
        "at_a_glance": dict(page.facts),
        "sections": [to_json(section) for section in page.sections],
        "foot": page.foot,
        **page.twin,
    }
    return json.dumps(plain(values), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def twin_path(path: Path) -> Path:
    """Where the JSON twin of an HTML file lies: beside it."""
    return path.with_suffix(".json")


def write(page: Page, path: Path, *, overwrite: bool = False) -> Path:
    """Write a report and its JSON twin, both readable by their owner alone.

    Raises:
        OutputNotWritten: one of them exists, or cannot be written.
        UsageError: the name does not end in .html.
    """
    check_path(path, overwrite=overwrite)
    for target, text in ((path, html(page)), (twin_path(path), twin(page))):
        write_file(target, text.encode("utf-8", "replace"), overwrite=overwrite)
    return path


def write_file(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a file that its owner alone may read, in one step.

    Raises:
        OutputNotWritten: it exists, or cannot be written.
    """
    try:
        durable.write_private(path, content, replace=overwrite)
    except FileExistsError:
        raise durable_files.exists(path) from None
    except OSError as error:
        raise durable_files.not_written(path, error) from None


def check_path(path: Path, *, overwrite: bool = False) -> None:
    """Refuse a path that cannot become a report, before anything is computed.

    Raises:
        OutputNotWritten: the file or its twin exists, or the folder does not.
        UsageError: the name does not end in .html.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(
            "REPORTNAME",
            f"A report cannot be called {path.name!r}.",
            "It is an HTML file; its JSON twin lies beside it.",
            "Choose a name that ends in .html.",
        )
    check_targets((path, twin_path(path)), "report", overwrite=overwrite)


def check_targets(targets: tuple[Path, ...], what: str, *, overwrite: bool) -> None:
    """Refuse files that are there, or whose folder cannot be written.

    Raises:
        OutputNotWritten: one exists, or the folder does not.
    """
    for target in () if overwrite else targets:
        if os.path.lexists(target):
            raise OutputNotWritten(
                "EXISTS",
                f"The output {str(target)!r} exists.",
                "Nothing is replaced without being asked.",
                "Choose another name, or pass --overwrite (overwrite=True).",
            )
    folder = targets[0].parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise OutputNotWritten(
            "NOTWRITABLE",
            f"The folder {str(folder)!r} does not exist or cannot be written.",
            f"A {what} is written into a folder that is there.",
            "Make the folder, or choose another path.",
        )
