"""Coverage of `infer` through release folders: every mechanism, five estimates, one set and five.

    python bench/inference_coverage.py --cpu 900          # fewest runs first; goes on where it stopped
    python bench/inference_coverage.py --only modips      # up to 2,000 runs of each of its cells
    python bench/inference_coverage.py --table            # the table of docs/reference/combining-rules.md

A run draws 400 fresh records from a known population, writes a release of them, loads the folder and asks
for the 95 % intervals of a mean, a share, a cell of a table, a linear and a logistic coefficient. Every
mechanism is given a population that its model can represent, and a budget at which its clipping
or perturbation is small: what is measured is the variance, not the bias, which no interval covers.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np
import polars as pl
from scipy.stats import binom

import gibbous as gb
from gibbous import infer

RECORDS = 400  # n, and N
BATCH = 20  # runs between two lines of the results
REPLICATES = 20  # redraws of the noise; degrees of freedom allow for there being few
RUNS = 2_000
SETS = (1, 5)
LOW, HIGH = 0.935, 0.965  # where coverage is asked to be
CHANCE = 1e-3  # of a coverage as far from that, if it were at the edge: below it a cell is marked
RESULTS = Path(__file__).parent / "results" / "inference_coverage.jsonl"
ESTIMATES = ("mean", "share", "cell", "linear", "logistic")

Population = Literal["bins", "even", "apart", "normal"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A mechanism as it is measured.

    Attributes:
        method: its registered name.
        make: the mechanism for a number of sets.
        population: bins: x is uniform within four bins whose shares hang on a; even: the same with two
            bins and levels that are nearly as frequent; apart: the columns are independent; normal: x
            is normal, its mean hangs on a.
        stated: whether n is given to `load_release`, because the release does not publish it.
    """

    method: str
    make: Callable[[int], Any]
    population: Population = "bins"
    stated: bool = False


def settings() -> tuple[Setting, ...]:
    """One for each registered mechanism."""
    rows = RECORDS
    return (
        Setting("adaptive_gibbs", lambda m: gb.AdaptiveGibbs(epsilon=8, delta=1e-6)),
        Setting("block_pegs", lambda m: gb.BlockPegs(epsilon=36, block=1), "even", stated=True),
        Setting("bootstrap", lambda m: gb.Bootstrap(), "apart", stated=True),
        Setting("cdf", lambda m: gb.Cdf(epsilon=100), "apart", stated=True),
        Setting("contingency", lambda m: gb.Contingency(), stated=True),
        Setting("dirichlet", lambda m: gb.Dirichlet(epsilon=12 * m), stated=True),
        Setting("diverse_pegs", lambda m: gb.DiversePegs(l=1.05, sweeps=10), stated=True),
        Setting("dp_prior", lambda m: gb.DpPrior(epsilon=5 * m * rows), stated=True),
        # exp(0.02 n) is tangent to the shares of two levels of about 50 records each: 100 a key.
        Setting(
            "exponential_pegs",
            lambda m: gb.ExponentialPegs(epsilon=0.6, sweeps=10),
            "even",
            stated=True,
        ),
        Setting("flows_laplace", lambda m: gb.FlowsLaplace(epsilon=4)),
        Setting("imputation", lambda m: gb.Imputation(mix=0), "even", stated=True),
        Setting("laplace", lambda m: gb.Laplace(epsilon=2)),
        Setting("modips", lambda m: gb.Modips(epsilon=2), "normal"),
        Setting("multiple_synthesis", lambda m: gb.MultipleSynthesis(), "normal", stated=True),
        Setting("noisy_pegs", lambda m: gb.NoisyPegs(epsilon=4, delta=1e-6, parents=2)),
        Setting("onthemap", lambda m: gb.Onthemap(epsilon=12, destination="a"), stated=True),
        Setting("paid_bins", lambda m: gb.PaidBins(method="laplace", epsilon=4)),
        Setting("parallel", lambda m: gb.Parallel(method="laplace", epsilon=4)),
        Setting("pegs", lambda m: gb.Pegs(epsilon=360, sweeps=10), stated=True),
        Setting("per_set", lambda m: gb.PerSet(method="laplace", epsilon=2 * m)),
        Setting("perturbed_histogram", lambda m: gb.PerturbedHistogram(epsilon=2)),
        Setting(
            "perturbed_imputation",
            lambda m: gb.PerturbedImputation(epsilon=360, sweeps=10, mix=0),
            "even",
            stated=True,
        ),
        Setting("privbayes", lambda m: gb.Privbayes(epsilon=8)),
        Setting("sba", lambda m: gb.Sba(epsilon=4, delta=1e-6)),
        Setting("sbhg", lambda m: gb.Sbhg(epsilon=24, delta=1e-6, parents=2)),
        Setting(
            "smoothed_histogram", lambda m: gb.SmoothedHistogram(epsilon=5 * m * rows), stated=True
        ),
    )


# The population: a, then y and x given a.

EDGES = {"bins": (0, 1, 2, 3, 4), "even": (0, 2, 4), "apart": (0, 1, 2, 3, 4), "normal": (0, 4)}
SHARE = {"bins": 0.4, "even": 0.5, "apart": 0.4, "normal": 0.4}  # of a = yes
ILL = {"bins": (0.3, 0.5), "even": (0.45, 0.55), "apart": (0.35, 0.35), "normal": (0.3, 0.5)}
"""Share of y = yes given a."""
BINS = {
    "bins": ((0.35, 0.30, 0.20, 0.15), (0.15, 0.20, 0.30, 0.35)),
    "even": ((0.55, 0.45), (0.45, 0.55)),
    "apart": ((0.25, 0.30, 0.25, 0.20),) * 2,
}
CENTRES, SPREAD = (1.75, 2.25), 0.5  # of x given a, where it is normal


def schema(population: Population) -> gb.Schema:
    """Three columns; a normal number has no cut points."""
    levels = ("no", "yes")
    return gb.Schema(
        (
            gb.Column("a", "binary", levels=levels),
            gb.Column("y", "binary", levels=levels),
            gb.Column("x", "numeric", edges=EDGES[population]),
        )
    )


def truth(population: Population) -> np.ndarray:
    """The five estimates in the population, in closed form."""
    ill, share = np.array(ILL[population]), SHARE[population]
    weights = np.array([1 - share, share])
    if population == "normal":
        means = np.array(CENTRES)
    else:
        edges = np.array(EDGES[population], dtype=float)
        means = np.array(BINS[population]) @ ((edges[1:] + edges[:-1]) / 2)
    odds = np.log(ill / (1 - ill))
    return np.array(
        [weights @ means, weights @ ill, share * ill[1], means[1] - means[0], odds[1] - odds[0]]
    )


def records(population: Population, rng: np.random.Generator) -> pl.DataFrame:
    """Fresh records."""
    a = (rng.random(RECORDS) < SHARE[population]).astype(int)
    y = rng.random(RECORDS) < np.array(ILL[population])[a]
    edges = np.array(EDGES[population], dtype=float)
    if population == "normal":
        x = np.clip(rng.normal(np.array(CENTRES)[a], SPREAD), edges[0], edges[-1])
    else:
        ends = np.cumsum(BINS[population], axis=1)[a]
        place = (rng.random(RECORDS)[:, None] > ends[:, :-1]).sum(axis=1)
        x = edges[place] + rng.random(RECORDS) * np.diff(edges)[place]
    words = np.array(["no", "yes"])
    return pl.DataFrame({"a": words[a], "y": words[y.astype(int)], "x": x})


def estimates(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The five estimates of a set with their variances, as `table` and `glm` find them.

    The mean of x, the share of y = yes, that of a = y = yes, the slope of x ~ a and the coefficient of
    y ~ a (binomial). Closed forms, because thousands of sets are read. A test holds them against `glm`.
    """
    a, y = (frame[name].to_numpy() == "yes" for name in ("a", "y"))
    x, rows = frame["x"].to_numpy(), frame.height
    counts = np.bincount(2 * a + y, minlength=4).astype(float)
    ones = np.array([rows - a.sum(), a.sum()], dtype=float)
    sums = np.array([x[~a].sum(), x[a].sum()])
    with np.errstate(all="ignore"):
        share, cell = (counts[1] + counts[3]) / rows, counts[3] / rows
        means = sums / ones
        rest = (x @ x - (sums * means).sum()) / (rows - 2)
        odds = np.log(counts[1::2] / counts[::2])
        found = [x.mean(), share, cell, means[1] - means[0], odds[1] - odds[0]]
        inside = [(p * rows + 0.5) / (rows + 1) for p in (share, cell)]
        spread = [x.var(ddof=1) / rows, *(p * (1 - p) / rows for p in inside)]
        spread += [rest * (1 / ones).sum(), (1 / counts).sum()]
    known = np.isfinite(found) & np.isfinite(spread)
    return np.where(known, found, np.nan), np.where(known, spread, np.nan)


def one_run(setting: Setting, sets: int, seed: int, folder: Path) -> np.ndarray:
    """A release written, loaded and analyzed: estimate, low, high and T of the five, (4, 5)."""
    drawn = records(
        setting.population, np.random.default_rng([seed, sets, crc32(setting.method.encode())])
    )
    gb.synthesize(
        drawn,
        schema(setting.population),
        setting.make(sets),
        rows=RECORDS,
        sets=sets,
        seed=seed,
        out=folder,
        overwrite=True,
        ledger=gb.Ledger.ephemeral(),
        understand=True,
    )
    release = infer.load_release(folder, records=RECORDS if setting.stated else None)
    whole = release.combine(estimates, names=ESTIMATES, replicates=REPLICATES, seed=seed)
    found = np.array([whole.estimate, whole.low, whole.high, whole.variance])
    for place, columns in ((1, ["y"]), (2, ["a", "y"])):
        table = release.table(columns, replicates=0)
        if table.source == "released table":  # what `table` gives, without any redraw
            one = table.combined
            found[:, place] = [v[-1] for v in (one.estimate, one.low, one.high, one.variance)]
    return found


def batch(setting: Setting, sets: int, start: int, count: int) -> dict[str, Any]:
    """Sums over some runs, which add up with those of other batches."""
    begun, wanted = time.process_time(), truth(setting.population)
    with tempfile.TemporaryDirectory() as base:
        runs = np.array(
            [one_run(setting, sets, start + i, Path(base) / "release") for i in range(count)]
        )
    estimate, low, high, variance = runs.transpose(1, 0, 2)
    known = np.isfinite(low)
    error = np.where(known, estimate - wanted, 0.0)
    return {
        "method": setting.method,
        "sets": sets,
        "runs": count,
        "held": ((low <= wanted) & (wanted <= high)).sum(axis=0).tolist(),
        "known": known.sum(axis=0).tolist(),
        "error": error.sum(axis=0).tolist(),
        "squared": (error**2).sum(axis=0).tolist(),
        "variance": np.where(known, variance, 0.0).sum(axis=0).tolist(),
        "cpu_seconds": round(time.process_time() - begun, 2),
    }


def read(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """All batches of a file, added up by method and number of sets."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        one = json.loads(line)
        kept = found.setdefault((one["method"], one["sets"]), {})
        for name in ("runs", "held", "known", "error", "squared", "variance", "cpu_seconds"):
            kept[name] = (np.asarray(one[name]) + kept.get(name, 0)).tolist()
    return found


def measure(path: Path, *, only: str, runs: int, seconds: float) -> None:
    """Append batches to a file, the cell with the fewest runs first, until runs or seconds are used up."""
    begun = time.process_time()
    chosen = {one.method: one for one in settings() if not only or one.method in only.split(",")}
    done = {(name, sets): 0 for name in chosen for sets in SETS}
    done |= {key: one["runs"] for key, one in read(path).items() if key in done}
    while time.process_time() - begun < seconds:
        (name, sets), least = min(done.items(), key=lambda item: item[1])
        if least >= runs:
            break
        found = batch(chosen[name], sets, least, min(BATCH, runs - least))
        done[name, sets] += found["runs"]
        with path.open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(f"{name}, {sets} sets: {done[name, sets]} runs", flush=True)


def rows(found: dict[tuple[str, int], dict[str, Any]]) -> Iterator[list[str]]:
    """Lines of the table: method, sets, runs, coverage of each estimate; * is no chance."""
    for (name, sets), one in sorted(found.items()):
        shares = []
        for held, known in zip(one["held"], one["known"], strict=True):
            below, above = binom.cdf(held, known, LOW), binom.sf(held - 1, known, HIGH)
            far = "*" if min(below, above) < CHANCE else ""
            shares.append(f"{held / max(known, 1):.3f}".removeprefix("0") + far)
        yield [f"`{name}`", str(sets), str(one["runs"]), *shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=RUNS, help="of each mechanism and number of sets"
    )
    parser.add_argument(
        "--cpu", type=float, default=float("inf"), help="seconds after which to stop"
    )
    parser.add_argument("--only", default="", help="names of mechanisms, by commas")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print what is there, measure nothing")
    given = parser.parse_args()
    if not given.table:
        measure(given.results, only=given.only, runs=given.runs, seconds=given.cpu)
    print("| " + " | ".join(["mechanism", "sets", "runs", *ESTIMATES]) + " |")
    print("|---|---:|---:|" + "---:|" * len(ESTIMATES))
    for line in rows(read(given.results)):
        print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main()
