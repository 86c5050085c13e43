"""METHODS.md: what was done and what it promises, in plain words for a review board."""

from __future__ import annotations

from collections.abc import Iterator

from gibbous.core.claim import Claim, short
from gibbous.core.facts import fact_words
from gibbous.core.schema import Schema
from gibbous.core.tables import Table, Tables
from gibbous.write.certificate import Facts, assumptions, guarantee

_RELATION = {
    "add_remove": "tables that differ by one such unit being present or absent",
    "replace_one": "tables of the same size in which one such unit has other values",
}


def methods_text(facts: Facts, tables: Tables | None, *, sets: int, csv: bool, raw: bool) -> str:
    """The text of METHODS.md; it depends on public facts only.

    Args:
        tables: the published tables; None when the rows were what was paid for.
        sets: number of synthetic sets.
        csv: whether CSV files were written.
        raw: whether they are without the guard against formulas.
    """
    lines = [
        "# How these synthetic data were made",
        "",
        f"**{plain(guarantee(facts.plan, facts.uncovered))}**",
        "",
        *_warning(facts),
        *_done(facts, tables, sets),
        *_meaning(facts),
        *_said(facts),
        *_assumed(facts),
        *_uncovered(facts),
        *_limits(facts),
        *_files(tables, csv, raw),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _warning(facts: Facts) -> Iterator[str]:
    if facts.plan.total.is_dp:
        return
    yield "> **NOT DIFFERENTIALLY PRIVATE.** No budget bounds what these data reveal about a person."
    if facts.plan.total.kind == "l_diversity":
        yield "> l-diversity limits how sure one redrawn value is; it does not hide who is in the data."
    yield "> Treat them like a coarse copy of the records when you decide who may have them."
    yield ""


def _done(facts: Facts, tables: Tables | None, sets: int) -> Iterator[str]:
    about, plan = facts.about, facts.plan
    yield "## What was done"
    yield ""
    yield f"Method: {about.title} (`{about.name}`), after {about.paper}."
    rows = "as many rows as the noisy count says" if plan.rows is None else f"{plan.rows:,} rows"
    plural = "1 synthetic set" if sets == 1 else f"{sets} synthetic sets"
    yield f"Result: {plural}, each of {rows}."
    if tables is not None:
        yield (
            "The records were counted once and noise was added once. The noisy tables are in `tables/`; "
            "the rows were drawn from them and from nothing else, so further rows cost nothing."
        )
        yield ""
        yield "| table | counts | given | noise |"
        yield "|---|---|---|---|"
        for table in tables.items + tables.extra:
            yield _table_line(table, facts.schema)
    else:
        yield (
            "Each row was drawn from the counts of the records, and each draw was paid for. There are "
            "no public tables, and further rows would cost more."
        )
    if plan.spends:
        yield ""
        yield "| paid for | cost | how |"
        yield "|---|---|---|"
        for spend in plan.spends:
            cells = (spend.what, spend.claim.words(), spend.detail)
            yield "| " + " | ".join(plain(c) for c in cells) + " |"
    yield ""


def _meaning(facts: Facts) -> Iterator[str]:
    total, unit = facts.plan.total, facts.schema.unit
    if not total.is_dp:
        return
    protected = unit.words() if unit else "one row"
    yield "## What the guarantee says"
    yield ""
    yield f"Protected: {plain(protected)}: whether it is in the data, and with which values."
    yield f"Compared are {_RELATION[total.relation]}."
    yield _odds(total)
    if total.relation == "add_remove" and total.kind != "zcdp":
        yield "Between two sets of values of a unit that is present, the exponent is twice that."
    if facts.plan.claim.unit in ("row", "block"):
        yield (
            f"The method is priced per {facts.plan.claim.unit}: {facts.plan.headline()}. The total of "
            "all files together is what counts for this release."
        )
    yield ""


def _odds(total: Claim) -> str:
    if total.kind == "zcdp":
        return f"The privacy loss is bounded in the sense of zCDP with rho = {short(total.rho)}."
    epsilon = float(total.epsilon)
    if epsilon > 20:
        text = f"A factor of e^{epsilon:g} on the odds is allowed, which excludes almost nothing."
    else:
        factor, even = 2.718281828459045**epsilon, 1 / (1 + 2.718281828459045**-epsilon)
        text = (
            "Whatever someone knew before, these files multiply their odds between two such tables by "
            f"at most e^epsilon = {factor:.4g}: an even guess becomes right with probability at most "
            f"{even:.3g}."
        )
    if total.delta > 0:
        text += f" With probability up to delta = {short(total.delta)} that bound may fail."
    return text


def _said(facts: Facts) -> Iterator[str]:
    about = facts.about
    yield "## Claimed and proven"
    yield ""
    yield f"- The paper claims: {about.claimed}."
    yield f"- For these parameters that reads: {facts.plan.published}."
    yield f"- Proven for this program: {about.proven}."
    yield f"- Checked on the running code: {about.audited}."
    yield f"- Charged to the ledger: {facts.plan.total.words()}."
    yield ""


def _assumed(facts: Facts) -> Iterator[str]:
    yield "## Assumptions"
    yield ""
    yield from (f"- {plain(text)}." for text in assumptions(facts))
    yield ""


def _uncovered(facts: Facts) -> Iterator[str]:
    inferred = facts.uncovered or facts.schema.inferred()
    if not inferred:
        return
    yield "## Facts that the guarantee does not cover"
    yield ""
    yield (
        "These facts of the schema were read off the confidential data. The release is **not "
        "differentially private with respect to** them:"
    )
    yield ""
    yield from (f"- {plain(group)}" for group in fact_words(inferred).split("; "))
    yield ""


def _limits(facts: Facts) -> Iterator[str]:
    yield "## What this does not protect"
    yield ""
    yield "- What is true of many people: a common pattern stays visible, and is meant to."
    yield "- Groups: for a group of g units the bound weakens with g."
    yield "- Against other releases of the same data: their costs add up."
    yield "- The schema itself: names, levels and bounds are published as they are."
    yield (
        "- Fitness for use: noise, binning and clamping distort; numbers within a bin are uniform "
        "draws. Check conclusions that matter on the original data."
    )
    if any(fact for fact in facts.schema.impossible):
        yield "- Declared impossible combinations are public facts and never occur in the output."
    yield ""


def _files(tables: Tables | None, csv: bool, raw: bool) -> Iterator[str]:
    yield "## Files, and how to check them"
    yield ""
    yield "- `synthetic_1.parquet`, ...: the synthetic rows; missing is null."
    if csv and raw:
        yield (
            "- `synthetic_1.csv`, ...: the same rows. **Text is not guarded: a spreadsheet may run "
            "cells that start with = + - @ as formulas.**"
        )
    elif csv:
        yield (
            "- `synthetic_1.csv`, ...: the same rows; text that a spreadsheet would read as a formula "
            "starts with an apostrophe."
        )
    yield "- `schema.toml`: columns, levels, bounds, where each fact comes from."
    if tables is not None:
        yield "- `tables/`: the noisy tables (codes are positions in the schema, from 0)."
    yield "- `ledger.json`: the certificate: cost, parameters, versions, and the ledger entry."
    yield "- `manifest.json`, `SHA256SUMS`: every file and its digest."
    yield ""
    yield (
        "`gibbous verify FOLDER` checks digests, arithmetic of the cost, schema conformity of every "
        "row, and that the tables are those the ledger entry was made for. It needs neither the data "
        "nor the ledger. `sha256sum -c SHA256SUMS` checks the digests alone."
    )


def _table_line(table: Table, schema: Schema) -> str:
    context, noise = table.context, table.noise
    names = [
        ", ".join(schema.names[c] for c in group) for group in (context.targets, context.parents)
    ]
    kind = type(context.key).__name__.lower()
    given = names[1] + (
        "" if kind == "radix" or not names[1] else f" ({kind}, {context.keys} keys)"
    )
    law = f"{noise.law}, scale {noise.scale:.6g} counts"
    if noise.threshold is not None:
        law += f", kept above {noise.threshold}"
    cells = "all cells" if context.support == "dense" else "cells above the threshold"
    return f"| {plain(names[0])} | {cells} | {plain(given) or '-'} | {law} |"


def plain(text: str) -> str:
    """Text inside Markdown that cannot act as markup, without line breaks."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    for mark in "\\`*_{}[]<>|#":
        clean = clean.replace(mark, "\\" + mark)
    return clean
