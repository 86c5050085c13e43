"""A release with diverse columns makes two claims: the auditor tries both, and a fault of either shows."""

from __future__ import annotations

from typing import Any

import pytest

import gibbous as gb
from gibbous.contract.auditor import setups as auditor_setups
from gibbous.contract.auditor.diverse import by_diversity, fitted
from gibbous.contract.auditor.findings import Audit, Evidence
from gibbous.contract.auditor.run import _judged, audit
from gibbous.contract.runs import release
from gibbous.contract.saboteurs import saboteurs
from gibbous.privacy.calibrate import diversity
from gibbous.sampling import conditionals
from gibbous.structure import choice

pytestmark = pytest.mark.usefixtures("small")
ASKED = {"diverse": {"diagnosis": 1.5}, "relation": "add_remove"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer canaries a run: what is tried here shows in few."""
    monkeypatch.setattr(auditor_setups, "NARROW", 64)


def drawn(mechanism: Any, level: float = 1e-6) -> list[Evidence]:
    """What rows of the tables show of each claimed l."""
    return by_diversity(fitted(mechanism), release, level=level, seed=3)[0]


def unmixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are drawn from the laws as the noisy tables give them."""
    monkeypatch.setattr(conditionals, "_diverse", lambda shares, context, recipe: shares)


@pytest.mark.slow
def test_both_claims_of_a_sound_release_stand_and_l_is_shown_nearly_to_the_digit() -> None:
    found = audit("noisy_pegs", params=ASKED, runs=60)

    (of_values,) = (e for e in found.evidence if e.kind == "diversity")
    assert found.verdict == "nothing found"
    assert {"canaries", "mu", "noise", "pairs", "price", "doors"} < {e.kind for e in found.evidence}
    assert 1.5 <= (of_values.bound or 0) < 1.7
    assert of_values.name.startswith("'diagnosis'")
    assert "l = 1.5 of drawn 'diagnosis'" in found.claim
    assert f"l <= {of_values.bound:.4g}" in found.headline()
    assert sum(e.level for e in found.evidence) <= found.level


@pytest.mark.slow
def test_laws_that_are_left_as_they_are_refute_the_l_and_not_the_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unmixed(monkeypatch)

    found = audit("noisy_pegs", params=ASKED, runs=20)

    assert found.verdict == "VIOLATION"
    assert {e.kind for e in found.violations} == {"diversity"}
    assert found.violations[0].refutes


@pytest.mark.slow
def test_half_the_noise_speaks_against_the_epsilon_and_not_against_the_l() -> None:
    (half,) = (s for s in saboteurs() if s.name == "half the noise")
    with half.apply():  # type: ignore[attr-defined]
        found = audit("noisy_pegs", params=ASKED, runs=60)

    against = {e.kind for e in found.violations}
    assert found.verdict == "VIOLATION"
    assert "noise" in against
    assert "diversity" not in against


def test_a_diverse_column_that_others_are_drawn_from_is_refuted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its law was mixed before the others were drawn from it: given them it is certain.

    Which of three equal columns comes first is chance: each time the last one does with probability 1/3.
    """
    mechanism = gb.NoisyPegs(epsilon=5, parents=1, diverse={"diagnosis": 2})
    (honest,) = drawn(mechanism)
    tree = choice._tree
    monkeypatch.setattr(choice, "_tree", lambda search, free, leaves: tree(search, free, ()))

    assert honest.holds
    assert any(drawn(mechanism)[0].violated for _ in range(60))  # all fail once in 10^10


@pytest.mark.parametrize("wrong", [True, False])
def test_the_stricter_criterion_is_held_to_its_own_bound(
    monkeypatch: pytest.MonkeyPatch, wrong: bool
) -> None:
    """No value likelier than 1/2; a law whose entropy is ln 2 leaves one .81."""
    own = diversity.diverse_law
    if wrong:
        monkeypatch.setattr(
            diversity, "diverse_law", lambda law, l, criterion, moved: own(law, l, "entropy", moved)
        )
    mechanism = gb.NoisyPegs(epsilon=5, diverse={"diagnosis": 2}, criterion="max_probability")

    (found,) = drawn(mechanism)

    assert found.violated == wrong
    assert wrong or (found.bound or 0) < 2.2


@pytest.mark.parametrize("around", [gb.PerSet, gb.Parallel])
def test_each_of_several_columns_inside_a_combinator_has_its_own_bound(around: Any) -> None:
    mechanism = around(gb.NoisyPegs(epsilon=20, diverse={"income": 3, "diagnosis": 1.5}))

    found = drawn(mechanism)

    assert [one.claimed for one in found] == [1.5, 3]
    assert all(one.holds for one in found)
    assert (found[0].bound or 0) < 2
    assert (found[1].bound or 0) < 4


def test_an_audit_that_could_refute_one_claim_alone_cannot_tell() -> None:
    told = Audit("noisy_pegs", {}, "both", "approximate", "nothing found")
    loud, quiet = (
        Evidence(kind, "", "add_remove", 1, violated=kind == "diversity")
        for kind in ("diversity", "pairs")
    )

    assert _judged(told, [], [loud, quiet]).verdict == "cannot tell"
    assert _judged(told, [], [loud]).verdict == "nothing found"
