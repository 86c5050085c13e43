"""Records divided at random, a method on each part, the rows mixed: a record pays in one part only."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes, joined
from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.core.method_card import About
from gibbous.core.params import Rule, as_json, check, mechanism, param, probability
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike, Mechanism
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.mechanisms import _inner, _plans
from gibbous.mechanisms._inner import OWN, Options, Own
from gibbous.mechanisms.limits import budget

PROOF = "docs/proofs/parallel.md"
few = Rule(lambda v: 1 <= v <= 1000, "between 1 and 1000")


@mechanism
class Parallel:
    """Divide the records at random into parts, run a method on each part, and mix the rows.

    A record lies in one part, drawn by the system's entropy whatever the record says (on Spark by a
    stream that is keyed with it, so that a task can be done again). So the parts are
    paid beside each other: the release costs what one part costs. Rows that are paid for one by one
    cost a part's share of them. The price is accuracy: each part has fewer records under the same noise.

    Guarantee:
        That of the method inside on one part, add/remove or replace one, for everything together; the
        privacy unit is one row. Claimed by the paper: if each process is private, so is the collection,
        for any partition. Proven here: for a partition that does not look at the records,
        docs/proofs/parallel.md; consecutive chunks of the rows do not do. On Spark computational: for
        whoever cannot tell SHAKE-256 under a secret key from a random function. Audited: contract,
        with half the noise and an undivided budget as saboteurs; parts by the rows' order in tests/sets.
    Source:
        [park2013, alg. 2].
    """

    about: ClassVar[About] = _inner.Card(  # type: ignore[assignment]
        About(
            name="parallel",
            title="on random parts of the records",
            paper="park2013, alg. 2 (para-PeGS)",
            unit="artifact",
            kind="approximate",
            releases="tables",
            claimed="the guarantee of each process, for any partition",
            proven="the guarantee of the method inside, for parts drawn without looking; both relations",
            audited="noisy cells of the running code, added up over parts; half the noise is caught",
        )
    )

    method: str | Mechanism = param(
        "noisy_pegs", help="The method inside: a registered name, or a mechanism."
    )
    parts: int = param(2, few, unit="parts", help="Random parts of the records.")
    epsilon: float | Own | None = param(
        OWN, budget, unit="nats", help="The budget of a part; own: that of the method inside."
    )
    delta: float | Own | None = param(
        OWN, probability, help="Of a part; own: that of the method inside."
    )
    relation: Relation = param(
        OWN, help="Which tables count as neighbors; own: that of the method inside."
    )
    options: Options = param((), help="Further parameters of the method inside, by name.")

    def __post_init__(self) -> None:
        _inner.settle(self)
        _inner.refuse(self, allowed=("per_set",))
        check(self)

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: what the largest part costs.

        Raises:
            PrivacyRefused: a privacy unit has several rows, which would lie in different parts.
            ParameterError: fewer rows than parts, of a method whose parts each draw one at least.
        """
        if _plans.most_rows(schema) > 1:
            raise PrivacyRefused(
                "PARTS",
                "Records cannot be divided at random: one person may have several.",
                "A person whose rows lie in several parts pays in each of them.",
                "Use the method without parts, or a privacy unit of one row.",
            )
        inside = _inner.made(self)
        one = inside.plan(schema, self._sizes(rows)[0], sets)
        if rows is not None and 0 < rows < self.parts:
            self._check_empty_part(inside, schema, rows, sets)
        paid = self.about.releases == "rows"
        total = replace(one.total, unit="dataset" if paid else one.total.unit)
        warnings = one.warnings
        if self.parts > 1:
            thinner = (
                f"Each of {self.parts} parts has about 1/{self.parts} of the records under noise that is "
                f"not smaller: the error from noise is about {math.sqrt(self.parts):.3g} times that of "
                "the method without parts."
            )
            warnings += (thinner,)
        return replace(
            one,
            mechanism=self.about.name,
            params=as_json(self),
            rows=rows,
            claim=total,
            total=total,
            spends=tuple(
                Spend(f"{s.what}, of each of {self.parts} parts", s.claim, s.detail)
                for s in one.spends
            ),
            cells=one.cells * self.parts,
            memory_bytes=one.memory_bytes + (rows or _plans.USUAL_ROWS) * len(schema),
            warnings=warnings,
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables | Codes:
        """Spend: the method inside on each part, beside the others."""
        inside, sizes = _inner.made(self), self._sizes(rows)
        found = curator.on_parts(
            self.parts,
            lambda part, number: inside.run(part, sizes[number], sets),
            memory=inside.plan(curator.schema, sizes[0], sets).memory_bytes,
        )
        released = [one for one in found if isinstance(one, Tables)]
        if released:
            schema = _inner.one_schema(released, curator.schema, "part")
            # Under replace one the number of records is public, and so is a part's share of the rows.
            public = self.relation == "replace_one"
            shares = (1 / self.parts,) * self.parts if public else ()
            return Tables(schema, (), Recipe("ancestral", ()), parts=tuple(released), shares=shares)
        drawn = [one for one in found if isinstance(one, Codes)]
        _inner.one_schema(drawn, curator.schema, "part")
        return mixed(drawn, sets)

    def _check_empty_part(self, inside: Mechanism, schema: Schema, rows: int, sets: int) -> None:
        try:
            inside.plan(schema, 0, sets)
        except ParameterError:
            raise ParameterError(
                "PARTS",
                f"{rows} rows were asked for from {self.parts} parts of the records.",
                f"Each part draws a row of its own with {self.method}.",
                f"Ask for at least {self.parts} rows, or for fewer parts.",
            ) from None

    def _sizes(self, rows: int | None) -> list[int | None]:
        """Rows of each part, public: as equal as they can be, the first ones larger."""
        if rows is None:
            return [None] * self.parts
        return [rows // self.parts + (part < rows % self.parts) for part in range(self.parts)]


def mixed(drawn: list[Codes], sets: int) -> Codes:
    """Paid rows of all parts, set after set; within a set the parts take turns.

    Args:
        drawn: rows of all sets of each part, set after set; sizes differ by at most a row a set.
    """
    order = []
    starts = np.cumsum([0, *(one.rows for one in drawn)])
    for index in range(sets):
        turn, place = [], []
        for part, one in enumerate(drawn):
            size = one.rows // sets
            turn.append(np.arange(size) * len(drawn) + part)
            place.append(starts[part] + index * size + np.arange(size))
        order.append(np.concatenate(place)[np.argsort(np.concatenate(turn))])
    return joined(drawn).part(np.concatenate(order))


__all__ = ["Parallel", "mixed"]
