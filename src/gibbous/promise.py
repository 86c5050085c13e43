"""Promise: what a run promises, and what that costs, from what a caller names; opens no record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gibbous.core.discovery import Discovery
from gibbous.core.errors import UsageError
from gibbous.core.keywords import DEFAULT_METHOD, answering
from gibbous.core.plan import Plan
from gibbous.core.protocols import Mechanism
from gibbous.core.request import Output, Privacy
from gibbous.core.schema import Schema, Unit
from gibbous.encode.ruled_rows import check_rules
from gibbous.mechanisms import limits, registry
from gibbous.mechanisms._discovery import Discovering
from gibbous.mechanisms._paid_facts import with_paid_facts
from gibbous.privacy.accountant import true_alarms
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.risk import asked_for, risk_of

USUAL_RISK = "tpr@1%=50%"  # at which false alarms a plan says what a membership test finds


@answering
def load_schema(schema: Schema | str | Path | None) -> Schema:
    """A schema as it is, or read from the path of a TOML file (docs/reference/schema.md).

    Raises:
        UsageError, SchemaMismatch: it is neither, or not a schema file; no row keeps its rules.
    """
    loaded = Schema.load(schema) if isinstance(schema, str | Path) else schema
    if isinstance(loaded, Schema):
        return check_rules(loaded)
    given = (
        "No schema was given." if schema is None else f"The schema is a {type(schema).__name__}."
    )
    raise UsageError(
        "NOSCHEMA",
        given,
        "It is a Schema or the path of a schema file, whose levels, bounds and unit are public; or a "
        "Discovery, which buys them with a share of the budget.",
        "Declare one: draft it with gibbous.infer_schema(data), correct it, and pass it. Or have it "
        'bought: pass gibbous.Discovery(names=[...], unit=gibbous.Unit("row")).',
    )


def privacy_of(
    schema: Schema | Discovery | str | Path | None,
    method: Mechanism | str | None = None,
    parameters: Mapping[str, object] | None = None,
    keywords: Sequence[str] = (),
    **more: Any,
) -> Privacy:
    """What is promised, from what a caller names.

    Args:
        schema: a Schema, a path to a schema file, or a Discovery.
        method: a mechanism, a registered name, or None for the default.
        parameters: of a method that is named.
        keywords: what else the caller takes, for the answer to an unknown one.
        more: further fields of `Privacy`.
    Raises:
        UsageError: there is no such schema or method.
    """
    inside = registry.instance(method or DEFAULT_METHOD, parameters, keywords)
    if more.get("risk") is not None:
        inside = asked_for(inside, str(more["risk"]))
    if isinstance(schema, Discovery):
        bought: Any = Discovering(inside, schema)
        return Privacy(schema.schema(), bought, **more)
    declared = load_schema(schema)
    if declared.unit is None and more.get("accept_inferred"):
        # A draft that was inferred has no unit. Whoever accepts inferred facts gets one row, and
        # reads it among the facts that the guarantee does not cover.
        declared = replace(declared, unit=Unit(source="inferred"))
    chosen = with_paid_facts(inside, declared)
    if more.get("risk") is not None and chosen.plan(declared, None).total.kind == "pure":
        chosen = with_paid_facts(asked_for(inside, str(more["risk"]), pure=True), declared)
    return Privacy(declared, chosen, **more)


def planned(privacy: Privacy, output: Output) -> Plan:
    """What the run would cost and need, from public facts alone; refused here if anywhere; see `plan`."""
    costs = privacy.method.plan(privacy.schema, output.rows, output.sets)
    limits.check(costs, privacy, output.rows)
    if privacy.risk is not None:
        risk_of(privacy.risk).check(costs.total)
    if not costs.total.mu_squared:
        return costs
    rate = float(risk_of(privacy.risk or USUAL_RISK).false_alarms)
    facts = (
        ("mu of Gaussian differential privacy", float(costs.total.mu)),
        (
            f"true alarms of a membership test at {100 * rate:g} % false ones, at most",
            true_alarms(costs.total, rate),
        ),
    )
    return replace(costs, errors=(*costs.errors, *facts))


def ledger_of(privacy: Privacy) -> Ledger:
    """The ledger that a run is charged to: the one that was named, or the default one."""
    ledger = privacy.ledger
    return ledger if isinstance(ledger, Ledger) else Ledger.open(Path(ledger) if ledger else None)
