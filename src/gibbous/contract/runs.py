"""One fit of a mechanism on codes in memory: engine, curator, run, close; what every check uses."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import numpy as np

from gibbous.contract.cases import secret
from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.params import build, describe
from gibbous.core.plan import Plan
from gibbous.core.protocols import Mechanism
from gibbous.core.request import Privacy
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.privacy.spend import spend


def relation_of(mechanism: Mechanism) -> Relation:
    """The neighbor relation of a mechanism's claim."""
    found: Relation = getattr(mechanism, "relation", "add_remove")
    return found


def default(kind: type[Any], **given: object) -> Any:
    """An instance with defaults, and with `given` where the class has such a parameter."""
    known = {p.name for p in describe(kind)}
    return build(kind, {k: v for k, v in given.items() if k in known})


def relations(kind: type[Any]) -> tuple[Relation, ...]:
    """Neighbor relations that the mechanism's `relation` parameter offers."""
    if "relation" not in {p.name for p in describe(kind)}:
        return ("add_remove",)
    return get_args(get_type_hints(kind)["relation"]) or ("add_remove", "replace_one")


def release(
    mechanism: Mechanism,
    schema: Schema,
    values: np.ndarray,
    rows: int | None,
    plan: Plan | None = None,
    *,
    sets: int = 1,
) -> Tables | Codes:
    """Run a mechanism on a table of codes and close the curator.

    Args:
        values: (rows, columns) codes; not modified.
        rows: output rows a set.
        plan: its total is what is reserved; None for the mechanism's own.
    """
    plan = plan or mechanism.plan(schema, rows, sets)
    return spend(Privacy(schema, mechanism), plan, LocalEngine.from_codes(secret(schema, values)))
