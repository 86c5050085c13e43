"""Totals: exact, never below the truth, never mixed, and compared with another library."""

import random
from collections import Counter
from fractions import Fraction

import mpmath as mp
import pytest

from gibbous.core.claim import Claim, approximate, gdp, l_diverse, no_claim, pure, zcdp
from gibbous.core.errors import ParameterError, PrivacyRefused
from gibbous.privacy.accountant import as_approximate, as_zcdp, within
from gibbous.privacy.calibrate import scales
from gibbous.privacy.calibrate import zcdp as conversions
from gibbous.privacy.purse import Purse

MILLIONTH = Fraction(1, 10**6)
TENTH = Fraction(1, 10)


def pdp(epsilon, delta):
    return Claim("probabilistic", epsilon=Fraction(epsilon), delta=Fraction(delta))


def test_e8_ten_charges_of_a_tenth_fit_and_the_eleventh_does_not():
    assert within(pure(Fraction(1)), [pure(TENTH)] * 10)
    assert not within(pure(Fraction(1)), [pure(TENTH)] * 11)
    assert within(zcdp(Fraction(1)), [zcdp(TENTH)] * 10)
    assert not within(zcdp(Fraction(1)), [zcdp(TENTH)] * 11)


def test_e10_approximate_budget_adds_epsilons_and_deltas():
    budget = approximate(Fraction(1), MILLIONTH)
    half = approximate(Fraction(1, 2), MILLIONTH / 2)

    assert within(budget, [half, half])
    assert within(budget, [half, pure(Fraction(1, 2))])
    assert not within(budget, [half, half, pure(Fraction(1, 10**9))])
    assert not within(budget, [half, half, approximate(Fraction(0), Fraction(1, 10**12))])


def test_zcdp_purchases_fit_an_approximate_budget_up_to_its_rho():
    budget = approximate(Fraction(1), MILLIONTH)

    assert within(budget, [zcdp(Fraction("0.012177"))] * 2)
    assert not within(budget, [zcdp(Fraction("0.012179"))] * 2)


def test_zcdp_and_thresholds_share_an_approximate_budget():
    budget = approximate(Fraction(1), MILLIONTH)
    table = conversions.rho_from_approx("0.5", MILLIONTH / 4)

    assert within(budget, [zcdp(table), approximate(Fraction(1, 2), 3 * MILLIONTH / 4)])
    assert not within(budget, [zcdp(table), approximate(Fraction(1, 2), MILLIONTH)])


def test_many_small_pure_purchases_fit_by_the_way_of_zcdp():
    budget, small = approximate(Fraction(1), MILLIONTH), pure(Fraction(1, 100))

    assert within(budget, [small] * 400)  # epsilons add to 4; rho is 0.02
    assert not within(budget, [small] * 500)
    assert not within(pure(Fraction(1)), [small] * 101)


@pytest.mark.parametrize("kind", ["pure", "zcdp", "gdp", "approximate"])
def test_alike_purchases_are_multiplied_as_they_would_be_added(kind):
    """Against sums one by one; the last purchase that fits, and the first that does not."""
    third, seventh = Fraction(1, 3), Fraction(1, 7)
    made = {
        "pure": pure,
        "zcdp": zcdp,
        "gdp": gdp,
        "approximate": lambda e: approximate(e, e / 99),
    }[kind]
    spends = [made(third)] * 5 + [made(seventh)] * 9 + [made(third)] * 2
    random.Random(3).shuffle(spends)
    added = Fraction(0)
    for one in spends:
        added += max(one.epsilon, one.rho, one.mu_squared)
    exactly, less = made(added), made(added - Fraction(1, 10**30))

    assert [within(exactly, some) for some in (spends, Counter(spends))] == [True, True]
    assert [within(less, some) for some in (spends, Counter(spends))] == [False, False]
    purse = Purse(exactly)
    assert [purse.pay(one) for one in spends] == [True] * len(spends)
    assert not purse.pay(made(Fraction(1, 10**30)))
    assert [path.total() for path in purse.paths()] == [len(spends)]


def test_pure_purchases_count_as_zcdp_under_a_zcdp_budget():
    cost = conversions.pure_to_zcdp(1)

    assert within(zcdp(cost), [pure(Fraction(1))])
    assert not within(zcdp(cost * (1 - Fraction(1, 10**12))), [pure(Fraction(1))])


@pytest.mark.parametrize(
    ("budget", "spend"),
    [
        (pure(Fraction(1)), zcdp(TENTH)),
        (pure(Fraction(1)), approximate(TENTH, MILLIONTH)),
        (zcdp(Fraction(1)), approximate(TENTH, MILLIONTH)),
        (approximate(Fraction(1), MILLIONTH), pdp(TENTH, MILLIONTH)),
        (pdp(1, MILLIONTH), approximate(TENTH, MILLIONTH)),
        (pdp(1, MILLIONTH), zcdp(TENTH)),
        (approximate(Fraction(1), MILLIONTH), no_claim()),
        (approximate(Fraction(1), MILLIONTH), l_diverse(Fraction(2))),
        (l_diverse(Fraction(2)), pure(TENTH)),
    ],
)
def test_e11_kinds_without_a_proven_conversion_are_refused(budget, spend):
    with pytest.raises(PrivacyRefused, match="kind"):
        within(budget, [spend])


def test_e14_relations_are_never_mixed():
    other = pure(TENTH, relation="replace_one")

    with pytest.raises(PrivacyRefused, match="replace_one"):
        within(pure(Fraction(1)), [other])
    with pytest.raises(PrivacyRefused, match="relations"):
        pure(TENTH).then(other)


def test_budgets_without_differential_privacy():
    assert within(no_claim(), [no_claim(), pure(Fraction(100))])
    assert within(l_diverse(Fraction(2)), [l_diverse(Fraction(3))])
    assert not within(l_diverse(Fraction(3)), [l_diverse(Fraction(2))])
    assert within(pdp(1, MILLIONTH), [pdp("0.5", MILLIONTH), pure(Fraction(1, 2))])
    assert not within(pdp(1, MILLIONTH), [pdp("0.5", MILLIONTH)] * 3)
    assert within(pure(Fraction(1)), [])


def test_totals_have_one_definition():
    assert pure(TENTH).then(pure(TENTH)) == pure(Fraction(1, 5))
    assert pure(TENTH).then(approximate(TENTH, MILLIONTH)).kind == "approximate"
    assert as_zcdp(pure(TENTH)) == zcdp(conversions.pure_to_zcdp(TENTH))
    with pytest.raises(PrivacyRefused):
        zcdp(TENTH).then(approximate(TENTH, MILLIONTH))


def test_statements_at_a_delta_are_proven_ones():
    whole = as_approximate(zcdp(Fraction("9.615"), relation="replace_one"), MILLIONTH)

    assert float(whole.epsilon) == pytest.approx(31.39, abs=0.01)
    assert (whole.kind, whole.delta, whole.relation) == ("approximate", MILLIONTH, "replace_one")
    assert as_approximate(pure(Fraction(1)), MILLIONTH) == approximate(Fraction(1), Fraction(0))
    assert float(as_approximate(pure(Fraction(1000)), MILLIONTH).epsilon) == 1000
    assert as_approximate(pdp(1, MILLIONTH), MILLIONTH) == approximate(Fraction(1), MILLIONTH)
    assert as_zcdp(pure(Fraction(1))).rho == conversions.pure_to_zcdp(1)
    for bad in (no_claim(), l_diverse(Fraction(2))):
        with pytest.raises(PrivacyRefused):
            as_approximate(bad, MILLIONTH)
    with pytest.raises(PrivacyRefused):
        as_approximate(approximate(Fraction(1), TENTH), MILLIONTH)
    with pytest.raises(PrivacyRefused):
        as_zcdp(approximate(Fraction(1), MILLIONTH))
    with pytest.raises(ParameterError):
        as_approximate(pure(Fraction(1)), 0)


def random_purchases(draw):
    """Purchases, with the exact (epsilon, rho) of each kept apart as mpmath numbers."""
    parts = []
    for _ in range(draw.randint(1, 12)):
        value = Fraction(draw.randint(1, 10**6), 10 ** draw.randint(2, 8))
        times = draw.choice((1, 1, 2, 13))
        exact = times * mp.mpf(value.numerator) / value.denominator
        if draw.random() < 0.7:
            parts.append((pure(value).times(times), exact, exact * mp.tanh(exact / 2)))
        else:
            parts.append((zcdp(value).times(times), None, exact))
    return parts


def check_purchases(count, seed):
    draw = random.Random(seed)
    with mp.workdps(60):
        for _ in range(count):
            parts = random_purchases(draw)
            spends = [claim for claim, _, _ in parts]
            rho = mp.fsum(rho for _, _, rho in parts)
            assert within(zcdp(near(rho, 1, -9)), spends)
            assert not within(zcdp(near(rho, -1, -35)), spends)
            if all(claim.kind == "pure" for claim in spends):
                epsilon = mp.fsum(epsilon for _, epsilon, _ in parts)
                assert within(pure(near(epsilon, 1, -35)), spends)
                assert not within(pure(near(epsilon, -1, -35)), spends)


def near(exact, sign, digits):
    """A fraction that is above or below a number by a share of 10^digits."""
    return Fraction(str(mp.nstr(exact * (1 + sign * mp.mpf(10) ** digits), 50)))


def test_random_compositions_are_exact_or_rounded_against_us():
    check_purchases(300, seed=1)


@pytest.mark.slow
def test_ten_thousand_random_compositions_are_exact_or_rounded_against_us():
    check_purchases(10_000, seed=2)


def random_mixture(draw):
    """Random purchases of all three kinds, small enough to fit."""
    pures = [Fraction(draw.randint(1, 60), 1000) for _ in range(draw.randint(0, 5))]
    rhos = [Fraction(draw.randint(1, 60), 10**4) for _ in range(draw.randint(0, 4))]
    spent = [
        (Fraction(draw.randint(1, 60), 1000), Fraction(draw.randint(1, 300), 10**9))
        for _ in range(draw.randint(0, 3))
    ]
    return pures, rhos, spent


def test_approximate_totals_agree_with_their_two_certificates():
    draw = random.Random(4)
    granted = 0
    for _ in range(150):
        pures, rhos, spent = random_mixture(draw)
        claims = [pure(e) for e in pures] + [zcdp(r) for r in rhos]
        claims += [approximate(e, d) for e, d in spent]
        budget = approximate(Fraction(draw.randint(1, 15), 10), MILLIONTH)
        epsilon = float(sum(pures) + sum(e for e, _ in spent))
        delta = float(sum(d for _, d in spent))
        rho = float(sum(rhos))
        everything = rho + sum(
            float(conversions.pure_to_zcdp(e)) for e in pures + [e for e, _ in spent]
        )

        def bound(rate, target):
            if rate == 0:
                return 0.0 if target >= 0 else 1.0
            return float(conversions.delta_from_zcdp(rate, target)) if target > 0 else 1.0

        best = min(bound(rho, float(budget.epsilon) - epsilon), bound(everything, budget.epsilon))

        verdict = within(budget, claims)
        granted += verdict
        if abs(best + delta - 1e-6) > 1e-12:
            assert verdict == (best + delta <= 1e-6)
    assert 20 < granted < 130


@pytest.mark.parametrize(("sigma", "count"), [(16.34, 13), (4.0, 3), (50.0, 100)])
def test_gaussian_totals_agree_with_dp_accounting(sigma, count):
    event = pytest.importorskip("dp_accounting.dp_event")
    accountants = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = [1 + 1.02**i / 100 for i in range(900)]
    theirs = accountants.RdpAccountant(orders)
    theirs.compose(event.GaussianDpEvent(sigma), count)

    rho = scales.gaussian_rho(repr(sigma), count)
    ours = float(conversions.epsilon_from_zcdp(rho, "1e-6"))

    # Their orders are a grid, ours is the best one: theirs may only be a little larger.
    assert ours * (1 - 1e-9) <= theirs.get_epsilon(1e-6) <= ours * 1.001


def test_rho_of_epsilon_1_and_a_millionth_agrees_with_dp_accounting():
    event = pytest.importorskip("dp_accounting.dp_event")
    accountants = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    theirs = accountants.RdpAccountant([1 + 1.005**i / 100 for i in range(2500)])
    theirs.compose(event.GaussianDpEvent((2 * 0.024356) ** -0.5))

    assert theirs.get_epsilon(1e-6) == pytest.approx(1.0, abs=5e-5)
