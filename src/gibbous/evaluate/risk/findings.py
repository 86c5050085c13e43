"""All risk findings of one evaluation: keys and a sensitive column in, findings out."""

from __future__ import annotations

from collections.abc import Sequence

from gibbous.core.errors import UsageError
from gibbous.core.finding import Finding
from gibbous.core.schema import Schema
from gibbous.evaluate.risk import (
    attribution,
    diversity,
    intruder,
    linking,
    membership,
    proximity,
    uniques,
)
from gibbous.evaluate.tables import Subject

NEED_KEYS = ("population_unique", "replicated_unique", "output_k")
NEED_SENSITIVE = ("intruder_mode", "disco", "cap", "link_gain", "output_l")
NEED_ORDERED = ("intruder_mean",)
NEED_HOLDOUT = ("dcr", "membership_distance", "membership_density")
NAMES = (
    "intruder_mode",
    "intruder_mean",
    "population_unique",
    "replicated_unique",
    "disco",
    "cap",
    "dcr",
    "membership_distance",
    "membership_density",
    "link_gain",
    "output_l",
    "output_k",
)


def findings(
    subject: Subject,
    *,
    keys: Sequence[str] = (),
    sensitive: str | Sequence[str] | None = None,
    links: Sequence[str] = (),
    fraction: float | None = None,
    probes: int = membership.PROBES,
    only: Sequence[str] | None = None,
) -> list[Finding]:
    """Every risk metric that the options allow.

    Args:
        subject: what is compared.
        keys: quasi-identifiers, the columns an intruder knows; without them the metrics in
            `NEED_KEYS`, `NEED_SENSITIVE` and `NEED_ORDERED` are left out.
        sensitive: column or columns that an intruder wants; one finding of each metric a column.
        links: further columns an intruder may link; empty: all others.
        fraction: share of the population that the real table holds, in (0, 1]; None: all of it.
        probes: at most this many rows a side are looked up by distance and density, drawn by the seed.
        only: names of findings; None: all.
    Returns:
        Findings in the order of `NAMES`, column after column.
    Raises:
        UsageError: a name is no column, a column is both key and sensitive, or a number is outside
            its range.
    """
    keys, wanted = tuple(keys), _columns(sensitive)
    _check(subject.schema, keys, wanted, tuple(links), fraction, probes)
    found: list[Finding] = []
    if keys:
        for column in wanted:
            if _any(only, "intruder_mode", "intruder_mean"):
                found += intruder.findings(subject, keys, column)
            if _any(only, "disco", "cap"):
                found += attribution.findings(subject, keys, column)
            if _any(only, "link_gain"):
                found += linking.findings(subject, keys, column, links)
            if _any(only, "output_l"):
                found += diversity.least(subject, keys, column)
        if _any(only, "population_unique", "replicated_unique"):
            found += uniques.findings(subject, keys, fraction=fraction)
        if _any(only, "output_k"):
            found += diversity.smallest(subject, keys)
    if _any(only, "dcr"):
        found += proximity.findings(subject, probes=probes)
    if _any(only, "membership_distance", "membership_density"):
        found += membership.findings(subject, probes=probes)
    kept = [one for one in found if only is None or one.name in only]
    return sorted(kept, key=lambda one: NAMES.index(one.name))


def left_out(
    schema: Schema, *, keys: Sequence[str] = (), sensitive: str | Sequence[str] | None = None
) -> dict[str, str]:
    """Findings that these options leave out, and what they would need."""
    wanted = _columns(sensitive)
    missing: dict[str, str] = {}
    if not keys:
        missing |= dict.fromkeys(NEED_KEYS, "keys")
    if not keys or not wanted:
        missing |= dict.fromkeys(NEED_SENSITIVE, "keys and a sensitive column")
    if not keys or not any(schema[name].ordered for name in wanted):
        missing |= dict.fromkeys(NEED_ORDERED, "keys and an ordered sensitive column")
    return {name: missing[name] for name in NAMES if name in missing}


def _any(only: Sequence[str] | None, *names: str) -> bool:
    return only is None or any(name in only for name in names)


def _columns(sensitive: str | Sequence[str] | None) -> tuple[str, ...]:
    if sensitive is None:
        return ()
    return (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)


def _check(
    schema: Schema,
    keys: tuple[str, ...],
    sensitive: tuple[str, ...],
    links: tuple[str, ...],
    fraction: float | None,
    probes: int,
) -> None:
    for name in (*keys, *sensitive, *links):
        schema.index(name)  # refuses with the names that exist
    for group, what in ((keys, "keys"), (sensitive, "sensitive columns"), (links, "links")):
        twice = sorted({name for name in group if group.count(name) > 1})
        if twice:
            raise UsageError(
                "TWICE",
                f"The {what} name {', '.join(twice)} more than once.",
                "Each column comes once.",
                "Remove one.",
            )
    both = sorted(set(keys) & set(sensitive) | set(links) & {*keys, *sensitive})
    if both:
        raise UsageError(
            "KEYS",
            f"Column {', '.join(both)} has two roles.",
            "An intruder knows the keys, links further columns, and wants the sensitive column: a "
            "column is one of these.",
            "Leave it out of all but one.",
        )
    if fraction is not None and not 0 < fraction <= 1:
        raise UsageError(
            "FRACTION",
            f"The sampling fraction is {fraction}.",
            "It is above 0 and at most 1: the share of the population that is in the real table.",
            "Correct it, or leave it out where the table is the population.",
        )
    if probes < 1:
        raise UsageError(
            "PROBES", f"Asked for {probes} probes.", "At least 1.", "Ask for more, or leave it out."
        )
