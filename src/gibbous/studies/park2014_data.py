"""The tables of the studies of park2013, park2014 and sbhg as codes: given, public, or made by seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

import gibbous as gb
from gibbous.studies.seeded_draws import Draws
from gibbous.studies.study_parts import Settings

if TYPE_CHECKING:
    import polars as pl

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
BESIDE: Final = Path(__file__).resolve().parents[4] / "shared" / "data"
"""Where a checkout of the project has public data sets beside it."""
_SHARE: Final = 0.3  # correlation of the normal scores behind a constructed table
_PART = 9_000  # of the path of the draws of a table

SHAPES: Final[Mapping[str, Mapping[str, int]]] = {
    "adult": {
        "age": 74, "workclass": 9, "education": 16, "education_num": 16, "marital_status": 7,
        "occupation": 15, "relationship": 6, "race": 5, "sex": 2, "hours_per_week": 96,
        "native_country": 42, "income": 2,
    },
    "claims7": {
        "sex": 2, "age_cat": 6, "drg": 717, "icd9_prcdr": 96, "days": 4, "days_n": 98, "n_dx": 15,
    },
    "discharge13": {
        "typ": 5, "age_yrs": 17, "sex": 2, "marital": 6, "race": 8, "hosp": 20, "los": 15,
        "disp": 7, "pay": 11, "nproc": 9, "mdc": 27, "sev": 3, "cat": 2,
    },
}  # fmt: skip
"""Columns that a study uses of each public table, and their levels."""
ROWS: Final = {"adult": 48_842, "claims7": 60_674, "discharge13": 151_551}


@dataclass(frozen=True, eq=False, repr=False)
class Microdata:
    """A table as codes.

    Attributes:
        source: what it is, for every output: a file's name, or "constructed like NAME".
        codes: int64 (rows, columns).
        labels: of each column, by code.
    """

    source: str
    names: tuple[str, ...]
    codes: Ints
    labels: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        return f"<{self.source}: {self.rows} rows, {len(self.names)} columns>"

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each column."""
        return tuple(len(labels) for labels in self.labels)

    @property
    def facts(self) -> dict[str, Any]:
        """What each row of a study says of its table."""
        return {"table": self.source, "records": self.rows}

    def index(self, name: str) -> int:
        """Position of a column."""
        return self.names.index(name)

    def numbers(self, name: str, codes: Ints) -> Floats:
        """The first number in the label of each code; NaN where there is none."""
        numbers = [re.search(r"\d+", label) for label in self.labels[self.index(name)]]
        values = np.array([float(match[0]) if match else np.nan for match in numbers])
        return values[codes]

    def schema(self) -> gb.Schema:
        """Nominal columns with the levels of the table."""
        columns = (
            gb.Column(name, "nominal", levels)
            for name, levels in zip(self.names, self.labels, strict=True)
        )
        return gb.Schema(tuple(columns), unit=gb.Unit("row"), name=self.source)

    def frame(self) -> pl.DataFrame:
        """The table as text."""
        import polars as pl

        columns = zip(self.names, self.labels, self.codes.T, strict=True)
        return pl.DataFrame({name: np.array(levels)[codes] for name, levels, codes in columns})

    def coded(self, frame: pl.DataFrame) -> Ints:
        """Codes of a table with these columns and labels, int64 (rows, columns)."""
        columns = [
            frame[name].cast(str).replace_strict(labels, range(len(labels)))
            for name, labels in zip(self.names, self.labels, strict=True)
        ]
        return np.stack([column.to_numpy().astype(np.int64) for column in columns], axis=1)


def table_of(settings: Settings, name: str) -> Microdata:
    """The table of a study: that of --data, the public one beside the project, or a constructed one.

    Args:
        settings: "table" is "public" (a constructed one stands in where it is absent) or
            "constructed"; "records" is the most records that are used, or None for all.
    """
    most = settings.values["records"]
    if settings.data is not None:
        return sampled(read(settings.data, settings.schema), most, settings.seed)
    path = BESIDE / f"{name}.parquet"
    if settings.values["table"] == "public" and path.is_file():
        return sampled(read(path, None, keep=tuple(SHAPES[name])), most, settings.seed)
    rows = ROWS[name] if most is None else min(most, ROWS[name])
    return like(name, rows, settings.seed, settings.values.get("levels"))


def tagged(settings: Settings, name: str) -> str:
    """How the names of cells on that table begin; the public one may not be there."""
    source = "given" if settings.data else table_of(settings, name).source
    return "".join(c if c.isalnum() else "-" for c in source.lower())


def like(name: str, rows: int, seed: int, levels: int | None = None) -> Microdata:
    """A constructed table with the columns of a public one, and its numbers of levels, or fewer."""
    shape = {column: min(size, levels or size) for column, size in SHAPES[name].items()}
    place = sorted(SHAPES).index(name)
    codes = correlated(tuple(shape.values()), rows, Draws(seed, (_PART, place)), skew=1.0)
    labels = tuple(tuple(str(v) for v in range(size)) for size in shape.values())
    return Microdata(f"constructed like {name}", tuple(shape), codes, labels)


def correlated(sizes: Sequence[int], rows: int, draws: Draws, *, skew: float = 0.0) -> Ints:
    """Equicorrelated normal scores, cut into levels.

    Args:
        skew: level v has a share in proportion to (1 + v)^-skew; 0 cuts into equal shares.
    Returns:
        int64 (rows, columns).
    """
    common = draws.at(0).normal(rows)
    out = np.empty((rows, len(sizes)), dtype=np.int64)
    for j, size in enumerate(sizes):
        own = draws.at(j + 1).normal(rows)
        score = np.sqrt(_SHARE) * common + np.sqrt(1 - _SHARE) * own
        shares = np.arange(1, size + 1, dtype=np.float64) ** -skew
        ranks = np.argsort(np.argsort(score)) / rows
        out[:, j] = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], ranks, side="right")
    return out


def sampled(table: Microdata, most: int | None, seed: int) -> Microdata:
    """At most so many of its records, drawn at random."""
    if most is None or most >= table.rows:
        return table
    places = np.argsort(Draws(seed, (_PART, 99)).uniform(table.rows))[:most]
    source = f"{most:,} records of {table.source}"
    return Microdata(source, table.names, table.codes[np.sort(places)], table.labels)


def read(path: Path, schema: Path | None, *, keep: tuple[str, ...] = ()) -> Microdata:
    """A file as codes: by the levels of a schema, or by the values that occur.

    Args:
        keep: columns, in order; empty for all.
    Raises:
        InputRejected, SchemaMismatch: the file is not what it says, or does not fit the schema.
    """
    from gibbous.read.source import read_columns

    if schema is not None:
        from gibbous.evaluation.tables import plain, side

        codes_read = side(path, plain(gb.Schema.load(schema))).codes
        names, labels = codes_read.schema.names, tuple(c.labels() for c in codes_read.schema)
        return Microdata(path.name, names, codes_read.values.astype(np.int64), labels)
    frame = read_columns(path)
    names = keep or tuple(frame.columns)
    columns = [_coded(frame[name]) for name in names]
    codes = np.stack([c for c, _ in columns], axis=1)
    return Microdata(path.name, names, codes, tuple(labels for _, labels in columns))


def _coded(series: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    """Codes and labels: by the first number of a label where all have one, else by text."""
    import polars as pl

    text = series.cast(pl.String).fill_null("(missing)")
    labels = text.unique().sort().to_list()
    numbers = [re.search(r"\d+", label) for label in labels]
    if all(numbers):
        order = np.argsort([float(match[0]) for match in numbers if match], kind="stable")
        labels = [labels[place] for place in order]
    codes = text.replace_strict(labels, range(len(labels)), return_dtype=pl.Int64)
    return codes.to_numpy().astype(np.int64), tuple(labels)
