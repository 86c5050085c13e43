"""Accuracy of adaptive_gibbs on Adult (binned): TV1-TV4 and AUC, and which part loses what.

Not part of the test command. Usage: python bench/accuracy_adaptive.py [EPSILON] [RUNS]
Reads ../shared/data; prints one JSON line a run. For each run it tells the distance of the
reconciled targets on the measured cliques, of the model's averaged pairs, and of the rows.
"""

from __future__ import annotations

import json
import platform
import resource
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema
from gibbous.disintegrate.local_engine import LocalEngine
from gibbous.mechanisms import _rounds
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy.curator import Curator
from gibbous.synthesize.sample import sample

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DRAWN = 100  # random margins of three and of four columns
TARGET = "income_50k"


def main(epsilon: float, runs: int) -> None:
    """Run and print."""
    sizes = json.loads((DATA / "adult_binned.domain.json").read_text())
    train, test = (
        pl.read_parquet(DATA / f"adult_binned_{part}.parquet") for part in ("train", "test")
    )
    schema = Schema(
        tuple(
            Column(name, "nominal", levels=tuple(f"v{v}" for v in range(size)))
            for name, size in sizes.items()
        )
    )
    real = train.to_numpy()
    for number in range(runs):
        method = AdaptiveGibbs(epsilon=epsilon, delta=1e-9)
        codes = np.ascontiguousarray(real.T.astype(schema.code_dtype()))
        curator = Curator(
            LocalEngine.from_codes(Codes(schema, codes.T, secret=True)),
            method.plan(schema, None).total,
            schema,
            relation="add_remove",
        )
        began = time.process_time()
        with _kept() as kept:
            tables = method.run(curator, None)
        curator.close()
        fitted = time.process_time() - began
        rows = np.asarray(sample(tables, len(real), seed=number).values)
        assert tables.model is not None
        found = {
            "epsilon": epsilon,
            "run": number,
            "cliques": len(tables.model.cliques) - len(sizes),
            "targets": _mean(kept[-1], real, schema.sizes),
            "model": _mean(
                [(g.columns, g.shares) for g in tables.model.goals if len(g.columns) == 2],
                real,
                schema.sizes,
            ),
            **{f"TV{k}": _rows(real, rows, schema.sizes, k) for k in (1, 2, 3, 4)},
            "AUC": _auc(rows, test.to_numpy(), list(sizes).index(TARGET)),
            "cpu_s": round(fitted, 1),
            "cpu_s_rows": round(time.process_time() - began - fitted, 1),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "python": platform.python_version(),
        }
        print(json.dumps(found))


class _kept:  # noqa: N801
    """Keeps what the model was fitted to."""

    def __enter__(self) -> list[list[tuple[tuple[int, ...], np.ndarray]]]:
        self.honest, found = _rounds.targets, []

        def targets(known: _rounds.Known) -> list[_rounds.Target]:
            made = self.honest(known)
            found.append([(t.columns, t.shares) for t in made if len(t.columns) > 1])
            return made

        _rounds.targets = targets
        return found

    def __exit__(self, *_: object) -> None:
        _rounds.targets = self.honest


def _table(values: np.ndarray, columns: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    shape = tuple(sizes[c] for c in columns)
    place = np.ravel_multi_index(tuple(values[:, c].astype(np.int64) for c in columns), shape)
    return np.bincount(place, minlength=int(np.prod(shape))) / len(values)


def _mean(
    tables: list[tuple[tuple[int, ...], np.ndarray]], real: np.ndarray, sizes: tuple[int, ...]
) -> float:
    gaps = [np.abs(s.ravel() - _table(real, c, sizes)).sum() / 2 for c, s in tables]
    return round(float(np.mean(gaps)), 4)


def _rows(real: np.ndarray, rows: np.ndarray, sizes: tuple[int, ...], width: int) -> float:
    margins = list(combinations(range(len(sizes)), width))
    if width > 2:
        drawn = np.random.default_rng(2024 + width).choice(len(margins), DRAWN, replace=False)
        margins = [margins[i] for i in drawn]
    gaps = [np.abs(_table(real, c, sizes) - _table(rows, c, sizes)).sum() / 2 for c in margins]
    return round(float(np.mean(gaps)), 4)


def _auc(rows: np.ndarray, test: np.ndarray, target: int) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    others = [j for j in range(rows.shape[1]) if j != target]
    model = HistGradientBoostingClassifier(random_state=0).fit(rows[:, others], rows[:, target])
    return round(
        float(roc_auc_score(test[:, target], model.predict_proba(test[:, others])[:, 1])), 4
    )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(float(given[0]) if given else 1.0, int(given[1]) if len(given) > 1 else 3)
