"""Files of other tools that describe a table, for the target `request`."""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import tempfile
import zipfile
from pathlib import Path

from tests.read.test_codebooks import CROISSANT, DDI, DPSYNTH, SHEET, SMARTNOISE

NAMES = [f"metadata.{one}" for one in ("json", "yaml", "xml", "csv", "tsv", "xlsx", "sav", "dta")]
PARTS = ("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/styles.xml", "[Content_Types].xml")
NAMES += [f"metadata.xlsx/{part}" for part in PARTS]  # in a workbook that is otherwise whole


def written(folder: Path, name: str, body: bytes) -> str:
    """Write a file, or a workbook of which one part is given; its name."""
    name, _, part = name.partition("/")
    if part and _there("openpyxl"):
        packed = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(_excel())) as old, zipfile.ZipFile(packed, "w") as new:
            for one in old.namelist():
                new.writestr(one, body if one == part else old.read(one))
        body = packed.getvalue()
    (folder / name).write_bytes(body)
    return name


def seeds() -> list[bytes]:
    """One or more of each kind; of those that need a library, where it is installed."""
    columns = {"a": {"sdtype": "categorical"}, "n": {"sdtype": "numerical", "min": 0, "max": 9}}
    sdv = {"METADATA_SPEC_VERSION": "V1", "tables": {"t": {"columns": columns}}}
    documents = (sdv, {"a": 2, "b": 30}, SMARTNOISE, DPSYNTH, CROISSANT)
    found = [("metadata.json", json.dumps(one).encode()) for one in documents]
    found += [("metadata.xml", DDI.encode()), ("metadata.csv", SHEET.encode())]
    found += [("metadata.tsv", SHEET.replace(",", "\t").encode())]
    if _there("yaml"):
        import yaml

        found += [("metadata.yaml", yaml.safe_dump(one).encode()) for one in documents[2:4]]
    if _there("openpyxl"):
        found += [("metadata.xlsx", _excel())]
        with zipfile.ZipFile(io.BytesIO(_excel())) as packed:
            found += [(f"metadata.xlsx/{part}", packed.read(part)) for part in PARTS]
    if _there("pyreadstat"):
        found += [(f"metadata.{form}", _labelled(form)) for form in ("sav", "dta")]
    return [name.encode() + b"\n" + body for name, body in found]


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@functools.cache
def _excel() -> bytes:
    if not _there("openpyxl"):
        return b""
    import openpyxl

    book = openpyxl.Workbook()
    for row in SHEET.strip().split("\n"):
        book.active.append([cell or None for cell in row.split(",")])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _labelled(form: str) -> bytes:
    import pandas as pd
    import pyreadstat

    frame = pd.DataFrame({"sex": [1.0, 2.0], "name": ["a", "b"]})
    labels = {"variable_value_labels": {"sex": {1: "male", 2: "female"}}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{form}"
        getattr(pyreadstat, f"write_{form}")(frame, path, column_labels={"sex": "Sex"}, **labels)
        return path.read_bytes()
