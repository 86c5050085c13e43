"""The public description of a table: columns, levels or bounds, impossible combinations, privacy unit.

A schema holds nothing but public facts. Each fact carries its source: `declared` (public knowledge),
`discovered` (paid for, in the ledger) or `inferred` (read off the confidential data: a claim of
differential privacy over such a fact is refused unless it is accepted explicitly).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from gibbous.core.column import FACTS as FACTS  # the column and its facts are part of the schema
from gibbous.core.column import KINDS as KINDS
from gibbous.core.column import SOURCES as SOURCES
from gibbous.core.column import Column as Column
from gibbous.core.column import ColumnKind as ColumnKind
from gibbous.core.column import Level as Level
from gibbous.core.column import Source as Source
from gibbous.core.column import Within as Within
from gibbous.core.column_texts import PARAGRAPH, allowed_text, unfit_text
from gibbous.core.errors import UsageError
from gibbous.core.keywords import answering, answering_class, did_you_mean
from gibbous.core.notebook import html_table
from gibbous.core.readers import buyer, readers
from gibbous.core.rule_laws import laws_of
from gibbous.core.rules import Rule as Rule

if TYPE_CHECKING:
    from gibbous.core.discovery import Discovery
    from gibbous.core.exact import Number

UnitKind = Literal["row", "record", "person"]
UNITS: tuple[UnitKind, ...] = ("row", "record", "person")
SHOWN = 8  # column names in a repr


@answering_class
@dataclass(frozen=True, slots=True)
class Unit:
    """What one privacy unit is: a row, a record that a table of flows counts, or a person.

    Attributes:
        kind: "row", "record" (of a pair, alone in its row or counted with others) or "person" with
            at most `max_rows` rows.
        column: person identifier in the input (not itself synthesized); None for rows and records.
        max_rows: the most rows one unit contributes; more are cut by random sampling.
        source: "declared", or "inferred" where somebody accepted a guess.
    """

    kind: UnitKind = "row"
    column: str | None = None
    max_rows: int = 1
    source: Source = "declared"

    def __post_init__(self) -> None:
        if self.kind not in UNITS:
            raise UsageError(
                "UNIT",
                f"The privacy unit is {self.kind!r}.",
                "It is 'row' or 'person', or 'record' of a table of flows.",
                "Set [unit] kind in the schema.",
            )
        person = isinstance(self.column, str) if self.kind == "person" else self.column is None
        if not person or type(self.max_rows) is not int or not 1 <= self.max_rows < 1 << 63:
            raise UsageError(
                "UNIT",
                "The privacy unit is incomplete.",
                "A person unit has a column and max_rows >= 1; the others have neither.",
                "Complete [unit] in the schema.",
            )
        if self.kind != "person" and self.max_rows != 1:
            raise UsageError(
                "UNIT",
                f"A {self.kind} unit has max_rows.",
                "A row is one row, a record one record.",
                "Remove max_rows.",
            )

    def words(self) -> str:
        """The unit for people."""
        if self.kind == "row":
            return "one row"
        if self.kind == "record":
            return "one counted record of a pair"
        return f"one person ({self.column}), at most {self.max_rows} rows"


@dataclass(frozen=True, slots=True)
class Impossible:
    """A declared impossible combination: a row is impossible when every listed column is in its set.

    Attributes:
        where: ((column name, allowed-to-be codes), ...), at least one column, codes sorted.
    """

    where: tuple[tuple[str, tuple[int, ...]], ...]


@answering_class
@dataclass(frozen=True, repr=False)
class Schema:
    """An ordered set of columns with everything public about them.

    Attributes:
        columns: in output order; names unique.
        unit: the privacy unit; None until it is declared (a claim then cannot be made).
        impossible: structural zeros.
        null: the one text that reads as missing in CSV (written for missing, too).
        ignore: columns of the input that are known and left out on purpose.
        name: of the data set, for people.
        description: of the data set, one paragraph, for people.
        rules: what holds in every synthetic row; records may break it.
        unspent: where it was bought before a method: of what it might cost, what the method got, 0 to 1.
    """

    columns: tuple[Column, ...]
    unit: Unit | None = Unit()
    impossible: tuple[Impossible, ...] = ()
    null: str = ""
    ignore: tuple[str, ...] = ()
    name: str = ""
    description: str = ""
    rules: tuple[Rule, ...] = ()
    unspent: float = 0.0

    def __post_init__(self) -> None:
        names = self.names
        fault = unfit_text(self.description, PARAGRAPH) if self.description else None
        if fault:
            raise UsageError(
                "SCHEMA",
                f"The description of the schema {fault}.",
                f"{allowed_text(PARAGRAPH)}.",
                "Correct description.",
            )
        if not names:
            raise UsageError(
                "SCHEMA", "The schema has no columns.", "It needs at least one.", "Add one."
            )
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise UsageError(
                "SCHEMA",
                f"The schema names {', '.join(map(repr, twice))} more than once.",
                "Names are unique.",
                "Rename or remove one.",
            )
        if self.unit is not None and self.unit.kind == "record" and len(names) != 2:
            raise UsageError(
                "UNIT",
                f"The privacy unit is a record of a pair, and there are {len(names)} columns.",
                "A pair is a destination and an origin: two columns.",
                "Set [unit] kind to 'row' or 'person'.",
            )
        for rule in self.impossible:
            for name, codes in rule.where:
                if (
                    name not in names
                    or not codes
                    or max(codes) >= self[name].size
                    or min(codes) < 0
                ):
                    raise UsageError(
                        "IMPOSSIBLE",
                        f"An impossible combination uses column {name!r} wrongly.",
                        "It names columns of the schema and levels they have.",
                        "Correct [[impossible]].",
                    )
        if self.rules:
            laws_of(self.columns, self.rules)

    def __repr__(self) -> str:
        names = ", ".join(self.names[:SHOWN]) + (", ..." if len(self) > SHOWN else "")
        unit = self.unit.words() if self.unit else "not declared"
        called = f" {self.name!r}" if self.name else ""
        left = len(self.inferred())
        marks = f"; {left} facts inferred" if left else ""
        return f"<Schema{called} of {len(self)} columns: {names}; unit: {unit}{marks}>"

    def _repr_html_(self) -> str:
        # Levels and bounds of a draft were read off the data: they are not shown.
        missing = ("refused", "a level")
        rows = [(c.name, c.kind, c.size, missing[c.missing], _marked(c)) for c in self]
        return html_table(repr(self)[1:-1], ("column", "kind", "codes", "missing", "sources"), rows)

    @staticmethod
    @answering
    def load(path: str | Path) -> Schema:
        """Read a TOML schema file.

        Raises:
            UsageError: the file is not a schema; the message names the key and the nearest valid one.
        """
        return readers().load(path)

    @staticmethod
    @answering
    def infer(source: object) -> Schema:
        """Propose a schema from data; every fact is marked `inferred`, and a claim of differential
        privacy over such facts is refused until they are declared.

        Args:
            source: a path or a frame.
        """
        return readers().infer(source)

    @staticmethod
    def discover(
        source: object,
        known: Discovery,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        **more: object,
    ) -> Schema:
        """Spend: buy a schema; its facts are marked `discovered`, and the guarantee covers them.

        Args:
            source: a path, a frame, or a table of a database.
            known: what is public of it.
            epsilon, delta: of everything that is bought; both are stated, never assumed.
            more: `relation`, `ledger`, `options`, `fresh` and `progress`, as for `synthesize`.
        Guarantee:
            (epsilon, delta)-DP, charged to the ledger first. Proven: docs/proofs/discovery.md.
        """
        price = {k: v for k, v in (("epsilon", epsilon), ("delta", delta)) if v is not None}
        return buyer()(source, known, **price, **more)

    @answering
    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a TOML schema file, which `load` reads back exactly; `overwrite` replaces one.

        Raises:
            UsageError: it exists, or cannot be written; or text that no UTF-8 file can hold.
        """
        return readers().save(self, path, overwrite)

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.index(name)]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(c.name for c in self.columns)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes of each column, in order."""
        return tuple(c.size for c in self.columns)

    @property
    def cells(self) -> int:
        """Cells of the full cross table (a Python integer: it may be astronomical)."""
        return math.prod(self.sizes)

    def index(self, name: str, asked: str = "") -> int:
        """Position of a column.

        Args:
            asked: what names it, such as "target names", for the message.
        Raises:
            UsageError: there is no such column.
        """
        if name in self.names:
            return self.names.index(name)
        raise UsageError(
            "NOCOLUMN",
            f"{asked} {name!r}, which is not a column."
            if asked
            else f"There is no column {name!r}.",
            f"Columns are {', '.join(self.names[:20])}.",
            did_you_mean(name, self.names, "Check the spelling."),
        )

    def inferred(self) -> tuple[str, ...]:
        """Facts read off the data, as 'column: fact', in order; empty when a claim may be made."""
        guessed = self.unit is not None and self.unit.source == "inferred"
        assumed = (f"privacy unit: {self.unit.words()}",) if self.unit and guessed else ()
        return assumed + tuple(
            f"{c.name}: {fact}" for c in self.columns for fact, s in c.sources if s == "inferred"
        )

    def named_by(self, rule: Rule) -> tuple[str, ...]:
        """Columns that a rule names."""
        if rule.to_buy:
            return rule.detail, rule.group
        return tuple(self.names[place] for place in laws_of(self.columns, (rule,)).places)

    def code_dtype(self) -> np.dtype:
        """Smallest unsigned type that holds every code."""
        top = max(self.sizes) - 1
        return np.dtype(np.uint8 if top < 256 else np.uint16 if top < 65536 else np.uint32)


def _marked(column: Column) -> str:
    return ", ".join(f"{fact} {source}" for fact, source in column.sources) or "declared"


def impossible_mask(schema: Schema, codes: np.ndarray) -> np.ndarray:
    """Which rows are impossible.

    Args:
        codes: (rows, columns) integers.
    Returns:
        bool (rows,).
    """
    bad = np.zeros(len(codes), dtype=bool)
    for rule in schema.impossible:
        hit = np.ones(len(codes), dtype=bool)
        for name, allowed in rule.where:
            lookup = np.zeros(schema[name].size, dtype=bool)
            lookup[list(allowed)] = True
            hit &= lookup[codes[:, schema.index(name)]]
        bad |= hit
    return bad


def fact_words(facts: Sequence[str]) -> str:
    """Facts as `Schema.inferred` lists them, columns with the same facts together.

    Example:
        >>> fact_words(["a: kind", "a: levels", "b: kind", "b: levels"])
        'kind, levels of a, b'
    """
    by_name: dict[str, list[str]] = {}
    for fact in facts:
        name, _, what = fact.rpartition(": ")
        by_name.setdefault(name, []).append(what)
    together: dict[tuple[str, ...], list[str]] = {}
    for name, whats in by_name.items():
        together.setdefault(tuple(whats), []).append(name)
    return "; ".join(
        f"{names[0]} ({whats[0]})"
        if names == ["privacy unit"]
        else f"{', '.join(whats)} of {', '.join(names)}"
        for whats, names in together.items()
    )
