"""Spark: records are validated, encoded and counted where they lie; only counts leave the executors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["SparkEngine", "SparkWorkers", "estimate"]

if TYPE_CHECKING:
    from gibbous.disintegrate.spark.engine import SparkEngine
    from gibbous.disintegrate.spark.estimate import estimate
    from gibbous.disintegrate.spark.workers import SparkWorkers


def __getattr__(name: str) -> Any:
    # Executors import this package for `partial` alone: nothing else is loaded with it.
    if name in __all__:
        from importlib import import_module

        where = {"SparkEngine": "engine", "SparkWorkers": "workers", "estimate": "estimate"}
        return getattr(import_module(f"{__name__}.{where[name]}"), name)
    raise AttributeError(name)
