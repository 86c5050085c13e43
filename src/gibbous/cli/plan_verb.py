"""`gibbous plan`: what a run will cost and need, from the schema alone; opens no record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gibbous.cli import engine_plan, show
from gibbous.cli.config import request_of, resolve
from gibbous.cli.flags import keyed, unkeyed
from gibbous.core.plan import Plan

if TYPE_CHECKING:
    from gibbous.cli.discovery_flags import DiscoveryFlags
    from gibbous.cli.flags import ConsentFlags, EngineFlags, RequestFlags, ScreenFlags


def run(
    asked: RequestFlags,
    consent: ConsentFlags,
    computing: EngineFlags,
    records: int | None,
    screen: ScreenFlags,
    public: DiscoveryFlags,
) -> None:
    """Print the plan of a request, and what its engine will need where one is named.

    Args:
        records: number of input rows, about; for what the engine needs.
    Raises:
        PrivacyRefused: an inferred fact would be used under a claim of differential privacy.
    """
    from gibbous.promise import planned

    told = keyed(asked, computing)
    values = resolve(asked.config, asked.setting or [], told, bought=public.given)
    if public.given:
        values["schema"] = public.discovery()
    request = request_of(values, **unkeyed(consent))
    privacy = request.privacy
    made = planned(privacy, request.output)
    engine = {}
    if "engine.name" in values or records is not None:
        engine = engine_plan.needs(made, privacy.schema, request.performance, records)
    uncovered = privacy.schema.inferred() if made.total.is_dp else ()
    if screen.json:
        show.as_json(made.to_json() | {"uncovered": list(uncovered), "engine": engine or None})
        return
    if not screen.quiet:
        details(made)
        if engine:
            engine_plan.tell(engine)
    show.line(
        f"total cost: {show.cost_words(made, privacy.schema, uncovered)}. Nothing was read or spent."
    )


def details(made: Plan) -> None:
    """The parts of a plan, for people."""
    given = ", ".join(_parameters(made)) or "no parameters"
    public = made.total.fixed or made.total.kind == "probabilistic"
    unknown = "as many rows as records" if public else "the noisy number of rows"
    rows = unknown if made.rows is None else f"{made.rows:,} rows"
    show.line(f"{made.mechanism} ({given}), {show.counted(made.sets, 'set')} of {rows}")
    if made.spends:
        show.table(
            ("what is paid for", "cost", "noise"),
            [(s.what, s.claim.amount(), s.detail) for s in made.spends],
        )
    facts: list[tuple[str, object]] = [(name, f"{value:.4g}") for name, value in made.errors]
    facts.append(
        ("cells to be counted", f"{made.cells:,}" if made.cells < 10**15 else f"{made.cells:.3g}")
    )
    facts.append(("memory beyond the records", show.bytes_words(made.memory_bytes)))
    show.table(("expected", "value"), facts)
    if made.published:
        show.line(f"  the paper claims: {made.published}")
    for said in made.beside:
        show.line(f"  beside it: {said.what}: {said.detail}")
    for warning in made.warnings:
        show.line(f"  warning: {warning}")


def _parameters(made: Plan) -> Iterator[str]:
    """The parameters that say something; public geography by its size."""
    for name, value in made.params.items():
        if isinstance(value, dict):
            sizes = [f"{v:,} {k}" for k, v in value.items() if isinstance(v, int)]
            yield f"{name}={', '.join(sizes) or value}"
        elif value is not None and value not in ("", [], ()):
            yield f"{name}={value}"
