"""Studies by name. A new study adds one line here."""

from __future__ import annotations

import importlib

from gibbous.core.errors import UsageError
from gibbous.core.keywords import did_you_mean
from gibbous.studies.study_parts import Study

MODULES = {
    "bowen2016-1": "gibbous.studies.bowen2016_1",
    "bowen2016-2": "gibbous.studies.bowen2016_2",
    "bowen2016-3": "gibbous.studies.bowen2016_3",
    "park2013": "gibbous.studies.park2013",
    "park2014": "gibbous.studies.park2014",
    "sbhg-1": "gibbous.studies.sbhg_1",
    "sbhg-2": "gibbous.studies.sbhg_2",
    "sbhg-3": "gibbous.studies.sbhg_3",
    "onthemap": "gibbous.studies.onthemap",
}
"""Name -> the module that defines STUDY."""


def names() -> tuple[str, ...]:
    """Names of all studies; loads none."""
    return tuple(MODULES)


def load(name: str) -> Study:
    """The study of a name.

    Raises:
        UsageError: there is no such study; the nearest name is offered.
    """
    if name not in MODULES:
        raise UsageError(
            "UNKNOWNSTUDY",
            f"There is no study {name!r}.",
            f"Studies are {', '.join(MODULES)}.",
            did_you_mean(name, MODULES, "Choose one of these.", likeness=0.5),
        )
    study: Study = importlib.import_module(MODULES[name]).STUDY
    return study
