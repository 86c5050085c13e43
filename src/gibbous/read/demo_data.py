"""Where the demonstration's data are: a file that statsmodels ships, and our declared schema for it."""

from __future__ import annotations

import importlib.util
from importlib import resources
from pathlib import Path

from gibbous.core.errors import EngineFailure
from gibbous.core.schema import Schema

ROWS = 20_190  # person-years, from the documentation of the data set
TITLE = "RAND health insurance experiment"
PARTS = ("datasets", "randhie", "randhie.csv")


def demo_file() -> Path:
    """The CSV file of the experiment, found without importing statsmodels.

    Raises:
        EngineFailure: statsmodels is not installed, or no longer has the file.
    """
    found = importlib.util.find_spec("statsmodels")
    folders = list(found.submodule_search_locations or []) if found else []
    for folder in folders:
        path = Path(folder).joinpath(*PARTS)
        if path.is_file():
            return path
    raise EngineFailure(
        "NODEMO",
        "The demonstration's data are not here.",
        "They are a file of the library statsmodels, which is optional.",
        'Install it: pip install "gibbous[demo]".',
    )


def demo_schema() -> Schema:
    """The declared schema of the experiment: codebook facts and our own caps, nothing read off it."""
    from gibbous.read.schema_file import load_schema

    with resources.as_file(resources.files("gibbous") / "data" / "randhie.schema.toml") as path:
        return load_schema(path)
