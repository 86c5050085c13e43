"""Libraries of an extra: imported where they are used, and missed with a line that says how to get them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Literal

from gibbous.core.errors import EngineFailure

Extra = Literal[
    "pandas",
    "demo",
    "evaluate",
    "report",
    "contract",
    "duckdb",
    "postgresql",
    "sign",
    "spark",
    "formats",
    "studio",
]


def need(module: str, extra: Extra) -> Any:
    """Import a module (dotted name) that only an extra brings; EngineFailure if it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.partition(".")[0]
        if error.name != library:
            raise  # the library is there and misses one of its own parts
        raise _missing(library, extra) from None


def require(modules: tuple[str, ...], extra: Extra) -> None:
    """Check before long work that top-level modules of an extra are there; else EngineFailure."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise _missing(module, extra)


def _missing(library: str, extra: Extra) -> EngineFailure:
    return EngineFailure(
        "EXTRA",
        f"This needs {library}, which is not installed.",
        f"The extra '{extra}' of gibbous brings it.",
        f'Run: pip install "gibbous[{extra}]".',
    )
