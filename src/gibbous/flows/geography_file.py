"""A geography file (TOML, with tables of places beside it) in, a Geography out; all of it is public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gibbous.core.documents import Unreadable, read_text, toml
from gibbous.core.errors import UsageError
from gibbous.core.exact import is_finite
from gibbous.flows.earlier import keep_steps
from gibbous.flows.table import Geography, coarse, decimals, read_flows
from gibbous.structure.regions import Pairs, Places, places

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from gibbous.core.schema import Schema

MAX_BYTES: Final = 1 << 20
TABLES: Final = ("origins", "destinations")
TOP: Final = (
    "origin",
    "destination",
    "count",
    "reach",
    "beyond",
    "level",
    "earlier",
    "keep",
    "cuts",
    *TABLES,
)
LISTED: Final = ("file", "id", "lat", "lon", "density", "levels")
FORM: Final = (
    "Keys are origin, destination, count, reach, level, earlier, keep, cuts, and the tables [origins] and "
    '[destinations], each with "file"'
)


def load_geography(path: str | Path) -> Geography:
    """Read a geography file.

    Args:
        path: TOML: `origin` and `destination` name columns of the flows, `count` that of counts,
            `reach` is in miles, `beyond` = "nearest" counts records from farther away at the nearest
            origin within it, `level` one of the levels of origins, `earlier` a table of pairs that is
            public already (same columns), `keep` = "earlier" shrinks by the distances of these,
            `cuts` two distances in miles; [origins] and [destinations] name tables of places
            (`file`) and their columns (`id`, `lat`, `lon`, `density`, `levels`). Tables are
            relative to this file.
    Returns:
        The geography; rows of a table of places are candidates, in their order.
    Raises:
        UsageError: the file is none, a key or a column is unknown, or a place is not one.
        SchemaMismatch: an earlier pair has an unknown place.
    """
    file = Path(path)
    top = _document(file)
    for name in top:
        if name not in TOP:
            raise _bad(f"has an unknown key {name!r}", FORM)
    origins, destinations = (_listed(file, name, top.get(name)) for name in TABLES)
    reach = top.get("reach", 0)
    if isinstance(reach, bool) or not isinstance(reach, int | float) or not is_finite(reach):
        raise _bad("has a reach that is not a number", "It is a distance in miles, >= 0")
    level = _name(top, "level", None) or ""
    if level and level not in origins.parents:
        raise _bad(f"has a level {level!r}", "It is one of the levels of [origins]")
    made = Geography(
        origins,
        destinations,
        _name(top, "origin", "origin") or "",
        _name(top, "destination", "destination") or "",
        _name(top, "count", None),
        float(reach),
        level,
        cuts=cuts_of(top["cuts"]) if "cuts" in top else None,
        keeps="keep" in top,
        beyond=top.get("beyond", "refuse"),
    )
    if "beyond" in top and (top["beyond"] not in ("refuse", "nearest") or level or not reach):
        raise _bad(
            "has a beyond that is not one",
            'It is "refuse" or "nearest", beside reach and without level',
        )
    earlier = _name(top, "earlier", None)
    if "keep" in top and (top["keep"] != "earlier" or earlier is None):
        raise _bad(
            "has a keep that is not from its earlier pairs", 'keep = "earlier", beside earlier'
        )
    if "keep" in top and not (origins.located and destinations.located):
        raise _bad("has a keep without coordinates", "It is by distance")
    return made if earlier is None else replace(made, earlier=_pairs(file.parent / earlier, made))


def place_tables(path: Path) -> tuple[tuple[Path, str], ...]:
    """The tables of places of a geography file that was loaded, each with the name of its column of ids.

    Raises:
        UsageError: the file cannot be read.
    """
    top = _document(path)
    listed = [top[name] for name in TABLES]
    return tuple((path.parent / one["file"], str(one.get("id", "id"))) for one in listed)


def cuts_of(given: Any) -> tuple[float, float]:
    """Two distances in miles: a list of numbers, or a text with a comma.

    Raises:
        UsageError: they are not two, not finite, below 0 or out of order.
    """
    try:
        near, far = (
            float(str(one)) for one in (given.split(",") if isinstance(given, str) else given)
        )
    except (TypeError, ValueError):
        near, far = 1.0, 0.0
    if 0 <= near <= far and is_finite(far):
        return near, far
    raise UsageError(
        "CUTS",
        "The cuts are not two distances in order.",
        "Two numbers of miles, >= 0: short trips end at the first, long ones begin at the second.",
        "For example cuts = [6.23, 21.54] in a geography file, --cuts 6.23,21.54 at the terminal.",
    )


def placed(mechanism: type, given: Mapping[str, object], geography: Geography) -> dict[str, Any]:
    """What a geography adds to the parameters of a method: nothing, where it takes no places.

    Args:
        mechanism: its class; `Onthemap` takes places.
        given: parameters that were given.
        geography: of the flows it will count.
    Raises:
        UsageError: the destination or the reach that was given is not that of the geography.
    """
    known = {each.name for each in fields(mechanism)}
    if not {"origins", "destinations", "destination"} <= known:
        if geography.beyond == "nearest":
            raise _bad(
                'has beyond = "nearest", and the method knows no reach',
                "onthemap counts such records at the nearest origin within reach",
            )
        return {}
    found = {"origins": geography.origins, "destinations": geography.destinations}
    if given.get("destination", geography.destination) != geography.destination:
        raise _bad(
            f"names the destination {geography.destination!r}, the method another one",
            "Both mean the same column",
        )
    if given.get("reach", geography.reach) != geography.reach:
        raise _bad(
            f"has a reach of {geography.reach:g} miles (0 for none), the method another one",
            "Records are checked against that of the file, so that both are the same: reach = MILES "
            "stands in the file",
        )
    more: dict[str, Any] = {"destination": geography.destination, "reach": geography.reach}
    if geography.keeps and "keep" not in given:
        more["keep"] = keep_steps(geography)
    if geography.earlier is not None and (given.get("keep") or "keep" in more):
        level = given.get("level")
        more["earlier"] = (coarse(geography, str(level)) if level else geography).earlier
    return found | {name: value for name, value in more.items() if name not in given}


def level_of(geography: Geography, schema: Schema) -> str:
    """Which level of the origins' hierarchy a release has in place of origins.

    Args:
        geography: of the records.
        schema: of the release.
    Returns:
        The name of the level; empty where the release has the origins themselves.
    Raises:
        UsageError: the release was made of other places.
    """
    labels = {column.name: column.labels() for column in schema}
    for level in ("", *geography.origins.parents):
        found = coarse(geography, level) if level else geography
        mine = ((found.origin, found.origins), (found.destination, found.destinations))
        if all(labels.get(name) == tuple(p.ids.tolist()) for name, p in mine):
            return level
    raise UsageError(
        "GEOGRAPHY",
        "The release was made of other places than those of the geography.",
        "Its columns and levels are those of the geography, or of one level of its hierarchy.",
        "Give the geography file that the release was made with.",
    )


def check_same(params: Mapping[str, object], *allowed: Geography) -> None:
    """Refuse geographies whose digests are not in the plan of a release; plans without any pass.

    Args:
        params: of the plan of the release.
        allowed: what the release may have been made with: the geography, or one level of it.
    Raises:
        UsageError: coordinates, densities or regions are others.
    """
    for name in ("origins", "destinations"):
        told = params.get(name)
        if isinstance(told, dict) and told not in [getattr(g, name).to_json() for g in allowed]:
            raise UsageError(
                "GEOGRAPHY",
                f"The {name} of the geography are not those that the release was made with.",
                "Their digests are in the plan of the release: ids, coordinates, densities, regions.",
                "Give the geography file that the release was made with.",
            )


def _pairs(file: Path, geography: Geography) -> Pairs:
    """Pairs with people of an earlier public release; its counts are used no further."""
    from gibbous.read.source import read_columns

    frame = read_columns(file)
    count = geography.count if geography.count in frame.columns else None
    found, _ = read_flows(frame, replace(geography, count=count, reach=0.0))
    return Pairs(found.destinations, found.origins)


def _document(file: Path) -> Mapping[str, Any]:
    try:
        return toml(read_text(file, MAX_BYTES))
    except Unreadable as error:
        form = f"It is a UTF-8 text file of at most 1 MB; places are in tables beside it. {FORM}"
        raise _bad(str(error), form, file) from None


def _listed(file: Path, which: str, table: Any) -> Places:
    """Places of one table: each row a candidate."""
    if not isinstance(table, Mapping) or not isinstance(table.get("file"), str):
        raise _bad(f"has no [{which}] with a file", FORM)
    for name in table:
        if name not in LISTED:
            raise _bad(f"has an unknown key {name!r} in [{which}]", f"Keys are {', '.join(LISTED)}")
    from gibbous.read.source import read_columns

    frame = read_columns(file.parent / table["file"])
    name = _name(table, "id", "id")
    levels = table.get("levels", [])
    if not isinstance(levels, list) or not all(isinstance(v, str) for v in levels):
        raise _bad(f"has levels of [{which}] that are not a list of columns", 'levels = ["county"]')
    asked = {"lat", "lon"} & set(table)
    axes = [_name(table, axis, axis) for axis in ("lat", "lon")]
    located = bool(asked) or all(axis in frame.columns for axis in axes)
    density = _name(table, "density", None)
    wanted = [name, *(axes if located else ()), *([density] if density else ()), *levels]
    absent = [column for column in wanted if column not in frame.columns]
    if absent:
        raise _bad(
            f"names a column {absent[0]!r} that the table of [{which}] lacks",
            f"Its columns are {', '.join(map(repr, frame.columns))}",
        )
    ids = frame.get_column(str(name))
    if ids.null_count():
        raise _bad(f"has a place without an id in [{which}]", "Every row is a place")
    lat, lon = (_numbers(frame, str(a), which) if located else None for a in axes)
    return places(
        ids.cast(str).to_numpy(),
        lat,
        lon,
        density=_numbers(frame, density, which) if density else None,
        parents={level: frame.get_column(level).to_list() for level in levels},
    )


def _numbers(frame: pl.DataFrame, name: str, which: str) -> np.ndarray:
    """A column of numbers; empty ones are NaN."""
    number, wrong = decimals(frame.get_column(name))
    if wrong >= 0:
        raise _bad(
            f"has a value that is not a number in column {name!r} of [{which}], data row {wrong + 1:,}",
            "Coordinates are decimal degrees, densities numbers >= 0",
        )
    return number.fill_null(float("nan")).to_numpy()


def _name(table: Mapping[str, Any], key: str, default: str | None) -> str | None:
    value = table.get(key, default)
    if value is None or (isinstance(value, str) and value):
        return value
    raise _bad(f"has a {key} that is not a name", "It is the name of a column, as text")


def _bad(wrong: str, allowed: str, file: Path | None = None) -> UsageError:
    which = f" {file.name!r}" if file is not None else ""
    return UsageError(
        "GEOGRAPHY",
        f"The geography file{which} {wrong}.",
        f"{allowed}.",
        "Correct it; docs/how-to/flows.md has one.",
    )
