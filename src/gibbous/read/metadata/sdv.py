"""SDV metadata of one table -> a codebook whose every fact is inferred: SDV detects them from data."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from gibbous.core.errors import UsageError
from gibbous.core.exact import is_finite
from gibbous.core.schema import Column, ColumnKind, Level
from gibbous.read.edges import all_inferred, calendar, day_format
from gibbous.read.fields import listed, shown
from gibbous.read.metadata.codebook import Codebook, Variable, drafts_of

VERSIONS = ("V2", "V1", "SINGLE_TABLE_V1", "MULTI_TABLE_V1")
_KINDS = {"numerical": "numeric", "datetime": "date"}
_NAMES = "left out (ignore): SDV calls it a key, personal, or of a type that is not drawn."
_ODD = "left out (ignore): SDV and the data call it by different types; describe it by hand."
_TABULAR = ("categorical", "ordinal", "boolean", "numerical", "datetime")


def read_sdv(document: Mapping[str, Any], data: Any) -> Codebook:
    """What is stated of one table, and read off data where no levels or ranges are stated.

    Returns:
        Columns with every fact inferred, or with what is left open; keys, personal identifiers and
        other sdtypes in its remarks; the privacy unit undeclared.
    Raises:
        UsageError: not SDV metadata, or several tables.
    """
    _check_version(document)
    table = _one_table(document)
    given = table.get("columns")
    if not isinstance(given, dict) or not given or not all(map(_is_table, given.values())):
        raise _malformed("columns are not a table of tables")
    keys = {table.get("primary_key")}
    if isinstance(alternate := table.get("alternate_keys"), list):
        keys.update(key for key in alternate if isinstance(key, str))
    forms = {name: column.get("datetime_format") for name, column in given.items()}
    drafts = drafts_of(data, forms)
    variables: list[Variable] = []
    remarks: list[tuple[str, str]] = []
    for name, column in given.items():
        if column.get("sdtype") not in _TABULAR or name in keys or column.get("pii") is True:
            remarks.append((name, _NAMES))
            continue
        described = _Stated(name, column, drafts.get(name)).column()
        kind = _KINDS.get(column["sdtype"], "")
        odd = _ODD if described is None and name in drafts else ""
        variables.append(Variable(name, kind=kind, whole=described, why_not=odd))
    if not variables:
        raise _malformed("no column is categorical, ordinal, boolean, numerical or datetime")
    return Codebook(tuple(variables), remarks=tuple(remarks))


@dataclass(frozen=True, slots=True)
class _Stated:
    """What the metadata state of one column, and what data say where they do not."""

    name: str
    facts: Mapping[str, Any]
    draft: Column | None

    def column(self) -> Column | None:
        kind = self.facts["sdtype"]
        if kind == "boolean":
            return self._levels([False, True], "binary")
        levels = self.facts.get("range_values", self.facts.get("order"))
        if kind in ("categorical", "ordinal") and isinstance(levels, list) and levels:
            plain = [_level(self.name, v) for v in levels if v is not None]
            return self._levels(plain, "ordinal" if kind == "ordinal" else "nominal")
        if kind == "numerical":
            return self._numeric() or self.draft
        if kind == "datetime":
            return self._days() or self.draft
        usable = self.draft is not None and not self.draft.binned
        return self.draft if usable else None

    def _levels(self, levels: list[Level], kind: str) -> Column:
        shape: Any = "binary" if len(levels) == 2 else kind
        sources = all_inferred(binned=False)
        return Column(self.name, shape, tuple(levels), missing=self._missing(), sources=sources)

    def _numeric(self) -> Column | None:
        low, high = self._end("min"), self._end("max")
        if not (_is_number(low) and _is_number(high)):
            return None
        places = self.facts.get("decimal_places")
        whole = places == 0 or "int" in str(self.facts.get("computer_representation", "")).lower()
        whole = whole and low == int(low) and high == int(high)
        if low == high and not whole:
            return self._levels([_level(self.name, low)], "nominal")
        kept = places if isinstance(places, int) and 0 < places <= 15 and not whole else None
        return self._binned("numeric", (low, high), integer=whole, decimals=kept)

    def _days(self) -> Column | None:
        form = self.facts.get("datetime_format")
        if form is not None and not (isinstance(form, str) and day_format(form)):
            return None
        ends = [_ordinal(self._end(key), form or "%Y-%m-%d") for key in ("min", "max")]
        if ends[0] is None or ends[1] is None or ends[0] > ends[1]:
            return None
        edges = calendar(ends[0], ends[1], "year" if ends[1] - ends[0] > 5 * 366 else "month")
        own = None if form == "%Y-%m-%d" else form
        return self._binned("date", edges, date_format=own)

    def _binned(self, kind: ColumnKind, edges: tuple[float, ...], **form: Any) -> Column:
        sources = all_inferred(binned=True)
        return Column(
            self.name, kind, edges=edges, missing=self._missing(), sources=sources, **form
        )

    def _end(self, which: str) -> Any:
        return self.facts.get(f"range_{which}", self.facts.get(f"{which}_range"))

    def _missing(self) -> bool:
        stated = self.facts.get("range_is_nullable")
        if isinstance(stated, bool):
            return stated
        return self.draft is not None and self.draft.missing


def _check_version(document: Mapping[str, Any]) -> None:
    version = document.get("METADATA_SPEC_VERSION")
    if version is not None and version not in VERSIONS:
        raise UsageError(
            "SDVVERSION",
            f"The SDV metadata have version {shown(version)}.",
            f"Versions {', '.join(VERSIONS)} are read.",
            "Save the metadata with one of these.",
        )


def _one_table(document: Mapping[str, Any]) -> Mapping[str, Any]:
    tables = document.get("tables")
    if tables is None:
        return document
    if not isinstance(tables, dict) or not tables or not all(map(_is_table, tables.values())):
        raise _malformed("tables are not a table of tables")
    if len(tables) > 1:
        raise UsageError(
            "SDVTABLES",
            f"The SDV metadata describe {len(tables)} tables: {listed(tables)}.",
            "One table is read.",
            "Save the metadata of one table.",
        )
    return cast(Mapping[str, Any], next(iter(tables.values())))


def _level(name: str, value: object) -> Level:
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, str | int | float):
        return value
    raise _malformed(f"the values of column {shown(name)} are not text or numbers")


def _ordinal(value: object, form: str) -> int | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.datetime.strptime(
            value[:10] if form == "%Y-%m-%d" else value, form
        ).toordinal()
    except ValueError:
        return None


def _is_number(value: object) -> bool:
    return is_finite(value) and not isinstance(value, bool)


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _malformed(what: str) -> UsageError:
    return UsageError(
        "SDV",
        f"The SDV metadata are not sound: {what}.",
        "SDV metadata have columns, each with an sdtype.",
        "Save them again with SDV, or start from gibbous schema infer.",
    )
