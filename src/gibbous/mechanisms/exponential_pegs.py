"""Exponential Gibbs sampler: levels drawn with weights exponential in their counts, over hashed keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import at_least, mechanism, one_of, param
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.mechanisms.limits import budget
from gibbous.perturb.tilt import Tilt
from gibbous.privacy.calibrate.scales import steps
from gibbous.sampling.gibbs_rows import GibbsRows
from gibbous.structure.contexts import lsh, minhash


@mechanism
class ExponentialPegs:
    """Draw each value with probability proportional to exp(e times its count) in a hashed key.

    Guarantee:
        Pure epsilon-DP for each drawn row, add/remove or replace one; N rows cost N epsilon.
        Claimed by the paper: e for one draw. Proven here: e for one draw under add/remove, 2 e under
        replace one, and e is chosen so that a row costs epsilon (docs/proofs/exponential.md).
        Audited: contract.
    Source:
        [park2013, def. 2]. A key without records is uniform: the paper's nearest key leaks.
    """

    about: ClassVar[About] = About(
        name="exponential_pegs",
        title="Exponential Gibbs sampler",
        paper="park2013, def. 2",
        unit="row",
        kind="pure",
        releases="rows",
        claimed="a ratio below e**epsilon for each draw",
        proven="epsilon per row; N rows cost N epsilon; both relations; approaches the mode, not the data",
        audited="rows of the running code against the total of the file",
        limit="mode",
    )

    epsilon: float = param(1.0, budget, unit="nats", help="Cost of one drawn row.")
    relation: Relation = param("add_remove", help="Which tables count as neighbors.")
    hash: Literal["lsh", "minhash"] = param(
        "lsh", one_of("lsh", "minhash"), help="Public hash of the rest of a row."
    )
    parents: int = param(
        2, at_least(1), unit="columns", help="Columns sampled by lsh, or MinHash values a key."
    )
    sweeps: int = param(1, at_least(1), help="Passes a row; each takes its share of epsilon.")
    hash_seed: int = param(0, at_least(0), help="Public seed of the hash, never tuned on records.")

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data: epsilon times rows times sets."""
        count, each = _plans.paid_rows(self, rows, sets), float(self._tilt(schema).epsilon)
        claim = replace(_plans.total(self), source="docs/proofs/exponential.md")
        what = f"{count} rows, each {self.sweeps} x {_plans.redrawn(schema)} draws"
        warning = (
            "This draw sharpens toward the most frequent value as epsilon grows: it is kept to "
            "reproduce the paper, and its output equals the data's law only by accident."
        )
        return _plans.row_plan(
            self,
            rows,
            sets,
            spend=Spend(what, claim, f"weights exp({each:.6g} x count)"),
            units=count,
            contexts=self._contexts(schema),
            published=f"epsilon = {each:.6g} for each draw, read as the guarantee of the file",
            outlook=((("nats a draw", each),), (warning,)),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Spend: draw rows * sets rows with cryptographic words."""
        draw = GibbsRows(self._tilt(curator.schema), self.sweeps)
        return curator.draw(
            self._contexts(curator.schema), draw, _plans.paid_rows(self, rows, sets)
        )

    def _contexts(self, schema: Schema) -> Sequence[Context]:
        build = lsh if self.hash == "lsh" else minhash
        return build(schema, self.parents, seed=self.hash_seed)

    def _tilt(self, schema: Schema) -> Tilt:
        draws = self.sweeps * _plans.redrawn(schema) * _plans.most_rows(schema)
        return Tilt(exact(self.epsilon) / (draws * steps(self.relation)))
