"""The text of a source -> which table of which database; passwords are refused, since others see them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gibbous.core.errors import UsageError
from gibbous.read.fields import shown

Kind = Literal["duckdb", "sqlite", "postgres"]
_KINDS: dict[str, Kind] = {
    "duckdb": "duckdb",
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
}
_PASSWORD = re.compile(r"^[^/@]*:[^/@]*@|[?&]password=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """A table of a database.

    Attributes:
        kind: of the database.
        place: path of the file; for PostgreSQL its URL.
        table: as written: "table" or "schema.table".
    """

    kind: Kind
    place: str
    table: str


def address_of(text: str) -> Address | None:
    """Read "duckdb:///file.db::table" and its like; None for what is no address of a table.

    Raises:
        UsageError: another kind of database, no table, or a password.
    """
    scheme, mark, rest = text.partition("://")
    if not mark or "::" not in rest:
        return None
    place, _, table = rest.rpartition("::")
    kind = _KINDS.get(scheme.lower())
    if kind is None or not place or not table:
        raise UsageError(
            "ADDRESS",
            f"{shown(scheme)} is not a kind of database."
            if kind is None
            else "The address lacks the file or the table.",
            "An address is duckdb:///file.db::table, sqlite:///file.db::table or "
            "postgres://user@host/database::table.",
            "Correct it; other databases are passed as an ibis table in Python.",
        )
    if kind == "postgres" and _PASSWORD.search(place):
        raise UsageError(
            "PASSWORD",
            "The address holds a password.",
            "Other users of this machine can read the arguments of a command.",
            "Put it into the file that PGPASSFILE names (mode 0600), and leave it out here.",
        )
    return Address(kind, f"postgresql://{place}" if kind == "postgres" else place, table)
