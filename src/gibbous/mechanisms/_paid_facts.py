"""Which facts a method buys by default, because a schema leaves them open: a public rule."""

from __future__ import annotations

from gibbous.core.protocols import Mechanism
from gibbous.core.schema import Schema
from gibbous.mechanisms import registry
from gibbous.mechanisms.paid_bins import PaidBins


def with_paid_facts(method: Mechanism, schema: Schema) -> Mechanism:
    """The method on paid bins, where a column has public bounds and no cut points: a public rule.

    The same where a rule leaves its map to be bought.

    Returns:
        `PaidBins` of these columns and maps around it; the method itself where there are none, where a
        structural zero names them, where its epsilon is not that of the whole release, or where it
        looks at numbers or cuts bins itself.
    """
    bound = {name for rule in schema.impossible for name, _ in rule.where}
    names = tuple(
        column.name
        for column in schema
        if len(column.edges) == 2
        and column.edges[0] < column.edges[1]
        and column.within is None
        and column.name not in bound
    )
    maps = tuple(dict.fromkeys(rule.detail for rule in schema.rules if rule.to_buy))
    if not (names or maps) or not _takes_bins(method) or method.plan(schema, None).numbers:
        return method
    return PaidBins(method, columns=names, maps=maps)


def _takes_bins(method: Mechanism) -> bool:
    """Whether a method is registered, not paid_bins, and has one budget for its whole release."""
    about = method.about
    return (
        about.name in registry.names()
        and type(method) is registry.load(about.name)
        and not isinstance(method, PaidBins)
        and about.kind in ("pure", "approximate")
        and about.unit not in ("row", "block")
        and hasattr(method, "epsilon")
    )
