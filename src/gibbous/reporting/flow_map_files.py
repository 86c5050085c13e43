"""Files of flows: a release or a table, coordinates, and real flows; what a map is made of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import SchemaMismatch, UsageError
from gibbous.core.release import Release
from gibbous.flows import (
    Flows,
    Geography,
    Places,
    check_same,
    coarse,
    flows_of,
    level_of,
    load_geography,
    place_tables,
    places,
    read_flows,
    to_regions,
)
from gibbous.flows.table import decimals
from gibbous.read.source import read_columns

if TYPE_CHECKING:
    import polars as pl

NO_CLAIM = (
    "A table of flows without a certificate: nothing is promised here, and if its records are "
    "confidential, so is this map."
)


@dataclass(frozen=True, slots=True)
class Named:
    """Names of columns; empty where they follow from the release or the file.

    Attributes:
        destination, origin, count: of flows; no count where each row is one person.
        place, lat, lon: of coordinates; the place is by default "id", or the first column.
        name: of coordinates: what places are called; empty shows their ids.
        set: which synthetic set, from 1.
    """

    destination: str = ""
    origin: str = ""
    count: str = ""
    place: str = ""
    lat: str = "lat"
    lon: str = "lon"
    name: str = ""
    set: int = 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Opened:
    """What a map is made of. `real` is secret."""

    synthetic: Flows
    real: Flows | None
    geography: Geography
    title: str
    headline: str
    names: Mapping[str, str] = field(default_factory=dict)


def opened(release: Any, coordinates: Any, *, real: Any, named: Named, options: Any) -> Opened:
    """Read everything.

    Raises:
        UsageError: columns do not follow from the release and were not named; no such set; the
            release was made of other places than those of the geography file.
        SchemaMismatch: a column is missing, or no place of the flows has coordinates.
        ModelRejected: the folder is not an intact release.
    """
    names = _names(coordinates, named, options)
    if isinstance(release, str | os.PathLike) and Path(release).is_dir():
        from gibbous.write.load import load

        release = load(Path(release))
    if _is_geography(coordinates) and isinstance(release, Release):
        geography = load_geography(Path(coordinates))
        if set(release.schema.names) == {geography.destination, geography.origin}:
            found = _under(release, geography, real=real, named=named, options=options)
            return replace(found, names=names)
    frame, title, headline, hint = _table(release, named, options)
    listed, named = _spots(coordinates, named, options)
    destination, origin, count = _columns(frame, named, hint)
    _check_counted(frame, named, (destination, origin))
    tables = [frame]
    if real is not None:
        tables.append(read_columns(real, options=options))
    known = _with_unlisted(listed, tables, (destination, origin))
    geography = Geography(known, known, origin, destination, count)
    flows, _ = read_flows(frame, geography, options=options)
    public = Flows(flows.destinations, flows.origins, flows.counts)
    secret = None
    if real is not None:
        # Real flows may come as pairs with counts where the release has one row a person.
        theirs = named.count if named.count in tables[1].columns else None
        _check_counted(tables[1], named, (destination, origin))
        secret, _ = read_flows(
            tables[1], Geography(known, known, origin, destination, theirs), options=options
        )
    return Opened(public, secret, geography, title, headline, names)


def _under(
    release: Release, geography: Geography, *, real: Any, named: Named, options: Any
) -> Opened:
    """Of a release with its own geography, whose digests were compared, or with one of its levels."""
    level = level_of(geography, release.schema)
    seen = coarse(geography, level) if level else geography
    check_same(release.plan.params, geography, seen)
    public = flows_of(_set(release, named), seen)
    secret = None
    if real is not None:
        secret, _ = read_flows(real, geography, options=options)
        secret = to_regions(secret, geography, level) if level else secret
    return Opened(public, secret, seen, _title(release), release.claim.words())


def _names(coordinates: Any, named: Named, options: Any) -> dict[str, str]:
    """What places are called, by id: of the table of coordinates, or of those of a geography file."""
    if not named.name:
        return {}
    declared = _is_geography(coordinates)
    files = place_tables(Path(coordinates)) if declared else ((coordinates, named.place),)
    names: dict[str, str] = {}
    for file, column in files:
        frame = read_columns(file, options=options)
        place = column or ("id" if "id" in frame.columns else frame.columns[0])
        if named.name in frame.columns and place in frame.columns:
            both = (frame.get_column(c).cast(str).fill_null("") for c in (place, named.name))
            names |= dict(zip(*both, strict=True))
    if not names:
        raise SchemaMismatch(
            "COORDINATES",
            f"The coordinates have no column {named.name!r}.",
            "It has the names of places.",
            "Correct --name (Named(name=)).",
        )
    return names


def read_places(coordinates: Any, named: Named, options: Any = None) -> Places:
    """Places of a file: id, lat, lon; empty coordinates are unknown."""
    return _places(_listed(read_columns(coordinates, options=options), named))


def _spots(coordinates: Any, named: Named, options: Any) -> tuple[pl.DataFrame, Named]:
    """Places with id, lat and lon, of a table or of a geography file, which also names the columns."""
    if not _is_geography(coordinates):
        return _listed(read_columns(coordinates, options=options), named), named
    import polars as pl

    geography = load_geography(Path(coordinates))
    parts = []
    for each in (geography.origins, geography.destinations):
        unknown = [float("nan")] * len(each)
        spots = (each.lat, each.lon) if each.located else (unknown, unknown)
        located = pl.DataFrame({"id": each.ids, "lat": spots[0], "lon": spots[1]})
        parts.append(located.with_columns(pl.col("lat", "lon").fill_nan(None)))
    return pl.concat(parts).unique("id", keep="first", maintain_order=True), replace(
        named,
        destination=named.destination or geography.destination,
        origin=named.origin or geography.origin,
        count=named.count or geography.count or "",
    )


def _table(release: Any, named: Named, options: Any) -> tuple[pl.DataFrame, str, str, str]:
    """The flows, what they are called, what is promised, and the destination column if it is known."""
    if not isinstance(release, Release):
        title = Path(release).stem if isinstance(release, str | os.PathLike) else "Flows"
        return read_columns(release, options=options), title, NO_CLAIM, ""
    hint = release.plan.params.get("destination", "")
    return read_columns(_set(release, named)), _title(release), release.claim.words(), str(hint)


def _set(release: Release, named: Named) -> Any:
    if not 1 <= named.set <= len(release.sets):
        raise UsageError(
            "SET",
            f"There is no set {named.set}.",
            f"The release has {len(release.sets)}, counted from 1.",
            "Correct the number.",
        )
    return release.sets[named.set - 1]


def _title(release: Release) -> str:
    return release.schema.name or "Synthetic flows"


def _is_geography(coordinates: Any) -> bool:
    return isinstance(coordinates, str | os.PathLike) and Path(coordinates).suffix == ".toml"


def _maybe(kind: pl.DataType) -> bool:
    import polars as pl

    return kind.is_numeric() or kind in (pl.String, pl.Categorical)


def _check_counted(frame: pl.DataFrame, named: Named, columns: tuple[str, str]) -> None:
    """Refuse a table that looks like pairs with counts, where no column of counts was named."""
    if named.count in frame.columns or not set(columns) <= set(frame.columns):
        return
    rest = [name for name in frame.columns if name not in columns and _maybe(frame.schema[name])]
    numbers = [name for name in rest if not decimals(frame.get_column(name))[0].has_nulls()]
    if numbers and not frame.select(columns).is_duplicated().any():
        raise UsageError(
            "MAPCOUNT",
            f"Each pair is there once, beside a column of numbers {numbers[0]!r}, and no column of "
            "counts was named.",
            "A row is one person, or a pair of places with its count.",
            f"Name it: `--count {numbers[0]}` (in Python Named(count=)); where each row is one person, leave "
            "that column out of the table.",
        )


def _columns(frame: pl.DataFrame, named: Named, hint: str) -> tuple[str, str, str | None]:
    count = named.count if named.count in frame.columns else ""
    rest = [name for name in frame.columns if name != count]
    destination = named.destination or hint
    if not destination and len(rest) == 2 and named.origin in rest:
        destination = next(name for name in rest if name != named.origin)
    origin = named.origin
    if not origin and len(rest) == 2 and destination in rest:
        origin = next(name for name in rest if name != destination)
    if destination not in frame.columns or origin not in frame.columns or destination == origin:
        raise UsageError(
            "MAPCOLUMNS",
            "The columns of destination and origin do not follow from the table.",
            f"Columns are {', '.join(map(repr, frame.columns))}.",
            "Name them: --destination-column and --origin-column (Named(destination=, origin=)).",
        )
    return destination, origin, count or None


def _listed(frame: pl.DataFrame, named: Named) -> pl.DataFrame:
    """Columns id, lat, lon of a table of coordinates; nothing else of it is used."""
    import polars as pl

    place = named.place or ("id" if "id" in frame.columns else frame.columns[0])
    absent = [name for name in (place, named.lat, named.lon) if name not in frame.columns]
    if absent:
        raise SchemaMismatch(
            "COORDINATES",
            f"The coordinates have no column {absent[0]!r}.",
            f"Columns are {', '.join(map(repr, frame.columns))}.",
            "Name them: --place, --lat, --lon (Named(place=, lat=, lon=)).",
        )
    axes = []
    for axis, name in (("lat", named.lat), ("lon", named.lon)):
        number, wrong = decimals(frame.get_column(name))
        if wrong >= 0:
            raise SchemaMismatch(
                "COORDINATES",
                f"Column {name!r} has a value that is not a number in data row {wrong + 1}.",
                "Coordinates are decimal degrees; empty ones are unknown.",
                "Correct that row.",
            )
        axes.append(number.alias(axis))
    return pl.DataFrame([frame.get_column(place).cast(pl.String).alias("id"), *axes])


def _with_unlisted(
    listed: pl.DataFrame, tables: list[pl.DataFrame], columns: tuple[str, str]
) -> Places:
    """Places of the file, then those of the flows that it lacks, without coordinates."""
    import polars as pl

    absent = [c for t in tables for c in columns if c not in t.columns]
    if absent:
        raise SchemaMismatch(
            "NOCOLUMN",
            f"The real flows have no column {absent[0]!r}.",
            "Their columns are named as those of the release.",
            "Rename it.",
        )
    seen = pl.concat([t.get_column(c).cast(pl.String).alias("id") for t in tables for c in columns])
    more = seen.drop_nulls().unique().sort()
    if len(more) == 0:
        raise SchemaMismatch(
            "NOFLOWS",
            "The flows have no rows.",
            "A map shows one person at least.",
            "If it is a release, make one with a larger epsilon, or of coarser origins (a level).",
        )
    unknown = more.filter(~more.is_in(listed.get_column("id").implode()))
    if len(unknown) == len(more):
        raise SchemaMismatch(
            "COORDINATES",
            "No place of the flows is among the coordinates.",
            "Ids are compared as text, letter by letter.",
            "Check the file, and which of its columns is the id (--place).",
        )
    rest = pl.DataFrame({"id": unknown, "lat": [None] * len(unknown), "lon": [None] * len(unknown)})
    return _places(pl.concat([listed, rest.cast(listed.schema)]))


def _places(listed: pl.DataFrame) -> Places:
    lat, lon = (listed.get_column(c).fill_null(float("nan")).to_numpy() for c in ("lat", "lon"))
    return places(listed.get_column("id").to_numpy(), lat, lon)
