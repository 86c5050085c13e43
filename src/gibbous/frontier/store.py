"""The folder of a study: its settings, one small file a run that is done; a second start goes on."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gibbous.core.errors import OutputNotWritten, UsageError
from gibbous.frontier.grid import Cell


class Store:
    """Results by cell, in memory and, with a folder, in files that only their owner reads.

    Args:
        folder: None keeps a study in memory alone.
        settings: everything that the figures depend on, as JSON values.
    Raises:
        UsageError: the folder holds a study with other settings.
        OutputNotWritten: the folder cannot be made.
    """

    def __init__(self, folder: Path | None, settings: Mapping[str, Any]) -> None:
        self.folder, self._found = folder, dict[str, list[dict[str, Any]]]()
        if folder is None:
            return
        text = json.dumps(settings, indent=1, sort_keys=True, default=str)
        try:
            (folder / "cells").mkdir(parents=True, exist_ok=True, mode=0o700)
            known = folder / "study.json"
            if known.exists():
                self._check(known.read_text(encoding="utf-8"), text)
            else:
                _write(known, text)
        except OSError as error:
            raise OutputNotWritten(
                "STUDY",
                f"The folder of the study {str(folder)!r} cannot be used.",
                "It is a new folder, or one of an earlier start of the same study.",
                f"Check the path and its permissions ({error.strerror}).",
            ) from None

    def get(self, cell: Cell) -> list[dict[str, Any]] | None:
        """The figures of a run that is done; None of one that is not."""
        if cell.name in self._found:
            return self._found[cell.name]
        if self.folder is None:
            return None
        path = self.folder / "cells" / f"{cell.name}.json"
        if not path.exists():
            return None
        rows = [_from_json(row) for row in json.loads(path.read_text(encoding="utf-8"))]
        self._found[cell.name] = rows
        return rows

    def put(self, cell: Cell, rows: list[dict[str, Any]]) -> None:
        """Keep the figures of a run."""
        self._found[cell.name] = rows
        if self.folder is not None:
            text = json.dumps([_to_json(row) for row in rows])
            _write(self.folder / "cells" / f"{cell.name}.json", text)

    def _check(self, known: str, wanted: str) -> None:
        if known == wanted:
            return
        before, now = json.loads(known), json.loads(wanted)
        changed = sorted(k for k in {*before, *now} if before.get(k) != now.get(k))
        raise UsageError(
            "OTHERSTUDY",
            f"{str(self.folder)!r} holds a study with other {', '.join(changed)}.",
            "A study is resumed with the settings it was begun with.",
            "Restore them, or choose another folder.",
        )


def digest(source: str | bytes) -> str:
    """What tells one source from another: the bytes of the file or frame."""
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(fresh, path)


def _to_json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        k: {"float": repr(v)} if isinstance(v, float) and not math.isfinite(v) else v
        for k, v in row.items()
    }


def _from_json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: float(v["float"]) if isinstance(v, dict) else v for k, v in row.items()}
