"""Days that a calendar can write: the years 1 to 9999, on every engine alike."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from gibbous.core.errors import SchemaMismatch
from gibbous.read.fields import shown

if TYPE_CHECKING:
    import polars as pl

_FIRST, _LAST = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
_DAY = datetime.timedelta(days=1)


def check_years(frame: pl.DataFrame) -> None:
    """Refuse days that no calendar writes: databases and files of other programs have infinite ones.

    Raises:
        SchemaMismatch: naming the column.
    """
    import polars as pl

    for column in frame:
        dtype = column.dtype
        times = isinstance(dtype, pl.Datetime) and dtype.time_unit != "ns"  # which end in 2262
        if not (dtype == pl.Date or times):
            continue
        first, before, last = pl.Series([_FIRST, _LAST - _DAY, _LAST]).cast(dtype).to_physical()
        number = column.to_physical()
        if bool(
            ((number < first) | (number >= 2 * last - before)).any()
        ):  # all of the last day is in
            raise SchemaMismatch(
                "NOTADAY",
                f"Column {shown(column.name)} has days that are infinite, or after the year 9999.",
                "Days lie between the years 1 and 9999.",
                "Make them missing (NULL) in a view, and set missing = true in the schema.",
            )
