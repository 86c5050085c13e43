"""Templates, their words, and the two files that a browser fetches beside them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from gibbous.core.documents import read_text
from gibbous.core.errors import GibbousError
from gibbous.studio.words import answer, words

HERE = Path(__file__).parent
STATIC = {"studio.css": "text/css", "studio.js": "text/javascript"}


def _named(words: Mapping[str, Any]) -> SimpleNamespace:
    """Words by attribute: `w.command.copy` of a mapping is its method in Jinja."""
    return SimpleNamespace(
        **{k: _named(v) if isinstance(v, Mapping) else v for k, v in words.items()}
    )


@functools.cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"w": _named(words())}
    made.filters |= {"duration": duration, "advice": advice}
    return made


def page(name: str, context: Mapping[str, Any], status: int = 200) -> Response:
    """A template as an answer."""
    return HTMLResponse(_templates().get_template(name).render(context), status)


def static(request: Request) -> Response:
    """One of our two files."""
    name = request.path_params["name"]
    if name not in STATIC:
        return PlainTextResponse(answer("file"), 404)
    return Response(read_text(HERE / "static" / name, 1 << 20), media_type=STATIC[name])


def told(error: GibbousError) -> dict[str, str]:
    """An error as a screen shows it."""
    return {"code": error.code, "text": advice(str(error))}


def advice(text: str) -> str:
    """A sentence of a command in words of the forms, where they have the choice that it names."""
    for flag, said in words()["advice"].items():
        text = text.replace(flag, said)
    return text


def stage(name: str) -> str:
    """A stage of a job in words."""
    return str(words()["stages"].get(name, name))


def duration(seconds: float) -> str:
    """Seconds in words, rounded: how long a job takes says something of the records."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
