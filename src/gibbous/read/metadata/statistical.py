"""Files of SPSS, Stata and SAS -> what their dictionaries state: labels, value labels, missing values."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gibbous.core.extras import need
from gibbous.core.schema import Level
from gibbous.read.metadata.codebook import Codebook, Variable, plain_level, unsound
from gibbous.read.parquet_child import SPARE, limit_memory

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
_DAYS = re.compile(r"%?t?[cd]|[AESJ]?DATE|YYMMDD|MMDDYY|DDMMYY", re.I)  # of SPSS, SAS and Stata
_NOTE = re.compile(r"(\w+) (description|measured_in|note): (.*)")
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from gibbous.read.metadata.statistical import tell; tell(*sys.argv[2:])"
)
_SECONDS = 60  # that reading a dictionary may take
_FACTS = (
    "notes",
    "file_label",
    "column_names",
    "column_names_to_labels",
    "missing_ranges",
    "variable_measure",
    "readstat_variable_types",
    "original_variable_types",
)
_ALLOWED = "SPSS (.sav, .zsav, .por), Stata (.dta) and SAS (.sas7bdat, .xpt) files are read"


def of_statistical(path: Path) -> Codebook:
    """The dictionary of a file; its records are not read.

    Value labels are declared levels, without values that SPSS calls missing. Bounds and the privacy
    unit are not stated, nor value labels of SAS, which are in a catalog of their own.

    Raises:
        UsageError: the file cannot be read.
        EngineFailure: pyreadstat is not installed.
    """
    need("pyreadstat", "formats")
    meta = _asked(path)
    said = _said(meta.notes or ())
    variables = tuple(_variable(name, meta, said.get(name, {})) for name in meta.column_names)
    return Codebook(variables, None, meta.file_label or "")


def _asked(path: Path) -> SimpleNamespace:
    """What a child process says of a file: a crafted one can stop its reader, which is compiled code."""
    argv = [json.dumps(sys.path), os.fspath(path.absolute()), READERS[path.suffix.lower()]]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _START, *argv],
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
        return SimpleNamespace(**json.loads(done.stdout))
    except (subprocess.SubprocessError, ValueError, TypeError):
        raise unsound("cannot be read", "file", _ALLOWED) from None


def tell(path: str, reader: str) -> None:
    """In the child: read a dictionary and print it as JSON; nothing where it cannot be read."""
    pyreadstat = need("pyreadstat", "formats")
    limit_memory(SPARE)  # beyond what its libraries hold
    asked = {"user_missing": True} if reader == "read_sav" else {}
    with contextlib.suppress(
        pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError, MemoryError
    ):
        _, meta = getattr(pyreadstat, reader)(path, metadataonly=True, **asked)
        facts = {name: getattr(meta, name) for name in _FACTS}
        labels = {name: [*own.items()] for name, own in meta.variable_value_labels.items()}
        sys.stdout.write(json.dumps(facts | {"variable_value_labels": labels}, default=str))


def _said(lines: Sequence[str]) -> dict[str, dict[str, str]]:
    """Variable -> key -> text, of the documents that gibbous writes into SPSS files; of others, nothing."""
    whole: list[str] = []
    for line in lines:
        if line.startswith("  ") and whole:
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line.strip())
    said: dict[str, dict[str, str]] = {}
    for found in filter(None, map(_NOTE.fullmatch, whole)):
        said.setdefault(found[1], {})[found[2]] = found[3]
    return said


def _variable(name: str, meta: Any, said: dict[str, str]) -> Variable:
    texts = (("label", meta.column_names_to_labels.get(name)), *said.items())
    absent = meta.missing_ranges.get(name) or []
    remark = (
        "SPSS calls some of its values missing: write them as missing in the data."
        if absent
        else ""
    )
    labels: dict[Level, str] = {}
    for value, label in meta.variable_value_labels.get(name) or ():
        level = plain_level(value)
        if level is not None and not any(_within(level, span) for span in absent):
            labels[level] = str(label)
    measure = (meta.variable_measure or {}).get(name)
    text = meta.readstat_variable_types.get(name) == "string"
    days = _DAYS.match(str(meta.original_variable_types.get(name)))
    kind = "" if text else "date" if days else "numeric"
    base = Variable(name, texts=texts, remark=remark, kind=kind)
    if not labels or measure == "scale":
        return base
    return Variable(
        name, tuple(labels), tuple(labels.items()), measure == "ordinal", texts=texts, remark=remark
    )


def _within(level: Level, span: dict[str, Any]) -> bool:
    low, high = span.get("lo"), span.get("hi")
    if isinstance(level, str) or isinstance(low, str) or isinstance(high, str):
        return level == low
    return low is not None and high is not None and bool(low <= level <= high)
