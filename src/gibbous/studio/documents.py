"""Finished pages and files of a release or a report, each under an id that is made here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from gibbous.studio import rendered
from gibbous.studio.words import answer as said

if TYPE_CHECKING:
    from gibbous.studio.app import Studio

STYLED = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; "
    "base-uri 'none'; form-action 'none'; sandbox allow-same-origin"
)
ESTIMATES = ("estimates.csv", "estimates.tex")
MOST = 1 << 26  # bytes of a page


def answer(studio: Studio, request: Request) -> Response:
    """One of the documents of this workplace; there are no others."""
    release = studio.place.release.name
    shown = {
        "public": (release, "report.public.html"),
        "codebook": (release, "codebook.html"),
        "methods": (release, "METHODS.md"),
        "zip": (f"{release}.zip",),
    }
    if not studio.board:
        shown["internal"] = ("internal", "report.internal.html")
        shown["key"] = (f"{studio.place.value('output.sign')}.pub",)
        shown["findings"] = ("internal", "findings.json")
    name = request.path_params["name"]
    if name in ESTIMATES:
        return _estimates(studio, name)
    names = shown.get(name)
    path = studio.place.inside(*names) if names else None
    if name == "flows":
        path = studio.place.flow_map
        path = path if path.is_file() and not path.is_symlink() else None
    if path is None:
        return PlainTextResponse(said("document"), 404)
    if name in ("zip", "findings", "key"):
        return FileResponse(path, filename=path.name, content_disposition_type="attachment")
    if path.stat().st_size > MOST:
        return PlainTextResponse(said("largepage"), 413)
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        text = rendered.page(text)
    headers = {"content-security-policy": STYLED, "x-frame-options": "SAMEORIGIN"}
    kind = "image/svg+xml" if path.suffix == ".svg" else "text/html"
    return Response(text, media_type=kind, headers=headers)


def _estimates(studio: Studio, name: str) -> Response:
    from gibbous.studio.screens.analyse import exported

    text = exported(studio, name.rpartition(".")[2])
    if text is None:
        return PlainTextResponse(said("document"), 404)
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return PlainTextResponse(text, headers=headers)
