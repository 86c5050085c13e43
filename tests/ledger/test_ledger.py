"""The ledger: exact sums, caps, refusals, and what its holds do."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from gibbous.core.claim import Claim, approximate, l_diverse, no_claim, pure, zcdp
from gibbous.core.errors import (
    BudgetExhausted,
    GibbousError,
    InputRejected,
    LedgerUnusable,
    PrivacyRefused,
)
from gibbous.privacy.ledger import Hold, Ledger
from gibbous.privacy.ledger.chain import chained

DATA = bytes(range(32))
OTHER = bytes(32)

# Children here only touch the ledger: threads of libraries that other tests loaded do no harm.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "home" / "ledger.sqlite")


def charge(ledger: Ledger, claim: Claim, request: bytes = b"request", **rest: str) -> Hold:
    return ledger.reserve(DATA, claim, mechanism="sbhg", request=request, **rest)


def test_a_fresh_ledger_has_no_entries_and_a_secret_key(ledger: Ledger) -> None:
    assert ledger.entries() == ()
    assert len(ledger.key) == 32
    assert ledger.key.hex() not in repr(ledger)


def test_key_entries_and_head_outlive_the_process(ledger: Ledger) -> None:
    charge(ledger, pure(Fraction(1))).commit("ab" * 32)
    again = Ledger.open(ledger.path)

    assert (again.key, again.head, again.entries()) == (ledger.key, ledger.head, ledger.entries())


def test_e8_ten_charges_of_a_tenth_fit_into_one_and_the_eleventh_is_refused(ledger: Ledger) -> None:
    ledger.cap(DATA, Fraction(1), Fraction(0))
    tenth = pure(Fraction("0.1"))
    for _ in range(10):
        charge(ledger, tenth)

    with pytest.raises(BudgetExhausted):
        charge(ledger, tenth)
    assert ledger.account(DATA).left == (0, 0)
    assert ledger.spent(DATA)[0].epsilon == 1


def test_h2_the_refusal_says_what_was_asked_what_is_left_and_who_spent_it(ledger: Ledger) -> None:
    ledger.cap(DATA, Fraction(1), Fraction("1e-6"))
    hold = charge(ledger, approximate(Fraction("0.7"), Fraction("1e-7")))
    before = ledger.head

    with pytest.raises(BudgetExhausted) as caught:
        charge(ledger, pure(Fraction("0.4")))

    words = str(caught.value)
    assert "epsilon = 0.4" in words
    assert "epsilon = 0.3, delta = 0.0000009 is left" in words
    assert f"{hold.id} (epsilon = 0.7, delta = 0.0000001, sbhg, open)" in words
    assert caught.value.exit_code == 6
    assert ledger.head == before


def test_delta_alone_can_exhaust_a_cap(ledger: Ledger) -> None:
    ledger.cap(DATA, Fraction(1), Fraction("1e-9"))

    with pytest.raises(BudgetExhausted):
        charge(ledger, approximate(Fraction("0.1"), Fraction("1e-8")))


def test_an_open_reservation_stays_spent_and_is_listed(ledger: Ledger) -> None:
    ledger.cap(DATA, Fraction(1), Fraction(0))
    done = charge(ledger, pure(Fraction("0.25")))
    done.commit("cd" * 32)
    charge(ledger, pure(Fraction("0.5")))

    account = Ledger.open(ledger.path).account(DATA)
    assert [p.state for p in account.releases] == ["committed", "open"]
    assert account.releases[0].sha256 == "cd" * 32
    assert account.left == (Fraction("0.25"), 0)


def test_each_data_set_has_its_own_cap(ledger: Ledger) -> None:
    ledger.cap(OTHER, Fraction("0.1"), Fraction(0))

    charge(ledger, pure(Fraction(50)))
    charge(ledger, no_claim())

    assert ledger.account(OTHER).left == (Fraction("0.1"), 0)
    assert {a.dataset for a in ledger.accounts()} == {DATA, OTHER}


def test_without_a_cap_claims_that_cannot_be_added_are_stated_apart(ledger: Ledger) -> None:
    charge(ledger, pure(Fraction(1)))
    charge(ledger, approximate(Fraction(1), Fraction("1e-6")))
    charge(ledger, zcdp(Fraction("0.5")))
    charge(ledger, pure(Fraction(3), relation="replace_one"))
    charge(ledger, no_claim())

    totals = ledger.spent(DATA)
    assert [(t.kind, t.relation) for t in totals if t.is_dp] == [
        ("approximate", "add_remove"), ("zcdp", "add_remove"), ("pure", "replace_one"),
    ]  # fmt: skip
    assert (totals[0].epsilon, totals[0].delta) == (2, Fraction("1e-6"))


@pytest.mark.parametrize(
    ("claim", "word"),
    [
        (no_claim(), "none"),
        (l_diverse(Fraction(2)), "l_diversity"),
        (zcdp(Fraction("0.001")), "zCDP"),
        (replace(approximate(Fraction("0.1"), Fraction(0)), kind="probabilistic"), "probabilistic"),
        (pure(Fraction("0.1"), relation="replace_one"), "replace_one"),
        (pure(Fraction("0.1"), basis="published"), "published"),
    ],
)
def test_e11_e14_a_capped_data_set_takes_one_definition(
    ledger: Ledger, claim: Claim, word: str
) -> None:
    ledger.cap(DATA, Fraction(1), Fraction("1e-6"))

    with pytest.raises(PrivacyRefused, match=word):
        charge(ledger, claim)
    assert ledger.account(DATA).releases == ()


def test_a_cap_counts_one_privacy_unit(ledger: Ledger) -> None:
    ledger.cap(DATA, Fraction(1), Fraction(0))
    charge(ledger, pure(Fraction("0.1")), protects="one row")

    with pytest.raises(PrivacyRefused, match="one person"):
        charge(ledger, pure(Fraction("0.1")), protects="one person (id), at most 3 rows")


def test_a_cap_is_refused_over_releases_that_no_sum_covers(ledger: Ledger) -> None:
    hold = charge(ledger, no_claim())

    with pytest.raises(PrivacyRefused, match=hold.id):
        ledger.cap(DATA, Fraction(1), Fraction(0))
    assert ledger.account(DATA).cap is None


def test_the_newest_cap_rules_and_never_leaves_less_than_nothing(ledger: Ledger) -> None:
    charge(ledger, pure(Fraction(2)))
    ledger.cap(DATA, Fraction(1), Fraction(0))
    assert ledger.account(DATA).left == (0, 0)
    with pytest.raises(BudgetExhausted):
        charge(ledger, pure(Fraction("0.1")))

    ledger.cap(DATA, Fraction(3), Fraction(0))
    charge(ledger, pure(Fraction(1)))
    assert ledger.account(DATA).left == (0, 0)


@pytest.mark.parametrize(("epsilon", "delta"), [("-1", "0"), ("1", "1"), ("1", "-0.1")])
def test_a_cap_out_of_range_is_refused(ledger: Ledger, epsilon: str, delta: str) -> None:
    with pytest.raises(PrivacyRefused):
        ledger.cap(DATA, Fraction(epsilon), Fraction(delta))


def test_f1_a_claim_per_row_is_never_charged_as_a_total(ledger: Ledger) -> None:
    with pytest.raises(PrivacyRefused, match="per row"):
        charge(ledger, pure(Fraction(1), unit="row"))


def test_check_refuses_what_reserve_would_and_writes_nothing(ledger: Ledger) -> None:
    ledger.cap(DATA, Fraction(1), Fraction(0))
    before = ledger.head

    ledger.check(DATA, pure(Fraction(1)))
    with pytest.raises(BudgetExhausted):
        ledger.check(DATA, pure(Fraction("1.000001")))

    assert ledger.head == before


def test_e9_sums_are_fractions_that_no_float_holds(ledger: Ledger) -> None:
    ledger.cap(DATA, Fraction(1), Fraction(0))
    for _ in range(3):
        charge(ledger, pure(Fraction(1, 3)))

    assert Ledger.open(ledger.path).account(DATA).left == (0, 0)


def test_a_commit_is_final(ledger: Ledger) -> None:
    hold = charge(ledger, pure(Fraction(1)))
    hold.commit("11" * 32)
    hold.commit("11" * 32)

    with pytest.raises(LedgerUnusable, match=hold.id):
        hold.commit("22" * 32)
    assert [e.kind for e in ledger.entries()] == ["reserve", "commit"]


def test_h3_find_gives_an_open_reservation_only_when_its_process_is_gone(ledger: Ledger) -> None:
    living = charge(ledger, pure(Fraction(1)), b"same")
    other = Ledger.open(ledger.path)
    assert other.find(b"same") is None
    assert other.find(b"another") is None
    with other._store.appending() as writer:
        private = {"dataset": DATA.hex(), "nickname": "a", "at": "", "request": b"another".hex()}
        writer.append({"kind": "name"}, private)
    assert other.find(b"another") is None  # no reservation, whatever it says of a request

    living.release()
    found = other.find(b"same")
    assert found is not None
    assert found.id == living.id
    assert not found.committed
    assert ledger.find(b"same") is None  # it is in use again

    found.commit("33" * 32)
    again = ledger.find(b"same")
    assert again is not None
    assert again.sha256 == "33" * 32


def test_h3_a_killed_process_leaves_an_open_reservation_that_can_be_found(ledger: Ledger) -> None:
    child = os.fork()
    if child == 0:
        charge(Ledger.open(ledger.path), pure(Fraction(1)), b"killed")
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)

    assert [p.state for p in ledger.account(DATA).releases] == ["open"]
    found = ledger.find(b"killed")
    assert found is not None
    assert found.claim == pure(Fraction(1))


def test_a_forked_child_may_use_the_ledger_it_inherited(ledger: Ledger) -> None:
    charge(ledger, pure(Fraction(1)))
    child = os.fork()
    if child == 0:
        charge(ledger, pure(Fraction(2)))
        os._exit(0)
    os.waitpid(child, 0)

    assert ledger.spent(DATA)[0].epsilon == 3
    ledger.verify()


def test_an_error_after_the_reservation_names_it(ledger: Ledger) -> None:
    hold = charge(ledger, pure(Fraction(1)))
    error = InputRejected("X", "It broke.", "It must not.", "Mend it.")

    hold.explain(error)

    assert f"Reservation {hold.id} stays spent" in error.render()
    assert "no budget was spent" not in error.render()


def test_the_proof_lets_a_stranger_compute_the_hashes_again(ledger: Ledger) -> None:
    hold = charge(ledger, pure(Fraction(1)), label="secret label")
    hold.commit("44" * 32)
    proof = hold.proof()

    for entry in proof["entries"].values():
        hashed = chained(
            bytes.fromhex(entry["previous"]),
            bytes.fromhex(entry["sealed"]),
            entry["public"].encode(),
        )
        assert hashed.hex() == entry["hash"]
    assert proof["head"] == ledger.head
    assert json.loads(proof["entries"]["commit"]["public"])["sha256"] == "44" * 32
    assert "secret label" not in json.dumps(proof)
    assert DATA.hex() not in json.dumps(proof)


def test_h15_sql_in_names_is_text(ledger: Ledger) -> None:
    evil = "x'); DROP TABLE entries; --\n\"\\\u202e\0\ud800"
    charge(ledger, pure(Fraction(1)), label=evil)

    assert Ledger.open(ledger.path).entries()[0].label == evil


def test_i11_files_are_private_under_an_open_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger.open(tmp_path / "deep" / "home" / "ledger.sqlite")
        hold = charge(ledger, pure(Fraction(1)))
    finally:
        os.umask(before)

    folder = tmp_path / "deep" / "home"
    files = [p for p in folder.rglob("*") if p.is_file()]
    assert {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"} <= {p.name for p in files}
    assert {stat.S_IMODE(p.stat().st_mode) for p in files} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not hold.committed


def test_the_default_place_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("GIBBOUS_HOME", raising=False)
    assert Ledger.open().path == tmp_path / "xdg" / "gibbous" / "ledger.sqlite"

    monkeypatch.setenv("GIBBOUS_HOME", str(tmp_path / "own"))
    assert Ledger.open().path == tmp_path / "own" / "ledger.sqlite"


def test_an_ephemeral_ledger_has_the_same_rules_and_no_file() -> None:
    ledger = Ledger.ephemeral()
    ledger.cap(DATA, Fraction(1), Fraction(0))
    hold = charge(ledger, pure(Fraction(1)))
    hold.commit("55" * 32)

    with pytest.raises(BudgetExhausted):
        charge(ledger, pure(Fraction("0.1")))
    assert ledger.path is None
    ledger.verify(ledger.head)


def test_every_refusal_is_one_of_ours(ledger: Ledger) -> None:
    with pytest.raises(GibbousError):
        ledger.verify("00" * 32)
