"""The names of the columns of a file, read by a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gibbous.core.errors import InputRejected
from gibbous.studio.histogram import answered, reading_of, tell


def heading(folder: Path, data: str, reading: Sequence[str]) -> frozenset[str] | None:
    """The names; None of a table of a database, and of a file that cannot be read so."""
    with suppress(InputRejected):
        asked = {"data": data, "reading": list(reading)}
        return frozenset(answered("gibbous.studio.heading", folder, asked))
    return None


def _names(asked: dict[str, Any]) -> list[str]:
    from gibbous.read.source import probe

    return list(probe(asked["data"], options=reading_of(asked)).names)


if __name__ == "__main__":
    tell(_names)
