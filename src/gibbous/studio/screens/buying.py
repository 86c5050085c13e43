"""Facts that are paid for: what they would cost and miss, said from names alone, and the purchase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from gibbous.core.errors import GibbousError
from gibbous.read.source import is_table
from gibbous.studio import commands
from gibbous.studio.screens.screen import needed_data, needed_schema
from gibbous.studio.words import refusal
from gibbous.studio.workplace import write

if TYPE_CHECKING:
    from gibbous.core.schema import Schema
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

PRICE = {"epsilon": "0.25", "delta": "1e-9", "person": "", "rows": ""}
NAMES = "names.txt"  # of a table of a database, in the private folder


def forecast(studio: Studio, form: Form, schema: Schema) -> dict[str, Any]:
    """What the facts would cost and miss, for the price that is in the fields; no record is read."""
    from gibbous.core.discovery import Discovery
    from gibbous.core.schema import Unit
    from gibbous.schema_discovery import plan_discovery

    person = schema.unit.column if schema.unit and schema.unit.column else ""
    most = str(schema.unit.max_rows) if schema.unit and person else ""
    fields = PRICE | {"person": person, "rows": most}
    fields |= {name: form[name] for name in fields if name in form}
    try:
        price, unit = _asked(form, fields)
        protects = Unit("person", fields["person"], unit[1]) if unit[0] else Unit()
        names = dict.fromkeys((*_names(schema), *([unit[0]] if unit[0] else [])))
        made = plan_discovery(
            Discovery(tuple(names), protects), epsilon=price["epsilon"], delta=price["delta"]
        )
    except GibbousError as error:
        return {"fields": fields, "problem": str(error)}
    return {
        "fields": fields,
        "problem": "",
        "headline": made.headline(),
        "parts": [(s.what, s.claim.amount(), s.detail) for s in made.spends],
        "misses": [(name, f"{value:,.0f}") for name, value in made.errors],
    }


def _names(schema: Schema) -> tuple[str, ...]:
    """All columns of the data, as far as the schema names them."""
    unit = schema.unit.column if schema.unit else None
    return (*([unit] if unit else []), *schema.names, *schema.ignore)


def _asked(form: Form, fields: dict[str, str]) -> tuple[dict[str, str], tuple[str, int]]:
    """Epsilon and delta; the column of persons, "" for none, and the most rows of one of them."""
    given = type(form)(fields)
    price = {"epsilon": given.number("epsilon"), "delta": given.number("delta")}
    return price, (given.text("person", 200), given.whole("rows", usual=1) or 1)


def price(studio: Studio, form: Form) -> str:
    """Say again what the facts would cost and miss, for another price."""
    return "describe?" + urlencode({n: form.text(n, 200) for n in PRICE}) + "#buy"


def buy(studio: Studio, form: Form) -> str:
    """The other road: spend a part of the budget on the facts."""
    place = studio.place
    paid, (person, most) = _asked(form, PRICE | form)
    if form.get("agree") != "yes":
        raise refusal("CONFIRM")
    unit = f"{person}:{most}" if person else "row"
    out, data = place.short(place.schema_file), needed_data(studio)
    names = ""
    if is_table(data):  # whose names no header says
        write(place.scratch / NAMES, "\n".join(_names(needed_schema(studio))) + "\n")
        names = place.short(place.scratch / NAMES)
    bought = commands.bought(data, out, paid, unit, place.reading(), names)
    then = commands.account(data, place.reading())
    studio.jobs.start(bought, "describe", form.get("once", ""), then=then)
    return "describe"
