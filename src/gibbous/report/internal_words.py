"""The internal report's executive paragraph: what the numbers say beside their references."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from gibbous.core.finding import Finding
from gibbous.evaluate.findings import Findings
from gibbous.report.labels import percent, short

READING = (
    "There are no thresholds. Each number stands beside what others score: a resample of the records "
    "(bootstrap), records that were not used (holdout), and rows whose columns were drawn apart "
    "(independent). A risk that people outside the data share comes from what the rows say about people in "
    "general, not from records being among those they were made of."
)


def summary(findings: Findings) -> Iterator[tuple[str, str]]:
    """(start in bold, rest) of each part; only what was measured is mentioned."""
    yield "What was compared.", _compared(findings)
    parts = (_distance, _associations, _correlations, _told_apart, _trained, _models)
    useful = [words for part in parts if (words := part(findings))]
    if useful:
        yield "How good.", " ".join(useful)
    risky = [*_guesses(findings), *_members(findings), *_unique(findings)]
    if risky:
        yield "How risky.", " ".join(risky)
    yield "How to read it.", READING


def _compared(findings: Findings) -> str:
    utility = sum(f.group == "utility" for f in findings)
    risk = sum(f.group == "risk" for f in findings)
    return (
        f"Synthetic rows with the confidential records they were made from, by {len(findings)} "
        f"findings, {utility} about utility and {risk} about risk."
    )


def _distance(findings: Findings) -> str:
    found = next((f for name in ("tv2", "tv1") for f in findings.named(name)), None)
    if found is None or math.isnan(found.value):
        return ""
    null = dict(found.null)
    words = f"{found.title}: {short(found.value)} on average, from 0 (equal) to 1"
    sayings = []
    if "bootstrap" in null:
        sayings.append(f"a resample of the records scores {short(null['bootstrap'])}")
    if "holdout" in null:
        sayings.append(f"other records {short(null['holdout'])}{_fewer(findings)}")
    if "independent" in null:
        sayings.append(f"rows without any association {short(null['independent'])}")
    if sayings:
        words += f"; {', '.join(sayings)}"
    return f"{words}.{_way(found)}"


def _fewer(findings: Findings) -> str:
    """A caution where the holdout is the smaller table: it lies farther away by chance alone."""
    rows = findings.facts.get("rows")
    if not isinstance(rows, Mapping) or not rows.get("holdout") or not rows.get("synthetic"):
        return ""
    held, drawn = rows["holdout"], min(rows["synthetic"])
    if held >= drawn:
        return ""
    return f" (only {held:,}: fewer rows than {drawn:,} lie farther away by chance alone)"


def _way(found: Finding) -> str:
    null = dict(found.null)
    low, high = null.get("bootstrap"), null.get("independent")
    if low is None or high is None or not high > low:
        return ""
    share = (found.value - low) / (high - low)
    if not 0 <= share <= 1:
        return ""
    return f" That is {percent(round(share, 2))} of the way from a resample to rows without association."


def _associations(findings: Findings) -> str:
    return _off(findings, "association", "Associations of pairs of columns")


def _correlations(findings: Findings) -> str:
    return _off(findings, "correlation", "Correlations of numbers")


def _off(findings: Findings, name: str, words: str) -> str:
    """By how much the pairs of a finding differ, beside columns that were drawn apart."""
    for found in findings.named(name):
        null = dict(found.null)
        if math.isnan(found.value) or "independent" not in null:
            return ""
        return (
            f"{words} are off by {short(found.value)} on average (without any "
            f"association: {short(null['independent'])})."
        )
    return ""


def _told_apart(findings: Findings) -> str:
    """How well a model tells synthetic rows from records; the model that does it best."""
    found = [f for name in ("pmse", "pmse_tree") for f in findings.named(name)]
    found = [f for f in found if not math.isnan(f.value)]
    if not found:
        return ""
    best = max(found, key=lambda f: f.value)
    null = dict(best.null)
    beside = [
        f"{words} {short(null[name])}"
        for name, words in (
            ("bootstrap", "a resample of the records"),
            ("independent", "rows without association"),
        )
        if name in null
    ]
    model = "a tree" if best.name == "pmse_tree" else "a logistic model"
    return (
        f"How well {model} tells synthetic rows from records: {short(best.value)}, from 0 (not at all) "
        f"to 0.25 (without error, where both have as many rows)"
        f"{'; ' if beside else ''}{', '.join(beside)}."
    )


def _trained(findings: Findings) -> str:
    """What models reach that were trained on synthetic rows."""
    found = [f for f in findings.named("tstr") if not math.isnan(f.value)]
    if not found:
        return ""
    parts = []
    for f in found:
        most = dict(f.null).get("real")
        beside = "" if most is None else f" (trained on records: {short(most)})"
        parts.append(f"{short(f.value)} for {', '.join(f.subject) or 'a column'}{beside}")
    measure = "an AUC" if "AUC" in found[0].title else "an R2"
    same = len({f.title for f in found}) == 1
    return (
        f"Models trained on synthetic rows reach on real records {measure if same else 'a score'} of "
        f"{', '.join(parts)}."
    )


def _models(findings: Findings) -> str:
    found = [f for f in findings.named("ci_overlap") if not math.isnan(f.value)]
    if not found:
        return ""
    parts = []
    for f in found:
        null = dict(f.null)
        said = [
            f"{words}: {short(null[name])}"
            for name, words in (
                ("bootstrap", "a resample of the records"),
                ("independent", "rows without any association"),
            )
            if name in null
        ]
        beside = f" ({'; '.join(said)})" if said else ""
        parts.append(f"{short(f.value)} for {f.subject[0] if f.subject else 'a model'}{beside}")
    return (
        f"Intervals of regression coefficients overlap by {', '.join(parts)}. Those of synthetic rows are "
        "wider, as they must be, so that equal coefficients do not reach 1."
    )


def _guesses(findings: Findings) -> Iterator[str]:
    for f in findings.named("intruder_mode"):
        if math.isnan(f.value):
            continue
        null, target = dict(f.null), f.subject[-1] if f.subject else "the sensitive column"
        words = (
            f"Somebody who knows the keys of a record guesses its column {target} right for "
            f"{percent(f.value)} of the records"
        )
        if "outsiders" in null:
            words += f", and for {percent(null['outsiders'])} of people outside the data"
        if "independent" in null:
            words += f"; from rows without association, for {percent(null['independent'])}"
        yield f"{words}."


def _members(findings: Findings) -> Iterator[str]:
    for f in findings.named("membership_distance"):
        if not math.isnan(f.value):
            yield (
                f"A test of membership by distance ranks a member above an outsider with probability "
                f"{short(f.value)}, where 0.5 is chance."
            )


def _unique(findings: Findings) -> Iterator[str]:
    for f in findings.named("replicated_unique"):
        if math.isnan(f.value):
            continue
        null = dict(f.null)
        words = (
            f"{percent(f.value)} of the records are unique on the keys and have a synthetic row of "
            "the same keys that is unique, too"
        )
        if "outsiders" in null:
            words += f" (outsiders: {percent(null['outsiders'])})"
        elif "independent" in null:
            words += f" (rows without association: {percent(null['independent'])})"
        yield f"{words}."
