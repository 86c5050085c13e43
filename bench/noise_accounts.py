"""Noise of each Gaussian method when its plan is accounted in rho and when it may be in mu; and on Adult.

    python bench/noise_accounts.py                        # sigma of tables in both accounts, as Markdown
    python bench/noise_accounts.py --adult 5              # TV1 and TV2 on Adult, a line a seed
    python bench/noise_accounts.py --table                # means of the lines that were kept

The first reads no data: plans of twelve columns (two numeric), for epsilon 0.1, 1, 10 and delta 1e-6, 1e-9.
The second adds one line a seed to bench/results/noise_accounts.jsonl, under the account that the plan took;
run with the sources of a build from before this account, it gives the lines beside which they stand.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gibbous as gb
from gibbous.core.schema import Column, Schema, Unit

RESULTS = Path(__file__).resolve().parent / "results" / "noise_accounts.jsonl"
EPSILONS, DELTAS = (0.1, 1.0, 10.0), (1e-6, 1e-9)


def schema(columns: int) -> Schema:
    """Nominal columns of 2 to 9 levels, the last two numeric with 8 bins."""
    edges = tuple(float(e) for e in range(9))
    named = [
        Column(f"c{j}", "nominal", levels=tuple(f"l{i}" for i in range(2 + 3 * j % 8)))
        for j in range(columns - 2)
    ]
    numeric = [Column(name, "numeric", edges=edges) for name in ("x", "y")]
    return Schema((*named, *numeric), unit=Unit())


def methods(epsilon: float, delta: float) -> Iterator[tuple[str, Any, int]]:
    """(name, mechanism, columns of its table)."""
    from gibbous.mechanisms import registry

    budget = {"epsilon": epsilon, "delta": delta}
    load = registry.load
    yield "adaptive_gibbs", load("adaptive_gibbs")(**budget), 12
    yield "noisy_pegs", load("noisy_pegs")(**budget), 12
    yield "sbhg (choice 0)", load("sbhg")(noise="gaussian", choice=0, **budget), 12
    yield "privbayes, choice .05", load("privbayes")(noise="gaussian", choice=0.05, **budget), 12
    yield "privbayes", load("privbayes")(noise="gaussian", **budget), 12
    yield "modips", load("modips")(noise="gaussian", **budget), 4
    yield "paid_bins(adaptive_gibbs)", load("paid_bins")(method="adaptive_gibbs", **budget), 12
    yield "per_set(noisy_pegs), 5 sets", load("per_set")(method="noisy_pegs", **budget), 12
    yield "perturbed_histogram", load("perturbed_histogram")(epsilon=epsilon), 4


@contextmanager
def in_rho() -> Iterator[None]:
    """Plans as they were before there was an account in mu."""
    from fractions import Fraction

    from gibbous.mechanisms._budget import in_account
    from gibbous.privacy.calibrate import stable

    smaller = stable.sigma_for
    stable.sigma_for = lambda square, shift: Fraction(10**30)
    stable.stable_gaussian.cache_clear()
    try:
        with in_account("zcdp"):
            yield
    finally:
        stable.sigma_for = smaller
        stable.stable_gaussian.cache_clear()


def scales(mechanism: Any, columns: int) -> tuple[list[float], bool]:
    """Scales that a plan prints, in the order of its purchases, and whether it is accounted in mu."""
    sets = 5 if type(mechanism).__name__ == "PerSet" else 1
    plan = mechanism.plan(schema(columns), 10_000, sets)
    found = [
        float(number)
        for spend in plan.spends
        for number in re.findall(r"(?:sigma|scale) ([0-9.e+]+)", spend.detail)[:1]
    ]
    return found, plan.total.mu_squared > 0


def compared() -> str:
    """The table, as Markdown."""
    lines = [
        "| method | epsilon | delta | account | first tables: rho, chosen | last: rho, chosen | less |",
        "|---|---|---|---|---|---|---|",
    ]
    for epsilon, delta in itertools.product(EPSILONS, DELTAS):
        for name, mechanism, columns in methods(epsilon, delta):
            with in_rho():
                before, _ = scales(mechanism, columns)
            after, in_mu = scales(mechanism, columns)
            less = 100 * (1 - after[-1] / before[-1])
            account = "mu" if in_mu else "mu at its threshold" if "sbhg" in name and less else "rho"
            account = "epsilon" if name.startswith("perturbed") else account
            lines.append(
                f"| {name} | {epsilon:g} | {delta:g} | {account} | {before[0]:.5g}, {after[0]:.5g} "
                f"| {before[-1]:.5g}, {after[-1]:.5g} | {less:.1f} % |"
            )
    return "\n".join(lines)


def adult(seeds: int) -> None:
    """One run a seed of the default on Adult at (1, 1e-9), in this process."""
    import accuracy

    split = accuracy.load("adult")
    plan = gb.AdaptiveGibbs().plan(
        accuracy.accuracy_small.Table("a", split.train, split.sizes).schema, None
    )
    account = "mu" if getattr(plan.total, "mu_squared", 0) else "rho"
    for seed in range(seeds):
        begin = time.process_time()
        rows = accuracy.ours("adaptive_gibbs", split, 1.0, 1e-9, seed)
        cpu = time.process_time() - begin
        line = {"data": "adult", "account": account, "seed": seed, "cpu_seconds": round(cpu, 1)}
        line |= {
            f"tv{ways}": round(
                accuracy.accuracy_small.distance(split.train, rows, split.sizes, ways), 6
            )
            for ways in (1, 2)
        }
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")


def kept() -> str:
    """Means and standard deviations of the kept lines, as Markdown."""
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    lines = ["| account | runs | TV1 | TV2 | CPU seconds |", "|---|---|---|---|---|"]
    for account in ("rho", "mu"):
        some = [row for row in rows if row["account"] == account]
        cells = []
        for name in ("tv1", "tv2"):
            values = [row[name] for row in some]
            cells.append(f"{statistics.mean(values):.5f} (sd {statistics.stdev(values):.5f})")
        cells.append(f"{statistics.mean(row['cpu_seconds'] for row in some):.1f}")
        lines.append(f"| {account} | {len(some)} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", type=int, default=0, metavar="SEEDS")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.adult:
        adult(given.adult)
    print(kept() if given.table else "" if given.adult else compared())
