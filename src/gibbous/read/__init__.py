"""Files and frames -> columns under a schema. Nouns of `core` get the functions that read from here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from gibbous.core.readers import Readers, hand_down


def _late(module: str, name: str) -> Callable[..., Any]:
    """A function of this package, whose module is imported when it is first called."""

    def call(*given: Any) -> Any:
        return getattr(importlib.import_module(f"gibbous.read.{module}"), name)(*given)

    return call


hand_down(
    Readers(
        load=_late("schema_file", "load_schema"),
        infer=_late("infer", "infer_schema"),
        dataset=_late("source", "dataset"),
        names=_late("public_types", "public_names"),
        types=_late("public_types", "public_types"),
        save=_late("schema_write", "save_schema"),
    )
)
