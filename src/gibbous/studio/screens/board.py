"""The board's screen: a release alone, without data; nothing can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gibbous.studio import accounts, commands
from gibbous.studio.screens import release
from gibbous.studio.screens.screen import Screen, needed_release, needed_schema
from gibbous.studio.words import words

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    folder, path = needed_release(studio), studio.place.release
    verify = studio.jobs.newest("verify", folder)
    checked, said = commands.verified(folder), accounts.receipt(path)
    schema, kinds = needed_schema(studio), words()["kinds"]
    return {
        "release": folder,
        "verify": verify,
        "answer": studio.jobs.answer(verify),
        "files": release.files(path),
        "sizes": [(name, f"{size:,}") for name, size in release.files(path)],
        "report": None,
        "asked": form.get("public", ""),
        **release.rows_of(path, studio.jobs.answer(verify)),
        "receipt": said,
        **release.flows_of(studio, folder, said, form),
        "documents": [n for n, file in release.DOCUMENTS if studio.place.inside(folder, file)],
        "columns": [(c.name, kinds[c.kind], c.size, c.label or "") for c in schema],
        "command": checked.shell,
        "python": checked.python,
    }


SCREEN = Screen("board", _show, {"verify": release.check, "map": release.draw_map})
