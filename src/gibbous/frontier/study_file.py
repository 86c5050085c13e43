"""study.toml: what a study compares, as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gibbous.core.documents import Unreadable, floats, read_text, toml
from gibbous.core.errors import UsageError
from gibbous.core.keywords import did_you_mean
from gibbous.core.params import describe
from gibbous.flows import Geography, load_geography
from gibbous.frontier.grid import Arm
from gibbous.mechanisms import registry
from gibbous.read.source import ReadOptions, is_table

MAX_BYTES = 1 << 20
TOP = ("data", "schema", "geography", "reading", "study", "evaluate", "methods")
STUDY: dict[str, tuple[type, ...]] = {
    "epsilon": (list,),
    "l": (list,),
    "repeats": (int,),
    "rows": (int,),
    "metrics": (list,),
    "holdout": (str, int, Decimal),
    "seed": (int,),
    "workers": (int,),
    "public_data": (bool,),
    "x": (str,),
    "y": (list, str),
}
EVALUATE: dict[str, tuple[type, ...]] = {
    "keys": (list,),
    "sensitive": (list, str),
    "targets": (list,),
    "formulas": (list,),
    "given": (list,),
    "fraction": (int, Decimal),
}
READING: dict[str, tuple[type, ...]] = {
    "sep": (str,),
    "encoding": (str,),
    "decimal": (str,),
    "amounts": (bool,),
    "on_bad_line": (str,),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A study as its file says.

    Attributes:
        source, schema: paths, relative to the file; the source may be the address of a table, and flows
            have their geography in place of a schema.
        methods: label -> arm.
        x, y: axes of the maps that are drawn; no y for every finding that is measured.
    """

    source: Path | str
    schema: Path | Geography
    methods: dict[str, Arm]
    settings: dict[str, Any] = field(default_factory=dict)
    x: str = "epsilon_proven"
    y: tuple[str, ...] = ()


def load(path: Path, reading: Mapping[str, str] = MappingProxyType({})) -> Plan:
    """Read a study file.

    Args:
        reading: how text files are read, in place of what [reading] of the file says.
    Raises:
        UsageError: not readable, not TOML, an unknown key, a value of the wrong kind, a method that
            does not exist.
    """
    try:
        document = toml(read_text(path, MAX_BYTES), parse_float=Decimal)
    except Unreadable as error:
        raise _wrong(f"The study file {str(path)!r} {error}.", "Check --config.") from None
    _known(document, TOP, "the file")
    declared = "geography" if "geography" in document else "schema"
    for key in ("data", declared):
        if not isinstance(document.get(key), str):
            raise _wrong(f"The study file does not name its {key}.", f'Add {key} = "FILE".')
    if {"geography", "schema"} <= document.keys():
        raise _wrong(
            "The study file has a schema and a geography.", "Flows have a geography alone."
        )
    data = document["data"]
    study = _section(document, "study", STUDY)
    options = _section(document, "evaluate", EVALUATE)
    x, y = study.pop("x", "epsilon_proven"), study.pop("y", ())
    if isinstance(study.get("holdout"), str):
        study["holdout"] = path.parent / study["holdout"]
    settings = {key: floats(value) for key, value in (study | options).items()}
    read = _section(document, "reading", READING) | dict(reading)
    if read:
        settings["options"] = ReadOptions(**read)
    place = path.parent / document[declared]
    return Plan(
        data if is_table(data) else path.parent / data,
        load_geography(place) if declared == "geography" else place,
        _methods(document.get("methods", [])),
        settings,
        x,
        (y,) if isinstance(y, str) else tuple(y or settings.get("metrics", ())),
    )


def _methods(given: Any) -> dict[str, Arm]:
    if not isinstance(given, list) or not given:
        raise _wrong("The study file names no method.", 'Add [[methods]] with name = "noisy_pegs".')
    arms: dict[str, Arm] = {}
    for one in given:
        if not isinstance(one, dict):
            raise _wrong(
                "A method of the study file is not a table.", "Write it below [[methods]]."
            )
        name, label = one.get("name"), one.get("label", one.get("name"))
        if not isinstance(name, str) or not isinstance(label, str):
            raise _wrong("A [[methods]] has no name.", 'Add name = "noisy_pegs".')
        if label in arms:
            raise _wrong(f"Two methods are called {label!r}.", "Give one of them another label.")
        kind = registry.load(name)
        hints = {p.name for p in describe(kind)}
        params = {k: floats(v) for k, v in one.items() if k not in ("name", "label")}
        _known(params, tuple(hints), f"method {name}")
        arms[label] = Arm(label, name, tuple(sorted(params.items())))
    return arms


def _section(
    document: Mapping[str, Any], name: str, kinds: Mapping[str, tuple[type, ...]]
) -> dict[str, Any]:
    section = document.get(name, {})
    if not isinstance(section, dict):
        raise _wrong(f"{name} is not a section.", f"Write [{name}] and its keys below it.")
    _known(section, tuple(kinds), f"[{name}]")
    for key, value in section.items():
        right = isinstance(value, kinds[key]) and (
            bool in kinds[key] or not isinstance(value, bool)
        )
        if not right:
            words = " or ".join(_WORDS[kind] for kind in kinds[key])
            raise _wrong(f"{key} of [{name}] is of the wrong kind.", f"Write {words}.")
    return dict(section)


_WORDS = {
    list: "a list",
    int: "a whole number",
    Decimal: "a number",
    str: "text",
    bool: "true or false",
}


def _known(given: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in allowed:
            known = f"Known: {', '.join(sorted(allowed))}."
            raise _wrong(f"There is no key {key!r} in {where}.", did_you_mean(key, allowed, known))


def _wrong(what: str, fix: str) -> UsageError:
    return UsageError(
        "STUDYFILE",
        what,
        "A study file has data, schema (flows: geography), [reading], [study], [evaluate], [[methods]].",
        fix,
    )
