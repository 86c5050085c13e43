"""Certificate and schema in, descriptions of the release for other programs out: public facts alone.

`SIDECARS` says which file each function writes: Croissant, DataCite, DDI-Codebook, a Frictionless data
package, and a script for R.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gibbous.core.schema import Column, Schema
from gibbous.encode.levels import output_labels
from gibbous.write.rendering import render
from gibbous.write.rows import guarded_name, guarded_text
from gibbous.write.set_files import names_of

_PARQUET = "application/vnd.apache.parquet"
UNKNOWN = ":unav"  # DataCite's word for what nobody said
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TYPES = {"Boolean": "boolean", "Int64": "integer", "UInt64": "integer", "Float64": "number"}
_CROISSANT = {
    "boolean": "sc:Boolean", "integer": "sc:Integer", "number": "sc:Float", "date": "sc:Date",
    "string": "sc:Text",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Described:
    """What the descriptions are made from.

    Attributes:
        receipt: the certificate, as in ledger.json.
        schema: of the release.
        sums: file of a set -> its digest (SHA-256, hex).
    """

    receipt: Mapping[str, Any]
    schema: Schema
    sums: Mapping[str, str]

    @property
    def title(self) -> str:
        """Of the release."""
        return f"Synthetic {self.schema.name}" if self.schema.name else "Synthetic data"

    @property
    def text(self) -> str:
        """What it is, with its guarantee."""
        about = f"{self.schema.description} " if self.schema.description else ""
        return f"{about}Synthetic records. Guarantee: {self.receipt['guarantee']}."

    def said(self, name: str) -> str:
        """Issuer, contact, date or license; "" where it was not given."""
        return str(self.receipt.get("imprint", {}).get(name, ""))

    def files(self, number: int) -> tuple[str, ...]:
        """The files of a set that text tools read best: CSV where there is some, else Parquet."""
        return names_of(self.receipt, number, "csv" if self.receipt["files"]["csv"] else "parquet")

    @property
    def guarded(self) -> bool:
        """Whether an apostrophe stands in those files before text that a spreadsheet would calculate."""
        return bool(self.receipt["files"]["csv"]) and not self.receipt["files"].get("csv_raw")

    def name(self, column: Column) -> str:
        """Of a column, as in those files."""
        return guarded_name(column.name) if self.guarded else column.name

    def levels(self, column: Column) -> list[str]:
        """Of a column, as text, as in those files."""
        levels = [*map(str, column.levels), *([column.other] if column.other else [])]
        return [guarded_text(level) for level in levels] if self.guarded else levels

    @property
    def numbers(self) -> range:
        """Of the sets, from 1."""
        return range(1, self.receipt["sets"] + 1)


def sidecars(receipt: Mapping[str, Any], schema: Schema, sums: Mapping[str, str]) -> dict[str, str]:
    """Every description of a release, by file name; see `Described`."""
    facts = Described(receipt, schema, sums)
    return {name: made(facts) for name, made in SIDECARS.items()}


def value_type(column: Column) -> str:
    """Of its values: string, integer, number, boolean or date."""
    if column.kind == "date":
        return "date"
    if column.binned:
        return "integer" if column.integer else "number"
    return _TYPES.get(str(output_labels(column).dtype), "string")


def croissant(facts: Described) -> str:
    """Croissant 1.0 in JSON-LD."""
    sets, records = [], []
    for number in facts.numbers:
        name, files = f"synthetic_{number}", names_of(facts.receipt, number)
        kind = "fileObject" if len(files) == 1 else "fileSet"
        sets.append(
            {"@id": f"{name}-files", "name": f"{name}-files", "encodingFormat": _PARQUET}
            | (
                {"@type": "cr:FileObject", "contentUrl": files[0], "sha256": facts.sums[files[0]]}
                if kind == "fileObject"
                else {"@type": "cr:FileSet", "includes": f"{name}/*.parquet"}
            )
        )
        fields = [_croissant_field(name, kind, c, at) for at, c in enumerate(facts.schema, 1)]
        records.append({"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields})
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": facts.title,
        "description": facts.text,
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "license": facts.said("license"),
        "creator": _present({"@type": "sc:Organization", "name": facts.said("issuer")}, "name"),
        "datePublished": facts.said("date"),
        "distribution": sets,
        "recordSet": records,
    }
    return _json({name: value for name, value in document.items() if value})


def _croissant_field(record: str, kind: str, column: Column, at: int) -> dict[str, Any]:
    about = ". ".join(filter(None, (column.label, column.description)))
    return {
        "@type": "cr:Field", "@id": f"{record}/V{at}", "name": column.name,
        "dataType": _CROISSANT[value_type(column)],
        "source": {kind: {"@id": f"{record}-files"}, "extract": {"column": column.name}},
    } | ({"description": about} if about else {})  # fmt: skip


def datacite(facts: Described) -> str:
    """DataCite 4 metadata, without the identifier that a repository gives."""
    rights, issuer = facts.said("license"), facts.said("issuer") or UNKNOWN
    document = {
        "creators": [{"name": issuer, "nameType": "Organizational"}],
        "titles": [{"title": facts.title}],
        "publisher": {"name": issuer},
        "publicationYear": facts.said("date")[:4],
        "types": {"resourceTypeGeneral": "Dataset", "resourceType": "Synthetic microdata"},
        "descriptions": [{"description": facts.text, "descriptionType": "Abstract"}],
        "rightsList": [{"rights": rights}] if rights else [],
        "formats": [_PARQUET] + ["text/csv"] * facts.receipt["files"]["csv"],
        "schemaVersion": "http://datacite.org/schema/kernel-4",
    }
    return _json({name: value for name, value in document.items() if value})


def datapackage(facts: Described) -> str:
    """A Frictionless data package (version 1)."""
    form = "csv" if facts.receipt["files"]["csv"] else "parquet"
    fields = [_package_field(column, form, facts) for column in facts.schema]
    resources = []
    for number in facts.numbers:
        files = facts.files(number)
        path = files[0] if len(files) == 1 else list(files)
        table = {"fields": fields, "missingValues": [facts.schema.null]}
        named = {"name": f"synthetic_{number}", "path": path, "format": form}
        if len(files) == 1:
            named["hash"] = f"sha256:{facts.sums[files[0]]}"
        resources.append(named | {"profile": "tabular-data-resource", "schema": table})
    document: dict[str, Any] = {"name": "synthetic-data", "title": facts.title}
    document |= {"description": facts.text, "resources": resources}
    if facts.said("date"):
        document["created"] = f"{facts.said('date')}T00:00:00Z"
    if facts.said("license"):
        document["licenses"] = [{"name": "license", "title": facts.said("license")}]
    return _json(document)


def _package_field(column: Column, form: str, facts: Described) -> dict[str, Any]:
    kind = value_type(column)
    field: dict[str, Any] = {"name": facts.name(column), "type": kind}
    field |= _present({"title": column.label, "description": column.description})
    limits: dict[str, Any] = {"required": not column.missing}
    if column.binned:
        limits |= {"minimum": _bound(column, 0), "maximum": _bound(column, -1)}
    if (
        kind == "date" and column.date_format and form == "csv"
    ):  # bounds are written as the days are
        timed = any(part in column.date_format for part in ("%H", "%I"))
        field |= {"type": "datetime" if timed else "date", "format": column.date_format}
        for end in ("minimum", "maximum"):
            day = datetime.datetime.fromisoformat(limits[end])
            limits[end] = day.strftime(column.date_format)
    elif kind == "string":
        limits["enum"] = facts.levels(column)
    return field | {"constraints": limits}


def ddi(facts: Described) -> str:
    """DDI-Codebook 2.5: one variable a column, its categories with their labels."""
    book = Element("codeBook", {"xmlns": "ddi:codebook:2_5", "version": "2.5"})
    citation = SubElement(SubElement(book, "stdyDscr"), "citation")
    SubElement(SubElement(citation, "titlStmt"), "titl").text = facts.title
    if facts.said("issuer"):
        SubElement(SubElement(citation, "rspStmt"), "AuthEnty").text = facts.said("issuer")
    info = SubElement(SubElement(book, "stdyDscr"), "stdyInfo")
    SubElement(info, "abstract").text = facts.text
    for number in facts.numbers:
        text = SubElement(SubElement(book, "fileDscr"), "fileTxt")
        SubElement(text, "fileName").text = f"synthetic_{number}"
    data = SubElement(book, "dataDscr")
    for place, column in enumerate(facts.schema, 1):
        _variable(data, column, place)
    indent(book)
    xml = _NOT_XML.sub("?", tostring(book, encoding="unicode"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml}\n'


def _variable(data: Element, column: Column, place: int) -> None:
    real = column.binned and not column.integer and column.kind != "date"
    nature = {"nominal": "nominal", "ordinal": "ordinal", "binary": "nominal"}
    about = {"ID": f"V{place}", "name": column.name, "intrvl": "contin" if real else "discrete"}
    about["nature"] = nature.get(column.kind, "interval")
    if column.measured_in:
        about["measUnit"] = column.measured_in
    variable = SubElement(data, "var", about)
    if column.label:
        SubElement(variable, "labl").text = column.label
    if column.binned:
        ends = {"min": str(_bound(column, 0)), "max": str(_bound(column, -1))}
        SubElement(SubElement(variable, "valrng"), "range", ends)
    if column.description:
        SubElement(variable, "txt").text = column.description
    meant = dict(column.level_labels)
    for level in column.levels:
        category = SubElement(variable, "catgry")
        SubElement(category, "catValu").text = str(level)
        if level in meant:
            SubElement(category, "labl").text = meant[level]
    kind = "character" if value_type(column) == "string" else "numeric"
    SubElement(variable, "varFormat", {"type": kind})
    if column.note:
        SubElement(variable, "notes").text = column.note


def read_r(facts: Described) -> str:
    """A script for R: factors with levels and labels, days, missing."""
    columns = []
    for column in facts.schema:
        kind, meant = value_type(column), {str(k): text for k, text in column.level_labels}
        levels = facts.levels(column) if kind != "boolean" else []
        labels = [*map(str, column.levels), column.other or ""][: len(levels)]  # without the guard
        labels = [meant.get(level, level) for level in labels]
        if len(set(labels)) < len(labels):  # R joins levels with one label
            labels = levels
        columns.append((column, kind, _strings(levels), _strings(labels)))
    files = [_strings(facts.files(number)) for number in facts.numbers]
    csv, names = facts.receipt["files"]["csv"], [facts.name(column) for column in facts.schema]
    renamed = _strings(facts.schema.names) if names != list(facts.schema.names) else ""
    return render(
        "gibbous.write", "read.R", columns=columns, files=files, csv=csv, quoted=_quoted,
        schema=facts.schema, renamed=renamed,
    ) + "\n"  # fmt: skip


def _quoted(text: str) -> str:
    """A text of R, in which letters that nobody sees, or that turn the line around, are written out."""
    shown = json.dumps(text.replace("\0", "?"), ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in shown)


def _strings(texts: Any) -> str:
    return f"c({', '.join(map(_quoted, texts))})" if texts else ""


def _bound(column: Column, end: int) -> Any:
    edge = column.edges[end]
    if column.kind == "date":
        return datetime.date.fromordinal(int(edge)).isoformat()
    return int(edge) if column.integer else float(edge)


def _present(values: dict[str, Any], needed: str = "") -> dict[str, Any]:
    kept = {name: value for name, value in values.items() if value}
    return kept if not needed or needed in kept else {}


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


SIDECARS: dict[str, Callable[[Described], str]] = {
    "croissant.json": croissant,
    "datacite.json": datacite,
    "datapackage.json": datapackage,
    "ddi.xml": ddi,
    "read.R": read_r,
}
_CONTEXT = {
    "@language": "en", "@vocab": "https://schema.org/", "citeAs": "cr:citeAs", "column": "cr:column",
    "conformsTo": "dct:conformsTo", "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"}, "extract": "cr:extract",
    "field": "cr:field", "fileObject": "cr:fileObject", "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet", "format": "cr:format", "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset", "jsonPath": "cr:jsonPath", "key": "cr:key",
    "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path",
    "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex",
    "repeated": "cr:repeated", "replace": "cr:replace", "sc": "https://schema.org/",
    "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField",
    "transform": "cr:transform",
}  # fmt: skip
