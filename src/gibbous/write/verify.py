"""Verify a release without the data: files, digests, arithmetic of the cost, tables, every row."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbous.core.claim import Claim
from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError, LedgerUnusable, UsageError
from gibbous.core.protocols import Progress, silent
from gibbous.core.schema import Schema, Unit
from gibbous.core.tables import Tables
from gibbous.privacy import accountant
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.chain import chained
from gibbous.write import load, manifest
from gibbous.write.certificate import NOT_DP, assumptions, claim_of, discovered, versions
from gibbous.write.digest import digest_of
from gibbous.write.files import refusing, rejected
from gibbous.write.methods_text import given_assumptions, given_gap
from gibbous.write.papers import check_papers, plan_of
from gibbous.write.price_check import check_price
from gibbous.write.read_sets import names_of, part_rows_of
from gibbous.write.rows_check import check_both, check_set
from gibbous.write.set_files import part_span
from gibbous.write.words import NO_COST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        }


def verify(
    path: str | Path, *, ledger: Ledger | Path | str | None = None, progress: Progress = silent
) -> VerifyReport:
    """Check a release package, without the data.

    Args:
        path: the folder.
        ledger: the ledger that paid for it, or its path; None checks the package alone.
        progress: told ("verify", rows that were read, rows of all sets).
    Raises:
        ModelRejected: the first thing that does not fit.
        LedgerUnusable: the ledger itself does not fit together.
    """
    folder, checks = Path(path), []
    if os.path.lexists(folder / manifest.FURTHER):
        if ledger is not None:
            raise _unpaid()
        return _verify_further(folder, progress)
    sizes = manifest.check(folder)
    checks.append(f"{len(sizes) + 2} files are exactly those of the manifest, with their digests")
    receipt, schema = load.read_receipt(folder), load.read_schema(folder)
    with refusing("RECEIPT", "ledger.json does not describe a release"):
        total = claim_of(receipt, "total")
        _check_total(receipt, total)
        _check_plan(receipt, total)
        checks.append("the parts of the cost add up to the total, which is what was charged")
        _check_words(receipt, schema, total)
        checks += _given_check(given_names(receipt, schema))
        _check_proof(receipt, total)
        checks.append("the ledger entries hash as they say, for this claim and this digest")
    tables = load.released_tables(folder, schema, receipt)
    if tables is not None:
        checks.append(f"{receipt['tables']} tables are those the ledger entry was made for")
        check_price(tables, total, schema.unit.max_rows if schema.unit else 1)
        checks.append("the noise in the tables is at least what the price asks for")
    with refusing("RECEIPT", "ledger.json does not describe a release"):
        gaps = [check_papers(folder, receipt, schema, tables)]
    if not gaps[0]:
        checks.append("METHODS.md and codebook.html are what the rest of the release gives")
    if any(name.startswith("report.public.") for name in sizes):
        # Reports lie above: the report is made again by whoever makes reports.
        gaps.append(importlib.import_module("gibbous.report.check").check_report(folder))
        checks += [] if gaps[1] else ["so is the public report"]
    _check_sets(folder, receipt, schema, sizes, tables, progress)
    checks.append(f"every row of {receipt['sets']} sets lies in the schema")
    if ledger is not None:
        _check_ledger(ledger if isinstance(ledger, Ledger) else Ledger.read(Path(ledger)), receipt)
        checks.append("the ledger holds this reservation and this commit in its chain")
    return VerifyReport(
        folder, total, str(receipt["guarantee"]), receipt["sets"], tuple(receipt["rows"]),
        receipt["tables"] or 0, tuple(receipt["uncovered"]), receipt["ledger"]["reservation"],
        tuple(checks), tuple(filter(None, gaps)),
    )  # fmt: skip


def _unpaid() -> UsageError:
    return UsageError(
        "LEDGER",
        "A ledger was given for further rows of a release.",
        "They cost nothing: no ledger has an entry for them.",
        "Leave out --ledger, and verify the release that they are from with it.",
    )


def _verify_further(folder: Path, progress: Progress) -> VerifyReport:
    """Check a folder of further rows: its files, and its rows against the schema it has."""
    sizes = manifest.check(folder)
    origin, schema = load.read_origin(folder), load.read_schema(folder)
    with refusing("ROWS", f"{manifest.FURTHER} does not say which release its rows are from"):
        release, total = origin["release"], claim_of(origin["release"], "total")
        words, reservation = str(release["guarantee"]), str(release["reservation"])
        uncovered = tuple(str(fact) for fact in release["uncovered"])
        if not words.startswith(total.words()) or origin["cost"] != NO_COST:
            raise rejected("WORDS", "its words do not state the total of its release")
    _check_sets(folder, origin, schema, sizes, None, progress, paid=False)
    sources = f"its rows cost nothing: they say they are from the tables of release {reservation}"
    checks = (
        f"{len(sizes) + 2} files are exactly those of the manifest, with their digests",
        "every row lies in the schema",
        f"{sources}; verify that release, too",
    )
    rows, covered = tuple(origin["rows"]), f"none of its own; its release: {words}"
    return VerifyReport(folder, total, covered, 1, rows, 0, uncovered, reservation, checks)


def _check_total(receipt: dict[str, Any], total: Claim) -> None:
    claim, rows = claim_of(receipt, "claim"), sum(receipt["rows"])
    if total.is_dp and total.unit in ("row", "block"):
        raise rejected("TOTAL", "its total is stated for a part of the file only")
    if claim.is_dp != total.is_dp or (total.is_dp and claim.relation != total.relation):
        raise rejected("TOTAL", "claim and total are not of one kind")
    if receipt["relation"] != total.relation and total.is_dp:
        raise rejected("TOTAL", "its total is under another neighbor relation than the run")
    units = {1}
    if claim.is_dp and claim.unit == "row":
        units = {rows}
    if claim.is_dp and claim.unit == "block":
        units = {math.ceil(Fraction(rows, int(receipt["method"]["params"]["block"])))}
    if claim.is_dp and claim.unit == "dataset":
        units = {1, receipt["sets"]}  # sets may be drawn together, or each for itself
    numbers = ("kind", "epsilon", "delta", "rho", "l")
    wanted = [[getattr(claim.times(n), name) for name in numbers] for n in units]
    if [getattr(total, name) for name in numbers] not in wanted:
        times = " or ".join(map(str, sorted(units)))
        raise rejected("TOTAL", f"its total is not {times} times its claim per {claim.unit}")


def _check_plan(receipt: dict[str, Any], total: Claim) -> None:
    plan = receipt["plan"]
    if claim_of(plan, "total") != total or claim_of(plan, "claim") != claim_of(receipt, "claim"):
        raise rejected("PLAN", "its plan and its certificate state different costs")
    if plan["sets"] != receipt["sets"] or plan["rows"] not in (None, *set(receipt["rows"])):
        raise rejected("PLAN", "its plan and its certificate state different sizes")
    if plan["rows"] is not None and len(set(receipt["rows"])) > 1:
        raise rejected("PLAN", "its sets have different numbers of rows")
    spends = [Claim.from_json(spend["claim"]) for spend in plan["spends"]]
    try:
        covered = accountant.within(total, spends)
    except GibbousError:
        covered = False
    if not covered:
        raise rejected("SPENDS", "the parts of its cost are more than its total")


def _check_words(receipt: dict[str, Any], schema: Schema, total: Claim) -> None:
    words = str(receipt["guarantee"])
    uncovered = [str(fact) for fact in receipt["uncovered"]]
    if not words.startswith(total.words()):
        raise rejected("WORDS", "its words do not state its total")
    if total.is_dp and sorted(uncovered) != sorted(schema.inferred()):
        raise rejected("WORDS", "it does not name the facts that were read off the data")
    if receipt.get("discovered", []) != discovered(schema):
        raise rejected("WORDS", "it does not name the facts that were paid for")
    given = given_names(receipt, schema)
    assumed = assumptions(schema, plan_of(receipt["plan"])) + given_assumptions(given)
    same_writer = receipt["versions"].get("gibbous") == versions()["gibbous"]
    if same_writer and receipt["assumptions"] != assumed:
        raise rejected("WORDS", "it does not list what its guarantee assumes, as this gibbous does")
    if not words.endswith(given_gap(given)):
        raise rejected("WORDS", "its words do not name the columns that were given")
    silent_gap = (uncovered or not total.is_dp) and NOT_DP not in words
    covered = total.is_dp and not uncovered and not given
    if silent_gap or receipt["differentially_private"] != covered:
        raise rejected("WORDS", "it does not say that it is not differentially private")


def given_names(receipt: dict[str, Any], schema: Schema) -> tuple[str, ...]:
    """Columns that were given, not drawn; none of an ordinary release.

    Raises:
        ModelRejected: they are not some of the columns of the schema, in its order.
    """
    if "given" not in receipt:
        return ()
    names, covered = receipt["given"]["columns"], receipt["given"]["covered"]
    if covered is not False or not 0 < len(names) < len(schema):
        raise rejected("GIVEN", "its certificate does not say which columns were given")
    if names != [name for name in schema.names if name in names]:
        raise rejected("GIVEN", "its certificate names given columns that its schema does not have")
    return tuple(names)


def _given_check(names: tuple[str, ...]) -> list[str]:
    if not names:
        return []
    listed = ", ".join(names)
    return [f"columns that were given, and that no guarantee covers, are named: {listed}"]


def _check_proof(receipt: dict[str, Any], total: Claim) -> None:
    proof = receipt["ledger"]
    reserve, commit = (_entry(proof, kind) for kind in ("reserve", "commit"))
    names = {reserve["id"], commit["id"], proof["reservation"]}
    if len(names) != 1 or reserve["kind"] != "reserve" or commit["kind"] != "commit":
        raise rejected("PROOF", "its ledger entries are not of one reservation")
    if Claim.from_json(reserve["claim"]) != total:
        raise rejected("PROOF", "its ledger entry was charged another claim")
    if reserve["mechanism"] != receipt["method"]["name"] or reserve["seq"] >= commit["seq"]:
        raise rejected("PROOF", "its ledger entries are of another run")
    unit = receipt["unit"]["words"] if receipt["unit"] else "one row"
    if reserve["protects"] != unit:
        raise rejected("PROOF", "its ledger entry protects another unit")
    if commit["sha256"] != receipt["digest"]:
        raise rejected("PROOF", "its ledger entry was made for another release")
    if proof["head"] != proof["entries"]["commit"]["hash"]:
        raise rejected("PROOF", "its ledger head is not its last entry")


def _entry(proof: dict[str, Any], kind: str) -> dict[str, Any]:
    entry = proof["entries"][kind]
    previous, sealed = bytes.fromhex(entry["previous"]), bytes.fromhex(entry["sealed"])
    if len(previous) != hashlib.sha256().digest_size or len(sealed) != len(previous):
        raise rejected("PROOF", "its ledger entries are not entries")
    if chained(previous, sealed, entry["public"].encode()).hex() != entry["hash"]:
        raise rejected("PROOF", "its ledger entries do not hash to what they say")
    return dict(json.loads(entry["public"]))


def _check_sets(
    folder: Path,
    receipt: dict[str, Any],
    schema: Schema,
    sizes: dict[str, int],
    tables: Tables | None,
    progress: Progress,
    *,
    paid: bool | None = None,
) -> None:
    """Every row of every set.

    Args:
        paid: whether the rows are what the ledger entry was made for; None where there are no tables.
    """
    paid = tables is None if paid is None else paid
    bare = replace(schema, unit=Unit(), ignore=())
    csv, raw = (bool(receipt["files"].get(key)) for key in ("csv", "csv_raw"))
    forms = ("parquet", "csv") if csv else ("parquet",)
    numbered = range(1, receipt["sets"] + 1)
    wanted = {name for i in numbered for form in forms for name in names_of(receipt, i, form)}
    if {name for name in sizes if name.startswith("synthetic_")} != wanted:
        raise rejected("SETS", "it does not have the sets that its certificate names")
    found: list[Codes] = []
    with refusing("NUMBERS", "its certificate names columns drawn as numbers that it cannot have"):
        drawn = [place for place in receipt.get("numbers", []) if schema.columns[place].binned]
    done, total = 0, sum(receipt["rows"])
    for codes, frame in _checked(folder, receipt, bare, csv=csv, raw=raw):
        if paid:
            numbers = [(place, _numbers(frame, schema, place)) for place in drawn]
            found.append(replace(codes, numbers=tuple(numbers)))
        done += codes.rows
        progress("verify", done, total)
    if paid:
        _check_drawn(found, schema, receipt)


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


def _check_drawn(found: Sequence[Codes], schema: Schema, receipt: dict[str, Any]) -> None:
    together = np.concatenate([codes.by_column for codes in found], axis=1)
    numbers = tuple(
        (place, np.concatenate([codes.number(place) for codes in found]))
        for place, _ in found[0].numbers
    )
    if digest_of(Codes(schema, together.T, numbers=numbers)) != receipt["digest"]:
        raise rejected("ROWS", "its rows are not those that the ledger entry was made for")


def _numbers(frame: pl.DataFrame, schema: Schema, place: int) -> np.ndarray:
    from gibbous.encode.bins import numbers

    column = schema.columns[place]
    return numbers(frame.get_column(column.name), column)


def _check_ledger(given: Ledger | Path | str, receipt: dict[str, Any]) -> None:
    if not isinstance(given, Ledger) and not Path(given).is_file():
        raise LedgerUnusable(
            "NOLEDGER",
            f"There is no ledger {str(given)!r}.",
            "It is the file that the release was charged to; verifying makes no new one.",
            "Check the path given to --ledger.",
        )
    book = given if isinstance(given, Ledger) else Ledger.open(Path(given))
    book.verify()
    for entry in receipt["ledger"]["entries"].values():
        if not book.has(entry["hash"]):
            raise rejected(
                "LEDGER", "this ledger did not pay for it (or an old copy of it is used)"
            )
