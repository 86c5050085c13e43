"""Put the public report into its release: a copy of the folder is completed, sealed and swapped in."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from gibbous.report import page
from gibbous.report.flow_figures import Mapped
from gibbous.report.public import opened, public_page
from gibbous.write import files, manifest
from gibbous.write.files import not_written
from gibbous.write.verify import verify

NAME: Final = "report.public.html"


def into_release(
    folder: str | Path, *, mapped: Mapped | None = None, overwrite: bool = False
) -> Path:
    """Write report.public.html and report.public.json into a release and seal it again.

    The release is checked first, row by row. At every moment its folder is either the old one or the
    new one, each whole; what the ledger paid for does not change.

    Args:
        folder: of the release.
        mapped: public geography of a release of flows: maps are drawn.
        overwrite: replace a report that is there.
    Returns:
        The path of the report.
    Raises:
        ModelRejected: it is not an intact release.
        OutputNotWritten: it has a report already, or the folder beside it cannot be written.
        EngineFailure: the extra "report" is not installed.
    """
    verify(folder)
    place = Path(os.path.abspath(folder))  # "." has no name to swap
    target = place / NAME
    page.check_path(target, overwrite=overwrite)
    made = public_page(opened(place), mapped)
    texts = {NAME: page.html(made), page.twin_path(target).name: page.twin(made)}
    try:
        fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}.report-", dir=place.parent))
    except OSError as error:
        raise not_written(place, error) from None
    try:
        _copy(place, fresh, without={*texts, "manifest.json", "SHA256SUMS"})
        for name, text in texts.items():
            files.write_bytes(fresh / name, text.encode("utf-8", "replace"))
        manifest.seal(fresh)
        manifest.check(fresh)
        files.move_into_place(fresh, place, overwrite=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return Path(folder) / NAME


def _copy(source: Path, target: Path, *, without: set[str]) -> None:
    """The files of a release under a second name, or copied where the file system has no such names."""
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        if path.is_dir():
            files.make_folder(target / name)
        elif name.as_posix() not in without:
            try:
                os.link(path, target / name, follow_symlinks=False)
            except OSError:
                shutil.copyfile(path, target / name, follow_symlinks=False)
                (target / name).chmod(0o600)
