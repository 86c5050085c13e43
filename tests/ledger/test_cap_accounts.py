"""Caps that add up in rho or in mu: exact sums, the sound direction only, and older entries as they were."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from gibbous.core.claim import Claim, approximate, gdp, pure, zcdp
from gibbous.core.errors import BudgetExhausted, LedgerUnusable, PrivacyRefused, UsageError
from gibbous.privacy.calibrate.gdp import mu_squared_for, square_of_choice
from gibbous.privacy.calibrate.zcdp import pure_to_zcdp, rho_from_approx
from gibbous.privacy.ledger import Hold, Ledger

DATA = bytes(range(32))
EPSILON, DELTA = Fraction(2), Fraction(1, 10**8)
SQUARES, RHO = mu_squared_for(EPSILON, DELTA), rho_from_approx(EPSILON, DELTA)
SMALL = mu_squared_for(Fraction(1, 2), Fraction(1, 10**9))
RELEASE = approximate(Fraction(1, 2), Fraction(1, 10**9), mu_squared=SMALL)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "home" / "ledger.sqlite")


def charge(ledger: Ledger, claim: Claim) -> Hold:
    return ledger.reserve(DATA, claim, mechanism="noisy_pegs", request=b"request")


def fits(ledger: Ledger, claim: Claim) -> int:
    """How often a claim is granted."""
    for granted in range(100):
        try:
            charge(ledger, claim)
        except BudgetExhausted:
            return granted
    raise AssertionError("no end")


@pytest.mark.parametrize(
    ("account", "whole", "each"),
    [("sum", EPSILON, RELEASE.epsilon), ("zcdp", RHO, SMALL / 2), ("gdp", SQUARES, SMALL)],
)
def test_releases_with_a_mu_add_up_exactly_in_each_account(
    account: str, whole: Fraction, each: Fraction, ledger: Ledger
) -> None:
    ledger.cap(DATA, EPSILON, DELTA, account=account)

    assert fits(ledger, RELEASE) == whole // each


def test_a_cap_in_mu_covers_more_releases_than_one_in_rho_and_a_sum() -> None:
    assert EPSILON // RELEASE.epsilon == 4
    assert RHO // (SMALL / 2) < SQUARES // SMALL
    assert SQUARES // SMALL >= 12


def test_rho_is_refused_by_a_cap_in_mu_and_mu_is_half_its_square_in_rho(tmp_path: Path) -> None:
    in_mu, in_rho = (Ledger.open(tmp_path / name / "ledger.sqlite") for name in ("mu", "rho"))
    in_mu.cap(DATA, EPSILON, DELTA, account="gdp")
    in_rho.cap(DATA, EPSILON, DELTA, account="zcdp")

    for claim in (zcdp(RHO / 10**6), approximate(Fraction(1, 10**6), DELTA / 10)):
        with pytest.raises(PrivacyRefused, match="which no conversion counts in mu"):
            charge(in_mu, claim)
    with pytest.raises(PrivacyRefused, match="which no conversion counts in rho"):
        charge(in_rho, approximate(Fraction(1, 10**6), DELTA / 10))
    charge(in_rho, gdp(RHO))  # half of it
    charge(in_rho, zcdp(RHO / 2))
    with pytest.raises(BudgetExhausted):
        charge(in_rho, zcdp(RHO / 10**12))
    charge(in_mu, gdp(SQUARES))
    with pytest.raises(BudgetExhausted):
        charge(in_mu, gdp(SQUARES / 10**12))
    assert in_mu.account(DATA).left == in_rho.account(DATA).left == (0, 0)


def test_pure_releases_count_by_their_own_conversion(tmp_path: Path) -> None:
    cost = {"zcdp": pure_to_zcdp(Fraction(1, 10)), "gdp": square_of_choice(Fraction(1, 5))}
    for account, whole in (("zcdp", RHO), ("gdp", SQUARES)):
        ledger = Ledger.open(tmp_path / account / "ledger.sqlite")
        ledger.cap(DATA, EPSILON, DELTA, account=account)

        assert fits(ledger, pure(Fraction(1, 10))) == whole // cost[account]


def test_a_delta_beside_mu_and_a_mu_without_epsilon_are_refused_where_no_sum_counts_them(
    tmp_path: Path,
) -> None:
    beside = gdp(SMALL, delta=Fraction(1, 10**12))
    for account in ("sum", "zcdp", "gdp"):
        ledger = Ledger.open(tmp_path / account / "ledger.sqlite")
        ledger.cap(DATA, EPSILON, DELTA, account=account)

        with pytest.raises(PrivacyRefused, match=r"counts in|Gaussian"):
            charge(ledger, beside)


def test_a_cap_is_not_set_over_releases_that_its_account_cannot_add(ledger: Ledger) -> None:
    charge(ledger, approximate(Fraction(1, 2), Fraction(1, 10**9)))

    with pytest.raises(PrivacyRefused, match="in mu"):
        ledger.cap(DATA, EPSILON, DELTA, account="gdp")
    ledger.cap(DATA, EPSILON, DELTA)
    for numbers in ((Fraction(0), DELTA), (EPSILON, Fraction(0))):
        with pytest.raises(PrivacyRefused, match="both > 0"):
            ledger.cap(DATA, *numbers, account="zcdp")
    with pytest.raises(UsageError, match="no account"):
        ledger.cap(DATA, EPSILON, DELTA, account="renyi")


def test_a_plain_cap_is_written_as_before_and_read_as_a_plain_sum(ledger: Ledger) -> None:
    ledger.cap(DATA, EPSILON, DELTA)
    ledger.cap(DATA, EPSILON, DELTA, account="gdp")
    charge(ledger, RELEASE)
    charge(ledger, gdp(SMALL))

    again = Ledger.open(ledger.path)

    file = sqlite3.connect(str(ledger.path))
    bodies = [json.loads(row[0]) for row in file.execute("SELECT public FROM entries ORDER BY seq")]
    file.close()
    caps = [body for body in bodies if body["kind"] == "cap"]
    assert "account" not in caps[0]
    assert [e.cap.account for e in again.entries() if e.cap] == ["sum", "gdp"]
    assert [e.claim for e in again.entries() if e.claim] == [RELEASE, gdp(SMALL)]


def test_an_account_from_the_future_is_refused(ledger: Ledger) -> None:
    body = {"kind": "cap", "epsilon": "1", "delta": "0.1", "relation": "add_remove"}
    with ledger._store.appending() as writer:
        writer.append({**body, "protects": None, "account": "f"}, {"dataset": DATA.hex(), "at": ""})

    with pytest.raises(LedgerUnusable, match="does not know"):
        ledger.entries()


def test_a_mu_that_was_edited_breaks_the_chain(ledger: Ledger) -> None:
    charge(ledger, gdp(SMALL))
    path = ledger.path
    ledger.close()
    file = sqlite3.connect(str(path))
    (public,) = file.execute("SELECT public FROM entries WHERE seq = 1").fetchone()
    body = json.loads(public)
    body["claim"]["mu_squared"] = "0.0001"
    text = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        file.execute(f"DROP TRIGGER {name}")
    file.execute("UPDATE entries SET public = ? WHERE seq = 1", (text,))
    file.commit()
    file.close()

    with pytest.raises(LedgerUnusable, match="changed"):
        Ledger.open(path).entries()
