"""Files and frames -> columns under a schema. Nouns of `core` get the functions that read from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gibbous.core.readers import Readers, hand_down

if TYPE_CHECKING:
    from pathlib import Path

    from gibbous.core.dataset import DataSet
    from gibbous.core.readers import Types
    from gibbous.core.schema import Schema


def _load(path: str | Path) -> Schema:
    from gibbous.read.schema_file import load_schema

    return load_schema(path)


def _infer(source: object) -> Schema:
    from gibbous.read.infer import infer_schema

    return infer_schema(source)


def _dataset(source: object, key: bytes, schema: Schema | None, options: object) -> DataSet:
    from gibbous.read.source import dataset

    return dataset(source, key, schema, options)


def _names(source: object, options: object) -> tuple[str, ...]:
    from gibbous.read.public_types import public_names

    return public_names(source, options)  # type: ignore[arg-type]


def _types(source: object, options: object) -> Types:
    from gibbous.read.public_types import public_types

    return public_types(source, options)  # type: ignore[arg-type]


def _save(schema: Schema, path: str | Path, overwrite: bool) -> Path:
    from gibbous.read.schema_write import save_schema

    return save_schema(schema, path, overwrite)


hand_down(Readers(_load, _infer, _dataset, _names, _types, _save))
