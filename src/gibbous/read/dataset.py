"""A source and a ledger -> the name by which the ledger knows these records, before any release."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gibbous.core.dataset import DataSet
from gibbous.core.schema import Schema
from gibbous.privacy.ledger.datasets import file_place, file_stamp

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions


def dataset(source: object, key: bytes, schema: Schema | None, options: object) -> DataSet:
    """See `Ledger.dataset`."""
    from gibbous.read.fingerprint import fingerprint
    from gibbous.read.source import null_text, read_columns
    from gibbous.read.usable import usable_columns

    asked = cast("ReadOptions | None", options)
    where = file_place(source, key), file_stamp(source, key)
    if schema is None:
        frame, null = usable_columns(source, asked)[0], ""
    else:
        frame = read_columns(source, schema=schema, options=asked)
        null = null_text(source, schema)
    return fingerprint(frame, key, null).read_from(*where)
