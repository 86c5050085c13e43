"""`gibbous methods --scaffold NAME`: a complete, correct mechanism file to start from."""

from __future__ import annotations

import keyword
import re

from gibbous.core.errors import UsageError

TEMPLATE = '''\
"""__TITLE__: every column's margin, noised once; rows are drawn column by column.

A working method to change into yours. It keeps margins and drops every dependence between columns.

When to use: as a baseline, or when columns are known to be independent.
When not: whenever relations between columns matter.

Register it in your pyproject.toml, then run the contract, which also tries its saboteurs on it:

    [project.entry-points."gibbous.mechanisms"]
    __NAME__ = "your_package.__NAME__:__CLASS__"

    pytest --pyargs gibbous.contract --mechanism __NAME__
"""

from __future__ import annotations

from typing import ClassVar

from gibbous.core.method_card import About
from gibbous.core.claim import Relation
from gibbous.core.context import Context
from gibbous.core.exact import exact
from gibbous.core.params import mechanism, one_of, param, positive
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.privacy.noise import Geometric, geometric_for


@mechanism
class __CLASS__:
    """Release one noisy margin a column, then draw every column on its own.

    Guarantee:
        epsilon-DP for the released tables, under `relation`; rows are free after them.
        A record is in one cell of each of p margins, so they share one budget: the noise scale is
        p / epsilon counts (add_remove), 2 p / epsilon (replace_one), times the rows of one person.
        Basis: proven (two-sided geometric noise on integers, basic composition).
    Source:
        Ghosh, Roughgarden, Sundararajan 2009 (geometric mechanism).
    """

    about: ClassVar[About] = About(
        name="__NAME__",
        title="independent noisy margins",
        paper="none: your source, with section or equation",
        unit="artifact",
        kind="pure",
        releases="tables",
        claimed="none: what the paper states, in words",
        proven="epsilon-DP for all tables together, add_remove or replace_one",
        audited="gibbous.contract: black-box audit and its saboteurs",
    )

    epsilon: float = param(1.0, positive, unit="nats", help="The whole budget of the release.")
    relation: Relation = param(
        "add_remove", one_of("add_remove", "replace_one"), help="What a neighboring table is."
    )

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: public facts only."""
        contexts, noise = _contexts(schema), self._noise(schema)
        total = noise.cost(len(contexts), self.relation, _max_rows(schema))
        info = noise.info()
        return Plan(
            mechanism=self.about.name,
            params={"epsilon": self.epsilon, "relation": self.relation},
            rows=rows,
            sets=sets,
            claim=total,
            total=total,  # "proven": gibbous prices each purchase. Without a proof of what you add to
            # them, state replace(total, basis="heuristic"). Tables are noised once: rows add nothing.
            published=self.about.claimed,
            spends=(
                Spend(
                    f"{len(contexts)} margins",
                    total,
                    f"{info.law} noise, scale {info.scale:.4g} counts",
                ),
            ),
            cells=sum(context.cells for context in contexts),
            memory_bytes=16 * sum(context.cells for context in contexts),
            errors=(("noise sd of one cell, counts", info.variance**0.5),),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables:
        """Spend what `plan` said: the curator charges, counts, adds noise."""
        schema = curator.schema
        tables = curator.noisy_counts(_contexts(schema), self._noise(schema))
        return Tables(schema, tables, Recipe("ancestral", order=tuple(range(len(schema)))))

    def _noise(self, schema: Schema) -> Geometric:
        # The number of tables divides the budget; forget it, and the curator refuses the run.
        return geometric_for(exact(self.epsilon), len(schema), self.relation, _max_rows(schema))


def _contexts(schema: Schema) -> tuple[Context, ...]:
    return tuple(
        Context(targets=(j,), parents=(), target_sizes=(size,), parent_sizes=())
        for j, size in enumerate(schema.sizes)
    )


def _max_rows(schema: Schema) -> int:
    return schema.unit.max_rows if schema.unit else 1
'''


def mechanism_file(name: str) -> str:
    """Source text of a new mechanism that passes the contract.

    Args:
        name: registered name and file name, in lower_snake_case.
    Raises:
        UsageError: not such a name.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise UsageError(
            "NAME",
            f"{name[:60]!r} is not a name for a mechanism.",
            "File name and registered name are one word in lower_snake_case.",
            "For example: gibbous methods --scaffold my_mech > my_mech.py",
        )
    kind = "".join(part.capitalize() for part in name.split("_"))
    title = name.replace("_", " ").capitalize()
    return TEMPLATE.replace("__CLASS__", kind).replace("__NAME__", name).replace("__TITLE__", title)
