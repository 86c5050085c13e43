"""White-box audit of prices: real neighbors are counted, and the noise that tables state must cover them.

Nothing here asks the noise what it costs: L1, L2 and the chance that a unit's own cells survive a
threshold are computed from exact counts of two tables and from the stated law alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from gibbous.contract.cases import Neighbors, binary_schema, neighbors, secret
from gibbous.contract.residuals import exact_counts
from gibbous.contract.runs import release
from gibbous.contract.saboteurs import patched
from gibbous.core.claim import Claim, Relation, approximate, pure, zcdp
from gibbous.core.context import Context
from gibbous.core.errors import PrivacyRefused
from gibbous.core.protocols import Mechanism
from gibbous.core.schema import Unit
from gibbous.core.tables import Counts, NoiseInfo, Table, Tables
from gibbous.disintegrate.numpy_engine import NumpyEngine
from gibbous.privacy import accountant
from gibbous.privacy.curator import Curator

Score = Callable[[Sequence[Counts]], np.ndarray]
PERSON_ROWS = 3
SLACK = 1 + 1e-9


def uncovered(mechanism: Mechanism, relation: Relation) -> str:
    """The pair of neighbors that noise or choices of one release do not cover, in words; else empty.

    Args:
        mechanism: one that releases tables, under `relation`.
    """
    for pair in _pairs(relation):
        try:
            total = mechanism.plan(pair.schema, None).total
        except PrivacyRefused:
            if pair.schema.unit == Unit():
                raise
            continue  # a method may refuse persons with several rows
        told = uncovered_by(mechanism, pair, total)
        if told:
            return f"{pair.name}: {told}"
    return ""


def uncovered_by(mechanism: Mechanism, pair: Neighbors, total: Claim, sets: int = 1) -> str:
    """How noise or choices of one release do not cover one pair of neighbors, in words; else empty.

    Args:
        mechanism: one that releases tables.
        total: the claim that must cover them.
        sets: synthetic sets of the release.
    """
    reserved = mechanism.plan(pair.schema, None, sets).total
    excess: list[float] = []
    with patched(Curator, "choose", value=_compared(pair, excess)):
        output = release(mechanism, pair.schema, pair.one, None, reserved, sets=sets)
    assert isinstance(output, Tables)
    if excess:
        return f"a score of a private choice moves by {max(excess):.3g} sensitivities"
    # A record is in one part: the tables of each part have to cover it for themselves.
    for part in output.parts or (output,):
        tables = part.published()
        # A pure method's thresholds are post-processing: every cell was noised, in law.
        delta = 0.0 if total.kind == "pure" else _survival(tables, pair)
        if delta > float(total.delta) * SLACK:
            return f"a threshold keeps its cells with probability {delta:.3g}"
        if not accountant.within(_widened(total), list(_spends(tables, pair))):
            return "its counts differ by more than the noise covers"
    return ""


def _pairs(relation: Relation) -> Iterator[Neighbors]:
    yield from neighbors(relation, 60)
    pair_schema = binary_schema(3)
    schema = replace(pair_schema, unit=Unit("person", "who", PERSON_ROWS))
    crowd = np.zeros((60, 3), dtype=np.int64)
    mine, other = (np.repeat([row], PERSON_ROWS, axis=0) for row in ([1, 1, 1], [0, 1, 0]))
    lone = "a person whose rows are all alike"
    if relation == "add_remove":
        yield Neighbors(f"{lone}, added", schema, relation, crowd, np.vstack([crowd, mine]))
        return
    one, two = np.vstack([crowd, mine]), np.vstack([crowd, other])
    both = np.vstack([crowd, 1 - crowd])
    for name, place in (("another crowd", [1, 1, 1]), ("where nobody is", [0, 1, 0])):
        moved = both.copy()
        moved[0] = place
        yield Neighbors(f"a record moves to {name}", pair_schema, relation, both, moved)
    yield Neighbors(f"{lone}, replaced", schema, relation, one, two)


def _compared(pair: Neighbors, excess: list[float]) -> Callable[..., int]:
    """Curator.choose that also computes the scores of both neighbors; notes what moves too far."""
    honest = Curator.choose

    def choose(
        curator: Curator,
        contexts: Sequence[Context],
        score: Score,
        *,
        sensitivity: int,
        **given: Any,
    ) -> int:
        sides = []
        for values in (pair.one, pair.two):
            engine = NumpyEngine.from_codes(secret(pair.schema, values))
            sides.append(score(engine.tally(contexts)))
            engine.close()
        moved = float(np.abs(sides[0] - sides[1]).max()) / (sensitivity * curator.max_rows)
        excess.extend([moved] if moved > SLACK else [])
        return honest(curator, contexts, score, sensitivity=sensitivity, **given)

    return choose


def _spends(tables: tuple[Table, ...], pair: Neighbors) -> Iterator[Claim]:
    """What each table's stated noise lets one see of the pair, of the cells that both tables have."""
    for table, one, two in _counted(tables, pair):
        held = (one > 0) & (two > 0) if table.noise.threshold is not None else one == one
        change = np.abs(one - two)[held]
        scale = Fraction(table.noise.scale)
        if table.noise.law == "geometric":
            yield pure(int(change.sum()) / scale, relation=pair.relation)
        else:
            yield zcdp(int((change**2).sum()) / (2 * scale * scale), relation=pair.relation)


def _survival(tables: tuple[Table, ...], pair: Neighbors) -> float:
    """The chance that a cell which only one of the two tables has is released, the larger one."""
    gone = {1: 1.0, -1: 1.0}
    for table, one, two in _counted(tables, pair):
        if table.noise.threshold is None:
            continue
        for sign, mine, theirs in ((1, one, two), (-1, two, one)):
            for count in mine[(mine > 0) & (theirs == 0)].tolist():
                gone[sign] *= 1 - tail(table.noise, table.noise.threshold - count)
    return 1 - min(gone.values())


def tail(noise: NoiseInfo, cut: int) -> float:
    """P(X > cut) of the stated law, summed term by term.

    Args:
        cut: in counts.
    """
    reach = abs(cut) + math.ceil(60 * noise.scale) + 1
    support = np.arange(-reach, reach + 1)
    power = np.abs(support) / noise.scale
    weights = np.exp(-power if noise.law == "geometric" else -(power**2) / 2)
    return float(weights[support > cut].sum() / weights.sum())


def _counted(
    tables: tuple[Table, ...], pair: Neighbors
) -> Iterator[tuple[Table, np.ndarray, np.ndarray]]:
    contexts = [t.context for t in tables]
    both = (exact_counts(pair.schema, values, contexts) for values in (pair.one, pair.two))
    yield from zip(tables, *both, strict=True)


def _widened(total: Claim) -> Claim:
    """The total as a budget for pure and zCDP parts together, a billionth wider."""
    wide = {n: getattr(total, n) * Fraction(SLACK) for n in ("epsilon", "delta", "rho")}
    if total.kind == "pure":
        return approximate(wide["epsilon"], Fraction(0), relation=total.relation)
    return replace(total, **wide)
