"""The internal report's executive paragraph: what the numbers say beside their references."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gibbous.core.finding import Finding
from gibbous.evaluation.findings import Findings
from gibbous.reporting.html_page import PACKAGE
from gibbous.reporting.labels import percent, short
from gibbous.write.rendering import paragraphs


def summary(findings: Findings) -> list[tuple[str, str]]:
    """(start in bold, rest) of each part; only what was measured is mentioned."""

    def known(*names: str) -> list[Finding]:
        every = (finding for name in names for finding in findings.named(name))
        return [finding for finding in every if not math.isnan(finding.value)]

    return paragraphs(
        PACKAGE,
        "internal_summary.md",
        findings=findings,
        known=known,
        beside=_beside,
        fewer=_fewer(findings.facts.get("rows")),
        number=short,
        percent=percent,
    )


def _beside(finding: Finding, form: str, resample: str, apart: str) -> list[str]:
    """What references score, each in a form of two fields: its name, its value."""
    null = dict(finding.null)
    named = (("bootstrap", resample), ("independent", apart))
    return [form % (words, short(null[name])) for name, words in named if name in null]


def _fewer(rows: object) -> str:
    """A caution where the holdout is the smaller table: it lies farther away by chance alone."""
    if not isinstance(rows, Mapping) or not rows.get("holdout") or not rows.get("synthetic"):
        return ""
    held, drawn = rows["holdout"], min(rows["synthetic"])
    if held >= drawn:
        return ""
    return f" (only {held:,}: fewer rows than {drawn:,} lie farther away by chance alone)"
