"""Records as text: a source and its column names go in, codes under any public rule come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import UNCHARGED
from gibbous.core.protocols import Engine, How, Progress, silent
from gibbous.core.recode import Reading
from gibbous.core.schema import Column, Schema, Unit
from gibbous.core.secret import Secret
from gibbous.core.tables import Dense, Sparse
from gibbous.disintegrate.records import LocalEngine
from gibbous.structure.contexts import margins

if TYPE_CHECKING:
    import polars as pl


class TextRecords(Secret):
    """What engines have in common that hold the texts of each column, and codes that number them.

    The code of missing cells is 0. What such an engine is asked first is `scan`, with a schema whose columns
    are placeholders. Rows of a person are bounded there, once, so that all that is made of them is made of
    the same rows.
    """

    __slots__ = ()
    _texts: tuple[pl.Series, ...]
    tally: Any  # of the engine beside this class, as is its way to hold codes under a reading
    _read_as: Any

    def check(
        self,
        contexts: Sequence[Context],
        *,
        schema: Schema | None = None,
        parts: int = 1,
        state: str = UNCHARGED,
    ) -> None:
        """Nothing: a table of texts or of classes fits everywhere."""

    def coded(self, schema: Schema, how: How, numbers: How | None = None) -> Engine:
        """An engine with the codes of the same rows; see `core.protocols.TextRecords`."""
        at = {texts.name: place for place, texts in enumerate(self._texts)}
        own = [self._texts[at[column.name]] for column in schema]
        alone = [j for j, c in enumerate(schema) if numbers and c.binned and c.bins == 1]
        engine: Engine = self._read_as(
            Reading(
                schema,
                tuple(at[name] for name in schema.names),
                tuple(
                    how(texts, c).astype(np.uint32) for texts, c in zip(own, schema, strict=True)
                ),
                tuple((j, numbers(own[j], schema.columns[j])) for j in alone if numbers),
            )
        )
        return engine

    def texts(
        self, names: Sequence[str], how: Callable[[str, Any], Any]
    ) -> Iterator[tuple[list[str], Sparse]]:
        """The different texts of columns with exact counts. Secret; see `core.protocols.TextRecords`."""
        import polars as pl

        every = margins(numbered(self._texts))
        asked = [j for name in names for j, own in enumerate(self._texts) if own.name == name]
        tallied = self.tally([every[j] for j in asked])
        for name, j, counts in zip(names, asked, tallied, strict=True):
            assert isinstance(counts.cells, Dense)
            rows = pl.Series(counts.cells.values.ravel())
            told = pl.DataFrame({"text": how(name, self._texts[j]), "count": rows})
            told = told.drop_nulls().group_by("text").agg(pl.col("count").sum())
            told = told.filter(pl.col("count") > 0).sort("text")
            values = told["count"].cast(pl.Int64).to_numpy()
            levels = np.arange(len(values), dtype=np.uint64)
            yield told["text"].to_list(), Sparse(np.zeros_like(levels), levels, values)


def numbered(texts: Sequence[pl.Series], unit: Unit | None = None) -> Schema:
    """A schema whose codes number the texts of each column."""
    columns = (Column(c.name, "numeric", edges=tuple(range(len(c) + 1))) for c in texts)
    return Schema(tuple(columns), unit)


class TextEngine(TextRecords, LocalEngine):
    """The local engine before there is a schema; see `TextRecords`."""

    __slots__ = ("_texts",)

    def scan(
        self,
        source: Any,
        schema: Schema,
        *,
        key: bytes,
        progress: Progress = silent,
        numbers: Sequence[int] = (),
    ) -> bytes:
        """Read and fingerprint the input, and number the texts of its cells.

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
        person = schema.unit and schema.unit.column  # two persons never share a text
        with read_slices(source, schema=schema, options=self.options) as (rows, slices):
            mark, frames = fingerprint_of(source, schema, rows, key), []
            for part in slices:
                mark.add(part)
                frames.append(pl.DataFrame([c if c.name == person else as_cells(c) for c in part]))
        frame = pl.concat(frames)
        check_header(frame.columns, frame)
        frame = self._bounded(frame, schema)
        cells = [frame.get_column(name) for name in schema.names]
        self._texts = tuple(all_texts(own.name, own) for own in cells)
        rows_of = [_places(own, texts) for own, texts in zip(cells, self._texts, strict=True)]
        told = numbered(self._texts)
        self.take(Codes(told, np.stack(rows_of).astype(told.code_dtype()).T, secret=True))
        progress("read", 100, 100)
        return mark.digest()

    def close(self) -> None:
        """Forget the text."""
        self._texts = ()
        super().close()

    def _read_as(self, reading: Reading) -> LocalEngine:
        texts = self._look()
        assert isinstance(texts, Codes)
        return self._with(reading.of(texts))

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


def all_texts(name: str, values: pl.Series) -> pl.Series:
    """Missing, and then the different texts of a column, each once."""
    import polars as pl

    return pl.concat(
        [pl.Series(name, [None], dtype=pl.String), values.drop_nulls().unique(maintain_order=True)]
    )


def _places(values: pl.Series, texts: pl.Series) -> np.ndarray:
    import polars as pl

    rank = pl.DataFrame({"text": texts, "place": np.arange(len(texts), dtype=np.uint32)})
    found = values.to_frame("text").join(
        rank, on="text", how="left", nulls_equal=True, maintain_order="left"
    )
    return found["place"].to_numpy()
