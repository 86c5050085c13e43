"""What reads for the nouns of lower layers: functions of `gibbous.read`, handed down on `import gibbous`.

Users look for `Schema.load` on Schema and for `Ledger.dataset` on Ledger, and files are read in a
layer above both. That layer hands its functions down here, so no module names one above it, and a
type checker sees the methods with their types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gibbous.core.dataset import DataSet
    from gibbous.core.schema import Schema


class Readers(NamedTuple):
    """What `Schema.load`, `infer`, `save` and `Ledger.dataset` (source, key, schema, options) call."""

    load: Callable[[str | Path], Schema]
    infer: Callable[[object], Schema]
    dataset: Callable[[object, bytes, Schema | None, object], DataSet]
    save: Callable[[Schema, str | Path, bool], Path]


_handed: list[Readers] = []


def hand_down(readers: Readers) -> None:
    """Give the lower layers what reads for them."""
    _handed[:] = [readers]


def readers() -> Readers:
    """What reads; always there, because whoever imports a part of gibbous imports gibbous."""
    return _handed[0]
