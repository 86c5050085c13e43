"""The scores of a round are computed once, and are those that each pick would have computed anew."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gibbous.contract.cases import secret
from gibbous.contract.saboteurs import patched
from gibbous.core.claim import zcdp
from gibbous.core.tables import Counts
from gibbous.disintegrate.records import LocalEngine
from gibbous.mechanisms import _adaptive_rounds
from gibbous.mechanisms._adaptive_model import Known
from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
from gibbous.privacy import entropy
from gibbous.privacy.curator import Curator
from gibbous.structure import clique_scores as module
from gibbous.structure.clique_scores import (
    CLEAR_CELLS,
    LARGER_PART,
    MEAN,
    OVERLAP,
    Candidates,
    parts_of,
    pick,
)
from gibbous.structure.cliques import context_of
from tests.adaptive_gibbs.made import chain_rows, ran, rounds_of, schema_of

SIZES = (3, 4, 2, 5, 3, 2)
ROWS = chain_rows(SIZES, 500)
EPSILON, PICKS = Fraction(1, 2), 5
CLIQUES = (*itertools.combinations(range(6), 2), (0, 1, 2), (1, 2, 3))
RNG = np.random.default_rng(5)
EXPECTED = {c: RNG.integers(0, 60, int(np.prod([SIZES[j] for j in c]))) / 4.0 for c in CLIQUES}
ERRORS = RNG.uniform(0, 90, len(CLIQUES))
WEIGHTS = RNG.choice([0.5, 1.0, 4.0], len(CLIQUES))
NOISE = RNG.choice([0.25, 1.5, 1e3], len(CLIQUES))  # of the last, no cell stands out
SPREAD = RNG.uniform(0.1, 1.5, len(CLIQUES))


def worth_of(at: int) -> float:
    """Of the records' table, by a loop over records: docs/proofs/adaptive_gibbs.md, 2."""
    clique = CLIQUES[at]
    counts = dict.fromkeys(itertools.product(*(range(SIZES[j]) for j in clique)), 0)
    for row in ROWS.tolist():
        counts[tuple(row[j] for j in clique)] += 1
    pairs, noise = [*zip(counts.values(), EXPECTED[clique], strict=True)], NOISE[at] * MEAN
    whole = sum(expected for _, expected in pairs)
    if sum(expected**2 for _, expected in pairs) / whole <= CLEAR_CELLS * noise:
        return float(sum(abs(count - expected) for count, expected in pairs)) - float(ERRORS[at])
    part = 1.0 if len(clique) == 2 else LARGER_PART
    untold = [round(2048 * float(noise**2 + SPREAD[at] * m) ** 0.5) / 2048 for _, m in pairs]
    beyond = zip(pairs, untold, strict=True)
    return part * float(sum(max(0.0, abs(n - m) - less) for (n, m), less in beyond))


def computed_anew(turn: int) -> tuple[list[np.ndarray], list[float], list[int]]:
    """Scores, sensitivity and choice of each pick that takes the best: docs/proofs/adaptive_gibbs.md."""
    kept, parts = np.ones(len(CLIQUES)), parts_of(len(CLIQUES), PICKS, turn)
    scores, most, chosen = [], [], []
    for number in range(PICKS):
        left = [
            at
            for at in range(len(CLIQUES))
            if kept[at] > 0 and parts[at] == number % (parts.max() + 1)
        ]
        if not left:
            continue
        worth = {at: worth_of(at) for at in left}
        scores.append(np.array([WEIGHTS[at] * min(worth[at], kept[at] * worth[at]) for at in left]))
        most.append(max(WEIGHTS[at] for at in left))
        best = left[int(np.argmax(scores[-1]))]
        chosen.append(best)
        for at, clique in enumerate(CLIQUES):
            shared = len(set(clique) & set(CLIQUES[best]))
            kept[at] *= 0 if shared == len(clique) else OVERLAP if shared >= 2 else 1
    return scores, most, chosen


def asked(turn: int) -> tuple[list[np.ndarray], list[float], list[int], Curator, int]:
    """The same by the running code, its curator, and how often a table was compared with the records."""
    scores: list[np.ndarray] = []
    most: list[float] = []

    def choice(given: np.ndarray, *, epsilon: Fraction, sensitivity: Fraction | int) -> int:
        assert epsilon == EPSILON
        scores.append(np.array(given))
        most.append(float(sensitivity))
        return int(np.argmax(given))

    honest, looks = module.gaps, []

    def gaps(
        counts: Sequence[Counts], expected: Sequence[np.ndarray], *spared: np.ndarray
    ) -> np.ndarray:
        looks.append(len(expected))
        return honest(counts, expected, *spared)

    schema = schema_of(*SIZES)
    contexts = tuple(context_of(SIZES, clique) for clique in CLIQUES)
    some = Candidates(CLIQUES, contexts, tuple(EXPECTED.values()), ERRORS, WEIGHTS, NOISE, SPREAD)
    engine = LocalEngine.from_codes(secret(schema, ROWS))
    curator = Curator(engine, zcdp(Fraction(10)), schema, relation="add_remove")
    with patched(entropy, "exponential_choice", value=choice), patched(module, "gaps", value=gaps):
        chosen = list(pick(curator, some, PICKS, epsilon=EPSILON, turn=turn))
    return scores, most, chosen, curator, sum(looks)


def stale() -> AbstractContextManager[None]:
    """A build that forgets what the picks before did to a score."""
    return patched(module, "_kept", value=lambda held, sizes, kept, picked: kept)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("turn", [0, 1])
def test_each_pick_sees_the_scores_that_it_would_compute(
    parts: int, turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOKS", len(CLIQUES) * PICKS // parts)
    scores, most, chosen, curator, looks = asked(turn)
    expected = computed_anew(turn)

    assert looks == len(CLIQUES)  # each table once, however many picks look at it
    assert chosen == expected[2]
    assert most == expected[1]
    for own, true in zip(scores, expected[0], strict=True):
        assert own.tolist() == true.tolist()
    assert sum(claim.rho for claim in curator.spent) == len(chosen) * EPSILON**2 / 8


def test_a_build_that_forgets_earlier_picks_is_caught() -> None:
    with stale():
        scores = asked(0)[0]

    assert any(
        own.tolist() != true.tolist()
        for own, true in zip(scores, computed_anew(0)[0], strict=False)
    )


def test_scores_that_are_kept_are_zero_once_the_records_are_closed() -> None:
    """And what `among` is given is a copy: nothing that it does reaches the next pick."""
    schema = schema_of(*SIZES)
    curator = Curator(
        LocalEngine.from_codes(secret(schema, ROWS)),
        zcdp(Fraction(10)),
        schema,
        relation="add_remove",
    )
    kept: list[np.ndarray] = []

    def score(counts: Sequence[Counts]) -> np.ndarray:
        kept.append(np.array([7.0, 9.0]))
        return kept[-1]

    def among(scores: np.ndarray) -> np.ndarray:
        assert scores.tolist() == [7.0, 9.0]
        scores += 1
        return scores

    for _ in range(2):
        curator.choose(
            [context_of(SIZES, (0, 1))],
            score,
            sensitivity=1,
            epsilon=EPSILON,
            accounting="zcdp",
            among=among,
        )
    assert [one.tolist() for one in kept] == [[7.0, 9.0]]
    curator.close()

    assert not kept[0].any()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [5, 8, 12])
def test_a_budget_does_not_end_on_a_few_tables(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no round moves the model, prices grow while a pick a column can be paid for, not beyond."""
    honest, prices = _adaptive_rounds.measured, list[Fraction]()

    def noted(*given: Any) -> tuple[Known, Fraction]:
        known, cost = honest(*given)
        prices.extend([cost / len(given[3])] * len(given[3]))
        return known, cost

    monkeypatch.setattr(_adaptive_rounds, "measured", noted)
    monkeypatch.setattr(_adaptive_rounds, "moved", lambda *given: 0.0)
    sizes = (4,) * columns
    ran(
        AdaptiveGibbs(epsilon=2.0, cells=rounds_of(*sizes)),
        schema_of(*sizes),
        chain_rows(sizes, 2000),
    )

    assert max(prices) > 10 * min(prices)  # they do grow
    # One round may begin with nearly twice what it needs to be the last one.
    assert max(prices) < Fraction(2, columns) * sum(prices)
