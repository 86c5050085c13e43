"""FlowEngine: a flow table is a source of codes, one row a record of a pair; counted as any records are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gibbous.core.codes import Codes, empty_codes
from gibbous.core.errors import SchemaMismatch
from gibbous.core.protocols import Progress, silent
from gibbous.core.schema import Schema
from gibbous.disintegrate.records import LocalEngine
from gibbous.disintegrate.scanning import kept
from gibbous.flows.table import Flows, Geography, coarse, read_flows, to_regions

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions

SLICE = 1 << 20  # records


class FlowEngine(LocalEngine):
    """Counts the records of a flow table: each pair as often as its count says.

    Args:
        geography: declared places and names of columns.
        options: how text files are read.
        level: count regions of this level in place of origins; the schema is then that of
            `coarse(geography, level)`.
    """

    name: ClassVar[str] = "flows"
    __slots__ = ("_geography", "_level")

    def __init__(
        self, geography: Geography, options: ReadOptions | None = None, *, level: str = ""
    ) -> None:
        super().__init__(options)
        self._geography, self._level = geography, level

    @classmethod
    def holding(cls, geography: Geography, flows: Flows, schema: Schema) -> FlowEngine:
        """An engine that holds these flows already (benches, studies)."""
        engine = cls(geography)
        engine._keep(flows, schema)
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
        flows, frame = read_flows(source, self._geography, options=self.options)
        mark = fingerprint(frame, key)
        if self._level:
            flows = to_regions(flows, self._geography, self._level)
        self._keep(flows, schema)
        progress("read", 100, 100)
        return mark

    def _keep(self, flows: Flows, schema: Schema) -> None:
        self.take(kept(codes_of(flows, schema), schema, flows.records, self._spilling))


def codes_of(flows: Flows, schema: Schema) -> Iterator[Codes]:
    """Secret codes of flows, one row a record; a pair of many is never a row of each at once.

    Args:
        schema: of destination, then origin (or its region).
    """
    ends = np.cumsum(flows.counts)
    for start in range(0, flows.records, SLICE):
        records = np.arange(start, min(start + SLICE, flows.records))
        pairs = np.searchsorted(ends, records, side="right")
        values = empty_codes(schema, len(records))
        values[:, 0], values[:, 1] = flows.destinations[pairs], flows.origins[pairs]
        yield Codes(schema, values, secret=True)
