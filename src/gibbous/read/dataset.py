"""A source and a ledger -> the name by which the ledger knows these records, before any release."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gibbous.core.schema import Schema
from gibbous.privacy.ledger import Ledger, file_stamp

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions


def dataset(source: object, ledger: Ledger, schema: Schema | None, options: object) -> bytes:
    """See `Ledger.dataset`."""
    from gibbous.read.fingerprint import fingerprint
    from gibbous.read.source import read_columns

    known = ledger.recall(file_stamp(source, ledger.key))
    if known is not None:
        return known
    frame = read_columns(source, schema=schema, options=cast("ReadOptions | None", options))
    return fingerprint(frame, ledger.key, schema.null if schema else "")
