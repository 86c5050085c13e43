"""The auditor: a method in, lower bounds of its epsilon out, from runs on constructed tables alone.

Evidence of two kinds is kept apart. A lower bound of epsilon above the claim, from canaries or from
pairs of neighbors, refutes the claim at the stated confidence, whatever the code says of itself. A
scale test, which reads the law that the tables state, shows that noise is not what was declared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any, get_args, get_type_hints

from gibbous.contract.auditor.attacks import (
    Effort,
    Run,
    by_canaries,
    by_pair,
    by_scale,
    pairs_of,
    without_noise,
    without_statistics,
)
from gibbous.contract.auditor.bounds import lower_bound, stated
from gibbous.contract.auditor.canaries import Seen
from gibbous.contract.auditor.diverse import Fitted, by_diversity, fitted
from gibbous.contract.auditor.findings import Audit, Evidence, SelfTest, Verdict
from gibbous.contract.auditor.gaussian import by_mu
from gibbous.contract.auditor.setups import crowded, free_rows, setups
from gibbous.contract.cases import Neighbors, binary_schema
from gibbous.contract.runs import relation_of, release
from gibbous.core.boundary import guarded
from gibbous.core.claim import Relation
from gibbous.core.errors import PrivacyRefused, UsageError
from gibbous.core.keywords import answering
from gibbous.core.params import as_json, build, describe
from gibbous.core.protocols import Mechanism, Progress, Words64, silent
from gibbous.core.tables import NoiseInfo
from gibbous.mechanisms import registry
from gibbous.privacy.entropy import words as system_words

LEVEL = 1e-4  # ten methods together: 1e-3
PARTS = 6  # with runs of their own, of one relation at most: four tables with canaries, two pairs
TESTS = PARTS + 2  # and from the runs of the canaries: mu, and the scale of the noise
DAY, NIGHT = 60.0, 4 * 3600.0  # CPU seconds
MORE = 20  # times the most runs that are useful by day
SELF_RUNS, MOST_SELF_RUNS = 200, 3200  # on each side, of a pair without noise


@guarded
@answering
def audit(
    method: str | type[Any] | Mechanism,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    params: Mapping[str, object] | None = None,
    seconds: float | None = None,
    runs: int | None = None,
    nightly: bool = False,
    level: float = LEVEL,
    seed: int = 0,
    words: Words64 = system_words,
    progress: Progress = silent,
) -> Audit:
    """Try to refute what a method claims, on constructed tables; no real data, no ledger.

    Args:
        method: a registered name, a mechanism class, or an instance (then without `params`).
        epsilon, delta: of the claim; the method's defaults when None.
        params: further parameters. Without `relation` both relations are audited, if it has both.
        seconds: CPU seconds that all runs may take, about; by default 60, or four hours of a night.
        runs: runs of each part (on each side of a pair) instead; None: what the seconds allow.
        nightly: go on to twenty times as many runs, which find smaller faults.
        level: probability that a sound method is flagged.
        seed: of the canaries' coins; noise has no seed.
        words: cryptographic words for methods that draw rows.
        progress: told ("audit", done parts, parts).
    Returns:
        The audit: evidence, verdict, and a self-test on outputs without noise.
    Raises:
        UsageError: there is no such method or parameter, or a number is out of range.
    Source:
        [Steinke, Nasr, Jagielski 2023]; [Jagielski, Ullman, Oprea 2020] with held-out thresholds;
        mu as in [Nasr et al. 2023], with bets in place of Clopper-Pearson.
    Example:
        >>> import gibbous as gb
        >>> gb.audit("laplace", epsilon=1, runs=4).verdict  # doctest: +SKIP
        'nothing found'
    """
    seconds = (NIGHT if nightly else DAY) if seconds is None else seconds
    _check(seconds, runs, level)
    began = time.process_time()
    named = {"epsilon": epsilon, "delta": delta}
    given = dict(params or {}) | {name: v for name, v in named.items() if v is not None}
    builds = _builds(method, given)
    result, run = _unaudited(builds[0], level, seed), partial(release, words=words)
    builds = [fitted(one) for one in builds]
    if result.kind == "l_diversity":
        result = _diversity(result, builds[0], run)
    elif result.kind != "none":
        effort = Effort(seconds / len(builds), runs, MORE if nightly else 1)
        result = _tested(result, builds, run, effort, progress)
    return replace(result, seconds=time.process_time() - began)


def _unaudited(one: Mechanism, level: float, seed: int) -> Audit:
    """The facts of an audit that are known before it runs."""
    rows, own = 1 if one.about.releases == "rows" else None, fitted(one)
    kind = own.plan(binary_schema(), rows).total.kind
    claims = [own.plan(binary_schema(), 1).claim.words()]
    if isinstance(own, Fitted):
        claims += [f"l = {least:g} of drawn {name!r}" for name, least in own.asked.items()]
    return Audit(
        method=one.about.name,
        params=as_json(one),
        claim=", and ".join(claims),
        kind=kind,
        verdict="nothing to audit",
        level=level if kind != "none" else 0.0,
        seed=seed,
    )


def _tested(
    result: Audit, builds: list[Mechanism], run: Run, effort: Effort, progress: Progress
) -> Audit:
    """The audit with the evidence of all relations, and its self-test."""
    done, tests = count(), TESTS + isinstance(builds[0], Fitted)
    level = result.level / (tests * len(builds))
    evidence: list[Evidence] = []
    bare: list[Evidence] = []

    def step() -> None:
        progress("audit", next(done), PARTS * len(builds))

    for one in builds:
        try:
            evidence_of, flagged = _relation(one, run, effort, level, result.seed, step)
        except PrivacyRefused as error:
            if error.name != "OVERSPEND":
                raise
            name, told = "what the run asks for against what the plan states", error.wrong
            asked = Evidence("price", name, relation_of(one), 1, violated=True, words=told)
            evidence_of, flagged = [asked], []
        evidence, bare = evidence + evidence_of, bare + flagged
    notes = (_OF_VALUES,) if isinstance(builds[0], Fitted) else ()
    return replace(_judged(result, evidence, bare), notes=notes)


def _judged(result: Audit, evidence: list[Evidence], bare: list[Evidence]) -> Audit:
    """The audit with its verdict; `bare` is what the same attacks found without noise: against each claim."""
    of_values = {one.kind == "diversity" for one in bare}
    refuted = {one.kind == "diversity" for one in bare if one.violated}
    self_test = SelfTest(bool(refuted) and refuted == of_values, tuple(bare))
    verdict: Verdict = "nothing found" if self_test.flagged else "cannot tell"
    if any(one.violated for one in evidence):
        verdict = "VIOLATION"
    return replace(result, verdict=verdict, evidence=tuple(evidence), self_test=self_test)


def _relation(
    one: Mechanism, run: Run, effort: Effort, level: float, seed: int, step: Callable[[], None]
) -> tuple[list[Evidence], list[Evidence]]:
    """All tests of one instance under its relation, and their self-test."""
    bare: list[Evidence] = []
    shown: list[tuple[Evidence, list[Seen]]] = []
    laws: set[NoiseInfo] = set()
    for number, setup in enumerate(setups(one)):
        tables = [setup]
        for place, table in enumerate(tables):
            step()
            stream = 2 * number + place + 1000 * seed
            part = effort.part("canaries")
            evidence, more, stated = by_canaries(
                one, table, run, effort=part, level=level, seed=stream
            )
            shown, laws = [*shown, (evidence, more)], laws | stated
            crowd = crowded(setup, stated) if place == 0 else None
            tables += [crowd] if crowd is not None else []
        if number == 0:
            few, nothing = effort.part("self-test"), without_noise(run, seed)
            told = by_canaries(one, tables[-1], nothing, effort=few, level=level, seed=seed)
            total = one.plan(setup.schema, setup.rows).total
            bare += [told[0], *_some(by_mu([told[:2]], total))]
    scale = by_scale([run for _, seen in shown for run in seen], relation_of(one), level)
    evidence_of = [told for told, _ in shown] + _some(by_mu(shown, total)) + _some(scale)
    rows = free_rows(one, binary_schema()) if one.about.releases == "rows" else None
    pairs = pairs_of(one, laws)
    for pair in pairs:
        step()
        evidence_of.append(
            by_pair(one, pair, run, effort=effort.part("pairs"), level=level, rows=rows)
        )
    bare.append(_self_pair(one, pairs[0], run, level=level, seed=seed, rows=rows))
    evidence_of += without_statistics(one, relation_of(one), rows)
    if isinstance(one, Fitted):
        drawn, copied = by_diversity(one, run, level=level, seed=seed)
        evidence_of, bare = evidence_of + drawn, bare + copied
    return evidence_of, bare


_OF_VALUES = (
    "l is of values that are drawn, given the rest of their row: what can be concluded about a record "
    "is bounded by epsilon and delta alone."
)


def _some(evidence: Evidence | None) -> list[Evidence]:
    return [] if evidence is None else [evidence]


def _diversity(result: Audit, one: Mechanism, run: Run) -> Audit:
    drawn, copied = by_diversity(one, run, level=result.level, seed=result.seed)
    note = (
        "l-diversity is not differential privacy: there is no epsilon to bound. The l of a whole "
        "output is the finding output_l of `gibbous evaluate`."
    )
    return replace(_judged(result, drawn, copied), notes=(note,))


def _self_pair(
    one: Mechanism, pair: Neighbors, run: Run, *, level: float, seed: int, rows: int | None
) -> Evidence:
    """The first pair without noise: exact tables tell its sides apart in few runs, rows in many.

    For tables the runs are doubled until the claim is refuted; each look has its share of the level.
    """
    most = _self_runs(one, rows, level)
    looks = [most >> k for k in range(most.bit_length()) if most >> k >= SELF_RUNS][::-1]
    looks = looks if rows is None else [most]
    bare = without_noise(run, seed)
    for runs in looks:
        effort, share = Effort(0.0, runs), level / len(looks)
        evidence = by_pair(one, pair, bare, effort=effort, level=share, rows=rows)
        if evidence.violated:
            break
    return evidence


def _self_runs(one: Mechanism, rows: int | None, level: float) -> int:
    """Runs on each side of a pair after which an event that tells often enough refutes the claim."""
    epsilon, delta = stated(one.plan(binary_schema(), rows).total)
    share = 4 if rows is None else 10  # one record of five is drawn in a fifth of the rows
    runs = SELF_RUNS
    least = min(level / 2, 1e-6)
    while (
        lower_bound(runs // share, 0, runs // 2, delta, least) <= epsilon and runs < MOST_SELF_RUNS
    ):
        runs *= 2
    return runs if runs < MOST_SELF_RUNS else SELF_RUNS


def _builds(method: str | type[Any] | Mechanism, given: dict[str, object]) -> list[Mechanism]:
    """The instances to audit: one for each relation that is offered and was not fixed."""
    if not isinstance(method, str | type):
        if given:
            raise UsageError(
                "AUDITPARAMS",
                "Parameters were given beside an instance of a method.",
                "An instance has its parameters.",
                "Give the name of the method, or leave epsilon, delta and params out.",
            )
        return [method]
    kind = registry.load(method) if isinstance(method, str) else method
    names = {p.name for p in describe(kind)}
    if "relation" not in names or "relation" in given:
        return [build(kind, given)]
    offered: tuple[Relation, ...] = get_args(get_type_hints(kind)["relation"])
    return [build(kind, given | {"relation": relation}) for relation in offered]


def _check(seconds: float, runs: int | None, level: float) -> None:
    few = runs is not None and runs < 4
    if not seconds > 0 or few or not 0 < level < Fraction(1, 2):
        raise UsageError(
            "AUDIT",
            "seconds, runs or level of an audit is out of range.",
            "seconds > 0, runs >= 4, 0 < level < 1/2.",
            "For example seconds=60, runs=1000, level=1e-4.",
        )
