"""Noisy tables that somebody else made -> Tables of a schema: a folder with tables.toml and CSV files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from gibbous.core.claim import Claim, Relation, approximate, gdp, pure, zcdp
from gibbous.core.context import Context
from gibbous.core.documents import Unreadable, read_bytes, read_text, toml
from gibbous.core.errors import UsageError
from gibbous.core.exact import is_finite
from gibbous.core.schema import Column, Schema
from gibbous.core.tables import Dense, NoiseInfo, Table
from gibbous.read.csv_text import parsed
from gibbous.read.fields import listed, shown

FILE = "tables.toml"
COUNT = "count"
MOST_BYTES, MOST_CELLS, MOST_TABLES = 1 << 28, 4_000_000, 10_000
MOST_COUNT = 1 << 53
MOST_MAKER = 500
LAWS = ("gaussian", "geometric")
PRICES = ("epsilon", "delta", "rho", "mu")
PAGE = "See docs/how-to/from-tables.md."


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTables:
    """Noisy tables made elsewhere, and what their maker says of them. Public.

    Attributes:
        tables: dense, at least one for each column of the schema, as they came.
        claim: of all tables together, as stated by the maker.
        maker: who made them, in their words.
        digest: SHA-256 of all files, hex.
    """

    tables: tuple[Table, ...]
    claim: Claim
    maker: str
    digest: str


def read_noisy_tables(folder: str | Path, schema: Schema) -> NoisyTables:
    """Read a folder of noisy tables; UsageError where it is unreadable, unfit, or lacks a cell.

    It holds tables.toml (maker, claim, and of each table its file, noise and scale) and the CSV files
    that this names: one row a cell, a column for each column of the (declared) schema that the table is
    over, and `count`.
    """
    place, digest = Path(folder), hashlib.sha256()
    try:
        text = read_text(place / FILE, 1 << 20)
        stated = toml(text)
    except Unreadable as error:
        raise _bad(f"{FILE} {error}", "It states maker, claim and tables") from None
    digest.update(text.encode())
    _only(stated, ("maker", "claim", "table"), FILE)
    maker, entries = stated.get("maker"), stated.get("table")
    if not isinstance(maker, str) or not maker.strip() or len(maker) > MOST_MAKER:
        raise _bad(
            "It does not say who made the tables", f'maker = "..." has 1 to {MOST_MAKER} characters'
        )
    if not isinstance(entries, list) or not 0 < len(entries) <= MOST_TABLES:
        raise _bad(
            "It names no tables, or too many", f"[[table]] stands 1 to {MOST_TABLES:,} times"
        )
    claim = _claim(stated.get("claim"), maker)
    found = []
    for entry in entries:
        table, data = _table(place, entry, schema)
        digest.update(hashlib.sha256(data).digest())
        found.append(table)
    lacking = set(range(len(schema))).difference(*(table.context.columns for table in found))
    if lacking:
        names = listed(schema.names[at] for at in sorted(lacking))
        raise _bad(f"No table holds the columns {names}", "Each column of the schema is in a table")
    return NoisyTables(tuple(found), claim, " ".join(maker.split()), digest.hexdigest())


def _claim(stated: object, maker: str) -> Claim:
    allowed = "[claim] has epsilon and delta, or rho, or mu, and relation"
    if not isinstance(stated, dict):
        raise _bad("It states no claim", allowed)
    _only(stated, (*PRICES, "relation"), "[claim]")
    prices = {name: _price(name, stated[name]) for name in PRICES if name in stated}
    relation = stated.get("relation", "add_remove")
    if relation not in get_args(Relation):
        raise _bad("[claim] has another relation", f"It is one of {', '.join(get_args(Relation))}")
    rest: Any = {"relation": relation, "basis": "stated", "source": f"stated by {maker}"}
    match sorted(prices):
        case ["epsilon"]:
            return pure(prices["epsilon"], **rest)
        case ["delta", "epsilon"]:
            return approximate(prices["epsilon"], prices["delta"], **rest)
        case ["rho"]:
            return zcdp(prices["rho"], **rest)
        case ["mu"]:
            return gdp(prices["mu"] ** 2, **rest)
    raise _bad("[claim] mixes or lacks prices", allowed)


def _price(name: str, value: object) -> Fraction:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not is_finite(value) or value <= 0 or (name == "delta" and value >= 1):  # type: ignore[operator]
        raise _bad(f"{name} of [claim] is not a price", "It is a number > 0; delta is below 1")
    return Fraction(str(value))


def _table(place: Path, entry: object, schema: Schema) -> tuple[Table, bytes]:
    if not isinstance(entry, dict):
        raise _bad("A table is not a TOML table", "It begins with [[table]]")
    _only(entry, ("file", "noise", "scale"), "[[table]]")
    name, law, scale = entry.get("file"), entry.get("noise"), entry.get("scale")
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise _bad("A table has no file", 'file = "..." is a name in the same folder')
    if law not in LAWS:
        raise _bad(f"{shown(name)} has another law of noise", f"noise is one of {', '.join(LAWS)}")
    if not isinstance(scale, int | float) or isinstance(scale, bool) or not 0 < scale < MOST_COUNT:
        raise _bad(f"{shown(name)} has no scale", "scale is sigma, or b of the geometric law, > 0")
    try:
        data = read_bytes(place / name, MOST_BYTES)
        frame = parsed(data)
    except Unreadable as error:
        raise _bad(f"{shown(name)} {error}", "It is a CSV file") from None
    except (pl.exceptions.PolarsError, ValueError):
        raise _bad(
            f"{shown(name)} is not a CSV file", "It has a header, and commas between cells"
        ) from None
    return Table(*_cells(name, frame, schema), NoiseInfo(law, float(scale))), data


def _cells(name: str, frame: pl.DataFrame, schema: Schema) -> tuple[Context, Dense]:
    """Context and counts: the last column of the schema that the table holds is the target."""
    columns = [c for c in frame.columns if c != COUNT]
    if COUNT not in frame.columns or not columns or not set(columns) <= set(schema.names):
        raise _bad(
            f"{shown(name)} has other columns",
            f"Its header names columns of the schema, and {COUNT!r}",
        )
    places = tuple(sorted(schema.index(c) for c in columns))
    sizes = tuple(schema.columns[at].size for at in places)
    cells = math.prod(sizes)
    if cells > MOST_CELLS:
        raise _bad(f"{shown(name)} has {cells:,} cells", f"A table has at most {MOST_CELLS:,}")
    codes = [_codes(name, frame.get_column(schema.names[at]), schema.columns[at]) for at in places]
    own = np.ravel_multi_index(codes, sizes) if frame.height else np.zeros(0, dtype=np.int64)
    if frame.height != cells or len(np.unique(own)) != cells:
        raise _bad(
            f"{shown(name)} has {frame.height:,} rows, some cells twice or none",
            f"It has each of its {cells:,} cells once: a cell left out would tell something",
        )
    counts = frame.get_column(COUNT).cast(pl.Float64, strict=False)
    numbers = counts.fill_null(math.nan).to_numpy()
    if not np.all(np.abs(numbers) < MOST_COUNT):  # of nan: False
        raise _bad(
            f"{shown(name)} has a count that is not a number", "Counts are numbers, noise included"
        )
    values = np.empty(cells, dtype=np.int64)
    values[own] = np.rint(numbers).astype(np.int64)
    context = Context(places[-1:], places[:-1], sizes[-1:], sizes[:-1])
    return context, Dense(values.reshape(-1, sizes[-1]))


def _codes(name: str, texts: pl.Series, column: Column) -> np.ndarray:
    """Codes by the labels of the codebook; of bins, by their lower bounds, too. No text is missing."""
    known = {label: code for code, label in enumerate(column.labels())}
    if column.binned:
        known |= {
            label[1:].partition(",")[0]: known[label] for label in column.labels()[: column.bins]
        }
    if column.missing_code is not None:
        known[""] = column.missing_code
    found = texts.fill_null("").replace_strict(known, default=-1, return_dtype=pl.Int64).to_numpy()
    if (found < 0).any():
        row = int(np.argmax(found < 0)) + 1
        raise _bad(
            f"{shown(name)} has another value of {shown(column.name)} in row {row:,}",
            "Values are the levels of the schema, or the lower bounds of its bins",
        )
    return np.asarray(found)


def _only(stated: Mapping[str, object], allowed: tuple[str, ...], where: str) -> None:
    unknown = [key for key in stated if key not in allowed]
    if unknown:
        raise _bad(f"{where} has the keys {listed(unknown)}", f"It has {', '.join(allowed)}")


def _bad(wrong: str, allowed: str) -> UsageError:
    return UsageError(
        "NOISYTABLES", f"The noisy tables cannot be used: {wrong}.", f"{allowed}.", PAGE
    )
