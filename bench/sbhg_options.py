"""What sbhg does with a key that did not survive: mean TV of pairs of columns, by fallback and kappa.

    python bench/sbhg_options.py

Every release is drawn from in five ways: as its recipe says (reject, kappa 0), with `fallback="prefix"`,
with kappa 5, with both, and "strict": lines 9 and 13 of the paper's algorithm 3 on the noisy tables in
place of the records. Rows then start at combinations whose cells survived in all tables (in most, where
none did), and a drawn level is kept only where no cell of its row is lost by it.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from accuracy_small import distance, load

import gibbous as gb
from gibbous.core.codes import Codes
from gibbous.core.context import keys_of
from gibbous.core.request import Privacy
from gibbous.core.tables import Sparse, Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.privacy.spend import spend
from gibbous.sampling.conditionals import conditionals, margins
from gibbous.sampling.sample import sample

RECIPES = {
    "reject": {"fallback": "reject", "kappa": 0.0},
    "prefix": {"fallback": "prefix", "kappa": 0.0},
    "reject, 5": {"fallback": "reject", "kappa": 5.0},
    "prefix, 5": {"fallback": "prefix", "kappa": 5.0},
}


class Survivors:
    """Which cells a release kept."""

    def __init__(self, tables: Tables) -> None:
        self.tables, self.kept = tables, []
        for item in tables.items:
            assert isinstance(item.cells, Sparse)
            assert item.context.cells < 1 << 62
            wide = np.uint64(item.context.levels)
            self.kept.append(np.sort(item.cells.keys * wide + item.cells.levels))

    def count(self, rows: np.ndarray) -> np.ndarray:
        """Tables in which the cell of each row survived; rows (rows, columns)."""
        found = np.zeros(len(rows), dtype=np.int64)
        for item, kept in zip(self.tables.items, self.kept, strict=True):
            target = item.context.targets[0]
            key = keys_of(item.context, rows) * np.uint64(item.context.levels)
            found += np.isin(key + rows[:, target].astype(np.uint64), kept)
        return found


def strict(tables: Tables, rows: int, seed: int) -> np.ndarray:
    """Rows by lines 9 and 13 on the noisy tables."""
    rng, alive = np.random.default_rng(seed), Survivors(tables)
    tried = np.stack(
        [rng.choice(len(m), size=20 * rows, p=m) for m in margins(tables)], axis=1
    ).astype(np.int64)
    have = alive.count(tried)
    pool = np.flatnonzero(have == have.max())
    state = tried[rng.choice(pool, size=rows)]
    for _ in range(tables.recipe.sweeps):
        for one in conditionals(tables):
            slot = one.resolve(keys_of(one.context, state), state[:, one.context.parents].T)
            new = state.copy()
            law = one.shares[np.maximum(slot, 0)].cumsum(axis=1)
            level = (law <= rng.random((rows, 1)) * law[:, -1:]).sum(axis=1)
            new[:, one.context.targets[0]] = np.minimum(level, law.shape[1] - 1)
            taken = (slot >= 0) & (alive.count(new) >= alive.count(state))
            state = np.where(taken[:, None], new, state)
    return state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    for name in ("adult", "discharge13"):
        table = load(name)
        schema = table.schema
        values = np.asfortranarray(table.values.astype(schema.code_dtype()))
        for parents in (1, 2):
            mechanism = gb.Sbhg(epsilon=asked.epsilon, delta=1e-6, parents=parents)
            found: dict[str, list[float]] = {}
            for seed in range(asked.repeats):
                engine = LocalEngine.from_codes(Codes(schema, values, secret=True))
                tables = spend(Privacy(schema, mechanism), mechanism.plan(schema, None), engine)
                for words, recipe in RECIPES.items():
                    own = replace(tables, recipe=replace(tables.recipe, **recipe))
                    rows = sample(own, len(values), seed=seed).values.astype(np.int64)
                    found.setdefault(words, []).append(distance(table.values, rows, table.sizes, 2))
                rows = strict(tables, 20_000, seed)
                found.setdefault("strict", []).append(distance(table.values, rows, table.sizes, 2))
            print(name, parents, {k: f"{np.mean(v):.4f}" for k, v in found.items()}, flush=True)


if __name__ == "__main__":
    main()
