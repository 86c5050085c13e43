"""Screen 3: whom the guarantee protects, how strongly, and what that costs in accuracy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING, Any

from gibbous.core.errors import GibbousError
from gibbous.core.keywords import DEFAULT_METHOD
from gibbous.core.plan import Plan
from gibbous.core.schema import Schema, Unit
from gibbous.studio import accounts, commands
from gibbous.studio.screens.describe import save_schema
from gibbous.studio.screens.facts import without
from gibbous.studio.screens.screen import Screen, needed_data, needed_schema
from gibbous.studio.words import refusal

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

OFFERED = ("0.1", "0.5", "1", "2", "4")
DELTA = "1e-9"
HALF = 1.96 / 0.5  # noise within half of a count, 19 times of 20


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    schema, place = needed_schema(studio), studio.place
    values = place.request()
    chosen = str(values.get("privacy.epsilon", ""))
    own = [] if not chosen or float(chosen) in map(float, OFFERED) else [_plain(chosen)]
    account = accounts.known(studio)
    capped = studio.jobs.newest("ledger", "cap")
    return {
        "unit": schema.unit,
        "columns": [*dict.fromkeys((*_persons(schema), *schema.names, *schema.ignore))],
        "rows": [_row(studio, schema, epsilon) for epsilon in sorted((*OFFERED, *own), key=float)],
        "chosen": _plain(chosen) if chosen else "",
        "delta": form.get("delta", _plain(values.get("privacy.delta", DELTA))),
        "size": form.get("size", values.get("output.rows", "")),
        "sets": form.get("sets", values.get("output.sets", 1)),
        "capped": bool(account and account.cap),
        "job": capped,
        "command": (planned := commands.planned(values, accept=bool(schema.inferred()))).shell,
        "python": planned.python,
    }


def _plain(number: object) -> str:
    return f"{float(str(number)):.12g}".replace("e-0", "e-")


def _persons(schema: Schema) -> tuple[str, ...]:
    """The column of persons, which no list of the schema has."""
    return (schema.unit.column,) if schema.unit and schema.unit.column else ()


def _row(studio: Studio, schema: Schema, epsilon: str) -> dict[str, Any]:
    """What one epsilon means, before any record is read."""
    made, problem = plan_of(studio, {"privacy.epsilon": epsilon})
    factor = exp(min(float(epsilon), 700.0))
    errors = dict(made.errors) if made else {}
    cell = next((v for name, v in errors.items() if "one-way" in name or "cell" in name), None)
    alarms = next((v for name, v in errors.items() if "true alarms" in name), None)
    return {
        "epsilon": epsilon,
        "guess": 100 * factor / (1 + factor),
        "belief": 100 * 0.1 * factor / (0.1 * factor + 0.9),
        "alarms": None if alarms is None else 100 * alarms,
        "errors": _errors(errors),
        "smallest": None if cell is None else HALF * cell,
        "problem": problem,
    }


def _errors(errors: dict[str, float]) -> list[tuple[str, float]]:
    from gibbous.studio.words import words

    short = words()["errors"]
    real = [name for name in errors if not re.search("alarms|mu of", name)][:3]
    return [(short.get(name, name), errors[name]) for name in real]


def plan_of(
    studio: Studio, changes: dict[str, Any], gone: Sequence[str] = ()
) -> tuple[Plan | None, str]:
    """The plan of the request with changes and without some keys, by the schema; or why there is none."""
    from gibbous.core.params import describe
    from gibbous.core.request import Output
    from gibbous.mechanisms.registry import load
    from gibbous.promise import planned, privacy_of

    values = {"privacy.delta": DELTA} | studio.place.request() | changes
    values = {key: value for key, value in values.items() if key not in gone}
    name = str(values.get("mechanism.name", DEFAULT_METHOD))
    given = {
        key.partition(".")[2]: _number(value)
        for key, value in values.items()
        if key.startswith(("privacy.", "mechanism.")) and key != "mechanism.name"
    }
    try:
        known = {p.name for p in describe(load(name))}
        parameters = {key: value for key, value in given.items() if key in known}
        schema = needed_schema(studio)
        schema = schema if schema.unit else replace(schema, unit=Unit(source="inferred"))
        privacy = privacy_of(schema, name, parameters, accept_inferred=True)
        output = Output(rows=values.get("output.rows"), sets=values.get("output.sets", 1))
        return planned(privacy, output), ""
    except GibbousError as error:
        return None, str(error)


def budget_of(studio: Studio, name: str = "") -> dict[str, Any]:
    """Epsilon and delta of the request, as the method takes them; None for what it has no place for."""
    from gibbous.core.params import describe
    from gibbous.mechanisms.registry import load

    values = studio.place.request()
    name = name or str(values.get("mechanism.name", DEFAULT_METHOD))
    known = {p.name for p in describe(load(name))}
    return {
        f"privacy.{one}": values.get(f"privacy.{one}", usual) if one in known else None
        for one, usual in (("epsilon", None), ("delta", float(DELTA)))
    }


def _number(value: Any) -> Any:
    try:
        return value if isinstance(value, bool | list | int) else float(value)
    except (TypeError, ValueError):
        return value


def _unit(studio: Studio, form: Form) -> str:
    """A row, or a person with at most k rows. The column of persons is not released."""
    schema, kind = needed_schema(studio), form.text("unit", 20)
    before = _persons(schema)  # not released, whoever is protected
    schema = replace(schema, ignore=(*schema.ignore, *before), unit=None)
    if kind == "row":
        save_schema(studio, replace(schema, unit=Unit()))
        return "budget"
    name, most = form.text("person", 200), form.whole("k") or 0
    if name not in (*schema.names, *schema.ignore):
        raise refusal("UNIT")
    unit = Unit("person", name, most)
    schema = without(studio, schema, name) if name in schema.names else schema
    ignore = tuple(other for other in schema.ignore if other != name)
    save_schema(studio, replace(schema, ignore=ignore, unit=unit))
    return "budget"


def _spend(studio: Studio, form: Form) -> str:
    epsilon = form.number("own") if form.text("own") else form.number("epsilon")
    changes: dict[str, Any] = {
        "privacy.epsilon": float(epsilon),
        "privacy.delta": float(form.number("delta", DELTA, zero=True)),
        "output.rows": form.whole("size"),
        "output.sets": form.whole("sets", usual=1),
    }
    given = {k: v for k, v in changes.items() if v is not None}
    _, problem = plan_of(studio, given)
    _, usual = plan_of(studio, given | {"privacy.epsilon": 1.0})
    if problem and problem != usual:
        raise refusal("BUDGET", problem)
    if budget_of(studio)["privacy.delta"] is None:
        changes["privacy.delta"] = None
    studio.place.save(changes)
    return "budget" if problem else "method"


def _cap(studio: Studio, form: Form) -> str:
    data, reading = needed_data(studio), studio.place.reading()
    epsilon, delta = form.number("epsilon"), form.number("delta", DELTA)
    command = commands.capped(data, epsilon, delta, reading)
    then = commands.account(data, reading)
    studio.jobs.start(command, "budget", form.get("once", ""), then=then)
    return "budget"


SCREEN = Screen("budget", _show, {"unit": _unit, "spend": _spend, "cap": _cap})
