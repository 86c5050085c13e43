"""Paid facts: names and a privacy unit in; kinds, levels, bounds and bins bought; then a method on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from gibbous.core.claim import Relation, approximate
from gibbous.core.codes import Codes
from gibbous.core.column import Column
from gibbous.core.discovery import Discovery
from gibbous.core.errors import PrivacyRefused
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike, Mechanism
from gibbous.core.schema import Schema
from gibbous.core.tables import Recipe, Tables
from gibbous.encode.cell_text import column_numbers, lenient_codes
from gibbous.mechanisms import _inner
from gibbous.mechanisms._bought_schema import bought_schema
from gibbous.mechanisms._budget import in_account
from gibbous.mechanisms._discovery_parts import PROOF, SHARES, Parts
from gibbous.mechanisms._paid_facts import with_paid_facts
from gibbous.privacy.calibrate.zcdp import rho_from_approx
from gibbous.privacy.text_curator import TextCurator

TAILS = Fraction(1, 4)
"""Of delta: for texts that one unit alone has."""


@dataclass(frozen=True, slots=True)
class Discovering:
    """A method on a schema that is bought first, with a share of the method's own budget.

    One release, one total: (epsilon, delta) of the method. A quarter of delta pays for texts that one
    unit alone has; of rho, `known.share` at most buys kinds, levels and bounds, in this order, and the
    method works with the rest and with what they leave, which the schema states. What follows from
    noisy tables, and which columns are asked next, costs nothing.

    Guarantee:
        (epsilon, delta)-DP of the method's total, for the schema and the method together, by
        zero-concentrated composition; add/remove or replace one. Proven: docs/proofs/discovery.md.
    Raises:
        PrivacyRefused: the method has no such budget, or looks at numbers themselves.

    Attributes:
        method: as it would run with a schema, at the whole budget.
        known: what is public.
    """

    method: Mechanism
    known: Discovery

    @property
    def about(self) -> About:
        """The card of the method inside."""
        return self.method.about

    @property
    def relation(self) -> Relation:
        """That of the method inside."""
        found: Relation = getattr(self.method, "relation", "add_remove")
        return found

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: the total of the method inside at the whole budget.

        Args:
            schema: the placeholder of `Discovery.schema`; or what was bought or released, and then the
                parts are those of its columns.
        """
        parts = self.parts(rows, sets, exact(schema.unspent))
        total = self._known(rows, sets).total
        assert parts.method is not None
        with in_account("zcdp"):
            alone = _bounds_alone(schema)
            inside = with_paid_facts(parts.method, alone).plan(alone, rows, sets)
        source = f"{PROOF}; {total.source}"
        return replace(
            inside,
            params=inside.params | {"discovery": self.known.to_json()},
            claim=replace(total, unit=inside.claim.unit, source=source),
            total=replace(total, source=source),
            spends=(*parts.spends(), *inside.spends),
            errors=(*inside.errors, *parts.misses()),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables | Codes:
        """Spend: the schema first, then the method inside on it with what is left."""
        parts = self.parts(rows, sets)
        assert parts.method is not None
        if not isinstance(curator, TextCurator):  # a rehearsal, which has no records
            return parts.method.run(curator, rows, sets)
        schema, counts = bought_schema(curator, self.known, parts)
        known = {schema.names.index(name): one for name, one in counts.items()}
        unspent = parts.left(curator.spent)
        schema = replace(schema, unspent=float(unspent))
        method = self.parts(rows, sets, unspent).method
        assert method is not None
        with in_account("zcdp"):
            method = with_paid_facts(method, schema)
            view = curator.coded(schema, lenient_codes, column_numbers, known)
            return method.run(view, rows, sets)

    def parts(
        self, rows: int | None = None, sets: int = 1, unspent: Fraction = Fraction(0)
    ) -> Parts:
        """How the budget is divided; the same for all data, but for what discovery left.

        Args:
            rows, sets: as for `plan`.
            unspent: of the rho of discovery, what it left to the method.
        Raises:
            PrivacyRefused: the method's purchases are not zero-concentrated within (epsilon, delta).
        """
        total, share = self._known(rows, sets).total, exact(self.known.share)
        tails = total.delta * TAILS
        rho = rho_from_approx(total.epsilon, total.delta - tails)
        rest = rho * (1 - share * (1 - unspent)) / rho_from_approx(total.epsilon, total.delta)
        part = _inner.one_share(total.epsilon, total.delta, rest, "zcdp")
        method = replace(self.method, epsilon=part.epsilon)  # type: ignore[type-var]
        known, relation = self.known, self.relation
        return Parts(rho * share, tails, known, relation, method, SHARES, unspent)

    def _known(self, rows: int | None, sets: int) -> Plan:
        shells = self.known.schema()
        numeric = (Column(c.name, "numeric", edges=(0.0, 1.0, 2.0)) for c in shells)
        with in_account("zcdp"):  # thresholds have a delta beside rho
            known = self.method.plan(shells, rows, sets)
            numbers = self.method.plan(replace(shells, columns=tuple(numeric)), rows, sets).numbers
        if numbers:
            raise PrivacyRefused(
                "DISCOVERY",
                f"A schema cannot be bought for {self.about.name}, which looks at numbers themselves.",
                "Under a bought schema there are only bins; they are cut where the noisy records are.",
                "Leave paid_bins out, use adaptive_gibbs (the default), or declare a schema.",
            )
        if not _inner.gaussian(known) or not hasattr(self.method, "epsilon"):
            raise PrivacyRefused(
                "DISCOVERY",
                f"A schema cannot be bought for {self.about.name}, whose noise is not priced in rho.",
                "A share of one budget pays for the schema: of a method with Gaussian noise.",
                "Use adaptive_gibbs (the default), or declare a schema.",
            )
        return known


def _bounds_alone(schema: Schema) -> Schema:
    """The schema that was bought, where bins and the law inside of them were bought after it."""
    columns = (
        replace(c, edges=(c.edges[0], c.edges[-1]), within=None) if c.within is not None else c
        for c in schema
    )
    return replace(schema, columns=tuple(columns))


@dataclass(frozen=True, slots=True)
class SchemaAlone:
    """A schema that is bought, and no method after it.

    Guarantee:
        (epsilon, delta)-DP. Proven: docs/proofs/discovery.md.

    Attributes:
        known: what is public; its share is not used.
        epsilon, delta: of everything.
        relation: neighbors.
    """

    about: ClassVar[About] = About(
        name="discovery",
        title="Schema alone",
        paper="this project",
        unit="artifact",
        kind="approximate",
        releases="tables",
        claimed="nothing: no paper describes this mechanism",
        proven="(epsilon, delta) for all facts of the schema together; both relations",
        audited="exact laws on tiny tables; unpaid kinds and a threshold one too low are caught",
    )

    known: Discovery
    epsilon: Fraction
    delta: Fraction
    relation: Relation

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data."""
        total = approximate(self.epsilon, self.delta, relation=self.relation, source=PROOF)
        parts = self._parts()
        return Plan(
            self.about.name,
            {"discovery": self.known.to_json()},
            rows,
            sets,
            claim=total,
            total=total,
            published=self.about.claimed,
            spends=parts.spends(),
            errors=parts.misses(),
        )

    def bought(self, curator: CuratorLike) -> Schema:
        """Spend: the schema."""
        assert isinstance(curator, TextCurator)
        return bought_schema(curator, self.known, self._parts())[0]

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables | Codes:
        """Nothing: there are no rows."""
        return Tables(curator.schema, (), Recipe("ancestral", ()))

    def _parts(self) -> Parts:
        tails = self.delta * TAILS
        rho = rho_from_approx(self.epsilon, self.delta - tails)
        return Parts(rho, tails, self.known, self.relation)
