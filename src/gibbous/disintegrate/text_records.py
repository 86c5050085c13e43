"""Records as text: a source and its column names go in, codes under any public rule come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import UNCHARGED
from gibbous.core.protocols import How, Progress, silent
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Sparse
from gibbous.disintegrate.records import LocalEngine

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cells:
    """One column: its different texts, and which of them stands in each row. Secret."""

    texts: pl.Series
    places: np.ndarray


class TextEngine(LocalEngine):
    """The local engine before there is a schema: it holds text, and makes engines that hold codes.

    What it is asked first is `scan`, with a schema whose columns are placeholders. Rows of a person
    are bounded there, once, so that all that is made of them is made of the same rows.
    """

    __slots__ = ("_cells",)

    def scan(
        self,
        source: Any,
        schema: Schema,
        *,
        key: bytes,
        progress: Progress = silent,
        numbers: Sequence[int] = (),
    ) -> bytes:
        """Read and fingerprint the input and keep its cells as text.

        Args:
            schema: names and privacy unit; kinds and levels are not looked at.
        Raises:
            InputRejected, SchemaMismatch, ResourceLimit: as every scan; nothing about a cell. Half of
                the names or more look like values, or stand among the values below them.
        """
        import polars as pl

        from gibbous.disintegrate.scanning import fingerprint_of
        from gibbous.encode.cell_text import as_cells
        from gibbous.read.conform import check_header
        from gibbous.read.source import read_slices

        progress("read", 0, 100)
        with read_slices(source, schema=schema, options=self.options) as (rows, slices):
            mark, frames = fingerprint_of(source, schema, rows, key), []
            for part in slices:
                mark.add(part)
                frames.append(pl.DataFrame([as_cells(column) for column in part]))
        frame = pl.concat(frames)
        check_header(frame.columns, frame)
        frame = self._bounded(frame, schema)
        self._cells = {name: _cells(frame.get_column(name)) for name in schema.names}
        progress("read", 100, 100)
        return mark.digest()

    def check(
        self,
        contexts: Sequence[Context],
        *,
        schema: Schema | None = None,
        parts: int = 1,
        state: str = UNCHARGED,
    ) -> None:
        """Nothing: a table of classes fits everywhere."""

    def coded(self, schema: Schema, how: How, numbers: How | None = None) -> LocalEngine:
        """An engine with the codes of the same rows; see `core.protocols.TextRecords`."""
        values = [self._rows(how, column).astype(np.uint32) for column in schema]
        kept = [
            (place, self._rows(numbers, column))
            for place, column in enumerate(schema)
            if numbers is not None and column.binned and column.bins == 1
        ]
        codes = np.stack(values).astype(schema.code_dtype())
        engine = LocalEngine(threads=self.threads, memory_limit=self.memory_limit)
        engine.take(Codes(schema, codes.T, secret=True, numbers=tuple(kept)))
        return engine

    def _rows(self, how: How, column: Column) -> np.ndarray:
        """What a rule makes of the text of each row."""
        cells = self._cells[column.name]
        found: np.ndarray = how(cells.texts, column)[cells.places]
        return found

    def texts(
        self, names: Sequence[str], how: Callable[[str, Any], Any]
    ) -> Iterator[tuple[list[str], Sparse]]:
        """The different texts of columns with exact counts. Secret; see `core.protocols.TextRecords`."""
        import polars as pl

        for name in names:
            cells = self._cells[name]
            counts = np.bincount(cells.places, minlength=len(cells.texts))
            told = pl.DataFrame({"text": how(name, cells.texts), "count": counts})
            told = told.drop_nulls().group_by("text").agg(pl.col("count").sum()).sort("text")
            values = told["count"].cast(pl.Int64).to_numpy()
            levels = np.arange(len(values), dtype=np.uint64)
            yield told["text"].to_list(), Sparse(np.zeros_like(levels), levels, values)

    def close(self) -> None:
        """Forget the text."""
        self._cells = {}
        super().close()

    def _bounded(self, frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
        import polars as pl

        from gibbous.disintegrate.persons import People
        from gibbous.disintegrate.scanning import words_for

        unit, words = schema.unit, words_for(schema)
        if unit is None or unit.column is None or words is None:
            return frame
        people = People(unit.column, frame.height, self._spilling.folder, words)
        try:
            people.add(people.lanes(frame.get_column(unit.column)))
            stay = people.stay(unit.max_rows, lambda share: None)
        finally:
            people.release()
        return frame if stay is None else frame.filter(pl.Series(np.concatenate(stay)))


def _cells(values: pl.Series) -> Cells:
    import polars as pl

    texts = values.unique()
    rank = pl.DataFrame({"text": texts, "place": np.arange(len(texts), dtype=np.int64)})
    places = values.to_frame("text").join(
        rank, on="text", how="left", nulls_equal=True, maintain_order="left"
    )
    return Cells(texts, places["place"].to_numpy())
