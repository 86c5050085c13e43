"""Which audits a mechanism gets, which saboteurs they must catch, and with how many runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gibbous.contract.audit import Fits, audit
from gibbous.contract.auditor.findings import Evidence
from gibbous.contract.cases import neighbors
from gibbous.contract.residuals import residuals
from gibbous.contract.runs import default, relations
from gibbous.contract.saboteurs import Saboteur, saboteurs
from gibbous.core.claim import Relation

LEVEL = 1e-5
BLOCK = 120  # rows of one block
BLOCKS = 300  # fits of a block method: each takes long, and shows more
STAGED = 1000  # runs from which a saboteur is first tried with a quarter of them
RUNS = 1600  # a side; shows an epsilon of about 4.5, and 2 where 1 is claimed (power near 1)


def audited(kind: type[Any], *, runs: int = RUNS, level: float = LEVEL) -> list[Evidence]:
    """Audit a mechanism, at a total of about epsilon = 1, on every pair and relation it offers.

    Returns:
        One finding a pair; empty when the mechanism makes no claim of differential privacy.
    """
    return list(_verdicts(kind, min(runs, _FITS.get(kind.about.name, runs)), level))


def caught(kind: type[Any]) -> bool:
    """Whether the build that is running now is seen to break this mechanism's claim.

    True when the noise in its tables is less than stated (or not what was paid for), or when a
    black-box audit finds a violation.
    """
    for relation in relations(kind):
        noise = residuals(kind, at_epsilon_one(kind, relation))
        if noise is not None and not noise.holds:
            return True
    runs = _FITS.get(kind.about.name, RUNS)
    # A gross fault shows in few fits; the first violation settles it.
    whole = runs < STAGED or kind.about.unit == "block"  # long blocks get few fits as it is
    stages = (runs,) if whole else (runs // 4, runs)
    return any(not one.holds for stage in stages for one in _verdicts(kind, stage, LEVEL))


def at_epsilon_one(kind: type[Any], relation: Relation) -> Any:
    """The mechanism at a whole cost near 1 for two rows, with a delta that an audit can see."""
    share = 0.5 if kind.about.unit == "row" else 1.0
    shape = _SHAPES.get(kind.about.name, {})
    return default(kind, epsilon=share, delta=0.01, relation=relation, **shape)


# A fit takes long: fewer of them, which show an epsilon of about 3 or 4. `gibbous audit` has canaries.
# The methods inside combinators are audited for themselves, and one set or part is one of their fits.
_FITS = {
    "adaptive_gibbs": 250,
    "block_pegs": 800,
    "cdf": 500,
    "flows_laplace": 600,
    "noisy_pegs": 500,
    "paid_bins": 40,
    "parallel": 200,
    "per_set": 200,
    "perturbed_imputation": 400,
    "privbayes": 500,
    "sbhg": 500,
}

# With two parents, or bought at once, the three columns of the constructed tables are one table: nothing is
# divided.
_SHAPES: dict[str, dict[str, Any]] = {
    "adaptive_gibbs": {"cells": 7},
    "cdf": {"candidates": 16},  # a grid that takes long shows no more
    "privbayes": {"parents": 1},
}


def applicable(kind: type[Any]) -> list[Saboteur]:
    """Saboteurs that break something this mechanism uses."""
    about = kind.about
    if not default(kind).plan(neighbors("add_remove")[0].schema, 2).total.is_dp:
        return []
    if about.releases == "rows":
        wanted = {"reset"} if about.unit == "block" else set()
        if "add" in _parts(kind):
            wanted.add("draw")
    else:
        wanted = {"noise"}
        schema = neighbors("add_remove")[0].schema
        if len(default(kind).plan(schema, None).spends) and about.name not in _SINGLE:
            wanted.add("split")
        wanted |= {"threshold", "keys"} if "threshold" in _parts(kind) else {"keys"}
    return [s for s in saboteurs() if s.breaks in wanted]


_SINGLE = (
    "flows_laplace",
    "laplace",
    "modips",
    "perturbed_histogram",
    "sba",
)  # one table: there is nothing to divide


def _verdicts(kind: type[Any], runs: int, level: float) -> Iterator[Evidence]:
    for relation in relations(kind):
        for one, rows, fits in _setups(kind, relation, runs):
            made: Fits = {}  # the pairs of a relation have a table in common
            for pair in neighbors(relation, 60 if rows is None else 4):
                if one.plan(pair.schema, rows).total.is_dp:
                    yield audit(one, pair, runs=fits, rows=rows, level=level, made=made)


def _setups(
    kind: type[Any], relation: Relation, runs: int
) -> Iterator[tuple[Any, int | None, int]]:
    """(mechanism, rows, fits on each side) to audit: block methods also with one long block."""
    if kind.about.unit == "block":
        # Keyless tables: a key that is drawn from twice shows in a long block.
        long = default(kind, epsilon=1.0, relation=relation, parents=0, block=BLOCK)
        yield long, BLOCK, min(runs, BLOCKS)
    one = at_epsilon_one(kind, relation)
    yield one, None if kind.about.releases == "tables" else 2, runs


def _parts(kind: type[Any]) -> str:
    plan = default(kind).plan(neighbors("add_remove")[0].schema, 2)
    return " ".join(f"{s.what} {s.detail}" for s in plan.spends).lower()
