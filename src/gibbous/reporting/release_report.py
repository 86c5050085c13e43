"""The public report in its release: put there, made again by whoever verifies the release, compared."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from gibbous import __version__
from gibbous.core.boundary import guarded
from gibbous.core.documents import json_value, read_text
from gibbous.core.errors import EngineFailure, ModelRejected, UsageError
from gibbous.core.json_values import plain
from gibbous.core.keywords import answering
from gibbous.core.protocols import Progress, silent
from gibbous.privacy.ledger import Ledger
from gibbous.reporting import html_page
from gibbous.reporting.flow_map import Mapped
from gibbous.reporting.public_report import opened, public_page
from gibbous.write import durable_files, manifest
from gibbous.write import verify as package
from gibbous.write.durable_files import not_written, read_json, refusing, rejected, untrusted
from gibbous.write.release_signature import Signer
from gibbous.write.release_texts import holds
from gibbous.write.signature import SigningKey
from gibbous.write.verify import VerifyReport

NAME: Final = "report.public.html"
MAX_BYTES: Final = 64 << 20
_CHART: Final = re.compile(r"<svg\b.*?</svg\s*>", re.DOTALL | re.IGNORECASE)


@guarded
@answering
def verify(
    path: str | Path,
    *,
    ledger: Ledger | Path | str | None = None,
    key: str | Path | None = None,
    progress: Progress = silent,
) -> VerifyReport:
    """Check a release package, without the data.

    Args:
        path: the folder.
        ledger: the ledger that paid for it, or its path; None checks the package alone.
        key: file of public keys, of which one has to have signed it; None takes any signature, and none.
        progress: told ("verify", rows that were read, rows of all sets).
    Raises:
        ModelRejected: the first thing that does not fit.
        LedgerUnusable: the ledger itself does not fit together.
        UsageError: `key` names no public keys.
        EngineFailure: a key was given, and the extra "sign" is not installed.
    """
    return package.verify(
        path, ledger=ledger, key=key, check_report=check_report, progress=progress
    )


@guarded
def into_release(
    folder: str | Path,
    *,
    mapped: Mapped | None = None,
    sign: SigningKey | None = None,
    overwrite: bool = False,
) -> Path:
    """Write report.public.html and report.public.json into a release and seal it again.

    The release is checked first, row by row. At every moment its folder is either the old one or the
    new one, each whole; what the ledger paid for does not change.

    Args:
        mapped: public geography of a release of flows: maps are drawn.
        sign: signs the release with its report.
    Raises:
        ModelRejected: it is not an intact release.
        OutputNotWritten: it has a report already, or the folder beside it cannot be written.
        UsageError: it is signed, and no key was given to sign it again.
        EngineFailure: the extra "report" is not installed.
    """
    _refuse_unsigning(verify(folder).signer, sign)
    release = Path(os.path.abspath(folder))  # "." has no name to swap
    target = release / NAME
    html_page.check_path(target, overwrite=overwrite)
    report = public_page(opened(release), mapped)
    texts = {NAME: html_page.html(report), html_page.twin_path(target).name: html_page.twin(report)}
    try:
        fresh = Path(tempfile.mkdtemp(prefix=f".{release.name}.report-", dir=release.parent))
    except OSError as error:
        raise not_written(release, error) from None
    try:
        _copy(release, fresh, without={*texts, *manifest.SEALS})
        for name, text in texts.items():
            durable_files.write_bytes(fresh / name, text.encode("utf-8", "replace"))
        manifest.seal(fresh, sign=sign)
        manifest.check(fresh)
        mode = durable_files.mode_of(release)
        durable_files.move_into_place(fresh, release, overwrite=True, mode=mode)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return Path(folder) / NAME


def _refuse_unsigning(signer: Signer, sign: SigningKey | None) -> None:
    if signer.state != "unsigned" and sign is None:
        raise UsageError(
            "SIGNED",
            "The release is signed, and a report inside it would make that signature void.",
            "It is signed again with its report, or the report lies outside.",
            "Pass --sign KEY, or write the report to another place with --out.",
        )


def check_report(folder: Path) -> str:
    """Make the public report of a release again and compare.

    Numbers and words must be the same. A chart may differ where fonts do, and holds nothing that
    charts made here do not hold.

    Returns:
        What could not be compared, as a sentence; "" where nothing is left.
    Raises:
        ModelRejected: this version of gibbous wrote the report, and would have written another.
    """
    twin = html_page.twin_path(folder / NAME)
    stated = read_json(twin)
    with refusing("REPORT", f"{twin.name} is not a public report"):
        writer, mapped = (
            str(stated["gibbous"]),
            any(one["name"] == "flows" for one in stated["sections"]),
        )
    if writer != __version__:
        return (
            f"texts could not be regenerated (written by gibbous {writer[:40]!r}, this is "
            f"{__version__}): {NAME} may say anything"
        )
    try:
        report = public_page(opened(folder))
        text, expected = html_page.html(report), html_page.twin(report)
    except EngineFailure:
        return f"{NAME} was not compared: the extra 'report' of gibbous is not installed"
    if mapped:
        _compare_mapped(stated, json_value(expected))
        return f"{NAME} has maps of public places that are not in the release: it was not compared"
    if not holds(twin, expected.encode("utf-8", "replace")):
        raise _other(twin.name)
    return _compared(folder / NAME, text)


def _copy(source: Path, target: Path, *, without: set[str]) -> None:
    """The files of a release under a second name, or copied where the file system has no such names."""
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        if path.is_dir():
            durable_files.make_folder(target / name)
        elif name.as_posix() not in without:
            try:
                os.link(path, target / name, follow_symlinks=False)
            except OSError:
                shutil.copyfile(path, target / name, follow_symlinks=False)
                (target / name).chmod(0o600)


def _compared(path: Path, expected: str) -> str:
    if holds(path, expected.encode("utf-8", "replace")):
        return ""
    with untrusted(path.name, "REPORT"):
        text = read_text(path, MAX_BYTES)
    charts = len(_CHART.findall(text)) == len(_CHART.findall(expected))
    if not charts or _CHART.sub("", text) != _CHART.sub("", expected):
        raise _other(path.name)
    if not _vocabulary(text) <= _vocabulary(expected):
        raise rejected("REPORT", f"a chart in {path.name} holds what no chart holds")
    return f"charts in {path.name} were drawn with other fonts: their labels were not compared"


def _compare_mapped(stated: Any, expected: Any) -> None:
    """Compare everything but the maps, and the sentence that names them."""
    for report in (stated, expected):
        report.pop("foot", None)
        report["sections"] = [
            section for section in report["sections"] if section["name"] != "flows"
        ]
    if plain(stated) != plain(expected):
        raise _other("report.public.json")


def _other(name: str) -> ModelRejected:
    return rejected("REPORT", f"{name} is not the report that the rest of the release gives")


def _vocabulary(text: str) -> set[str]:
    """Names of elements and attributes in the charts of a page."""
    names: set[str] = set()

    class Names(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            names.add(tag)
            names.update(f"{tag} {name}" for name, _ in attrs)

    for chart in _CHART.findall(text):
        Names().feed(chart)
    return names
