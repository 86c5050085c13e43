"""Coverage of the combining rules by simulation: true variance, mean of T, coverage at 95 %.

    python bench/interval_coverage.py                         # the table of docs/reference/combining-rules.md
    python bench/interval_coverage.py --runs 2000 --json out.json

Means of a normal column of n = 100 records, where every step has a closed form and thousands of releases
are simulated at once. `inference_coverage.py` measures releases that mechanisms wrote.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibbous.evaluation.inference.combine import combine
from gibbous.evaluation.inference.combined_estimate import Combined

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000, help="simulated releases of a mean")
    parser.add_argument("--seed", type=int, default=11)
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
    if given.json:
        given.json.write_text(json.dumps({"means": rows}, indent=1) + "\n")


def _plain(found: Measured) -> dict[str, Any]:
    return {name: getattr(found, name) for name in Measured.__dataclass_fields__}


if __name__ == "__main__":
    main()
