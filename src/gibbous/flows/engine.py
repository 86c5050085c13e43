"""FlowEngine: counts contexts of a flow table without a row a record; the seam of every mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.context import Context, keys_of, levels_of
from gibbous.core.errors import EngineFailure, SchemaMismatch
from gibbous.core.moment import Moment
from gibbous.core.protocols import Progress, Words64, silent
from gibbous.core.recode import Change, Groups, recoded_schema
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts, Dense, Sparse
from gibbous.disintegrate import layout
from gibbous.flows.coarse import coarse, to_regions
from gibbous.flows.table import Flows, Geography, collected, read_flows

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions


class FlowEngine:
    """Holds the pairs of a flow table and their counts; a record is never expanded to a row.

    Args:
        geography: declared places and names of columns.
        options: how text files are read.
        level: count regions of this level in place of origins; the schema is then that of
            `coarse(geography, level)`.
    """

    name: ClassVar[str] = "flows"
    __slots__ = ("_flows", "_geography", "_level", "_options", "_schema")

    def __init__(
        self, geography: Geography, options: ReadOptions | None = None, *, level: str = ""
    ) -> None:
        self._geography, self._options, self._level = geography, options, level
        self._flows: Flows | None = None
        self._schema: Schema | None = None

    def __repr__(self) -> str:
        return f"<FlowEngine, {'open' if self._flows is not None else 'closed'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an engine holds confidential records and is never pickled")

    @classmethod
    def holding(cls, geography: Geography, flows: Flows, schema: Schema) -> FlowEngine:
        """An engine that holds these flows already (benches, studies)."""
        engine = cls(geography)
        engine._flows, engine._schema = flows, schema
        return engine

    def scan(
        self,
        source: Any,
        schema: Schema,
        *,
        key: bytes,
        progress: Progress = silent,
        numbers: Sequence[int] = (),
    ) -> bytes:
        """Read, check and keep the flows; see `core.protocols.Engine`.

        Raises:
            SchemaMismatch: the schema is not that of the geography, or a value does not fit it.
        """
        from gibbous.read.fingerprint import fingerprint

        seen = coarse(self._geography, self._level) if self._level else self._geography
        sizes = (len(seen.destinations), len(seen.origins))
        names = (self._geography.destination, self._geography.origin)
        counted = schema.unit is not None and schema.unit.kind == "record"
        if schema.sizes != sizes or schema.names != names or not counted or numbers:
            raise SchemaMismatch(
                "FLOWSCHEMA",
                "The schema is not that of the geography.",
                "It has the destination column, then the origin column, levels as declared; its "
                "privacy unit is one counted record of a pair, not a row and not a person.",
                "Make it with gibbous.flows.flow_schema.",
            )
        progress("read", 0, 100)
        flows, frame = read_flows(source, self._geography, options=self._options)
        mark = fingerprint(frame, key)
        if self._level:
            flows = to_regions(flows, self._geography, self._level)
        self._flows, self._schema = flows, schema
        progress("read", 100, 100)
        return mark

    def tally(
        self, contexts: Sequence[Context], *, progress: Progress = silent
    ) -> tuple[Counts, ...]:
        """Count all contexts from pairs; as `NumpyEngine.tally` would from one row a record.

        Raises:
            EngineFailure: closed, not scanned, or a context of another schema.
        """
        flows, schema = self._look()
        layout.check_contexts(contexts, schema)
        codes = np.stack([flows.destinations, flows.origins], axis=1)
        out = []
        for done, context in enumerate(contexts):
            progress("count", done, len(contexts))
            keys, levels = keys_of(context, codes), levels_of(context, codes)
            out.append(Counts(context, _cells(context, keys, levels, flows.counts)))
        progress("count", len(contexts), len(contexts))
        return tuple(out)

    def recoded(self, changes: Mapping[int, Change]) -> FlowEngine:
        """An engine with the same records, places joined into groups; see `NumberEngine`.

        Raises:
            UsageError: a map does not fit its column.
        """
        flows, schema = self._look()
        coarser = recoded_schema(schema, changes)  # whatever is no map of places is refused here
        codes = [flows.destinations, flows.origins]
        for place, change in changes.items():
            if isinstance(change, Groups):
                codes[place] = change.groups[codes[place]]
        found = collected(codes[0], codes[1], flows.counts, secret=True)
        return self.holding(self._geography, found, coarser)

    def split(self, parts: int, words: Words64) -> tuple[FlowEngine, ...]:
        """Engines with the records of random parts; see `NumberEngine`."""
        flows, schema = self._look()
        chosen = words(flows.records) % np.uint64(parts)
        pair = np.repeat(np.arange(len(flows.counts)), flows.counts)
        found = []
        for part in range(parts):
            counts = np.bincount(pair[chosen == np.uint64(part)], minlength=len(flows.counts))
            mine = collected(flows.destinations, flows.origins, counts, secret=True)
            found.append(self.holding(self._geography, mine, schema))
        return tuple(found)

    def sums(self, moments: Sequence[Moment]) -> NoReturn:
        """Flows have places, and no numbers.

        Raises:
            EngineFailure: always, if anything is to be summed.
        """
        raise EngineFailure(
            "NONUMBERS",
            "Numbers of flows were asked for.",
            "A table of flows has places and counts of people alone.",
            "Use a method without numeric columns.",
        )

    def estimate(self, contexts: Sequence[Context], rows: int) -> int:
        """Bytes that `tally` will need at its peak, beyond the records."""
        return sum(8 * c.cells if c.support == "dense" else 64 * rows for c in contexts)

    def write(
        self, batches: Iterable[Codes], schema: Schema, path: Path, *, format: str, seed: int
    ) -> int:
        """Decode and write rows to one file; return the number of rows."""
        from gibbous.disintegrate.writer import write_rows

        return write_rows(batches, schema, path, format=format, seed=seed).rows

    def close(self) -> None:
        """Forget the records: any later `tally` raises."""
        self._flows = None

    def _look(self) -> tuple[Flows, Schema]:
        if self._flows is None or self._schema is None:
            raise EngineFailure(
                "CLOSED",
                "The engine holds no flows: nothing was scanned, or they were forgotten.",
                "Records are counted after they are read and before rows are written.",
                "Start a new run.",
                state="What was reserved stays spent.",
            )
        return self._flows, self._schema


def _cells(
    context: Context, keys: np.ndarray, levels: np.ndarray, counts: np.ndarray
) -> Dense | Sparse:
    if context.support == "dense":
        cells = (keys * np.uint64(context.levels) + levels).astype(np.int64)
        total = np.zeros(context.cells, dtype=np.int64)
        np.add.at(total, cells, counts)
        return Dense(total.reshape(context.keys, context.levels))
    order = np.lexsort((levels, keys))
    keys, levels, counts = keys[order], levels[order], counts[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (levels[1:] != levels[:-1])
    at = np.flatnonzero(new)
    return Sparse(keys[at], levels[at], np.add.reduceat(counts, at) if len(at) else counts)
