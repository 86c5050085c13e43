"""Verify a release without the data: files, digests, arithmetic of the cost, tables, every row."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.claim import Claim
from gibbous.core.codes import Codes
from gibbous.core.errors import UsageError
from gibbous.core.protocols import Progress, silent
from gibbous.core.rule_laws import laws_of
from gibbous.core.schema import Schema, Unit
from gibbous.core.tables import Tables
from gibbous.encode.ruled_rows import rows_that_break
from gibbous.privacy.ledger import Ledger
from gibbous.write import load, manifest
from gibbous.write.certificate import claim_of
from gibbous.write.certificate_check import (
    check_certificate,
    check_diversity,
    check_ledger,
    check_price,
)
from gibbous.write.durable_files import refusing, rejected
from gibbous.write.glossary import NO_COST
from gibbous.write.release_digest import digest_of
from gibbous.write.release_signature import UNSIGNED, Signer, check_signature
from gibbous.write.release_texts import check_texts, described, release_texts
from gibbous.write.set_check import check_both, check_labelled, check_set
from gibbous.write.set_files import names_of, part_rows_of, part_span
from gibbous.write.signature import PublicKey, public_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl


@dataclass(frozen=True, slots=True, repr=False)
class VerifyReport:
    """What was checked; a release that fails a check raises instead.

    Attributes:
        path: of the release.
        claim: its total.
        guarantee: in words.
        sets, rows: number of sets, and rows of each.
        tables: number of public tables; 0 when the rows were what was paid for.
        uncovered: facts the guarantee does not cover.
        reservation: of the ledger.
        signer: what was found out about its signature; `signer.state` is "unsigned" without one.
        checks: what was found right, one sentence each.
        gaps: what could not be checked, one sentence each.
    """

    path: Path
    claim: Claim
    guarantee: str
    sets: int
    rows: tuple[int, ...]
    tables: int
    uncovered: tuple[str, ...]
    reservation: str
    checks: tuple[str, ...]
    gaps: tuple[str, ...] = ()
    signer: Signer = UNSIGNED

    def __repr__(self) -> str:
        return f"<VerifyReport of {str(self.path)!r}: whole; {self.guarantee}>"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "path": str(self.path),
            "ok": True,
            "claim": self.claim.to_json(),
            "guarantee": self.guarantee,
            "sets": self.sets,
            "rows": list(self.rows),
            "tables": self.tables,
            "uncovered": list(self.uncovered),
            "reservation": self.reservation,
            "checks": list(self.checks),
            "gaps": list(self.gaps),
            "signature": self.signer.to_json(),
        }


def uncompared(folder: Path) -> str:
    """What `verify` says of a public report that nobody makes again."""
    return f"the public report in {str(folder)!r} was not compared"


def verify(
    path: str | Path,
    *,
    ledger: Ledger | Path | str | None = None,
    key: str | Path | None = None,
    check_report: Callable[[Path], str] = uncompared,
    progress: Progress = silent,
) -> VerifyReport:
    """Check a release package, without the data.

    Args:
        path: the folder.
        ledger: the ledger that paid for it, or its path; None checks the package alone.
        key: file of public keys, of which one has to have signed it; None takes any signature, and none.
        check_report: makes a public report in it again, and says what it could not compare.
        progress: told ("verify", rows that were read, rows of all sets).
    Raises:
        ModelRejected: the first thing that does not fit.
        LedgerUnusable: the ledger itself does not fit together.
    """
    folder, trusted = Path(path), public_keys(key) if key is not None else ()
    if os.path.lexists(folder / manifest.FURTHER):
        if ledger is not None:
            raise _unpaid()
        return _verify_further(folder, trusted, progress)
    sizes, signer, checks = _sealed(folder, trusted)
    receipt, schema = load.read_receipt(folder), load.read_schema(folder)
    with refusing("RECEIPT", "ledger.json does not describe a release"):
        total = claim_of(receipt, "total")
        checks += check_certificate(receipt, schema, total)
    tables = load.released_tables(folder, schema, receipt)
    if tables is not None:
        checks.append(f"{receipt['tables']} tables are those the ledger entry was made for")
        check_price(tables, total, schema.unit.max_rows if schema.unit else 1)
        checks.append("the noise in the tables is at least what the price asks for")
    with refusing("RECEIPT", "ledger.json does not describe a release"):
        check_diversity(tables, receipt, schema)
    labelled = _check_sets(folder, receipt, schema, sizes, tables, progress)
    with refusing("RECEIPT", "ledger.json does not describe a release"):
        texts = partial(release_texts, receipt, schema, tables)
        gaps = [check_texts(folder, receipt, schema, texts)]
    if not gaps[0]:
        checks.append(
            "METHODS.md, codebook.html and the other descriptions are what the rest of the release gives"
        )
    if any(name.startswith("report.public.") for name in sizes):
        gaps.append(check_report(folder))
        checks += [] if gaps[1] else ["the public report is the one that gibbous writes"]
    gaps.append(labelled)
    checks.append(f"every row of {receipt['sets']} sets lies in the schema")
    if schema.rules:
        checks.append(f"and keeps its rules, {len(schema.rules)} in number")
    if ledger is not None:
        check_ledger(ledger if isinstance(ledger, Ledger) else Ledger.read(Path(ledger)), receipt)
        checks.append("the ledger holds this reservation and this commit in its chain")
    return VerifyReport(
        folder, total, str(receipt["guarantee"]), receipt["sets"], tuple(receipt["rows"]),
        receipt["tables"] or 0, tuple(receipt["uncovered"]), receipt["ledger"]["reservation"],
        tuple(checks), tuple(filter(None, gaps)), signer,
    )  # fmt: skip


def _unpaid() -> UsageError:
    return UsageError(
        "LEDGER",
        "A ledger was given for further rows of a release.",
        "They cost nothing: no ledger has an entry for them.",
        "Leave out --ledger, and verify the release that they are from with it.",
    )


def _sealed(folder: Path, trusted: Sequence[PublicKey]) -> tuple[dict[str, int], Signer, list[str]]:
    """Sizes of its files, which are those of the manifest; who signed that; and what was found right."""
    sizes = manifest.check(folder)
    signer = check_signature(folder, trusted)
    count = len(sizes) + (2 if signer.state == "unsigned" else 3)
    checks = [f"{count} files are exactly those of the manifest, with their digests"]
    return sizes, signer, checks + [signer.words] * (signer.state == "signed")


def _verify_further(folder: Path, trusted: Sequence[PublicKey], progress: Progress) -> VerifyReport:
    """Check a folder of further rows: its files, and its rows against the schema it has."""
    sizes, signer, sealed = _sealed(folder, trusted)
    origin, schema = load.read_origin(folder), load.read_schema(folder)
    with refusing("ROWS", f"{manifest.FURTHER} does not say which release its rows are from"):
        release, total = origin["release"], claim_of(origin["release"], "total")
        words, reservation = str(release["guarantee"]), str(release["reservation"])
        uncovered = tuple(str(fact) for fact in release["uncovered"])
        many = len(words.splitlines()) > 1
        if many or not words.startswith(total.words()) or origin["cost"] != NO_COST:
            raise rejected("WORDS", "its words do not state the total of its release")
    gap = _check_sets(folder, origin, schema, sizes, None, progress, paid=False)
    sources = f"its rows cost nothing: they say they are from the tables of release {reservation}"
    with refusing("ROWS", f"{manifest.FURTHER} does not describe rows"):
        texts = check_texts(folder, origin, schema, partial(described, origin, schema))
    checks = (
        *sealed,
        *([] if texts else ["codebook.html and the other descriptions are what the rest gives"]),
        "every row lies in the schema",
        f"{sources}; verify that release, too",
    )
    rows, covered = tuple(origin["rows"]), f"none of its own; its release: {words}"
    return VerifyReport(
        folder,
        total,
        covered,
        1,
        rows,
        0,
        uncovered,
        reservation,
        checks,
        tuple(filter(None, (gap, texts))),
        signer,
    )


def _check_sets(
    folder: Path,
    receipt: dict[str, Any],
    schema: Schema,
    sizes: dict[str, int],
    tables: Tables | None,
    progress: Progress,
    *,
    paid: bool | None = None,
) -> str:
    """Check every row of every set; what could not be compared, or nothing.

    `paid`: whether the rows are what the ledger entry was made for; None where there are no tables.
    """
    paid = tables is None if paid is None else paid
    bare = replace(schema, unit=Unit(), ignore=())
    csv, raw = (bool(receipt["files"].get(key)) for key in ("csv", "csv_raw"))
    beside = receipt["files"].get("labelled", {}).get("format")
    forms = ["parquet", *["csv"] * csv, *[beside] * bool(beside)]
    numbered = range(1, receipt["sets"] + 1)
    expected = {name for i in numbered for form in forms for name in names_of(receipt, i, form)}
    if {name for name in sizes if name.startswith("synthetic_")} != expected:
        raise rejected("SETS", "it does not have the sets that its certificate names")
    drawn_codes: list[Codes] = []
    with refusing("NUMBERS", "its certificate names columns drawn as numbers that it cannot have"):
        drawn = [place for place in receipt.get("numbers", []) if schema.columns[place].binned]
    done, total = 0, sum(receipt["rows"])
    for codes, frame in _checked(folder, receipt, bare, csv=csv, raw=raw):
        _check_rules(codes, frame)
        if paid:
            numbers = [(place, _numbers(frame, schema, place)) for place in drawn]
            drawn_codes.append(replace(codes, numbers=tuple(numbers)))
        done += codes.rows
        progress("verify", done, total)
    if paid:
        _check_drawn(drawn_codes, schema, receipt)
    return check_labelled(folder, receipt, schema) if beside else ""


def _checked(
    folder: Path, receipt: dict[str, Any], bare: Schema, *, csv: bool, raw: bool
) -> Iterator[tuple[Codes, pl.DataFrame]]:
    """Slices of the rows of all sets, each within the schema, and equal to its CSV file if it has one."""
    part_rows = part_rows_of(receipt)
    for number, rows in enumerate(receipt["rows"], 1):
        beside = names_of(receipt, number, "csv")
        for part, name in enumerate(names_of(receipt, number)):
            low, high = part_span(rows, part_rows, part)
            path, count = folder / name, high - low
            if csv:
                yield from check_both(path, folder / beside[part], bare, count, raw=raw)
            else:
                yield from check_set(path, bare, count)


def _check_rules(codes: Codes, frame: pl.DataFrame) -> None:
    """Refuse rows that break a rule of their schema."""
    schema = codes.schema
    if not schema.rules:
        return
    places = laws_of(schema.columns, schema.rules).places
    binned = [place for place in places if schema.columns[place].binned]
    numbers = tuple((place, _numbers(frame, schema, place)) for place in binned)
    broken = rows_that_break(replace(codes, numbers=numbers))
    if broken.any():
        rule = schema.rules[int(broken.argmax())].words()
        raise rejected("RULES", f"{broken.max():,} of its rows break the rule ({rule})")


def _check_drawn(slices: Sequence[Codes], schema: Schema, receipt: dict[str, Any]) -> None:
    together = np.concatenate([codes.by_column for codes in slices], axis=1)
    numbers = tuple(
        (place, np.concatenate([codes.number(place) for codes in slices]))
        for place, _ in slices[0].numbers
    )
    if digest_of(Codes(schema, together.T, numbers=numbers)) != receipt["digest"]:
        raise rejected("ROWS", "its rows are not those that the ledger entry was made for")


def _numbers(frame: pl.DataFrame, schema: Schema, place: int) -> np.ndarray:
    from gibbous.encode.bins import numbers

    column = schema.columns[place]
    return numbers(frame.get_column(column.name), column)
