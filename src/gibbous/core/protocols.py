"""The seams: what an engine, a curator, a mechanism and a way of drawing look like to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from gibbous.core.claim import Claim, Measure, Relation
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.method_card import About
from gibbous.core.moment import Moment
from gibbous.core.plan import Plan
from gibbous.core.recode import Change
from gibbous.core.schema import Schema
from gibbous.core.tables import (
    NONE_MORE,
    Cells,
    Counts,
    KnownCounts,
    NoiseInfo,
    Sparse,
    Table,
    Tables,
)

Words64 = Callable[[int], np.ndarray]
"""Uniform 64-bit words from the operating system: words(count) -> uint64 (count,)."""

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""progress(stage, done, total): called from time to time; totals are public or rounded."""


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""


@runtime_checkable
class Engine(Protocol):
    """Confidential records: scanned once, counted as often as it takes, and forgotten.

    Attributes:
        name: "local", "spark", ...
        memory_limit: bytes that one `tally` may need.
    """

    name: ClassVar[str]
    memory_limit: int

    @property
    def threads(self) -> int:
        """Threads of this process that count; parts of the records may be asked by as many at once."""
        ...

    def scan(
        self,
        source: Any,
        schema: Schema,
        *,
        key: bytes,
        progress: Progress = silent,
        numbers: Sequence[int] = (),
    ) -> bytes:
        """Open, validate and encode the input and keep it inside.

        Args:
            source: a path, a frame, a table, or whatever the engine can open.
            key: secret key of this installation's ledger.
            numbers: positions of numeric columns whose numbers are kept beside their bins.
        Returns:
            Keyed fingerprint (32 bytes) of the multiset of input rows, all columns, whatever their
            order or file format.
        Guarantee:
            A person of the schema's unit has at most `max_rows` rows among the records.
        Raises:
            InputRejected, SchemaMismatch, ResourceLimit: without any cell value in the text.
        """

    def check(
        self, contexts: Sequence[Context], *, schema: Schema | None = None, parts: int = 1
    ) -> None:
        """Refuse what `tally` would refuse; counts nothing. A run calls it before it is charged.

        Args:
            schema: of a recoded view that would be asked; None for that of the records.
            parts: into how many random parts the records would be divided before.
        Raises:
            EngineFailure, ResourceLimit: see `tally`.
        """

    def tally(
        self, contexts: Sequence[Context], *, progress: Progress = silent
    ) -> tuple[Counts, ...]:
        """Count all contexts.

        Returns:
            One Counts a context: Dense int64 (keys, levels) for support "dense"; Sparse with
            positive counts, sorted by (key, level), for support "seen".
        Raises:
            EngineFailure: closed, not scanned, or a context of another schema.
            ResourceLimit: more memory than `memory_limit`, or more than 2^63 keys or levels.
        """

    def sums(self, moments: Sequence[Moment]) -> tuple[Counts, ...]:
        """For each moment, a Dense int64 (keys, levels) of sums within the cells.

        Raises:
            EngineFailure: numbers of a factor were not kept (`scan(..., numbers=...)`).
            ResourceLimit: a sum may pass 63 bits.
        """

    def recoded(self, changes: Mapping[int, Change]) -> Engine:
        """An engine of its own with the same records under a coarser public schema."""

    def split(self, parts: int, words: Words64) -> tuple[Engine, ...]:
        """Engines of their own; each record is in one of them, drawn independently of what it says."""

    def estimate(self, contexts: Sequence[Context], rows: int) -> int:
        """Bytes that `tally` will need at its peak, without touching records."""

    def workers(self) -> Workers | None:
        """Processes that draw and write rows for the owner of this engine; None for its own."""

    def close(self) -> None:
        """Forget the records: any later `tally` raises."""


How = Callable[[Any, Any], np.ndarray]
"""(texts, column) -> a code or number of each text: public, and of one text at a time."""


@runtime_checkable
class TextRecords(Protocol):
    """What an engine has that holds cells as text, before there is a schema."""

    def coded(self, schema: Schema, how: How, numbers: How | None = None) -> Engine:
        """An engine with the codes of the same rows under a public schema.

        Args:
            how: (texts, column) -> code of each text, a public function of one text at a time.
            numbers: the number of each text in a column of bounds alone, to be kept beside its code.
        """

    def texts(
        self, names: Sequence[str], how: Callable[[str, Any], Any]
    ) -> Iterator[tuple[list[str], Sparse]]:
        """The different texts of columns, as `how` writes them, with their exact counts. Secret."""


class Workers(Protocol):
    """Processes that do public work for an engine's owner: they hold no record and make no noise."""

    def spread(
        self,
        work: Callable[[Any, Any], Any],
        shared: Any,
        items: Sequence[Any],
        *,
        progress: Progress = silent,
    ) -> Iterator[Any]:
        """Call work(shared, item) for every item, anywhere, perhaps more than once.

        Args:
            work: a function at the top of a module; the same result however often it is called.
            shared: public; sent once to each process.
            items: public and small.
            progress: told ("write", done items, items).
        Yields:
            The results as they arrive, one an item, in any order.
        Raises:
            GibbousError: that of a call; EngineFailure where the workers are lost.
        """

    def close(self) -> None:
        """Let go of the processes."""


class RowDraw(Protocol):
    """A way of drawing rows in which the draw itself is what costs.

    Called once with the exact counts and a source of cryptographic words; its cost is a function of
    public things alone.
    """

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """The guarantee of all `rows` rows together.

        Args:
            rows: rows of all sets.
            max_rows: most rows of one privacy unit (group privacy).
        """

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows."""


class Noise(Protocol):
    """Integer noise for counts; knows its own cost."""

    def cost(self, tables: int, relation: Relation, max_rows: int) -> Claim:
        """Cost of releasing `tables` histograms of the same records with this noise."""

    def info(self) -> NoiseInfo:
        """What is published about it."""

    def add(self, cells: Cells, *, progress: Progress = silent) -> Cells:
        """Noisy cells from exact ones; a thresholded noise drops cells of a Sparse."""


class MomentNoise(Noise, Protocol):
    """Integer noise that knows its price on sums, too."""

    def moment_cost(self, moment: Moment, relation: Relation, max_rows: int) -> Claim:
        """Cost of releasing the sums of one moment with this noise."""


class CuratorLike(Protocol):
    """What a mechanism sees of the Curator: each method asks the ledger's hold, then touches data."""

    @property
    def schema(self) -> Schema:
        """The public schema."""

    @property
    def relation(self) -> Relation:
        """The neighbor relation of this run."""

    @property
    def measure(self) -> Measure:
        """In which Gaussian purchases of this run are priced: that of its plan."""

    @property
    def known_counts(self) -> Mapping[int, KnownCounts]:
        """Noisy counts of columns, by position, that this run paid for before the method."""

    def noisy_counts(self, contexts: Sequence[Context], noise: Noise) -> tuple[Table, ...]:
        """Count and add noise once; the whole batch is one joint release of len(contexts) tables.

        Charges noise.cost(len(contexts), relation, max_rows). Contexts with support "seen" need a
        thresholded noise.
        """

    def choose(
        self,
        contexts: Sequence[Context],
        score: Callable[[Sequence[Counts]], np.ndarray],
        *,
        sensitivity: Fraction | int,
        epsilon: Fraction,
        accounting: Measure = "pure",
        among: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> int:
        """Exponential mechanism: index of a candidate drawn with P proportional to
        exp(epsilon * score / (2 * sensitivity)).

        Args:
            contexts: what the score looks at; counted once and kept inside.
            score: secret counts of `contexts` -> float64 (candidates,); its sensitivity under this
                run's relation, for one row, is `sensitivity`.
            accounting: "pure" charges epsilon, "zcdp" epsilon^2/8 and "gdp" the mu^2 of the worst law of two
                points (both by bounded range).
            among: public map from scores to those of the candidates, whose sensitivity is then meant; the
                index is into its result. A score has one list of contexts then, and is computed once.
        """

    def noisy_moments(
        self, moments: Sequence[Moment], noises: Sequence[MomentNoise]
    ) -> tuple[Table, ...]:
        """Sum numbers within cells and add integer noise once, each moment with its own noise.

        Charges noise.moment_cost(moment, relation, max_rows) each.
        """

    def recoded(
        self, changes: Mapping[int, Change], *, known: Mapping[int, KnownCounts] | None = NONE_MORE
    ) -> CuratorLike:
        """The same run, with the same budget, seen under a coarser public schema; costs nothing.

        Args:
            changes: public maps by column position: from the schema, or from noisy tables.
            known: noisy counts of codes of changed columns, beside `known_counts` of those that stay as
                they are; None: without any, for noise of its own.
        """

    def on_parts(
        self, parts: int, work: Callable[[CuratorLike, int], T], *, memory: int = 0
    ) -> list[T]:
        """work(the same run on a part, its number) for random parts; each pays beside the others.

        Args:
            memory: bytes that one part needs: as many run at once as there are threads and room for.
        """

    def report(self, stage: str, done: int, total: int) -> None:
        """Tell whoever watches how far a method is: public numbers only, no cost."""

    def draw(self, contexts: Sequence[Context], draw: RowDraw, rows: int) -> Codes:
        """Rows whose drawing is what costs. Charges draw.cost(contexts, rows, relation, max_rows)."""


@runtime_checkable
class Mechanism(Protocol):
    """Frozen parameters with two methods: cost before data, then the run.

    A mechanism also has a class attribute `about: About`. If it has a field `relation`, that is the
    relation of its claim; otherwise it is add_remove.

    What a run asks for first is checked against the engine's memory before anything is charged. Where
    later tables are chosen by what was bought, a method `counted(schema)` may yield the largest of
    them, a sequence of contexts for each time that it counts.
    """

    about: ClassVar[About]

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """Cost and needs, from public facts alone.

        Raises:
            ParameterError: rows is None for a mechanism that pays by the row.
        """

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Tables | Codes:
        """Spend what `plan` said, through the curator.

        Returns:
            Tables (unit artifact), or Codes with rows * sets rows.
        """
