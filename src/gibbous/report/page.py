"""A report as one HTML file that asks for nothing outside itself, and as JSON: the same content twice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from gibbous import __version__
from gibbous.core.extras import need
from gibbous.core.json_values import plain
from gibbous.report import theme
from gibbous.report.blocks import Page
from gibbous.write import files

FORMAT: Final = "gibbous-report/1"
# `gibbous verify` refuses a release that holds a file which begins with these words.
INTERNAL: Final = "contains unprotected statistics of the confidential data: internal"
MAX_BYTES: Final = 3_000_000


def html(page: Page) -> str:
    """The page as one HTML document; every value in it is escaped.

    Raises:
        EngineFailure: jinja2 is not installed.
    """
    jinja = need("jinja2", "report")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("gibbous.report", "templates"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = environment.get_template("style.css").render(dark=theme.DARK, audience=page.audience)
    text: str = environment.get_template("page.html").render(
        page=page, style=style, internal=INTERNAL, version=__version__
    )
    return "\n".join(line for line in text.split("\n") if line.strip()) + "\n"


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
        "sections": [section.to_json() for section in page.sections],
        "foot": page.foot,
        **page.twin,
    }
    return json.dumps(plain(values), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def twin_path(path: Path) -> Path:
    """Where the JSON twin of an HTML file lies: beside it."""
    return path.with_suffix(".json")


def write(page: Page, path: Path, *, overwrite: bool = False) -> Path:
    """Write a report and its JSON twin, both readable by their owner alone.

    Args:
        path: of the HTML file, ending in .html.
        overwrite: replace both.
    Returns:
        The path.
    Raises:
        OutputNotWritten: one of them exists, or cannot be written.
        UsageError: the name does not end in .html.
    """
    check_path(path, overwrite=overwrite)
    texts = {path: html(page), twin_path(path): twin(page)}
    for target, text in texts.items():
        fresh = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            files.write_bytes(fresh, text.encode("utf-8", "replace"))
            if overwrite:
                fresh.replace(target)
            else:
                os.link(fresh, target)  # unlike a rename, this replaces nothing
        except FileExistsError:
            raise files.exists(target) from None
        finally:
            fresh.unlink(missing_ok=True)
    return path


def check_path(path: Path, *, overwrite: bool = False) -> None:
    """Refuse a path that cannot become a report, before anything is computed.

    Raises:
        OutputNotWritten: the file or its twin exists, or the folder does not.
        UsageError: the name does not end in .html.
    """
    from gibbous.core.errors import OutputNotWritten, UsageError

    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(
            "REPORTNAME",
            f"A report cannot be called {path.name!r}.",
            "It is an HTML file; its JSON twin lies beside it.",
            "Choose a name that ends in .html.",
        )
    if not overwrite:
        for target in (path, twin_path(path)):
            if os.path.lexists(target):
                raise OutputNotWritten(
                    "EXISTS",
                    f"The output {str(target)!r} exists.",
                    "Nothing is replaced without being asked.",
                    "Choose another name, or pass --overwrite (overwrite=True).",
                )
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputNotWritten(
            "NOTWRITABLE",
            f"The folder {str(path.parent)!r} does not exist or cannot be written.",
            "A report is written into a folder that is there.",
            "Make the folder, or choose another path.",
        )
