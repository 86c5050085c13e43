"""Named columns of numbers <-> one Parquet file, of which a reader knows everything but the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gibbous.write.files import new_file, rejected

MAX_CELLS = 1 << 27  # of one column: 1 GiB of numbers
_ROW_GROUP = 1 << 20


def write_numbers(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write a new file.

    Raises:
        OutputNotWritten, ResourceLimit: it cannot be written.
    """
    import polars as pl

    with new_file(path) as file:
        pl.DataFrame(dict(columns)).write_parquet(
            file, compression="zstd", row_group_size=_ROW_GROUP
        )


def read_numbers(path: Path, kinds: Mapping[str, str], rows: int) -> list[np.ndarray]:
    """Read what `write_numbers` wrote; sizes and types are compared before anything is read.

    Args:
        kinds: "f" or "i" by name of the column, in order.
        rows: how many there must be.
    Raises:
        ModelRejected: other columns, types or rows, missing cells, or a number that is not finite.
    """
    import polars as pl

    from gibbous.write.parquet_guard import guarded_read, metadata

    if rows > MAX_CELLS:
        raise rejected("SHAPE", f"{path.name} would have {rows} cells")
    wanted = {name: pl.Float64 if kind == "f" else pl.Int64 for name, kind in kinds.items()}
    found = metadata(path)
    if found.columns != wanted or found.rows != rows:
        raise rejected("SHAPE", f"{path.name} does not have the columns or cells that are listed")
    frame = guarded_read(path)
    if frame.height != rows or any(frame.null_count().row(0)):
        raise rejected("SHAPE", f"{path.name} has missing cells")
    arrays = [frame.get_column(name).to_numpy().copy() for name in kinds]
    if not all(np.isfinite(values).all() for values in arrays):
        raise rejected("MODEL", f"{path.name} holds a number that is not finite")
    return arrays
