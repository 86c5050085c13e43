"""Screen 6: what was released, whether it is whole, and the file that is handed on."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.schema import Unit
from gibbous.studio import accounts, commands
from gibbous.studio.screens.screen import Screen, needed_release
from gibbous.studio.words import refusal
from gibbous.write.manifest import SIGNATURE

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

ROWS = 12
_NUMBER = re.compile(r"(-?[0-9.]+(e[+-]?[0-9]+)?)?")


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    release, place = needed_release(studio), studio.place
    verify = studio.jobs.newest("verify", release)
    checked, said = commands.verified(release, _key(studio)), accounts.receipt(place.release)
    return {
        "release": release,
        "verify": verify,
        "answer": studio.jobs.answer(verify),
        "report": studio.jobs.newest("report", release),
        "documents": [name for name, file in DOCUMENTS if place.inside(release, file)],
        "files": files(place.release),
        "signed": _signed(studio),
        "keys": sorted(p.stem for p in place.folder.glob("*.pub") if place.inside(p.stem)),
        "sign": place.value("output.sign"),
        "public_key": _key(studio),
        "sizes": [(name, f"{size:,}") for name, size in files(place.release)],
        **rows_of(place.release, studio.jobs.answer(verify)),
        "receipt": said,
        **flows_of(studio, release, said, form),
        "zip": place.inside(f"{release}.zip") is not None and not _stale(place.folder / release),
        "command": checked.shell,
        "python": checked.python,
    }


DOCUMENTS = (
    ("public", "report.public.html"),
    ("codebook", "codebook.html"),
    ("methods", "METHODS.md"),
)


def files(folder: Path) -> list[tuple[str, int]]:
    """Names and bytes of what a release holds."""
    found = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()]
    return [(str(p.relative_to(folder)), p.stat().st_size) for p in found]


def preview(folder: Path, verified: Any) -> tuple[list[str], list[list[str]]]:
    """The first synthetic rows: public, and few, whatever the size of the file.

    Args:
        verified: what verify answered; a file that it did not find whole is not opened here.
    """
    import polars as pl

    if not verified or not verified.get("ok"):
        return [], []
    parts = sorted(folder.glob("synthetic_1/*.parquet"))
    try:
        first = parts[0] if parts else folder / "synthetic_1.parquet"
        frame = pl.scan_parquet(first).head(ROWS).collect()
    except (OSError, pl.exceptions.PolarsError):
        return [], []
    return frame.columns, [["" if v is None else str(v) for v in row] for row in frame.rows()]


def rows_of(folder: Path, verified: Any) -> dict[str, Any]:
    """The preview, and which of its columns hold numbers alone."""
    heads, rows = preview(folder, verified)
    numeric = [
        place
        for place in range(len(heads))
        if any(row[place] for row in rows) and all(_NUMBER.fullmatch(row[place]) for row in rows)
    ]
    return {"preview": (heads, rows), "numeric": numeric}


def _stale(folder: Path) -> bool:
    made = folder.with_name(f"{folder.name}.zip").stat().st_mtime_ns
    return any(p.stat().st_mtime_ns > made for p in folder.rglob("*"))


def flows_of(studio: Studio, release: str, said: dict[str, Any], form: Form) -> dict[str, Any]:
    """Whether a release holds flows, and their map."""
    return {
        "flows": str((said.get("unit") or {}).get("words", "")) == Unit("record").words(),
        "mapping": studio.jobs.newest("map", release),
        "drawn": studio.place.flow_map.is_file(),
        "destination": form.get("destination", ""),
    }


def _key(studio: Studio) -> str:
    """The public half of the key that signs here; "" where none does."""
    name = str(studio.place.value("output.sign"))
    public = f"{name}.pub"
    return public if name and studio.place.inside(public) else ""


def check(studio: Studio, form: Form) -> str:
    """Verify, without the data; a board names the public key that it was given."""
    key, screen = form.text("public", 500) or _key(studio), _screen(studio)
    if form.text("public") and not (studio.place.folder / key).is_file():
        raise refusal("KEY_public")
    command = commands.verified(needed_release(studio), key)
    studio.jobs.start(command, screen, form.get("once", ""))
    return screen


def _report(studio: Studio, form: Form) -> str:
    """The page for everybody, made from the release alone."""
    release, secret = needed_release(studio), form.text("passphrase", 500)
    key = form.text("sign", 100)
    if _signed(studio) and (not key or studio.place.inside(key) is None):
        raise refusal("KEY")
    command = commands.public_report(release, key, bool(secret))
    studio.jobs.start(command, "release", form.get("once", ""), secret=secret)
    return "release"


def _signed(studio: Studio) -> bool:
    return studio.place.inside(needed_release(studio), SIGNATURE) is not None


def draw_map(studio: Studio, form: Form) -> str:
    """Where the people of a destination come from: drawn from the release and public places."""
    release, place, screen = needed_release(studio), studio.place, _screen(studio)
    destination, places = form.text("destination", 200), form.text("coordinates", 500)
    command = commands.mapped(release, destination, places, place.short(place.flow_map))
    studio.jobs.start(command, screen, form.get("once", ""))
    return screen


def _screen(studio: Studio) -> str:
    return "board" if studio.board else "release"


def _zip(studio: Studio, form: Form) -> str:
    """One file of the release, after it was verified; written beside it, whole or not at all."""
    release = needed_release(studio)
    answer = studio.jobs.answer(studio.jobs.newest("verify", release))
    if not answer or not answer.get("ok"):
        raise refusal("UNVERIFIED")
    folder = studio.place.release
    target = folder.with_name(f"{folder.name}.zip")
    part = studio.place.uploads / f"{folder.name}.zip.part"
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, _ in files(folder):
            made.write(folder / name, f"{folder.name}/{name}")
    os.replace(part, target)
    return "release"


SCREEN = Screen(
    "release", _show, {"verify": check, "report": _report, "zip": _zip, "map": draw_map}
)
