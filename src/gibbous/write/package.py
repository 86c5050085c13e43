"""The release package: a mechanism's result and its rows in, one finished folder out, or nothing.

Order, and what a kill leaves behind: a private partial folder; the reservation; tables (or drawn
rows) with their digest; the ledger's commit; the sets; certificate, METHODS.md, manifest, digests;
one rename. The same request resumes a dead partial folder and is never charged twice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from gibbous.core.codes import Codes
from gibbous.core.errors import (
    MAY_BE_SPENT,
    EngineFailure,
    GibbousError,
    LedgerUnusable,
    OutputNotWritten,
    ResourceLimit,
)
from gibbous.core.protocols import Progress, Workers, silent
from gibbous.core.release import Release
from gibbous.core.request import Output
from gibbous.core.tables import Tables
from gibbous.encode.column_types import fitting
from gibbous.privacy.ledger import UNCHARGED, Hold, Ledger
from gibbous.read.schema_write import schema_toml
from gibbous.write import durable_files, manifest, partial
from gibbous.write.certificate import Facts, certify
from gibbous.write.copied import save_from
from gibbous.write.drawn_files import read_back, write_rows
from gibbous.write.durable_files import not_written
from gibbous.write.kept_rules import with_rules
from gibbous.write.partial import drawn_seed
from gibbous.write.release_digest import digest_of
from gibbous.write.release_texts import release_texts
from gibbous.write.sampler import sampler_of
from gibbous.write.set_files import lazy_sets
from gibbous.write.sets import Sets
from gibbous.write.sidecars import SIDECARS
from gibbous.write.table_files import write_tables

NOTHING_KEPT = "0" * 64
"""Digest that a commit has for what was drawn and refused: nobody draws that again for the same charge."""


def begin(target: Path, output: Output, *, request: bytes, bought: bytes = b"") -> Package:
    """Start a package, or go on with that of a run that was killed.

    Args:
        target: what `check_output` returned.
        output: its seed, or None, draws one for a new run (a resumed run keeps its own); whether an
            existing release is replaced at the end.
        request: what `request_digest` returned, and what `Ledger.find` knows a purchase by.
        bought: the latter alone, where tables of a killed run are wanted whatever its rows were.
    Raises:
        OutputNotWritten, ResourceLimit: another run writes there, or the folder cannot be made.
    """
    if target.exists() and not output.overwrite:
        raise durable_files.exists(target)
    with contextlib.ExitStack() as stack:
        try:
            seed = drawn_seed() if output.seed is None else output.seed
            growing = partial.acquire(target, request, seed, bought)
            stack.callback(growing.close)
            package = Package(growing, target, request, output)
        except OSError as error:
            raise not_written(_place_of(error, target), error) from None
        stack.pop_all()
        return package


def _place_of(error: OSError, otherwise: Path) -> Path:
    named = error.filename
    return Path(os.fsdecode(named)) if isinstance(named, str | bytes) else otherwise


class Package:
    """A release while it is written; use it in a `with` block, which cleans up after errors.

    Attributes:
        request: digest of everything that was asked for; see `Ledger.find`.
        label: what the ledger calls it.
        result: tables (or drawn rows) that are complete on disk, from this run or a killed one; None
            before the draw.
        release: the finished release, where the run that made it was killed after the folder had
            its name, or the request was answered before: nothing is left to do, or to pay.
        bought: whether `release`, or `result`, is that of an earlier release.
        bought_from: the folder of that release, and when it was paid for; empty for this very one.
        until_end: what is given back when the `with` block ends.
    """

    def __init__(
        self, growing: partial.Partial, target: Path, request: bytes, output: Output
    ) -> None:
        self._partial, self._target, self.request = growing, target, request
        # A resumed run keeps the seed of the first one.
        self._output = replace(output, seed=int(growing.state["seed"]))
        self.label = target.name
        self._hold: Hold | None = None
        self._sets: Sets | None = None
        self._told = self._done = False
        self.until_end = contextlib.ExitStack()
        self.result: Tables | Codes | None = None
        self.release = self._finished()
        self.bought, self.bought_from = self.release is not None, ""
        if self.release is None:
            self.result = read_back(self._partial.path, self._partial.state)

    @property
    def reserved(self) -> bool:
        """Whether a run that was killed left its reservation."""
        return self._partial.state["reservation"] is not None

    def __enter__(self) -> Package:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self.until_end:
            self._end(error)

    def _end(self, error: BaseException | None) -> None:
        if self._done:
            return
        # A commit that failed may be in the ledger all the same: what it paid for is not removed.
        kept = self.result is not None and (
            self._hold is None or self._hold.committed or self._told
        )
        if kept:
            self._partial.close()
        else:
            self._partial.remove()
        if self._hold is not None:
            if _by_draw(error) and not kept and not self._hold.committed:
                with contextlib.suppress(GibbousError):
                    self._hold.commit(NOTHING_KEPT)
            self._hold.release()
        if isinstance(error, OSError):
            ours: GibbousError = not_written(_place_of(error, self._target), error)
            self._explain(ours, kept)
            raise ours from None
        if isinstance(error, GibbousError):
            self._explain(error, kept)

    def hold(self, ledger: Ledger, reserve: Callable[[], Hold], *, strict: bool = False) -> Hold:
        """Spend: the reservation of this package, a new one unless a killed run left its own.

        Args:
            reserve: makes a new reservation for exactly this request.
            strict: take up no reservation of a run that was killed before its draw was complete:
                nobody saw that draw, but who cannot be sure of that pays for the next one anew.
        Raises:
            BudgetExhausted, PrivacyRefused, LedgerUnusable, ResourceLimit: see `Ledger.reserve`.
        """
        state = self._partial.state
        found = ledger.find(self.request, str(state["reservation"]))
        mine = found is not None and found.id == state["reservation"]
        fits = found is not None and found.sha256 in (None, state["digest"])
        if self.result is not None and not (mine and fits):
            self.result, self.bought = None, False  # of a reservation that this ledger has not
            self.bought_from = ""
            self._partial.clear()
        if found is not None and self.result is None and (found.committed or strict):
            found.release()
            found = None  # it paid for something that became visible elsewhere, or was lost
        self._hold = found or reserve()
        self._partial.save(reservation=self._hold.id)
        return self._hold

    def answer(self, release: Release) -> None:
        """The request was answered before, by this release."""
        self.release, self.bought = release, True
        self.leave()

    def leave(self) -> None:
        """Write nothing."""
        self._done = True
        self._partial.remove()

    def take(self, release: Release, where: str = "") -> None:
        """Go on from the tables of an earlier release: what paid for them pays for this one."""
        if release.tables is not None:
            self.bought, self.bought_from = True, where
            self._write(release.tables, reservation=release.receipt["ledger"]["reservation"])

    def take_left(self, path: Path, state: Mapping[str, Any]) -> bool:
        """Go on from the tables that a stopped run for another folder left; False where it left none."""
        found = read_back(path, state)
        if found is not None:
            self.bought, self.bought_from = True, repr(str(path))
            self._write(found, reservation=str(state["reservation"]))
        return found is not None

    def keep(self, result: Tables | Codes) -> None:
        """Write what was drawn: public tables, or rows whose drawing was what cost.

        From here on it is never drawn again.
        """
        assert self._hold is not None, "the reservation comes before the draw"
        self._write(result, reservation=self._hold.id)

    def _write(self, result: Tables | Codes, *, reservation: str) -> None:
        if isinstance(result, Codes) and result.secret:
            raise ValueError("codes of confidential records are never written")
        seed = int(self._partial.state["seed"])
        result, changed = with_rules(result, self._output.sets, seed)
        self._partial.clear()
        package = self._partial.package
        durable_files.write_bytes(package / "schema.toml", schema_toml(result.schema).encode())
        if isinstance(result, Tables):
            write_tables(result, package / "tables")
        else:
            write_rows(result, self._partial.path)
        durable_files.sync_folder(package)
        kind = "tables" if isinstance(result, Tables) else "rows"
        facts = {"changed": changed, "reservation": reservation}
        self._partial.save(digest=digest_of(result), kind=kind, **facts)
        self.result = result

    def commit(self) -> None:
        """Tell the ledger what was released; a second call does nothing."""
        assert self._hold is not None, "the reservation comes first"
        assert self.result is not None, "the draw comes first"
        self._told = True
        self._hold.commit(self._partial.state["digest"])

    def write_sets(self, workers: Workers | None = None, progress: Progress = silent) -> None:
        """Write all synthetic sets: Parquet, and CSV beside it if asked for.

        Parts that a killed run finished are kept if they are whole; the others are drawn, by workers
        or this process. `progress` is told ("rows", rows on disk or drawn, rows of all sets).

        Raises:
            OutputNotWritten, ResourceLimit: a part cannot be written; what is finished is kept.
            EngineFailure: workers were lost, or do not agree on a part.
        """
        assert self._hold is not None, "the reservation comes first"
        assert self._hold.committed, "the commit comes first"
        assert self.result is not None
        types = fitting(self.result.schema, dict(self._output.types))
        output = replace(self._output, rows=rows_each(self.result, self._output), types=types)
        digest = str(self._partial.state["digest"])
        self._sets = Sets(self.result, digest, output, self._partial, workers)
        self._sets.write(progress)

    def finish(self, facts: Facts) -> Release:
        """Write certificate, METHODS.md, manifest and digests; give the folder its final name.

        Raises:
            OutputNotWritten, ResourceLimit: nothing is at the final path then; running again with
                the same request goes on from here.
        """
        assert self._hold is not None
        assert self.result is not None
        assert self._sets is not None, "the sets come first"
        package, job = self._partial.package, self._sets.job
        tables = self.result if isinstance(self.result, Tables) else None
        rows = (job.rows,) * job.output.sets
        files = self._sets.described()
        changed = self._sets.changed() if tables else self._partial.state.get("changed", ())
        receipt = certify(
            facts, self._hold, self.result, seed=job.seed, rows=rows, files=files, changed=changed
        )
        for name in ("ledger.json", "METHODS.md", "codebook.html", *SIDECARS):
            (package / name).unlink(missing_ok=True)  # of a killed run
        durable_files.write_json(package / "ledger.json", receipt.to_json())
        for name, text in release_texts(
            receipt.to_json(), facts.schema, tables, self._sets.sums
        ).items():
            durable_files.write_bytes(package / name, text)
        manifest.seal(package, known=self._sets.sums, sign=self._output.sign)
        given = self._output
        durable_files.move_into_place(
            package, self._target, overwrite=given.overwrite, mode=given.mode
        )
        self._done = True
        try:
            durable_files.sync_name(self._target)
        except BaseException:
            self._partial.close()  # the old release in it, if any, goes when the next run starts
            raise
        self._partial.remove()
        return Release(
            lazy_sets(self._target, receipt, facts.schema), facts.schema, facts.plan.total,
            facts.plan, tables, receipt, self._target, sampler_of(tables, receipt),
            save_from(self._target),
        )  # fmt: skip

    def _finished(self) -> Release | None:
        if not partial.finished(self._partial, self._target):
            return None
        from gibbous.write.load import load

        with contextlib.suppress(GibbousError):
            release = load(self._target)
            durable_files.sync_name(self._target)
            self._partial.remove()
            self._done = True
            return release
        self._partial.clear()
        return None

    def _explain(self, error: GibbousError, kept: bool) -> None:
        if self._hold is None or error.state not in ("", UNCHARGED, MAY_BE_SPENT):
            return
        goes_on = "on from what it paid for" if kept else "on with it"
        then = f"the same command goes {goes_on}, without a second charge"
        if self._hold.sha256 == NOTHING_KEPT:
            then = "what was drawn may have decided this, so the same command is charged again"
        error.restate(f"Nothing was released. Reservation {self._hold.id} stays spent; {then}.")


def _by_draw(error: BaseException | None) -> bool:
    """Whether what was drawn may have decided a refusal; a disk, a ledger or a cluster decides the others."""
    if isinstance(error, ResourceLimit):
        return error.name not in ("DISK", "LEDGERFULL")
    others = EngineFailure | LedgerUnusable | OutputNotWritten
    return isinstance(error, GibbousError) and not isinstance(error, others)


def rows_each(result: Tables | Codes, output: Output) -> int:
    """Rows of each set: those asked for, the noisy number, or the share of the rows that were drawn."""
    if isinstance(result, Codes):
        return result.rows // output.sets
    return result.noisy_rows() if output.rows is None else output.rows
