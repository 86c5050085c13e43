"""Audits of diversity: rows drawn from constructed records, whose likeliest value bounds l from above."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gibbous.contract.auditor.attacks import Run
from gibbous.contract.auditor.bounds import diversity_bound
from gibbous.contract.auditor.findings import Evidence
from gibbous.contract.auditor.setups import schema_of
from gibbous.contract.runs import relation_of
from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.method_card import About
from gibbous.core.plan import Plan
from gibbous.core.protocols import CuratorLike, Mechanism
from gibbous.core.schema import Schema
from gibbous.core.tables import Criterion, Tables
from gibbous.sampling.sample import sample
from gibbous.structure.sensitive import as_texts

RECORDS = 1000  # with each of the values that occur
DRAWS = 20_000
BESIDE = 2  # columns beside the diverse ones
GROUPS = 64  # contexts that are looked at, those with most draws


@dataclass(frozen=True, slots=True)
class Fitted:
    """A mechanism with diverse columns, which on a constructed table are its last ones.

    Attributes:
        one: as asked for, with diverse columns that only the schema of a user has.
    """

    one: Any

    @property
    def about(self) -> About:
        """Of the mechanism."""
        about: About = self.one.about
        return about

    @property
    def relation(self) -> Relation:
        """Of its claim."""
        return relation_of(self.one)

    @property
    def asked(self) -> dict[str, float]:
        """l by column, named as the user names it."""
        parts = (text.rpartition("=") for text in as_texts(_parameters(self.one)["diverse"]))
        return {name: float(least) for name, _, least in parts}

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost before data."""
        return self._on(schema).plan(schema, rows, sets)

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables | Codes:
        """Spend."""
        return self._on(curator.schema).run(curator, rows, sets)

    def _on(self, schema: Schema) -> Mechanism:
        """The mechanism for a schema: its last columns are diverse, with an l that they can have."""
        fit = [c for c in schema if not c.edges and c.size > 1 and not schema.impossible]
        pairs = zip(fit[::-1], list(self.asked.values())[::-1], strict=False)
        diverse = tuple(f"{column.name}={min(least, column.size)}" for column, least in pairs)
        if not hasattr(self.one, "options"):
            return replace(self.one, diverse=diverse)  # type: ignore[no-any-return]
        options = dict(self.one.options) | {"diverse": diverse}
        return replace(self.one, options=options)  # type: ignore[no-any-return]


def fitted(mechanism: Mechanism) -> Mechanism:
    """A mechanism that can run on constructed tables: its diverse columns, if it has any, are theirs."""
    fits = not _parameters(mechanism).get("diverse")
    return mechanism if fits else cast("Mechanism", Fitted(mechanism))


def by_diversity(
    mechanism: Mechanism, run: Run, *, level: float, seed: int
) -> tuple[list[Evidence], list[Evidence]]:
    """Draw rows, and bound each claimed l from above by the likeliest value given the rest of its row.

    A method that states l of its rows gets one column, all records alike. Diverse columns of tables
    stand beside two others, and the columns of each record are alike.

    Args:
        level: of all bounds together.
        seed: of rows that are drawn from tables.
    Returns:
        One finding a claimed l, and what the same attack finds where copies of records are released.
    """
    if isinstance(mechanism, Fitted):
        asked, beside, rows = mechanism.asked, BESIDE, None
    else:
        asked, beside, rows = {"": float(mechanism.plan(schema_of(1, 2), 1).total.l)}, 0, DRAWS
    levels = max(4, 2 * math.ceil(max(asked.values())))
    schema = schema_of(beside + len(asked), levels)
    kinds = levels if beside else 1
    records = np.repeat(np.arange(RECORDS * kinds)[:, None] % kinds, len(schema), axis=1)
    output = run(mechanism, schema, records, rows, mechanism.plan(schema, rows))
    drawn = output if isinstance(output, Codes) else sample(output, DRAWS, seed=seed)
    criterion = _parameters(mechanism).get("criterion", "entropy")
    found: tuple[list[Evidence], list[Evidence]] = [], []
    for side, values in zip(found, (np.asarray(drawn.values), records), strict=True):
        seen = _Seen(values, levels, criterion, level / len(asked))
        for place, (name, least) in enumerate(asked.items()):
            side.append(seen.finding(beside + place, name, least, relation_of(mechanism)))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """Rows of columns that all have so many levels; the criterion of their claims, and the level of one.

    Attributes:
        values: int (rows, columns).
    """

    values: np.ndarray
    levels: int
    criterion: Criterion
    level: float

    def finding(self, column: int, name: str, least: float, relation: Relation) -> Evidence:
        """Rows alike in all other columns have independent draws from one law: the smallest of their bounds.

        Each possible context has the same share of the level, whether it occurs or not.
        """
        others = np.delete(self.values, column, axis=1)
        contexts, place = np.unique(others, axis=0, return_inverse=True)
        counts = np.zeros((len(contexts), self.levels), dtype=np.int64)
        np.add.at(counts, (place.reshape(-1), self.values[:, column]), 1)
        counts = counts[np.argsort(-counts.sum(axis=1))[:GROUPS]]
        share = self.level / float(self.levels) ** others.shape[1]
        pairs = zip(counts.max(axis=1).tolist(), counts.sum(axis=1).tolist(), strict=True)
        bound, most, draws = min(
            (diversity_bound(self.levels, most, draws, share, self.criterion), most, draws)
            for most, draws in pairs
        )
        what = f"{name!r} given the rest of its row" if name else "one column"
        where = "" if name else ", all records alike"
        return Evidence(
            kind="diversity",
            name=f"{what}, {self.levels} levels{where}",
            relation=relation,
            runs=1,
            violated=bound < least,
            claimed=least,
            bound=bound,
            level=self.level,
            words=f"the likeliest level came {most:,} times in {draws:,} draws",
        )


def _parameters(mechanism: Any) -> dict[str, Any]:
    """Those of diversity, of a mechanism or of the one inside a combinator."""
    names = ("diverse", "criterion")
    own = {name: getattr(mechanism, name) for name in names if hasattr(mechanism, name)}
    if isinstance(mechanism, Fitted):
        return _parameters(mechanism.one)
    return dict(getattr(mechanism, "options", ())) | own
