"""Request: what one run is asked for, in three parts, validated once, whoever asks.

`Privacy` says what is promised, `Output` what is written, `Performance` how it is computed. The code
that computes a release is given the first two alone, and so is the digest of a request: what is in
`Performance` cannot change what is released.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.claim import Relation
from gibbous.core.errors import UsageError
from gibbous.core.exact import Number, shortly
from gibbous.core.keywords import answering_class
from gibbous.core.protocols import Mechanism
from gibbous.core.schema import Schema

if TYPE_CHECKING:
    from gibbous.privacy.ledger import Ledger

FORMATS = ("parquet", "csv", "sav", "dta", "xlsx")
EXCEL_ROWS = 1_048_575  # of a sheet, below the names
PART_ROWS = 1 << 22
MOST_ROWS = 1 << 63
LONGEST = 200  # characters of one value of an imprint


@dataclass(frozen=True, slots=True)
class Privacy:
    """What is promised, at which price, and which ledger is charged.

    Attributes:
        schema: declared, with its privacy unit.
        method: carries the epsilon and delta of the run; its `relation` is that of the claim.
        budget: the most that everything together may cost (epsilon); None sets no such limit.
        risk: the most that a membership test may find, for example "tpr@1%=3%": the method's epsilon was
            made of it, and a plan that allows more is refused; None asks for nothing.
        accept_inferred: allow a claim over facts that were read off the data.
        understand: allow an epsilon outside [1e-6, 100] and a delta above 1/rows.
        ledger: the ledger, its path, or None for this user's default.
        new_data: why these are data of other people than those of a capped account.
        strict: charge again where an earlier run of the same request was killed after its
            reservation and before its tables were complete.
        fresh: charge again where the same request was answered before, and its release is kept.
    """

    schema: Schema
    method: Mechanism
    budget: Number | None = None
    risk: str | None = None
    accept_inferred: bool = False
    understand: bool = False
    ledger: Ledger | str | Path | None = None
    new_data: str | None = None
    strict: bool = False
    fresh: bool = False

    @property
    def relation(self) -> Relation:
        """The neighbor relation of the claim."""
        found: Relation = getattr(self.method, "relation", "add_remove")
        return found

    @property
    def protects(self) -> str:
        """One privacy unit, in words."""
        return self.schema.unit.words() if self.schema.unit else "one row"


@answering_class
@dataclass(frozen=True, slots=True)
class Imprint:
    """What a release says about its issuer. Nobody checks it; it is published as it was given.

    Attributes:
        issuer: person or institution that publishes the release.
        contact: where questions go.
        date: of publication, YYYY-MM-DD.
        license: under which the synthetic data may be used.
    """

    issuer: str = ""
    contact: str = ""
    date: str = ""
    license: str = ""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            printable = isinstance(value, str) and value.isprintable()
            if not printable or len(value) > LONGEST or value != value.strip():
                raise UsageError(
                    "IMPRINT",
                    f"The {name} of the release cannot be printed as it is.",
                    f"It is one line of at most {LONGEST} printable characters, without spaces around it.",
                    f"Correct --{name}, or {name} in [output].",
                )
        if self.date and not _is_day(self.date):
            raise UsageError(
                "IMPRINT",
                "The date of the release is not a day.",
                "A date is written YYYY-MM-DD, for example 2026-05-01.",
                "Correct --date, or date in [output].",
            )

    def lines(self) -> Iterator[tuple[str, str]]:
        """What was given, with its label."""
        labels = {"issuer": "Issued by", "contact": "Contact", "date": "Date", "license": "License"}
        yield from ((labels[name], value) for name, value in asdict(self).items() if value)

    def to_json(self) -> dict[str, str]:
        """What was given."""
        return {name: value for name, value in asdict(self).items() if value}

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Imprint:
        """Read what `to_json` wrote; ValueError if it is something else."""
        if not isinstance(data, Mapping) or set(data) - {f.name for f in fields(Imprint)}:
            raise ValueError("not an imprint")
        try:
            return Imprint(**data)  # type: ignore[arg-type]
        except UsageError:
            raise ValueError("not an imprint") from None


NONE_GIVEN = Imprint()
PRIVATE = 0o600  # mode of a file that its owner alone reads
READABLE = (PRIVATE, 0o640, 0o604, 0o644)


def _checked_mode(given: object) -> int:
    with contextlib.suppress(ValueError):
        mode = int(given, 8) if isinstance(given, str) else given
        if mode in READABLE:
            return int(mode)
    raise UsageError(
        "MODE",
        f"The mode is {shortly(given)}.",
        "It is 0600, 0640 (a group may read), 0604 or 0644 in octal: nobody else may ever write.",
        "For example mode=0o640.",
    )


@answering_class
@dataclass(frozen=True, slots=True)
class Output:
    """What is written.

    Attributes:
        rows: rows a set; None for the noisy number of rows.
        sets: synthetic sets, >= 1.
        seed: of sampling from public tables; None draws one.
        format: "parquet", or what stands beside it: "csv", "sav" (SPSS), "dta" (Stata) or "xlsx".
        csv_raw: write CSV text cells without the guard against spreadsheet formulas.
        part_rows: most rows of one file of a set; larger sets are folders of such files.
        overwrite: replace an existing release.
        out: folder of the package; None keeps the release in memory.
        imprint: who stands behind the release.
        sign: the private key that signs a package, or the path of one without a passphrase; None
            leaves it unsigned.
        types: (name, type) of columns of the input, which those of the output are to have.
        mode: permissions of its files, as a number or in octal text: 0600, 0640, 0604 or 0644; folders
            that can be read can be entered.

    Raises:
        UsageError: a value is none of these.
    """

    rows: int | None = None
    sets: int = 1
    seed: int | None = None
    format: str = "parquet"
    csv_raw: bool = False
    part_rows: int = PART_ROWS
    overwrite: bool = False
    out: Path | str | None = None
    imprint: Imprint = NONE_GIVEN
    sign: Any = field(default=None, repr=False)
    types: tuple[tuple[str, str], ...] = ()
    mode: int | str = PRIVATE

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _checked_mode(self.mode))
        rows = 0 if self.rows is None else self.rows
        if rows < 0 or self.sets < 1 or max(rows, self.sets) >= MOST_ROWS:
            raise UsageError(
                "ROWS",
                f"rows={shortly(self.rows)} and sets={shortly(self.sets)} were asked for.",
                "They are whole numbers below 2^63, rows >= 0 and sets >= 1.",
                "Correct the number of rows or of sets.",
            )
        if self.format not in FORMATS:
            raise UsageError(
                "FORMAT",
                f"The format is {self.format!r}.",
                f"It is one of {', '.join(FORMATS)}.",
                "Correct format.",
            )
        if self.part_rows < 1:
            raise UsageError(
                "PARTROWS",
                f"part_rows={shortly(self.part_rows)} was asked for.",
                "The rows of one file are a whole number >= 1.",
                f"Leave it out for {PART_ROWS:,}.",
            )
        if self.sign is not None and self.out is None:
            raise nothing_to_sign()
        # Integers of other libraries are equal, but neither JSON nor a digest takes them.
        for name in ("rows", "sets", "seed", "part_rows"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else int(value))
        if self.format == "xlsx":
            object.__setattr__(self, "part_rows", min(self.part_rows, EXCEL_ROWS))

    @property
    def formats(self) -> tuple[str, ...]:
        """Formats of each file of a set."""
        return tuple(dict.fromkeys((FORMATS[0], self.format)))


@dataclass(frozen=True, slots=True)
class Performance:
    """How a run is computed: nothing here changes what is released.

    Attributes:
        engine: a name, one that was made, or a function that makes one once everything else was
            checked; None for the one that fits the source.
        partitions: into how many parts a cluster cuts the work.
        threads: of this process; None for all cores.
        memory: bytes that counting may need; None for a share of this machine's.
        scratch: folder for encoded records that do not fit memory.
        master: address of a Spark cluster.
        conf: settings of a Spark session.
    """

    engine: Any = None
    partitions: int | None = None
    threads: int | None = None
    memory: int | None = None
    scratch: Path | str | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One run: where the records are, and the three parts.

    Attributes:
        source: path, frame, table or address; never printed.
        options: how text files are read; None for the defaults.
    """

    source: Any = field(repr=False, compare=False)
    privacy: Privacy
    output: Output = field(default_factory=Output)
    performance: Performance = field(default_factory=Performance)
    options: Any = None


def nothing_to_sign() -> UsageError:
    """The refusal of a key where no folder is written."""
    return UsageError(
        "SIGN",
        "A key was given, and no folder to sign.",
        "A signature is over the manifest of a release folder.",
        "Name a folder with --out, or leave out the key.",
    )


def _is_day(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
