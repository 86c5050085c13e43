"""What reads for the nouns of lower layers: functions of layers above, handed down on `import gibbous`.

Users look for `Schema.load` on Schema and for `Ledger.dataset` on Ledger, and files are read in a
layer above both. That layer hands its functions down here, so no module names one above it, and a
type checker sees the methods with their types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gibbous.core.column import Level
    from gibbous.core.dataset import DataSet
    from gibbous.core.schema import Schema

    Types = tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[Level, ...]]]


class Readers(NamedTuple):
    """What `Schema.load`, `infer`, `save`, `Ledger.dataset` and `Discovery.of` call.

    `dataset` takes source, key, schema and options; `types` gives numeric columns, days, and levels.
    """

    load: Callable[[str | Path], Schema]
    infer: Callable[[object], Schema]
    dataset: Callable[[object, bytes, Schema | None, object], DataSet]
    names: Callable[[object, object], tuple[str, ...]]
    types: Callable[[object, object], Types]
    save: Callable[[Schema, str | Path, bool], Path]


_handed: list[Readers] = []
_buyers: list[Callable[..., Schema]] = []


def hand_down(readers: Readers) -> None:
    """Give the lower layers what reads for them."""
    _handed[:] = [readers]


def readers() -> Readers:
    """What reads; always there, because whoever imports a part of gibbous imports gibbous."""
    return _handed[0]


def hand_down_buyer(buyer: Callable[..., Schema]) -> None:
    """Give `Schema.discover` what buys for it."""
    _buyers[:] = [buyer]


def buyer() -> Callable[..., Schema]:
    """What buys a schema; always there, as `readers` is."""
    return _buyers[0]
