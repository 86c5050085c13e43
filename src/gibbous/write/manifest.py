"""The manifest of a release: exactly which files it has, with sizes and digests; signed, and written last."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from gibbous import __version__
from gibbous.core.documents import read_text
from gibbous.write.durable_files import (
    read_json,
    refusing,
    rejected,
    sha256_of,
    sync_folder,
    untrusted,
    write_bytes,
    write_json,
)
from gibbous.write.signature import MAX_BYTES, RELEASE, SigningKey

FORMAT = "gibbous-release/1"
SIGNATURE = "manifest.sig"
SEALS = ("manifest.json", SIGNATURE, "SHA256SUMS")  # what `seal` writes
MAX_FILES = 100_000
MAX_SUMS = 1 << 24  # bytes
INTERNAL = b"contains unprotected statistics of the confidential data"
_PRIVATE = (b"PRIVATE", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # checkpoints, pickles
SET = r"synthetic_[1-9][0-9]{0,5}"
TABLES = r"tables/((set|part)_[0-9]{3,4}/){0,2}"  # of a set, or of a part of the records
FURTHER = "rows.json"  # instead of a certificate: further rows of a release
_ROLES = {
    rf"{SET}\.(parquet|csv|sav|dta|xlsx)": "synthetic rows",
    rf"{SET}/part-[0-9]{{5}}\.parquet": "synthetic rows, one part of a set",
    rf"{SET}_(csv|sav|dta|xlsx)/part-[0-9]{{5}}\.(csv|sav|dta|xlsx)": "synthetic rows, one part of a set",
    r"schema\.toml": "public schema",
    rf"{TABLES}tables\.json": "noisy tables: contexts and recipe",
    rf"{TABLES}(table|extra)_[0-9]{{3,6}}\.parquet": "noisy table",
    rf"{TABLES}model_[a-z]{{1,20}}\.parquet": "numbers of the model that rows are drawn from",
    r"ledger\.json": "certificate",
    r"rows\.json": "which release further rows are from",
    r"METHODS\.md": "methods for people",
    r"codebook\.html": "codebook",
    r"croissant\.json|datacite\.json|datapackage\.json|ddi\.xml": "description for other programs",
    r"read\.R": "script that reads the rows in R",
    r"report\.public\.html": "public report",
    r"report\.public\.json": "public report, as data",
}
_FOLDER = re.compile(rf"tables(/(set|part)_[0-9]{{3,4}}){{0,2}}|{SET}(_csv|_sav|_dta|_xlsx)?")
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")


def seal(
    folder: Path, *, known: Mapping[str, str] | None = None, sign: SigningKey | None = None
) -> None:
    """Write manifest.json, its signature, and, last, SHA256SUMS.

    Args:
        known: digests of files by name, as whoever wrote them found them; the others are read.
        sign: signs the manifest, which then names its public half; None leaves the release unsigned.
    """
    for name in SEALS:
        (folder / name).unlink(missing_ok=True)  # of a killed run
    sums = dict(known or {})
    entries = [
        {
            "path": name,
            "role": _role(name),
            "bytes": (folder / name).stat().st_size,
            "sha256": sums.get(name) or sha256_of(folder / name),
        }
        for name in found(folder)
    ]
    head = {"format": FORMAT, "gibbous": __version__}
    head |= {"signer": sign.public.line} if sign else {}
    write_json(folder / "manifest.json", head | {"files": entries})
    if sign:
        signed = sign.sign((folder / "manifest.json").read_bytes(), RELEASE)
        write_bytes(folder / SIGNATURE, signed.encode())
    sums = {str(entry["path"]): str(entry["sha256"]) for entry in entries}
    sums |= {name: sha256_of(folder / name) for name in SEALS[: 2 if sign else 1]}
    lines = [f"{sums[name]}  {name}\n" for name in sorted(sums)]
    write_bytes(folder / "SHA256SUMS", "".join(lines).encode())
    sync_folder(folder)


def check(folder: Path, *, skip_sets: bool = False) -> dict[str, int]:
    """Compare the files that are there with the manifest and the digests; gives name -> bytes of each.

    Args:
        skip_sets: leave the digests of the synthetic sets to whoever reads them.
    Raises:
        ModelRejected: a file is missing, added, changed, or of a kind that no release holds.
    """
    if folder.is_dir() and not os.path.lexists(folder / "manifest.json"):
        raise rejected("MISSING", f"{str(folder)!r} has no manifest.json")
    there = set(found(folder))
    document = read_json(folder / "manifest.json")
    with refusing("MANIFEST", "manifest.json is not a manifest"):
        if document["format"] != FORMAT:
            raise rejected(
                "VERSION",
                f"it has the format {str(document['format'])[:40]!r}, written by gibbous "
                f"{str(document.get('gibbous'))[:20]!r}; this is gibbous {__version__}, which reads "
                f"{FORMAT!r}",
            )
        sizes = {str(e["path"]): int(e["bytes"]) for e in document["files"]}
        listed = {str(e["path"]): str(e["sha256"]) for e in document["files"]}
        if len(listed) != len(document["files"]):
            raise rejected("MANIFEST", "its manifest lists a file twice")
        seals = SEALS[: 2 if "signer" in document else 1]
    there, sums = {*there, *seals, "SHA256SUMS"}, digests(folder)
    if os.path.lexists(folder / SIGNATURE) != (SIGNATURE in seals):
        raise rejected(
            "SIGNATURE",
            f"{SIGNATURE} is missing, and its manifest says that it was signed"
            if SIGNATURE in seals
            else f"it has a {SIGNATURE}, and its manifest names no key that signed it",
        )
    for name in sorted(there | listed.keys() | sums.keys()):
        if name == "SHA256SUMS":
            continue
        if name not in there:
            raise rejected("MISSING", f"{_shown(name)} is missing")
        if name not in sums or (name not in listed and name not in seals):
            raise rejected("EXTRA", f"{_shown(name)} is not listed")
        if name in listed and sums[name] != listed[name]:
            raise rejected("DIGEST", f"manifest and SHA256SUMS disagree about {_shown(name)}")
    for name in sorted(sums):
        if skip_sets and name.startswith("synthetic_"):
            continue
        check_file(folder, name, sums[name], sizes.get(name))
    return sizes


def check_file(folder: Path, name: str, digest: str, size: int | None = None) -> None:
    """Raise ModelRejected for a file of another digest or size, an internal one, a pickle or a checkpoint."""
    path = folder / name
    if size is not None and path.stat().st_size != size:
        raise rejected("DIGEST", f"{_shown(name)} was changed: its size is another")
    if sha256_of(path) != digest:
        raise rejected("DIGEST", f"{_shown(name)} was changed: its digest is another")
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if INTERNAL in head:
        raise rejected("INTERNAL", f"{_shown(name)} is internal and must not be published")
    if head.startswith(_PRIVATE):
        raise rejected("PICKLE", f"{_shown(name)} is a pickle or a private checkpoint")


def signature_text(folder: Path) -> str:
    """The signature of a release that has one; ModelRejected if it is too large, or no text."""
    with untrusted(SIGNATURE, "SIGNATURE"):
        return read_text(folder / SIGNATURE, MAX_BYTES)


def digests(folder: Path) -> dict[str, str]:
    """name -> digest, as SHA256SUMS lists them; else ModelRejected."""
    with untrusted("SHA256SUMS", "SHA256SUMS"):
        text = read_text(folder / "SHA256SUMS", MAX_SUMS)
    out: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or match[2] in out:
            raise rejected("SHA256SUMS", "SHA256SUMS is not a list of digests")
        out[match[2]] = match[1]
    return out


def found(folder: Path) -> list[str]:
    """Sorted names of the files of a package, without those that `seal` writes; else ModelRejected."""
    if not os.path.lexists(folder):
        raise rejected("FOLDER", f"there is no {str(folder)!r}")
    if folder.is_symlink() or not folder.is_dir():
        kind = "a file: unpack an archive first" if folder.is_file() else "not a folder"
        raise rejected("FOLDER", f"it is {kind}")
    names: list[str] = []
    todo = [""]
    while todo:
        prefix = todo.pop()
        with os.scandir(folder / prefix) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False) and _FOLDER.fullmatch(name):
                    todo.append(f"{name}/")
                elif not entry.is_file(follow_symlinks=False):
                    raise rejected("KIND", f"{_shown(name)} is a link, folder or device")
                elif name not in SEALS:
                    _role(name)
                    names.append(name)
                if len(names) + len(todo) > MAX_FILES:
                    raise rejected("FILES", f"it has more than {MAX_FILES:,} files")
    return sorted(names)


def _role(name: str) -> str:
    for pattern, role in _ROLES.items():
        if re.fullmatch(pattern, name):
            return role
    raise rejected("FILE", f"{_shown(name)} does not belong in a release")


def _shown(name: str) -> str:
    clean = "".join(c if c.isprintable() else "?" for c in name)
    return repr(clean if len(clean) <= 80 else clean[:77] + "...")
