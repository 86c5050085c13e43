"""Release: synthetic sets, what they promise, and the public tables and receipt behind them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from gibbous.core.boundary import guarded
from gibbous.core.claim import Claim
from gibbous.core.errors import PrivacyRefused, UsageError
from gibbous.core.keywords import answering
from gibbous.core.notebook import html_table
from gibbous.core.plan import Plan
from gibbous.core.schema import Schema
from gibbous.core.tables import Tables

Sampler = Callable[[Tables, int, int | None, Any, int], Any]
"""sampler(tables, rows, seed, given, set_index) -> a frame of rows drawn from public tables."""

Saver = Callable[..., Path]
"""saver(out, overwrite=..., sign=...) -> the folder that was written."""


class Receipt(Mapping[str, Any]):
    """What was done and charged, as plain JSON values; frozen.

    Read it like a dictionary: ``release.receipt["total"]["epsilon"]``.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = copy.deepcopy(dict(values))

    def __getitem__(self, key: str) -> Any:
        return copy.deepcopy(self._values[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Receipt of {len(self)} entries>"

    def to_json(self) -> dict[str, Any]:
        """A copy as a dictionary."""
        return copy.deepcopy(self._values)


@dataclass(frozen=True, slots=True)
class SetReader:
    """One synthetic set on disk: its rows as a frame, as a lazy frame, and the paths of its Parquet files.

    Each call checks the digests of the files first; the files are in the order of the rows.
    """

    read: Callable[[], Any]
    scan: Callable[[], Any]
    files: Callable[[], tuple[Path, ...]]


class Lazy(Sequence[Any]):
    """Frames that are read when they are first asked for, one a reader."""

    def __init__(self, readers: Sequence[SetReader]) -> None:
        self._readers = tuple(readers)
        self._found: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._readers)

    @guarded
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        place = range(len(self))[index]
        if place not in self._found:
            self._found[place] = self._readers[place].read()
        return self._found[place]

    def reader(self, place: int) -> SetReader:
        """How to get at one set without reading it whole."""
        return self._readers[place]

    def __repr__(self) -> str:
        return f"<{len(self)} synthetic sets>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release:
    """What `synthesize` returns and `load` reads.

    Attributes:
        sets: the synthetic sets, frames; read from the package when first asked for.
        schema: public.
        claim: the guarantee of everything that was released: all sets, all rows.
        plan: what was planned before any record was read.
        tables: the public noisy tables; None when each drawn row was itself what cost.
        receipt: the certificate, see docs/reference/release-package.md.
        path: folder of the package; None in memory.
        sampler: draws more rows from `tables`.
        saver: writes its package to another folder.
        bought_before: whether an earlier run paid for it, so that this one cost nothing.
        bought_from: the folder whose tables its rows were drawn from, and when they were paid for.
    """

    sets: Sequence[Any]
    schema: Schema
    claim: Claim
    plan: Plan
    tables: Tables | None
    receipt: Receipt
    path: Path | None = None
    sampler: Sampler | None = field(default=None)
    saver: Saver | None = field(default=None)
    bought_before: bool = False
    bought_from: str = ""

    def __repr__(self) -> str:
        where = f" in {str(self.path)!r}" if self.path else ""
        sets = "1 set" if len(self.sets) == 1 else f"{len(self.sets)} sets"
        paid = "; bought before, at no further cost" if self.bought_before else ""
        paid += f" (tables of {self.bought_from})" if self.bought_from else ""
        return f"<Release{where}: {sets}; {self.claim.words()}{paid}>"

    def _repr_html_(self) -> str:
        facts = [
            ("guarantee", self.receipt.get("guarantee", self.claim.words())),
            ("method", self.plan.mechanism),
            ("sets", len(self.sets)),
            ("rows of each", ", ".join(map(str, dict.fromkeys(self.receipt.get("rows", ()))))),
            ("paid by", f"an earlier run {self.bought_from}" if self.bought_before else "this run"),
            ("folder", self.path or "none yet: release.save(folder) writes one"),
        ]
        return html_table("A synthetic release", ("", ""), facts)

    @guarded
    @answering
    def sample(self, rows: int, seed: int | None = None, *, given: Any = None, set: int = 1) -> Any:
        """Draw more rows from the public tables: post-processing, costs nothing.

        Args:
            rows: number of rows, >= 0.
            seed: sampling seed; None draws one.
            given: columns that are not drawn, with their values: a dictionary from name to one value
                for all rows or one a row, or a frame of `rows` rows. The other columns are drawn
                given them. They are copied into the output: what is confidential does not belong
                there. Only for releases with a log-linear model (adaptive_gibbs).
            set: as further rows of which set, from 1: drawn from that set's tables, where every set
                was noised for itself. The seed of the release gives the rows of that set again.
        Returns:
            A frame.
        Raises:
            PrivacyRefused: there are no tables: each row was paid for.
            UsageError: rows is negative, or the release cannot be drawn from given some columns.
            SchemaMismatch: a given value is outside the schema.
        """
        if rows < 0:
            raise UsageError(
                "ROWS",
                f"rows={rows} were asked for.",
                "It is a whole number, >= 0.",
                "Correct the number of rows.",
            )
        if self.tables is None or self.sampler is None:
            raise PrivacyRefused(
                "PAIDROWS",
                "This release has no public tables to draw further rows from.",
                "Its method releases rows, not tables.",
                "Use its sets, or a method whose rows are free after its tables (NoisyPegs, Sbhg).",
            )
        if not 1 <= set <= max(len(self.sets), 1):
            raise no_such_set(set, len(self.sets))
        seed = None if seed is None else int(seed)
        return self.sampler(self.tables, int(rows), seed, given, set - 1)

    @guarded
    @answering
    def scan(self, *, set: int = 1) -> Any:
        """A set as a polars LazyFrame over its files: for sets that are larger than memory.

        Args:
            set: which one, from 1.
        Returns:
            A LazyFrame; rows are read when it is collected. The digests of the files are checked now.
        Raises:
            ModelRejected: a file was changed.
            UsageError: there is no such set, or the release is in memory.
        """
        if not 1 <= set <= len(self.sets):
            raise no_such_set(set, len(self.sets))
        if self.path is None:
            raise UsageError(
                "INMEMORY",
                "The sets of this release are in memory.",
                "A set is scanned where it is in files.",
                "Take release.sets[0], or pass out= to synthesize.",
            )
        return self.sets.reader(set - 1).scan()  # type: ignore[attr-defined]

    @guarded
    @answering
    def save(self, out: str | Path, *, overwrite: bool = False, sign: Any = None) -> Path:
        """Write the package of this release to a folder of your own; costs nothing, draws no noise.

        Args:
            out: the new folder, which `verify` accepts and `load` opens.
            overwrite: replace a release that is there.
            sign: a SigningKey, or the path of a private key without a passphrase.
        Returns:
            The path that was written.
        Raises:
            OutputNotWritten, ResourceLimit: it cannot be written.
            ModelRejected: what is kept of this release is damaged.
            UsageError: this release came out of a pickle, without its package.
        """
        if self.saver is None:
            raise UsageError(
                "NOPACKAGE",
                "This release was unpickled, and its package did not come along.",
                "A package is written where its release was made, or loaded.",
                "Save it there, or load it with gibbous.load.",
            )
        return self.saver(out, overwrite=overwrite, sign=sign)

    def __reduce__(self) -> tuple[object, ...]:
        # What a pickle holds: public rows and tables, and never a ledger. Until Python 3.11.4, dataclasses
        # with slots had a __getstate__ of their own in place of one that was written here.
        held = {"sets": tuple(self.sets), "saver": self.saver if self.path else None}
        kept = [held.get(one.name, getattr(self, one.name)) for one in fields(self)]
        return type(self), tuple(kept)

    def to_json(self) -> dict[str, Any]:
        """The public facts about it, without any row."""
        return {
            "path": str(self.path) if self.path else None,
            "sets": len(self.sets),
            "claim": self.claim.to_json(),
            "plan": self.plan.to_json(),
            "receipt": self.receipt.to_json(),
        }


def no_such_set(number: object, sets: int) -> UsageError:
    """The error for a set that a release does not have."""
    return UsageError(
        "SET",
        f"Rows of set {number!r} were asked for.",
        f"The release has sets 1 to {sets}.",
        "Correct set, or leave it out.",
    )
