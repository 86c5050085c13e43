"""The flags of a run without a schema: what is public of its table, and whom it protects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from gibbous.core.documents import Unreadable, read_text
from gibbous.core.errors import PrivacyRefused, UsageError

if TYPE_CHECKING:
    from gibbous.core.discovery import Discovery
    from gibbous.core.readers import Types
    from gibbous.core.schema import Unit

MAX_BYTES = 1 << 24


@dataclass(frozen=True, eq=False, repr=False)
class DiscoveryFlags:
    """What is public where there is no schema; everything else is bought."""

    id: Annotated[
        str | None,
        Option("--id", help="COLUMN:ROWS: no schema; protect a person, at most so many rows."),
    ] = None
    unit: Annotated[str | None, Option("--unit", help="row: no schema; protect one row.")] = None
    names: Annotated[
        Path | None, Option("--names", help="No schema: file of column names, one a line.")
    ] = None
    header_is_public: Annotated[
        bool, Option("--header-is-public", help="No schema: the data's column names are public.")
    ] = False
    types_are_public: Annotated[
        bool,
        Option(
            "--types-are-public",
            help="No schema: types and dictionaries of a Parquet file are public, and not bought.",
        ),
    ] = False
    numeric: Annotated[
        list[str] | None,
        Option("--numeric", help="No schema: columns that are numbers, separated by commas."),
    ] = None
    days: Annotated[
        list[str] | None,
        Option("--days", help="No schema: columns that are days, separated by commas."),
    ] = None
    levels: Annotated[
        list[str] | None,
        Option("--levels", help="No schema: COLUMN=FILE of its levels, one a line; repeatable."),
    ] = None
    bounds: Annotated[
        list[str] | None,
        Option("--bounds", help="No schema: COLUMN=LEAST:GREATEST of its numbers; repeatable."),
    ] = None
    share: Annotated[
        float | None,
        Option(
            "--discovery-share", help="No schema: share of rho that buys it, at most; default 0.5."
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether a schema is to be bought."""
        return any(getattr(self, field.name) for field in fields(self))

    def discovery(self, data: Any = None, options: Any = None) -> Discovery:
        """What is public of a table.

        The header of `data` is public by the user's word; None where no data are read.

        Raises:
            PrivacyRefused: the unit is not said, or the names were not said to be public.
            UsageError, InputRejected: a flag or a file is wrong.
        """
        from gibbous.core.discovery import SHARE, Discovery

        unit = self._unit()
        known = Discovery(
            self._names(data, options),
            unit,
            _split(self.numeric),
            _split(self.days),
            tuple(_levels(text) for text in self.levels or ()),
            SHARE if self.share is None else self.share,
            tuple(map(_bounds, self.bounds or ())),
        )
        return known.typed(*_types(data, options)) if self.types_are_public else known

    def _unit(self) -> Unit:
        from gibbous.core.discovery import no_unit
        from gibbous.core.schema import Unit

        if self.id is None:
            if self.unit is None:
                raise no_unit(
                    "Pass `--unit row`, or `--id COLUMN:ROWS`, for example `--id patient:5`."
                )
            if self.unit != "row":
                raise _wrong("--unit", self.unit, "row", "Use --id COLUMN:ROWS for persons.")
            return Unit()
        column, _, most = self.id.rpartition(":")
        if not column or not most.isdecimal() or int(most) < 1 or self.unit is not None:
            raise _wrong(
                "--id",
                self.id,
                "COLUMN:ROWS, the most rows that one person has, without --unit",
                "For example --id patient:5.",
            )
        return Unit("person", column, int(most))

    def _names(self, data: Any, options: Any) -> tuple[str, ...]:
        if self.names is not None:
            return tuple(lines_of("--names", self.names))
        if not self.header_is_public:
            raise PrivacyRefused(
                "NAMES",
                "You did not say that the names of the columns are public.",
                "Without a schema, names are published as they are, and nothing about them is paid for.",
                "Pass --header-is-public, or --names FILE with one name a line.",
            )
        if data is None:
            raise UsageError(
                "NAMES",
                "--header-is-public was given where no data are read.",
                "A plan opens no file of records.",
                "Pass --names FILE with one name a line.",
            )
        from gibbous.read.source import is_table, probe

        if is_table(data):
            raise UsageError(
                "NAMES",
                "--header-is-public was given with a table of a database.",
                "It is for files.",
                "Pass --names FILE with one name a line.",
            )
        return probe(data, options=options).names


def _types(data: Any, options: Any) -> Types:
    from gibbous.core.readers import readers
    from gibbous.read.source import is_table

    if data is None or is_table(data):
        raise UsageError(
            "TYPES",
            "--types-are-public was given where no file is read.",
            "It is for Parquet files; a plan opens no file, and types of databases are not looked at.",
            "Leave it out, and state kinds with --numeric, --days and --levels.",
        )
    return readers().types(data, options)


def _levels(text: str) -> tuple[str, tuple[str, ...]]:
    column, equals, path = text.rpartition("=")
    if not equals or not column:
        raise _wrong("--levels", text, "COLUMN=FILE", "For example --levels icd=codes.txt.")
    return column, tuple(lines_of("--levels", Path(path)))


def _bounds(text: str) -> tuple[str, tuple[float, float]]:
    column, equals, ends = text.rpartition("=")
    low, _, high = ends.partition(":")
    try:
        found = float(low), float(high)
    except ValueError:
        equals = ""
    if not equals or not column or not found[0] < found[1] or not all(map(math.isfinite, found)):
        raise _wrong("--bounds", text, "COLUMN=LEAST:GREATEST", "For example --bounds age=0:120.")
    return column, found


def lines_of(flag: str, path: Path) -> list[str]:
    """Lines of a text file without blanks at their ends and blank ones."""
    try:
        lines = [line.strip() for line in read_text(path, MAX_BYTES).splitlines()]
    except Unreadable as error:
        raise UsageError(
            "FILE",
            f"{flag}: {str(path)!r} {error}.",
            "It is a UTF-8 text file with one entry a line.",
            "Check the path.",
        ) from None
    return [line for line in lines if line]


def _split(values: Sequence[str] | None) -> tuple[str, ...]:
    parts = (part.strip() for value in values or () for part in value.split(","))
    return tuple(part for part in parts if part)


def _wrong(flag: str, value: str, allowed: str, fix: str) -> UsageError:
    return UsageError("DISCOVERY", f"{flag} is {value!r}.", f"It is {allowed}.", fix)
