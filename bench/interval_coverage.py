"""Coverage of the combining rules by simulation: true variance, mean of T, coverage at 95 %.

    python bench/interval_coverage.py                         # the table of docs/reference/combining-rules.md
    python bench/interval_coverage.py --runs 2000 --releases 200 --json out.json

Two kinds of settings. The first are means of a normal column of n = 100 records, where every step has
a closed form and thousands of releases are simulated at once. The second are whole releases of a small
table: noise by the Curator (not seeded, like all of it), sets by the sampler, V_s from the public
tables alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Tables
from gibbous.disintegrate.numpy_engine import NumpyEngine
from gibbous.evaluate.inference.choice import Noise
from gibbous.evaluate.inference.combine import combine, direct
from gibbous.evaluate.inference.combined import Combined
from gibbous.evaluate.inference.facts import Facts
from gibbous.evaluate.inference.redraw import noise_variance
from gibbous.evaluate.inference.released import margin, shares
from gibbous.mechanisms.laplace import Laplace
from gibbous.mechanisms.noisy_pegs import NoisyPegs
from gibbous.privacy.curator import Curator
from gibbous.synthesize.program import prepare
from gibbous.synthesize.sample import sample

RECORDS = 100
ONCE = 0.02  # scale of Laplace noise in the mean, if it is noised once; m times that for each set


@dataclass(frozen=True, slots=True)
class Setting:
    """One way of making sets, and the published rule that it is usually given.

    Attributes:
        name: for people.
        rows: N.
        sets: m.
        draws: "fitted" or "posterior".
        sanitized: "once", "per_set" or None.
        published: the rule that is compared.
        law: of the noise.
    """

    name: str
    rows: int = RECORDS
    sets: int = 10
    draws: Any = "posterior"
    sanitized: Any = None
    published: Any = "reiter2003"
    law: str = "laplace"

    @property
    def scale(self) -> float:
        """Scale (Laplace) or standard deviation (Gaussian) of the noise in one mean."""
        if self.sanitized == "per_set":
            # A pure budget divides by m, which multiplies the scale; under zCDP it is the root of m.
            return ONCE * (self.sets if self.law == "laplace" else self.sets**0.5)
        return ONCE if self.sanitized else 0.0

    @property
    def noise(self) -> float:
        """V_s of one noising."""
        return self.scale**2 * (2 if self.law == "laplace" else 1)


SETTINGS = (
    Setting("posterior draws, N = n"),
    Setting("posterior draws, N = n, m = 5", sets=5),
    Setting("posterior draws, T_f", published="raghunathan2003"),
    Setting("posterior draws, T_f, m = 5", sets=5, published="raghunathan2003"),
    Setting("fitted draws, N = n, m = 5", sets=5, draws="fitted"),
    Setting("fitted draws, N = 300, m = 3", rows=300, sets=3, draws="fitted"),
    Setting("fitted draws, N = 50, m = 3", rows=50, sets=3, draws="fitted"),
    Setting("fitted draws, m = 1", sets=1, draws="fitted", published="raab2016"),
    Setting("noised once", sanitized="once"),
    Setting("noised once, Gaussian", sanitized="once", law="gaussian"),
    Setting("noised once, fitted draws, N = 300, m = 3", 300, 3, "fitted", "once"),
    Setting("noised once, fitted draws, m = 1", 100, 1, "fitted", "once", "raab2016"),
    Setting("noised for each set", sanitized="per_set"),
    Setting("noised for each set, T_f", sanitized="per_set", published="raghunathan2003"),
    Setting("noised for each set, Gaussian", sanitized="per_set", law="gaussian"),
    Setting("noised for each set, N = 300, m = 3", 300, 3, "fitted", "per_set"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one rule did over all releases of a setting.

    Attributes:
        rule: its name.
        variance: mean of T.
        coverage: share of intervals that hold the truth.
        not_positive: share of releases in which T_f as printed is <= 0.
    """

    rule: str
    variance: float
    coverage: float
    not_positive: float = 0.0


def simulate(setting: Setting, runs: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Estimates and their variances, (sets, runs) each, of a mean whose truth is 0."""
    n, m, rows = RECORDS, setting.sets, setting.rows
    mean = rng.normal(size=runs) / n**0.5
    variance = rng.chisquare(n - 1, runs) / (n - 1)
    size = (m, runs) if setting.sanitized == "per_set" else (1, runs)
    draw = rng.laplace if setting.law == "laplace" else rng.normal
    center = np.broadcast_to(mean + draw(0, setting.scale or 1e-300, size), (m, runs))
    if setting.draws == "posterior":
        center = center + rng.normal(size=(m, runs)) * (variance / n) ** 0.5
    estimates = center + rng.normal(size=(m, runs)) * (variance / rows) ** 0.5
    return estimates, variance * rng.chisquare(rows - 1, (m, runs)) / (rows - 1) / rows


def measure(setting: Setting, runs: int, rng: np.random.Generator) -> tuple[float, list[Measured]]:
    """The true variance of qbar, and what the unified and the published rule make of it."""
    q, v = simulate(setting, runs, rng)
    given = {
        "rows": setting.rows,
        "records": RECORDS,
        "sanitized": setting.sanitized,
        "draws": setting.draws,
    }
    noise = setting.noise if setting.sanitized else None
    found = [_measured("unified", combine(q, v, noise_variance=noise, **given))]
    if setting.sanitized == "per_set":
        found.append(_measured("unified, B measured", combine(q, v, **given)))
    published = combine(q, v, rule=setting.published, **given)
    below = 0.0
    if setting.published == "raghunathan2003":
        below = float(np.mean((1 + 1 / setting.sets) * q.var(0, ddof=1) <= v.mean(0)))
    found.append(_measured(setting.published, published, below))
    return float(np.var(q.mean(axis=0))), found


def _measured(rule: str, found: Combined, below: float = 0.0) -> Measured:
    holds = (found.low <= 0) & (found.high >= 0)
    return Measured(rule, float(found.variance.mean()), float(holds.mean()), below)


# Whole releases of a small table.

SCHEMA = Schema(tuple(Column(name, "binary", levels=("no", "yes")) for name in ("a", "b", "y")))
TRUTH = np.array([-0.8, 0.9, -0.6])  # logit P(y) = -0.8 + 0.9 a - 0.6 b
CELLS = np.array([(a, b) for a in (0, 1) for b in (0, 1)])
DESIGN = np.column_stack([np.ones(4), CELLS])


@dataclass(frozen=True, slots=True)
class Whole:
    """A setting of whole releases.

    Attributes:
        name: for people.
        mechanism: what noises the table.
        records, rows, sets: n, N, m.
    """

    name: str
    mechanism: Any
    records: int
    rows: int
    sets: int


WHOLE = (
    Whole("laplace, epsilon 0.25, n = 400, N = n, m = 5", Laplace(epsilon=0.25), 400, 400, 5),
    Whole("laplace, epsilon 0.25, n = 400, N = 1,200, m = 1", Laplace(epsilon=0.25), 400, 1200, 1),
    Whole(
        "noisy_pegs, epsilon 1, n = 1,000, N = n, m = 5",
        NoisyPegs(epsilon=1, delta=1e-6),
        1000,
        1000,
        5,
    ),
)


def population() -> np.ndarray:
    """Shares of the eight cells (a, b, y), row-major."""
    given = np.array([0.3, 0.2, 0.35, 0.15])
    yes = 1 / (1 + np.exp(-DESIGN @ TRUTH))
    return np.column_stack([given * (1 - yes), given * yes]).reshape(-1)


def logit(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of y ~ a + b and their variances, from the counts of the eight cells; Newton."""
    pairs = counts.reshape(4, 2).astype(np.float64)
    total, beta = pairs.sum(axis=1), np.zeros(3)
    for _ in range(12):
        fitted = 1 / (1 + np.exp(-np.clip(DESIGN @ beta, -30, 30)))
        weight = total * fitted * (1 - fitted)
        inverse = np.linalg.inv((DESIGN * weight[:, None]).T @ DESIGN)
        step = inverse @ (DESIGN.T @ (pairs[:, 1] - total * fitted))
        beta = beta + step
        if np.abs(step).max() < 1e-9:
            break
    return beta, np.diag(inverse)


def estimates(codes: Codes) -> tuple[np.ndarray, np.ndarray]:
    """Share of y = yes among all, and the coefficient of a: values and variances."""
    a, b, y = (codes.by_column[j].astype(np.int64) for j in range(3))
    counts = np.bincount(a * 4 + b * 2 + y, minlength=8)
    share = counts.reshape(4, 2)[:, 1].sum() / codes.rows
    beta, variance = logit(counts)
    return np.array([share, beta[1]]), np.array([share * (1 - share) / codes.rows, variance[1]])


def released(whole: Whole, rng: np.random.Generator) -> Tables:
    """The tables of one release of fresh records; the noise is the Curator's."""
    cell = rng.choice(8, whole.records, p=population())
    values = np.stack([cell // 4, cell // 2 % 2, cell % 2]).astype(SCHEMA.code_dtype()).T
    plan = whole.mechanism.plan(SCHEMA, whole.rows, whole.sets)
    engine = NumpyEngine.from_codes(Codes(SCHEMA, values, secret=True))
    curator = Curator(engine, plan.total, SCHEMA, relation=whole.mechanism.relation)
    try:
        return whole.mechanism.run(curator, whole.rows, whole.sets)
    finally:
        curator.close()


def one_release(
    whole: Whole, seed: int, replicates: int, rng: np.random.Generator
) -> dict[str, Combined]:
    """What an analyst finds in one release: share and coefficient, by several rules."""
    tables = released(whole, rng)
    program = prepare(tables)
    sets = [
        estimates(sample(program, whole.rows, seed=seed, set_index=i, threads=1))
        for i in range(whole.sets)
    ]
    q, v = (np.array([one[k] for one in sets]) for k in (0, 1))
    records = float(max(1, tables.noisy_rows()))
    facts = Facts(whole.sets, float(whole.rows), records, sanitized="once")
    noise = noise_variance(tables, lambda c: estimates(c)[0], seed=seed, replicates=replicates)
    counts = margin(tables, (2,))
    assert counts is not None
    share, sampling, exact = shares(counts, records)
    only = Noise(np.array([exact.variance[1], np.nan_to_num(noise.variance[1])]))
    found = {
        "unified": combine(q, v, release=facts, noise_variance=noise),
        "unified, V_s of the share exact": combine(q, v, release=facts, noise_variance=only),
        "unified without V_s": combine(q, v, release=facts, noise_variance=0.0),
    }
    read = direct(share, sampling, exact, facts=facts, level=0.95)
    held = read.low[1], read.high[1], read.estimate[1], read.se[1]
    found["released table"] = replace(
        found["unified"],
        **{
            name: np.array([value, np.nan])
            for name, value in zip(("low", "high", "estimate", "se"), held, strict=True)
        },
    )
    if whole.sets > 1:
        found["reiter2003"] = combine(q, v, release=facts, rule="reiter2003")
    return found


def measure_whole(
    whole: Whole,
    releases: int,
    replicates: int,
    seed: int = 0,
    watch: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Coverage of share and coefficient over many releases of fresh records."""
    truth = np.array([population().reshape(4, 2)[:, 1].sum(), TRUTH[1]])
    rng = np.random.default_rng(seed)
    held: dict[str, list[Any]] = {}
    center = []
    for release in range(releases):
        watch(release)
        for name, found in one_release(whole, seed + release, replicates, rng).items():
            holds = np.where(
                np.isnan(found.low), np.nan, (found.low <= truth) & (truth <= found.high)
            )
            held.setdefault(name, []).append((holds, found.variance))
            if name == "unified":
                center.append(found.estimate)
    means = np.array(center)
    return {
        "setting": whole.name,
        "releases": releases,
        "replicates": replicates,
        "variance": means.var(axis=0).tolist(),
        "bias": (means.mean(axis=0) - truth).tolist(),
        "rules": {
            name: {
                "coverage": _numbers(np.mean([h for h, _ in rows], axis=0)),
                "variance": _numbers(np.mean([t for _, t in rows], axis=0)),
            }
            for name, rows in held.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000, help="simulated releases of a mean")
    parser.add_argument("--releases", type=int, default=2_000, help="whole releases a setting")
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--only", help="whole releases whose setting has this in its name")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    rows = []
    print(f"{'setting':46} {'true var':>9}  rule, mean T, coverage")
    for setting in SETTINGS:
        true, found = measure(setting, given.runs, rng)
        rows.append(
            {"setting": setting.name, "variance": true, "rules": [_plain(f) for f in found]}
        )
        shown = "; ".join(f"{f.rule} {f.variance:.5f} {f.coverage:.3f}" for f in found)
        below = f"; T_f <= 0 in {found[-1].not_positive:.3f}" if found[-1].not_positive else ""
        print(f"{setting.name:46} {true:9.5f}  {shown}{below}", flush=True)
    whole = []
    for setting in (one for one in WHOLE if not given.only or given.only in one.name):
        start = time.process_time()
        whole.append(measure_whole(setting, given.releases, given.replicates, given.seed))
        whole[-1]["cpu_seconds"] = time.process_time() - start
        print(json.dumps(whole[-1], indent=1), flush=True)
    if given.json:
        given.json.write_text(json.dumps({"means": rows, "whole": whole}, indent=1) + "\n")


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _plain(found: Measured) -> dict[str, Any]:
    return {name: getattr(found, name) for name in Measured.__dataclass_fields__}


if __name__ == "__main__":
    main()
