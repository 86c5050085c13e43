"""Classes that are called as those of SDV; a fit buys levels and bounds, and is charged.

    from gibbous.coming_from.sdv import GaussianCopulaSynthesizer, Metadata

Metadata hold names and types, which are public by the word of whoever hands over a table; levels and ranges,
which SDV reads off records, are bought.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gibbous.coming_from import Fitted, NotHere, without
from gibbous.write.load import load as load_release

_KINDS = {"i": "numerical", "u": "numerical", "f": "numerical", "M": "datetime", "b": "boolean"}
_DRAWN = ("numerical", "datetime", "boolean", "categorical", "ordinal")


class Metadata:
    """Names and sdtypes of one table, as SDV writes them; no value of a record is looked at."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.name, table = _only(document.get("tables") or {"table": document})
        self.columns: dict[str, dict[str, Any]] = {n: dict(c) for n, c in table["columns"].items()}
        self.primary_key: str | None = table.get("primary_key")

    @classmethod
    def detect_from_dataframe(cls, data: Any, table_name: str = "table") -> Metadata:
        """Names of the columns of a pandas frame, and sdtypes that their dtypes say."""
        kinds = {name: getattr(dtype, "kind", "O") for name, dtype in data.dtypes.items()}
        columns = {name: {"sdtype": _KINDS.get(k, "categorical")} for name, k in kinds.items()}
        return cls({"tables": {table_name: {"columns": columns}}})

    @classmethod
    def detect_from_dataframes(cls, data: Mapping[str, Any]) -> Metadata:
        """The same of a dictionary with one frame."""
        return cls.detect_from_dataframe(*reversed(_only(data)))

    @classmethod
    def load_from_json(cls, filepath: str | Path) -> Metadata:
        """What `save_to_json` wrote, or SDV's."""
        return cls(json.loads(Path(filepath).read_text(encoding="utf-8")))

    def to_dict(self) -> dict[str, Any]:
        """As SDV writes it."""
        key = {"primary_key": self.primary_key} if self.primary_key else {}
        return {
            "tables": {self.name: {"columns": self.columns} | key},
            "METADATA_SPEC_VERSION": "V1",
        }

    def save_to_json(self, filepath: str | Path) -> None:
        """Write them to a new file."""
        with Path(filepath).open("x", encoding="utf-8") as file:
            json.dump(self.to_dict(), file, indent=1)

    def update_column(self, column_name: str, table_name: str | None = None, **facts: Any) -> None:
        """Change what is said of a column."""
        self.columns[column_name] = self.columns.get(column_name, {}) | facts

    def set_primary_key(self, column_name: str, table_name: str | None = None) -> None:
        """The column that tells rows apart: it is left out of what is drawn."""
        self.primary_key = column_name


class GaussianCopulaSynthesizer(Fitted):
    """`gibbous.Synthesizer` under the name of SDV's: another model, and a fit that is charged."""

    def __init__(self, metadata: Metadata, **given: Any) -> None:
        super().__init__(**given)
        self.metadata, self._many = metadata, False

    def fit(self, data: Any) -> None:
        """Spend: of a frame, or of a dictionary with one. Keys and personal columns are left out."""
        self._many = isinstance(data, Mapping)
        frame = _only(data)[1] if self._many else data
        told = {n: self.metadata.columns.get(n, {}).get("sdtype") for n in frame.columns}
        drawn = {n: k for n, k in told.items() if k in _DRAWN and n != self.metadata.primary_key}
        person = {self.unit.column: None} if self.unit.column else {}
        drawn = {n: k for n, k in drawn.items() if n not in person}
        self.buy(
            frame[[*person, *drawn]],
            numeric=tuple(n for n, kind in drawn.items() if kind == "numerical"),
            date=tuple(n for n, kind in drawn.items() if kind == "datetime"),
        )

    def sample(self, num_rows: int | None = None, **options: Any) -> Any:
        """Rows from what was paid for; None takes as many as were bought with the fit."""
        without("sample", options)
        found = self.release.sets[0] if num_rows is None else self.release.sample(num_rows)
        return {self.metadata.name: found} if self._many else found

    def sample_remaining_columns(self, known_columns: Any, **options: Any) -> Any:
        """The other columns of rows, given these."""
        without("sample_remaining_columns", options)
        return self.release.sample(len(known_columns), given=known_columns)

    def save(self, filepath: str | Path) -> None:
        """Write the release: a folder, and no pickle."""
        self.release.save(filepath)

    load = staticmethod(load_release)  # it samples, too

    def __getattr__(self, name: str) -> Any:
        raise NotHere(
            "FOREIGN",
            f"{type(self).__name__} has no {name!r} here.",
            "What SDV learns of records has no guarantee; here are fit, sample, save and load.",
            "Look at `release`: its schema, tables, plan and receipt are public.",
        )


CTGANSynthesizer = TVAESynthesizer = CopulaGANSynthesizer = GaussianCopulaSynthesizer


def _only(data: Mapping[str, Any]) -> tuple[str, Any]:
    if len(data) != 1:
        wrong, fix = f"There are {len(data)} tables.", "Join them first, or run each for itself."
        raise NotHere("TABLES", wrong, "One is synthesized.", fix)
    return next(iter(data.items()))
