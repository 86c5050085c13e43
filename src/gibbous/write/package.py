"""The release package: a mechanism's result and its rows in, one finished folder out, or nothing.

Order, and what a kill leaves behind: a private partial folder; the reservation; tables (or drawn
rows) with their digest; the ledger's commit; the sets; certificate, METHODS.md, manifest, digests;
one rename. The same request resumes a dead partial folder and is never charged twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from gibbous import __version__
from gibbous.core.codes import Codes
from gibbous.core.errors import MAY_BE_SPENT, GibbousError
from gibbous.core.plan import Plan
from gibbous.core.protocols import Progress, Workers, silent
from gibbous.core.release import Release
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables
from gibbous.privacy.ledger import UNCHARGED, Hold, Ledger
from gibbous.read.schema_file import load_schema
from gibbous.read.schema_write import schema_json, schema_toml
from gibbous.write import files, manifest, partial
from gibbous.write.certificate import Facts, certify
from gibbous.write.digest import digest_of
from gibbous.write.files import new_file, not_written
from gibbous.write.further import write_file
from gibbous.write.more import draw
from gibbous.write.output import check_output
from gibbous.write.papers import papers
from gibbous.write.parts import PartDone
from gibbous.write.read_sets import lazy_sets
from gibbous.write.set_files import checked_part_rows, fitting
from gibbous.write.sets import Sets, parts_job
from gibbous.write.table_files import read_tables, write_tables

__all__ = [
    "Package",
    "begin",
    "check_output",
    "digest_of",
    "drawn_seed",
    "request_digest",
    "write_file",
]


def request_digest(
    *,
    dataset: bytes,
    schema: Schema,
    plan: Plan,
    seed: int | None,
    target: Path,
    extra: Mapping[str, Any] | None = None,
) -> bytes:
    """Digest of everything that was asked for; a run with the same digest may resume another.

    Args:
        dataset: keyed fingerprint of the records.
        target: final path of the package.
        extra: further plain values that change the output.
    """
    asked = {
        "version": __version__,
        "dataset": dataset.hex(),
        "schema": schema_json(schema),
        "plan": plan.to_json(),
        "seed": seed,
        "target": os.fsencode(target).hex(),
        "extra": dict(extra or {}),
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()


def drawn_seed() -> int:
    """A sampling seed for a run that was given none, 63 bits."""
    return int.from_bytes(os.urandom(8), "little") >> 1


def begin(
    target: Path, *, request: bytes, seed: int | None = None, overwrite: bool = False
) -> Package:
    """Start a package, or go on with that of a run that was killed.

    Args:
        target: what `check_output` returned.
        request: what `request_digest` returned.
        seed: sampling seed; None draws one (a resumed run keeps its own).
        overwrite: replace an existing release at the end.
    Raises:
        OutputNotWritten, ResourceLimit: another run writes there, or the folder cannot be made.
    """
    if target.exists() and not overwrite:
        raise files.exists(target)
    with contextlib.ExitStack() as stack:
        try:
            found = partial.acquire(target, request, drawn_seed() if seed is None else seed)
            stack.callback(found.close)
            made = Package(found, target, request, overwrite)
        except OSError as error:
            raise not_written(_place_of(error, target), error) from None
        stack.pop_all()
        return made


def _place_of(error: OSError, otherwise: Path) -> Path:
    named = error.filename
    return Path(os.fsdecode(named)) if isinstance(named, str | bytes) else otherwise


class Package:
    """A release while it is written; use it in a `with` block, which cleans up after errors.

    Attributes:
        seed: the sampling seed.
        made: the finished release, where the run that made it was killed after the folder had its
            name: nothing is left to do, or to pay.
    """

    def __init__(
        self, grown: partial.Partial, target: Path, request: bytes, overwrite: bool
    ) -> None:
        self._partial, self._target, self._request = grown, target, request
        self._overwrite = overwrite
        self._hold: Hold | None = None
        self._sets: Sets | None = None
        self._told = self._done = False
        self.seed = int(grown.state["seed"])
        self._result: Tables | Codes | None = None
        self.made = self._made()
        if self.made is None:
            self._result = self._read_back()

    def __enter__(self) -> Package:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._done:
            return
        # A commit that failed may be in the ledger all the same: what it paid for is not removed.
        kept = self.drawn and (self._hold is None or self._hold.committed or self._told)
        if kept:
            self._partial.close()
        else:
            self._partial.remove()
        if self._hold is not None:
            self._hold.release()
        if isinstance(error, OSError):
            ours: GibbousError = not_written(_place_of(error, self._target), error)
            self._explain(ours, kept)
            raise ours from None
        if isinstance(error, GibbousError):
            self._explain(error, kept)

    @property
    def drawn(self) -> bool:
        """Whether tables (or drawn rows) are complete on disk, from this run or a killed one."""
        return self._result is not None

    def hold(self, book: Ledger, reserve: Callable[[], Hold], *, strict: bool = False) -> Hold:
        """Spend: the reservation of this package, a new one unless a killed run left its own.

        Args:
            book: the ledger.
            reserve: makes a new reservation for exactly this request.
            strict: take up no reservation of a run that was killed before its draw was complete:
                nobody saw that draw, but who cannot be sure of that pays for the next one anew.
        Raises:
            BudgetExhausted, PrivacyRefused, LedgerUnusable, ResourceLimit: see `Ledger.reserve`.
        """
        found, state = book.find(self._request), self._partial.state
        mine = found is not None and found.id == state["reservation"]
        fits = found is not None and found.sha256 in (None, state["digest"])
        if self.drawn and not (mine and fits):
            self._forget()  # drawn under a reservation that this ledger does not have
        if found is not None and not self.drawn and (found.committed or strict):
            found.release()
            found = None  # it paid for something that became visible elsewhere, or was lost
        self._hold = found or reserve()
        self._partial.save(reservation=self._hold.id)
        return self._hold

    def tables(self, tables: Tables) -> None:
        """Write the public tables: from here on they are never drawn again."""
        self._start(tables.schema)
        write_tables(tables, self._partial.package / "tables")
        self._keep(tables, "tables")

    def rows(self, codes: Codes) -> None:
        """Write the rows whose drawing was what cost: from here on they are never drawn again."""
        if codes.secret:
            raise ValueError("codes of confidential records are never written")
        self._start(codes.schema)
        with new_file(self._partial.path / "rows.npy") as file:
            np.save(file, np.ascontiguousarray(codes.by_column), allow_pickle=False)
        with new_file(self._partial.path / "numbers.npy") as file:
            places = np.array([place for place, _ in codes.numbers], dtype=np.float64)
            drawn = np.array([found for _, found in codes.numbers]).reshape(len(places), codes.rows)
            np.save(file, np.column_stack([places, drawn]), allow_pickle=False)
        self._keep(codes, "rows")

    def drawn_result(self, schema: Schema) -> Tables | Codes:
        """What was drawn: by this run, or read back from a killed one."""
        assert self._result is not None, "nothing was drawn"
        assert self._result.schema.names == schema.names
        return self._result

    def commit(self) -> None:
        """Tell the ledger what was released; a second call does nothing."""
        assert self._hold is not None, "the reservation comes first"
        assert self._result is not None, "the draw comes first"
        self._told = True
        self._hold.commit(self._partial.state["digest"])

    def write_sets(
        self,
        sets: int,
        rows: int | None,
        *,
        format: str = "parquet",
        csv_raw: bool = False,
        part_rows: int | None = None,
        workers: Workers | None = None,
        progress: Progress = silent,
    ) -> int:
        """Write all synthetic sets: Parquet, and CSV beside it if asked for.

        Parts that a killed run finished are kept if they are whole; the others are drawn.

        Args:
            sets: how many.
            rows: rows of each; None for the noisy number of rows.
            part_rows: rows a file, see `set_files`; None for the usual number.
            workers: processes that draw and write the parts; None is this one.
            progress: told ("rows", rows on disk or drawn, rows of all sets).
        Returns:
            Rows of each set.
        Raises:
            OutputNotWritten, ResourceLimit: a part cannot be written; what is finished is kept.
            EngineFailure: workers were lost, or do not agree on a part.
        """
        assert self._hold is not None, "the reservation comes first"
        assert self._hold.committed, "the commit comes first"
        assert self._result is not None
        result = self._result
        each = _rows_each(result, sets, rows)
        job = parts_job(
            result, str(self._partial.state["digest"]), self._partial, seed=self.seed, sets=sets,
            rows=each, part_rows=fitting(checked_part_rows(part_rows), each, sets),
            csv=format == "csv", csv_raw=csv_raw, local=workers is None,
        )  # fmt: skip
        self._sets = Sets(job, self._partial)
        self._sets.write(workers, self.record, progress)
        return each

    def record(self, done: PartDone) -> None:
        """Note, durably, that a part is on disk."""
        assert self._sets is not None
        self._sets.record(done)

    def finish(self, facts: Facts) -> Release:
        """Write certificate, METHODS.md, manifest and digests; give the folder its final name.

        Raises:
            OutputNotWritten, ResourceLimit: nothing is at the final path then; running again with
                the same request goes on from here.
        """
        assert self._hold is not None
        assert self._result is not None
        assert self._sets is not None, "the sets come first"
        package, tables = self._partial.package, self._public()
        job = self._sets.job
        receipt = certify(
            facts,
            self._hold,
            seed=self.seed,
            rows=(job.rows,) * job.sets,
            digest=self._partial.state["digest"],
            tables=tables,
            numbers=self._numbers(),
            files={
                "csv": job.csv,
                "csv_raw": job.csv_raw,
                "guarded_cells": self._sets.guarded,
                "part_rows": job.part_rows,
            },
        )
        for name in ("ledger.json", "METHODS.md", "codebook.html", "manifest.json", "SHA256SUMS"):
            (package / name).unlink(missing_ok=True)  # of a killed run
        files.write_json(package / "ledger.json", receipt.to_json())
        for name, text in papers(receipt.to_json(), facts.schema, tables).items():
            files.write_bytes(package / name, text)
        manifest.seal(package, known=self._sets.sums)
        files.move_into_place(package, self._target, overwrite=self._overwrite)
        self._done = True
        try:
            files.sync_name(self._target)
        except BaseException:
            self._partial.close()  # the old release in it, if any, goes when the next run starts
            raise
        self._partial.remove()
        return Release(
            lazy_sets(self._target, receipt), facts.schema, facts.plan.total, facts.plan, tables,
            receipt, self._target, draw if tables is not None else None,
        )  # fmt: skip

    def _public(self) -> Tables | None:
        return self._result if isinstance(self._result, Tables) else None

    def _numbers(self) -> tuple[int, ...]:
        drawn = self._result.numbers if isinstance(self._result, Codes) else ()
        return tuple(place for place, _ in drawn)

    def _start(self, schema: Schema) -> None:
        assert self._hold is not None, "the reservation comes before the draw"
        self._partial.clear()
        text = schema_toml(schema)
        files.write_bytes(self._partial.package / "schema.toml", text.encode())

    def _keep(self, result: Tables | Codes, kind: str) -> None:
        files.sync_folder(self._partial.package)
        self._partial.save(digest=digest_of(result), kind=kind)
        self._result = result

    def _forget(self) -> None:
        self._result = None
        self._partial.clear()

    def _made(self) -> Release | None:
        if not partial.finished(self._partial, self._target):
            return None
        from gibbous.write.load import load

        with contextlib.suppress(GibbousError):
            release = load(self._target)
            files.sync_name(self._target)
            self._partial.remove()
            self._done = True
            return release
        self._partial.clear()
        return None

    def _read_back(self) -> Tables | Codes | None:
        kind, digest = self._partial.state.get("kind"), self._partial.state.get("digest")
        if kind is None:
            return None
        try:
            schema = load_schema(self._partial.package / "schema.toml")
            found = (
                read_tables(self._partial.package / "tables", schema)
                if kind == "tables"
                else _read_rows(self._partial.path, schema)
            )
            if digest_of(found) == digest:
                return found
        except (GibbousError, OSError, ValueError) as error:
            partial.refuse_unread(self._partial.path, error)
        return None  # incomplete: it was not visible, so it may be drawn again

    def _explain(self, error: GibbousError, kept: bool) -> None:
        if self._hold is None or error.state not in ("", UNCHARGED, MAY_BE_SPENT):
            return
        error.restate(
            f"Nothing was released. Reservation {self._hold.id} stays spent; the same command goes "
            + ("on from what it paid for" if kept else "on with it")
            + ", without a second charge."
        )


def _rows_each(result: Tables | Codes, sets: int, rows: int | None) -> int:
    """Rows of each set: those asked for, the noisy number, or the share of the rows that were drawn."""
    if isinstance(result, Codes):
        return result.rows // sets
    return result.noisy_rows() if rows is None else rows


def _read_rows(folder: Path, schema: Schema) -> Codes:
    values, numbers = (
        np.load(folder / name, allow_pickle=False) for name in ("rows.npy", "numbers.npy")
    )
    sizes = np.array(schema.sizes)
    if values.ndim != 2 or len(values) != len(schema) or values.dtype.kind != "u":
        raise ValueError("not the rows of this schema")
    if values.size and (values.max(axis=1) >= sizes).any():
        raise ValueError("a code outside its column")
    drawn = tuple((int(row[0]), row[1:].copy()) for row in numbers)
    return Codes(schema, values.T, numbers=drawn)
