"""Builds that are wrong on purpose: each says or does what a storm of faults must find."""

from __future__ import annotations


def says_nothing_was_spent() -> None:
    """Errors after the reservation keep the sentence of those before it."""
    from gibbous.write.package import Package

    Package._explain = lambda *_: None  # type: ignore[assignment, method-assign]


def removes_what_was_paid_for() -> None:
    """A failed commit removes the tables, whatever the ledger holds."""
    from gibbous.write.partial import Partial

    Partial.close = Partial.remove  # type: ignore[method-assign]


def calls_every_error_damage() -> None:
    """Passing errors of SQLite are told as damage."""
    from gibbous.privacy.ledger import errors as ledger_errors

    ledger_errors.failed = lambda path, _: ledger_errors.damaged(path, "SQLite failed")


def believes_a_failed_commit() -> None:
    """A commit that failed is not looked up: it counts as not made."""
    from gibbous.privacy.ledger.store import Store

    Store._in_the_file = lambda *_: False  # type: ignore[method-assign]
