"""Mutants of the charge: after the release, given back after a crash, or added up in floats."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import gibbous as gb
from gibbous.core.claim import pure
from gibbous.core.errors import BudgetExhausted, EngineFailure
from gibbous.disintegrate.records import LocalEngine
from gibbous.privacy.ledger import Hold, Ledger
from gibbous.privacy.ledger import accounts as ledger_accounts
from gibbous.privacy.spend import Charge
from tests.mutants.broken_builds import SCHEMA, faults, killed, people


class Watched(LocalEngine):
    """Fails when it is asked to count before the ledger was charged."""

    book: Ledger

    def tally(self, *given: Any, **more: Any) -> Any:
        reserved = [e for e in self.book.entries() if e.kind == "reserve"]
        assert reserved, "records were counted before the charge"
        return super().tally(*given, **more)


def charged_before_counting(out: Path | None) -> None:
    engine = Watched()
    engine.book = Ledger.ephemeral()

    gb.synthesize(
        people(), SCHEMA, gb.NoisyPegs(), rows=5, out=out, engine=engine, ledger=engine.book
    )


def late(hold: Any) -> Any:
    """Steps 1 and 3 in the wrong order: a placeholder first, the charge at the commit."""

    class Later:
        committed, id, sha256 = False, "r-later", None

        def __init__(self, make: Any) -> None:
            self._make = make

        def commit(self, digest: str) -> None:
            self.__dict__["real"] = self._make()
            self.real.commit(digest)

        def release(self) -> None:
            pass

        explain = release

        def __getattr__(self, name: str) -> Any:
            return getattr(self.__dict__["real"], name)

    return lambda charge, *given: Later(lambda: hold(charge, *given))


def test_m22_charge_after_the_release_in_memory() -> None:
    killed(
        lambda: charged_before_counting(None),
        faults((Charge, "reserve", late(Charge.reserve))),
    )


@pytest.mark.slow
def test_m22_charge_after_the_release_is_written(tmp_path: Path) -> None:
    numbers = iter(range(9))
    killed(
        lambda: charged_before_counting(tmp_path / f"release-{next(numbers)}"),
        faults((Charge, "reserve", late(Charge.reserve))),
    )


class Dies(LocalEngine):
    """Fails after the charge, while counting."""

    def tally(self, *given: Any, **more: Any) -> Any:
        raise EngineFailure("GONE", "The engine died.", "It lives.", "Start it again.")


def spent_stays_spent(out: Path | None) -> None:
    """A cap for one release; a run that dies after its charge has used it up."""
    book = Ledger.ephemeral()
    dataset = LocalEngine().scan(people(), SCHEMA, key=book.key)
    book.cap(dataset, Fraction(1), Fraction(1, 10**5))
    with pytest.raises(EngineFailure):
        gb.synthesize(people(), SCHEMA, gb.NoisyPegs(), rows=5, out=out, engine=Dies(), ledger=book)

    with pytest.raises(BudgetExhausted):
        gb.synthesize(people(), SCHEMA, gb.NoisyPegs(), rows=6, ledger=book)


def refund(self: Hold) -> None:
    """What a broken hold does when its run fails."""
    if not self.committed:
        book = self._book
        honest = book._parse
        lost = self.id
        book._parse = lambda links: tuple(e for e in honest(links) if e.id != lost)  # type: ignore[method-assign]


def test_m23_a_refund_when_the_run_crashes(tmp_path: Path) -> None:
    numbers = iter(range(9))
    killed(
        lambda: spent_stays_spent(tmp_path / f"release-{next(numbers)}"),
        faults((Hold, "release", refund)),
    )


def test_m23_open_reservations_that_do_not_count(tmp_path: Path) -> None:
    honest = ledger_accounts.postings_of

    def committed(entries: Sequence[Any], dataset: bytes) -> Any:
        return tuple(p for p in honest(entries, dataset) if p.state == "committed")

    for out in (None, tmp_path / "release"):
        killed(
            lambda out=out: spent_stays_spent(out),
            faults((ledger_accounts, "postings_of", committed)),
        )


def exact_sums() -> None:
    """0.1 + 0.1 + 0.1 is 0.3: the third charge is granted, and exactly nothing is left."""
    book, data = Ledger.ephemeral(), bytes(32)
    book.cap(data, Fraction(3, 10), Fraction(0))
    for number in range(3):
        try:
            book.reserve(data, pure(Fraction(1, 10)), mechanism="laplace", request=bytes([number]))
        except BudgetExhausted:
            raise AssertionError("a charge within the cap was refused") from None

    assert book.account(data).left == (0, 0)
    with pytest.raises(BudgetExhausted):
        book.reserve(data, pure(Fraction(1, 10**30)), mechanism="laplace", request=b"more")


def test_m24_sums_in_floats() -> None:
    def floats(cap: Any, postings: Sequence[Any]) -> Any:
        spent = 0.0
        for posting in postings:
            spent += float(posting.claim.epsilon)
        return Fraction(max(float(cap.epsilon) - spent, 0.0)), cap.delta

    killed(exact_sums, faults((ledger_accounts, "_left", floats)))


def test_h3_a_release_that_failed_says_that_its_reservation_stays(tmp_path: Path) -> None:
    book = Ledger.ephemeral()

    with pytest.raises(EngineFailure) as failed:
        gb.synthesize(
            people(), SCHEMA, gb.NoisyPegs(), rows=5, out=tmp_path / "r", engine=Dies(), ledger=book
        )

    assert book.entries()[0].id in failed.value.state
    assert not list(tmp_path.iterdir())
