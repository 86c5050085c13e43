"""A flow table: how many records go from each origin to each destination; read, checked, made coarser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gibbous.core.errors import ResourceLimit, SchemaMismatch, UsageError
from gibbous.core.schema import Column, Schema, Unit
from gibbous.core.stream import stream_key, words
from gibbous.structure.regions import Pairs, Places, miles, regions

if TYPE_CHECKING:
    import polars as pl

    from gibbous.read.source import ReadOptions

MOST_RECORDS = 1 << 31
_STREAM = 0x706C6163  # "plac": keeps these streams apart from all others


@dataclass(frozen=True, slots=True)
class Geography:
    """The public side of a flow table.

    Attributes:
        origins, destinations: every candidate, declared.
        origin, destination: names of their columns.
        count: name of the column of counts; None where each row is one record.
        reach: miles beyond which a destination has no origins; 0 for no limit.
        beyond: what becomes of a record from farther away: "refuse" it when it is read, or "nearest":
            count it as one of the nearest origin within reach (onthemap).
        level: of the origins' hierarchy, whose regions a geography file asks to count in their place;
            empty for the origins themselves.
        earlier: pairs of an earlier public release, which shrinking always keeps; None for none.
        keeps: whether shrinking keeps origins as often as the earlier pairs have their distance.
        cuts: miles at which an evaluation lets moderate and long commutes begin; None: it finds them.
    """

    origins: Places
    destinations: Places
    origin: str = "origin"
    destination: str = "destination"
    count: str | None = None
    reach: float = 0.0
    level: str = ""
    earlier: Pairs | None = None
    cuts: tuple[float, float] | None = None
    keeps: bool = False
    beyond: Literal["refuse", "nearest"] = "refuse"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Flows:
    """Pairs and their counts, sorted by destination and origin, each pair once.

    Attributes:
        destinations, origins: codes: positions among the declared places, int64 (pairs,).
        counts: records of each pair, > 0, int64 (pairs,).
        secret: of confidential records: never printed, pickled or written.
    """

    destinations: np.ndarray
    origins: np.ndarray
    counts: np.ndarray
    secret: bool = False

    def __repr__(self) -> str:
        if self.secret:
            return "<Flows, secret>"
        return f"<Flows: {len(self.counts):,} pairs, {self.records:,} records>"

    def __reduce__(self) -> tuple[object, ...]:
        if self.secret:
            raise TypeError("flows of confidential records are never pickled")
        return (Flows, (self.destinations, self.origins, self.counts, False))

    @property
    def records(self) -> int:
        """Records of all pairs."""
        return int(self.counts.sum())

    def totals(self, destinations: int) -> np.ndarray:
        """Records of each destination, int64 (destinations,)."""
        return np.bincount(self.destinations, self.counts, destinations).astype(np.int64)

    def distances(self, geography: Geography) -> np.ndarray:
        """Great-circle miles of each pair; NaN where a place has no coordinates."""
        here, there = geography.origins, geography.destinations
        if not here.located or not there.located:
            return np.full(len(self.counts), np.nan)
        return miles(
            there.lat[self.destinations],
            there.lon[self.destinations],
            here.lat[self.origins],
            here.lon[self.origins],
        )

    def frame(self, geography: Geography) -> pl.DataFrame:
        """Destination, origin and count as a table.

        Raises:
            TypeError: the flows are confidential.
        """
        import polars as pl

        if self.secret:
            raise TypeError("flows of confidential records are never written")
        return pl.DataFrame(
            {
                geography.destination: geography.destinations.ids[self.destinations],
                geography.origin: geography.origins.ids[self.origins],
                geography.count or "count": self.counts,
            }
        )


def flow_schema(geography: Geography, name: str = "") -> Schema:
    """The schema of one record: its destination, then its origin; levels are the declared places.

    The privacy unit is one record of a pair, whether a row has one or a count of them.
    """
    return Schema(
        (
            _column(geography.destination, geography.destinations),
            _column(geography.origin, geography.origins),
        ),
        unit=Unit("record"),
        name=name,
    )


def read_flows(
    source: Any, geography: Geography, *, options: ReadOptions | None = None
) -> tuple[Flows, pl.DataFrame]:
    """Read confidential flows and check every value against the declared places.

    Args:
        source: a path or a frame with the columns that the geography names.
        options: how text files are read.
    Returns:
        Secret flows, and all columns of the source as they were read: the fingerprint is one of the
        data set, whichever engine reads it.
    Raises:
        UsageError: the geography is incomplete.
        SchemaMismatch: a column is missing; an origin or destination is unknown or missing; a
            count is missing, negative or not whole; an origin is out of reach. Row numbers, never
            values.
        ResourceLimit: more than 2^31 records.
    """
    from gibbous.read.source import read_columns

    _check_geography(geography)
    frame = read_columns(source, options=options)
    names = [geography.destination, geography.origin]
    names += [] if geography.count is None else [geography.count]
    absent = [n for n in names if n not in frame.columns]
    if absent:
        raise _mismatch(
            "NOCOLUMN", f"There is no column {absent[0]!r}", f"Columns are {names}", "Rename it"
        )
    destinations = _codes(frame.get_column(names[0]), geography.destinations)
    origins = _codes(frame.get_column(names[1]), geography.origins)
    counts = np.ones(frame.height, dtype=np.int64)
    if geography.count is not None:
        counts = _counts(frame.get_column(geography.count))
    flows = collected(destinations, origins, counts, secret=True)
    _check_reach(flows, geography)
    return flows, frame


def collected(
    destinations: np.ndarray,
    origins: np.ndarray,
    counts: np.ndarray | None = None,
    *,
    secret: bool = False,
) -> Flows:
    """Flows from codes in any order; equal pairs are added up, pairs of 0 left out.

    Args:
        destinations, origins: codes (rows,).
        counts: records of each row; None for one each.
    """
    number = np.ones(len(origins), dtype=np.int64) if counts is None else counts
    keep = number > 0
    destinations, origins, number = destinations[keep], origins[keep], number[keep]
    order = np.lexsort((origins, destinations))
    destinations, origins = (v[order].astype(np.int64) for v in (destinations, origins))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(destinations) != 0) | (np.diff(origins) != 0)
    at = np.flatnonzero(new)
    sums = np.add.reduceat(number[order], at) if len(at) else number[order]
    return Flows(destinations[at], origins[at], sums, secret)


def flows_of(frame: Any, geography: Geography) -> Flows:
    """Public flows from synthetic rows, one a record, as a release has them."""
    import polars as pl

    from gibbous.read.source import read_columns

    table = frame if isinstance(frame, pl.DataFrame) else read_columns(frame)
    codes = (
        _codes(table.get_column(name), places)
        for name, places in (
            (geography.destination, geography.destinations),
            (geography.origin, geography.origins),
        )
    )
    return collected(*codes)


def decimals(values: pl.Series) -> tuple[pl.Series, int]:
    """Values as Float64, null where a place has none; and the first row that is not a number, or -1."""
    import polars as pl

    text = values.cast(pl.String) if values.dtype == pl.Categorical else values
    if text.dtype == pl.String:
        text = text.str.strip_chars().replace("", None)
    number = text.cast(pl.Float64, strict=False)
    wrong = (number.is_null() & text.is_not_null()).to_numpy()
    return number, int(wrong.argmax()) if wrong.any() else -1


def _column(name: str, places: Places) -> Column:
    return Column(name, "nominal", levels=tuple(places.ids.tolist()))


def _codes(values: pl.Series, places: Places) -> np.ndarray:
    import polars as pl

    kinds = pl.Enum(places.ids.tolist())
    found = values.cast(pl.String).cast(kinds, strict=False)
    if found.null_count():
        absent = found.is_null().to_numpy()
        raise _mismatch(
            "UNKNOWNPLACE",
            f"Column {values.name!r} has rows with an unknown or missing place, first in data "
            f"row {int(absent.argmax()) + 1:,}",
            f"The {len(places):,} places of the geography, compared as text",
            "Add the missing candidates to the public list (all of them, not those that occur), "
            "or drop those rows by a public rule",
        )
    return found.to_physical().to_numpy().astype(np.int64)


def _counts(values: pl.Series) -> np.ndarray:
    import polars as pl

    number = values.cast(pl.Float64, strict=False)
    wrong = (number.is_null() | ~(number.fill_null(-1) >= 0)).to_numpy()
    with np.errstate(invalid="ignore"):
        shown = number.fill_null(0).to_numpy()
        wrong |= (shown != np.floor(shown)) | np.isinf(shown)
    if wrong.any():
        raise _mismatch(
            "COUNT",
            f"Column {values.name!r} has counts that are missing, negative or not whole, first"
            f" in data row {int(wrong.argmax()) + 1:,}",
            "Counts are whole numbers >= 0: one record each, which is what is protected",
            "Round by a public rule, or give one row a record",
        )
    if shown.sum() > MOST_RECORDS:
        raise ResourceLimit(
            "RECORDS",
            "The counts add up to more than 2^31 records.",
            "Every synthetic record is drawn.",
            "Divide the table by destinations.",
        )
    return shown.astype(np.int64)


def _check_geography(geography: Geography) -> None:
    names = [geography.origin, geography.destination, geography.count]
    if len(set(names)) < len(names) or not geography.reach >= 0:
        raise UsageError(
            "GEOGRAPHY",
            "The geography names one column twice, or its reach is not a distance.",
            "Origin, destination and count are different columns; reach is >= 0 miles.",
            "Correct the geography.",
        )
    if geography.reach > 0 and not (geography.origins.located and geography.destinations.located):
        raise UsageError(
            "GEOGRAPHY",
            "A reach was given for places without coordinates.",
            "Distances need lat and lon of origins and destinations.",
            "Declare them, or leave reach out.",
        )


def _check_reach(flows: Flows, geography: Geography) -> None:
    if geography.reach <= 0 or geography.beyond == "nearest":
        return
    beyond = flows.distances(geography) > geography.reach
    if beyond.any():
        raise _mismatch(
            "REACH",
            f"Pairs are farther apart than {geography.reach:g} miles",
            "Within reach all origins are in a destination's domain, beyond it none",
            "Raise reach; or count them at the nearest origin within it (beyond = 'nearest' in the "
            "geography); or leave them out before the totals of destinations are published",
        )


def _mismatch(name: str, wrong: str, allowed: str, fix: str) -> SchemaMismatch:
    return SchemaMismatch(name, f"{wrong}.", f"{allowed}.", f"{fix}.")


def coarse(geography: Geography, level: str) -> Geography:
    """The same geography with the regions of one level as origins.

    Raises:
        UsageError: the origins have no such level.
    """
    found, pairs = regions(geography.origins, level), geography.earlier
    if pairs is not None:
        mine = collected(pairs.destinations, found.of[pairs.origins])
        pairs = Pairs(mine.destinations, mine.origins)
    return replace(geography, origins=found.places, reach=0.0, level="", earlier=pairs)


def to_regions(flows: Flows, geography: Geography, level: str) -> Flows:
    """Flows from regions in place of origins; as secret as they were."""
    of = regions(geography.origins, level).of
    return collected(flows.destinations, of[flows.origins], flows.counts, secret=flows.secret)


def to_places(flows: Flows, geography: Geography, level: str, *, seed: int) -> Flows:
    """Public flows from regions, each record given a place of its region by public density.

    Args:
        flows: public; origins are regions of `coarse(geography, level)`.
        seed: sampling seed: nothing confidential rests on it.
    Raises:
        TypeError: the flows are confidential.
    """
    if flows.secret:
        raise TypeError("places are drawn for public flows only")
    found = regions(geography.origins, level)
    density = found.density[found.order]
    sums = np.concatenate([[0.0], np.cumsum(density + 1e-9 * density.mean())])
    region = np.repeat(flows.origins, flows.counts)
    share = (words(stream_key(seed, _STREAM), 0, len(region)) >> np.uint64(11)) * 2.0**-53
    low, high = sums[found.starts[region]], sums[found.starts[region + 1]]
    spot = np.searchsorted(sums, low + share * (high - low), side="right") - 1
    spot = np.clip(spot, found.starts[region], found.starts[region + 1] - 1)
    return collected(np.repeat(flows.destinations, flows.counts), found.order[spot])
