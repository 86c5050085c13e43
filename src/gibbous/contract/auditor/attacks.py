"""The tests of an audit, each on runs in memory: canaries, pairs, noise, and those without statistics."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gibbous.contract.audit import audit
from gibbous.contract.auditor.bounds import expected_energy, law_of, scale_p_value, stated
from gibbous.contract.auditor.canaries import Reader, Seen, attacked, coins_of, pooled_noise
from gibbous.contract.auditor.findings import Evidence
from gibbous.contract.auditor.setups import CLEAR, Setup, laws_of, translated
from gibbous.contract.cases import Neighbors, neighbors, uneven
from gibbous.contract.coupled import differing, uncovered
from gibbous.contract.runs import exact_counts, relation_of
from gibbous.core.claim import Relation
from gibbous.core.codes import Codes
from gibbous.core.errors import PrivacyRefused
from gibbous.core.plan import Plan
from gibbous.core.protocols import Mechanism
from gibbous.core.schema import Schema
from gibbous.core.stream import stream_key, words
from gibbous.core.tables import NoiseInfo, Table, Tables

Run = Callable[[Mechanism, Schema, np.ndarray, int | None, Plan], Tables | Codes]
SHARES = {"canaries": 0.12, "pairs": 0.14, "self-test": 0.04}  # of the seconds, for each such part
CANARIES = 200_000  # in all runs of one setup
ROW_RUNS = 40_000  # of one setup, where a run draws few rows
PAIR_RUNS = 2_000  # on each side
FEWEST = 4
SCORING = 2.0  # reading and scoring a pair's outputs takes about as long as the fits
CROWD = {"tables": 60, "rows": 4}  # equal records beside the one that differs
SURE = 2.326  # standard errors: 99 of 100


@dataclass(frozen=True, slots=True)
class Effort:
    """How many runs a part gets.

    Attributes:
        seconds: CPU seconds for this part, about; the number of runs is fixed after the first ones.
        runs: exactly so many instead; None: what the seconds allow.
        more: times the most runs that a part takes.
    """

    seconds: float
    runs: int | None = None
    more: int = 1

    def part(self, kind: str) -> Effort:
        """What one part of a kind gets of it."""
        return replace(self, seconds=self.seconds * SHARES[kind])

    def count(self, each: float, most: int, least: int = FEWEST) -> int:
        """Runs, from the CPU seconds that one of them takes."""
        most *= self.more
        if self.runs is not None:
            return min(self.runs, max(most, least))
        return int(min(max(self.seconds / max(each, 1e-6), least), most))


def without_noise(run: Run, seed: int) -> Run:
    """The same outputs with exact counts in place of noisy ones, and records in place of drawn rows."""
    number = iter(range(1 << 60))

    def bare(
        mechanism: Mechanism, schema: Schema, values: np.ndarray, rows: int | None, plan: Plan
    ) -> Tables | Codes:
        output = run(mechanism, schema, values, rows, plan)
        if isinstance(output, Codes):
            if not len(values):
                return output
            chosen = words(stream_key(seed, 0x62617265, next(number)), 0, output.rows)
            return Codes(schema, np.asarray(values)[(chosen % np.uint64(len(values))).astype(int)])
        output = output.parts[0] if output.parts else output
        # A broken method may state another schema: the records are then read under that one.
        whole = Setup("", schema, np.asarray(values), np.asarray(values)[:0])
        codes = translated(whole, output.schema)[0]
        known = codes[(codes >= 0).all(axis=1)]
        items, extra = (
            tuple(
                Table(table.context, counts.cells, table.noise)
                for table, counts in zip(
                    part,
                    exact_counts(output.schema, known, [table.context for table in part]),
                    strict=True,
                )
            )
            for part in (output.items, output.extra)
        )
        return replace(output, items=items, extra=extra)

    return bare


def by_canaries(
    mechanism: Mechanism, setup: Setup, run: Run, *, effort: Effort, level: float, seed: int
) -> tuple[Evidence, list[Seen], set[NoiseInfo]]:
    """Run a setup with fresh coins each time, and guess the coins.

    Returns:
        The evidence, what was seen (for the scale test), and the noise that tables stated.
    """
    plan = mechanism.plan(setup.schema, setup.rows)
    epsilon, delta = stated(plan.total)
    reader = Reader(setup)
    laws: set[NoiseInfo] = set()
    seen: list[Seen] = []

    def once() -> None:
        coins = coins_of(len(setup), seed, len(seen))
        output = run(mechanism, setup.schema, setup.records(coins), setup.rows, plan)
        laws.update(laws_of(output))
        seen.append(reader.read(output, coins))

    _repeat(once, effort, ROW_RUNS if setup.rows else -(-CANARIES // len(setup)))
    guesses = attacked(seen, delta, level)
    wrong = (
        f"{guesses.correct:,} of {guesses.guesses:,} guesses right, {guesses.canaries:,} canaries"
    )
    words_ = f"{wrong}, {guesses.attack}" if guesses.guesses else "no attack was learnt"
    return (
        Evidence(
            kind="canaries",
            name=setup.name,
            relation=plan.total.relation,
            runs=len(seen),
            violated=guesses.lower > epsilon,
            claimed=epsilon,
            delta=delta,
            bound=guesses.lower,
            ceiling=guesses.ceiling,
            level=level,
            words=words_,
        ),
        seen,
        laws,
    )


def pairs_of(mechanism: Mechanism, laws: set[NoiseInfo]) -> tuple[Neighbors, ...]:
    """Pairs of neighbors whose crowd is above the thresholds that were seen."""
    least = CROWD[mechanism.about.releases]
    clear = (int((law.threshold or 0) + CLEAR * law.scale) + 2 for law in laws if law.threshold)
    return neighbors(relation_of(mechanism), max((least, *clear)))


def by_pair(
    mechanism: Mechanism,
    pair: Neighbors,
    run: Run,
    *,
    effort: Effort,
    level: float,
    rows: int | None,
) -> Evidence:
    """Run on two neighbors, learn an event on one half of the runs, judge it on the other."""
    plan = mechanism.plan(pair.schema, rows)
    run(mechanism, pair.schema, pair.one, rows, plan)  # what is computed once is computed now
    began = time.process_time()
    for table in (pair.one, pair.two):
        run(mechanism, pair.schema, table, rows, plan)
    each = (time.process_time() - began) * SCORING
    runs = effort.count(each, PAIR_RUNS, 100)
    return audit(mechanism, pair, runs=runs, rows=rows, level=level, run=run)


def without_statistics(
    mechanism: Mechanism, relation: Relation, rows: int | None
) -> tuple[Evidence, ...]:
    """Price and doors: see `gibbous.contract.coupled`."""
    evidence = []
    name = "what purchases show of real neighbors"
    try:
        told, seen = uncovered(mechanism, relation, rows), True
    except PrivacyRefused:  # the curator protects persons of several rows where a plan does not
        told, seen = "not compared: the plan does not cover persons of several rows", False
    evidence.append(Evidence("price", name, relation, 1, seen and bool(told), words=told))
    told = ""
    pairs = (*neighbors(relation, 6), uneven(relation))
    for pair in pairs:
        told = told or differing(mechanism, pair, rows)
    told = f"{told} shows" if told else ""
    name = "every random answer repeated"
    evidence.append(Evidence("doors", name, relation, 4 * len(pairs), bool(told), words=told))
    return tuple(evidence)


def _repeat(once: Callable[[], None], effort: Effort, most: int) -> None:
    """Do it as often as the effort allows; the number is fixed after the second time."""
    once()
    began = time.process_time()
    once()
    for _ in range(effort.count(time.process_time() - began, most) - 2):
        once()


def by_scale(runs: Sequence[Seen], relation: Relation, level: float) -> Evidence | None:
    """Test all noisy cells together, and those of each table's target columns by themselves.

    Returns:
        The group of cells whose noise fits its stated scale worst; None when no table was seen.
    """
    pooled = pooled_noise(runs)
    if not pooled:
        return None
    groups: dict[str, dict[NoiseInfo, tuple[int, float]]] = {"all cells": _merged(pooled.values())}
    if len(pooled) > 1:
        groups |= {
            f"tables of column {', '.join(str(one + 1) for one in t)}": laws
            for t, laws in pooled.items()
        }
    fits = []
    for name, laws in groups.items():
        cells = {law: n for law, (n, _) in laws.items()}
        energy = sum(e for _, e in laws.values())
        fits.append((scale_p_value(cells, energy), name, cells, energy))
    p_value, name, cells, energy = min(fits, key=lambda f: f[0])
    every = {law: n for law, (n, _) in groups["all cells"].items()}
    p_value = min(1.0, p_value * len(groups))
    return Evidence(
        kind="noise",
        name=f"noisy less exact counts, {sum(every.values()):,} cells",
        relation=relation,
        runs=len(runs),
        violated=p_value <= level,
        claimed=1.0,
        bound=_fitting(cells, energy),
        ceiling=_fitting(every, _flagged(every, level / len(groups))),
        level=level,
        words=f"{name}, p = {p_value:.2g}",
    )


def _merged(
    parts: Iterable[dict[NoiseInfo, tuple[int, float]]],
) -> dict[NoiseInfo, tuple[int, float]]:
    merged: dict[NoiseInfo, tuple[int, float]] = {}
    for laws in parts:
        for law, (cells, energy) in laws.items():
            before = merged.get(law, (0, 0.0))
            merged[law] = (before[0] + cells, before[1] + energy)
    return merged


def _flagged(cells: dict[NoiseInfo, int], level: float) -> float:
    """An energy that is below what flags by the sampling error of 99 of 100 audits."""
    mean = sum(n * expected_energy(law)[0] for law, n in cells.items())
    spread = math.sqrt(sum(n * expected_energy(law)[1] for law, n in cells.items()))
    return max(0.0, mean - (math.sqrt(-2 * math.log(level)) + SURE) * spread)


def _fitting(cells: dict[NoiseInfo, int], energy: float) -> float:
    """The share of the stated scale at which the mean energy is the one that was found."""
    low, high = 0.0, 4.0
    for _ in range(20):
        middle = (low + high) / 2
        if sum(n * _energy_at(law, middle) for law, n in cells.items()) < energy:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _energy_at(law: NoiseInfo, share: float) -> float:
    """Mean energy of one cell whose real scale is `share` of the stated one."""
    real = replace(law, scale=max(law.scale * share, 1e-3), threshold=None)
    values, chances = law_of(real)
    power = np.abs(values) / law.scale
    return float(chances @ (power if law.law == "geometric" else power**2 / 2))
