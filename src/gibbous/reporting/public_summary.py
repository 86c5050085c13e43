"""The public report's sentences: what was released, what it promises, what it does not protect."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

from gibbous.core.release import Release
from gibbous.reporting import odds
from gibbous.reporting.html_page import PACKAGE
from gibbous.reporting.labels import percent, short
from gibbous.write import glossary
from gibbous.write.rendering import paragraphs


def summary(release: Release) -> list[tuple[str, str]]:
    """The executive paragraph: (start in bold, rest) of each part."""
    tables = release.tables
    published = () if tables is None else tables.published()
    return paragraphs(
        PACKAGE,
        "public_summary.md",
        receipt=release.receipt,
        rows=release.receipt["rows"],
        given=release.receipt.get("given"),
        guarantee=str(release.receipt["guarantee"]),
        schema=release.schema,
        plan=release.plan,
        total=release.plan.total,
        tables=tables,
        thresholds=any(table.noise.threshold is not None for table in published),
        unit=unit(release),
        words=glossary,
        odds=odds,
        exp=exp,
        number=short,
        percent=percent,
    )


def unit(release: Release) -> str:
    """The privacy unit as the object of a sentence."""
    unit = (release.receipt["unit"] or {"words": "one row"})["words"]
    protected = unit.replace("one ", "any one ", 1).replace(", at most", " with at most", 1)
    return f"{protected} of the confidential data"


def unprotected(release: Release) -> Iterator[str]:
    """What no reader may take the release to protect."""
    total = release.plan.total
    yield "What is true of many people: a common pattern stays visible, and is meant to."
    if total.is_dp:
        yield glossary.groups(release.plan)
        yield "Against other releases of the same data: their costs add up in the ledger."
    if total.kind == "l_diversity":
        yield "Presence: l-diversity limits how sure one redrawn value is, not who is in the data."
    yield "The schema itself: names, levels, bounds and cut points are published as they are."
    yield (
        "Fitness for use: noise, bins and bounds distort, and numbers are drawn anew, "
        "uniformly within a bin or from a fitted law. "
        "Conclusions that matter should be checked on the original data."
    )
    yield "Against coincidence: a synthetic row may by chance equal a record."
