"""A copy of a release under another name: every byte is checked, nothing is drawn, nothing is spent."""

from __future__ import annotations

import hashlib
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from gibbous.core.release import Saver
from gibbous.write import durable_files, manifest
from gibbous.write.durable_files import new_file
from gibbous.write.output_path import check_output
from gibbous.write.partial import acquire
from gibbous.write.signature import signing_key


def save_from(folder: Path) -> Saver:
    """What `Release.save` calls for the release in this folder."""
    return partial(save_copy, folder)


def save_copy(folder: Path, out: str | Path, *, overwrite: bool = False, sign: Any = None) -> Path:
    """Copy a release folder, and sign the copy where a key (or the path of one without passphrase) is given.

    Raises:
        ModelRejected: the release is not what its manifest says.
        OutputNotWritten, ResourceLimit: the copy cannot be written; there is none then.
    """
    target, key = check_output(out, overwrite=overwrite, source=folder), signing_key(sign)
    names = [*manifest.check(folder), *manifest.SEALS]
    request = hashlib.sha256(b"copy\0" + os.fsencode(folder)).digest()
    growing = acquire(target, request, 0)
    try:
        growing.clear()  # of a copy that was killed
        for name in names:
            if (folder / name).exists():
                _copy(folder / name, growing.package / name)
        if key is not None:
            manifest.seal(growing.package, sign=key)
        for made in {(growing.package / name).parent for name in names}:
            durable_files.sync_folder(made)
        manifest.check(growing.package)
        mode = durable_files.mode_of(folder)
        durable_files.move_into_place(growing.package, target, overwrite=overwrite, mode=mode)
        durable_files.sync_name(target)
    finally:
        growing.remove()
    return target


def _copy(source: Path, target: Path) -> None:
    for folder in reversed(target.parents):
        if not folder.exists():
            durable_files.make_folder(folder)
    with source.open("rb") as old, new_file(target) as new:
        shutil.copyfileobj(old, new, 1 << 20)
