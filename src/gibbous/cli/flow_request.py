"""What --geography changes in a request: the schema, the places of the method, and the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gibbous.cli.config import Values, method_of, parameters
from gibbous.core.errors import UsageError
from gibbous.core.keywords import DEFAULT_METHOD

if TYPE_CHECKING:
    from gibbous.core.protocols import Mechanism
    from gibbous.core.schema import Schema
    from gibbous.flows import FlowEngine, Geography
    from gibbous.read.source import ReadOptions


@dataclass(frozen=True, slots=True)
class FlowRequest:
    """A request about a table of flows.

    Attributes:
        schema: of one record: destination, origin (or its region).
        method: with the places, or regions, if it takes any.
    """

    geography: Geography
    schema: Schema
    method: Mechanism

    def engine(self, options: ReadOptions) -> FlowEngine:
        """Reads the flows, and counts their records."""
        from gibbous.flows import FlowEngine

        return FlowEngine(self.geography, options, level=self.geography.level)


def flow_request(values: Values) -> FlowRequest:
    """Read the geography of a request.

    Raises:
        UsageError: the file is not a geography, the method does not fit it, or an engine was named.
    """
    if "engine.name" in values:
        raise UsageError(
            "ENGINE",
            f"The engine {values['engine.name']!r} was named for flows.",
            "Flows are read with their geography, and counted in this process.",
            "Leave --engine out.",
        )
    from gibbous.flows import coarse, flow_schema, load_geography, placed
    from gibbous.mechanisms.registry import load

    geography = load_geography(values["geography"])
    seen = coarse(geography, geography.level) if geography.level else geography
    kind = load(values.get("mechanism.name", DEFAULT_METHOD))
    fixed = placed(kind, parameters(values), seen)
    return FlowRequest(geography, flow_schema(seen), method_of(values, fixed))
