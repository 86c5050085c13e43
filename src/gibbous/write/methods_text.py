"""METHODS.md: what was done and what it promises, in plain words for a review board."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, sqrt

from gibbous.core.cell_model import CellModel
from gibbous.core.claim import Claim, short
from gibbous.core.schema import Schema, Unit, fact_words
from gibbous.core.tables import Table, Tables
from gibbous.write.certificate import NOT_DP, Facts, assumptions, discovered, guarantee
from gibbous.write.words import (
    MATURITY,
    groups,
    noisy_parts,
    of_two,
    origin,
    row_price,
    words_used,
)

MEANINGLESS = 20  # an epsilon beyond which odds are not worth printing

_FOLDERS = (("synthetic_1", "parquet"), ("synthetic_1_csv", "csv"))  # of the first set in parts


def methods_text(
    facts: Facts,
    tables: Tables | None,
    *,
    sets: int,
    csv: bool,
    raw: bool,
    in_parts: bool = False,
    given: tuple[str, ...] = (),
) -> str:
    """The text of METHODS.md; it depends on public facts only.

    Args:
        tables: the published tables; None when the rows were what was paid for.
        sets: number of synthetic sets.
        csv: whether CSV files were written.
        in_parts: whether a set is a folder of files.
        raw: whether they are without the guard against formulas.
        given: columns that were not drawn, but given by whoever ran it.
    """
    headline = guarantee(facts.plan, facts.uncovered) + given_gap(given)
    lines = [
        "# How these synthetic data were made",
        "",
        f"**{plain(headline)}**",
        "",
        *_short(facts, tables, given),
        *_imprint(facts),
        *_given(given),
        *_meaning(facts),
        *_uncovered(facts),
        *_limits(facts, tables),
        *_assumed(facts, given),
        *_done(facts, tables, sets, given),
        *_discovered(facts),
        *_said(facts),
        *_price(facts),
        *_files(tables, csv, raw, in_parts),
        *_words(facts),
        *_noise(facts, tables),
    ]
    return "\n".join(lines).rstrip() + "\n"


def given_gap(given: tuple[str, ...]) -> str:
    """What a guarantee in words ends with where some columns were given."""
    return f"; {NOT_DP} with respect to the given columns {', '.join(given)}" if given else ""


def given_assumptions(given: tuple[str, ...]) -> list[str]:
    """What must hold of given rows for the guarantee to hold."""
    told = "the given rows, and how many they are, were not taken from the data behind the tables"
    return [told] if given else []


def _imprint(facts: Facts) -> Iterator[str]:
    lines = [f"- {label}: {plain(value)}" for label, value in facts.imprint.lines()]
    yield from [*lines, ""] if lines else ()


def _short(facts: Facts, tables: Tables | None, given: tuple[str, ...]) -> Iterator[str]:
    total = facts.plan.total
    if total.is_dp:
        later = ", and for any rows drawn from its tables later" if tables is not None else ""
        what, rest = ("but the given columns, ", "the rest of ") if given else ("", "")
        yield (
            f"That is the price of everything in this folder {what}together: all files, all synthetic sets"
            f"{later}. It bounds what anybody can learn from {rest}the folder about {plain(_unit(facts))} "
            "of the confidential data, whatever else they know. A smaller epsilon protects more."
        )
        if facts.uncovered:
            yield ""
            yield (
                "**The bound has a gap.** Some facts were read off the confidential data and published "
                "without being paid for; they are listed below."
            )
    else:
        yield "> **NOT DIFFERENTIALLY PRIVATE.** No budget bounds what these data reveal about a person."
        if total.kind == "l_diversity":
            yield "> l-diversity limits how sure one redrawn value is; it does not hide who is in the data."
        yield "> Treat them like a copy of the records when you decide who may have them."
    yield ""
    yield MATURITY
    yield ""


def _given(given: tuple[str, ...]) -> Iterator[str]:
    """What was given and not drawn, and what follows for whoever passes the folder on."""
    if not given:
        return
    names = plain(", ".join(given))
    yield "## What was given"
    yield ""
    yield (
        f"**No guarantee covers the given columns: {names}.** They were not drawn. Whoever made this "
        "folder gave them, row by row, and they stand here as they were given. The other columns were "
        "drawn to go with them, from the tables: for the confidential data behind the tables, that is "
        "post-processing, and the guarantee above covers it."
    )
    yield ""
    yield (
        "**If the given rows are confidential, so is this folder**, drawn columns included: what was "
        "drawn for a row depends on what was given for it. If they were taken from the data behind the "
        "tables, the bound above says nothing about the units they were taken from."
    )
    yield ""


def _done(facts: Facts, tables: Tables | None, sets: int, given: tuple[str, ...]) -> Iterator[str]:
    about, plan = facts.about, facts.plan
    yield "## What was done"
    yield ""
    yield f"Method: {about.title} (`{about.name}`), {plain(origin(about.paper))}."
    unknown = (
        "as many rows as records" if tables is None else "as many rows as the noisy count says"
    )
    rows = unknown if plan.rows is None else f"{plan.rows:,} rows"
    rows += ", one for each given row" if given else ""
    yield f"Result: {'1 synthetic set' if sets == 1 else f'{sets} synthetic sets'} of {rows}."
    yield ""
    if tables is not None:
        what = "every column that was not given" if given else "every synthetic row"
        also = " and the given values," if given else ""
        yield (
            f"{_counted(tables)} Then the records were put away: {what} was drawn from the "
            f"{noisy_parts(tables)}{also} and from nothing else. They are in `tables/`. More rows can be "
            "drawn from them at no further price."
        )
        yield from _sum_lines(_first(tables))
    elif plan.total.is_dp:
        yield (
            "Every synthetic row was drawn from counts of the records, or from a model fitted to them, by "
            f"a rule on which one record has a bounded influence. {row_price(plan)} Neither counts nor "
            "model are published."
        )
    else:
        yield (
            "Every synthetic row was drawn from counts of the records, or from a model fitted to them. "
            "Neither counts nor model are published."
        )
    yield ""


def _counted(tables: Tables) -> str:
    """How often the records were counted and noised."""
    text = (
        "The records were counted once, in the tables listed at the end, and a random amount (*noise*) was "
        "added to each count, once."
    )
    if tables.noisings > 1:
        text = (
            f"For each of the {tables.noisings} sets the records were counted, in tables like those listed "
            "at the end (which are those of set 1), and a random amount (*noise*) was added to each count; "
            "each set has noise of its own, and is drawn from its own tables."
        )
    if tables.parts:
        text += (
            f" Before that, each record was put into one of {len(tables.parts)} parts by chance, whatever it "
            "says. Each part has tables of its own (those listed are of part 1), and the rows are mixed."
        )
    return text


def _noise(facts: Facts, tables: Tables | None) -> Iterator[str]:
    """Last, since there may be hundreds of lines."""
    if tables is None:
        return
    yield "## Noise, table by table"
    yield ""
    yield from _table_lines(_first(tables), facts.schema)
    yield ""


def _table_lines(tables: Tables, schema: Schema) -> Iterator[str]:
    found = tables.items + tables.extra
    thresholds = any(table.noise.threshold is not None for table in found)
    yield "| counts of | for each value of | typical noise | kept |"
    yield "|---|---|---|---|"
    yield from (_table_line(table, schema) for table in found)
    yield ""
    yield (
        "*Typical noise* is the standard deviation, in records: about two noisy counts in three, or more, "
        "lie within it of the true count."
        + (" A count that is not *kept* is not published at all." if thresholds else "")
    )


def _first(tables: Tables) -> Tables:
    """The tables that are listed: of set 1, and of part 1 where there are parts."""
    first = tables.of_set(0)
    return first.parts[0] if first.parts else first


def _sum_lines(tables: Tables) -> Iterator[str]:
    """The noisy sums of a cell model, which are released beside the counts."""
    if not isinstance(tables.model, CellModel) or not tables.model.sums:
        return
    yield ""
    yield (
        f"Beside the counts, {len(tables.model.sums)} tables of sums of numbers, of their squares and of "
        "products of two were taken, each with noise of its own (scales below). They are in `tables/`, "
        "too. Numbers are drawn from a normal law within each cell, made from these sums and clipped to "
        "the bounds."
    )


def _price(facts: Facts) -> Iterator[str]:
    if not facts.plan.total.is_dp or not facts.plan.spends:
        return
    yield "## The price, part by part"
    yield ""
    yield "| paid for | price | how |"
    yield "|---|---|---|"
    for spend in facts.plan.spends:
        cells = (spend.what, spend.claim.amount(), spend.detail)
        yield "| " + " | ".join(plain(c) for c in cells) + " |"
    yield ""
    if facts.plan.claim.unit in ("row", "block"):
        yield (
            f"The method has a price per {facts.plan.claim.unit}: {plain(facts.plan.headline())}. What "
            "counts for this release is the total of all files."
        )
    else:
        yield f"Together: {facts.plan.total.amount()}. This was charged to the ledger beforehand."
    yield ""


def _meaning(facts: Facts) -> Iterator[str]:
    total, plan = facts.plan.total, facts.plan
    if total.kind == "l_diversity":
        yield "## What the guarantee says"
        yield ""
        yield (
            "Each value that was redrawn was at least as uncertain as a fair choice among "
            f"{short(plan.total.l)} values (in the sense of entropy), even to somebody who knows the "
            "rest of its row and all records. It says nothing about who is in the data."
        )
        yield ""
    if not total.is_dp:
        return
    unit = plain(_unit(facts))
    yield "## What the guarantee says"
    yield ""
    yield f"Protected is {unit}: {_covered(total)}."
    other = "without it" if total.relation == "add_remove" else "with other values in its place"
    if total.fixed:
        other += f", {plain(', '.join(total.fixed))} unchanged"
    yield f"Two versions of the data are compared: the data as they are, and the data {other}."
    yield _odds(total)
    if total.relation == "add_remove":
        yield of_two(total)
    yield ""


def _covered(total: Claim) -> str:
    """What the guarantee covers of a unit, and what it leaves out."""
    if not total.fixed:
        return "presence in the data, and all values"
    names = plain(", ".join(total.fixed))
    return f"all values except {names}; how many records each value of {names} has is public"


def _odds(total: Claim) -> str:
    if total.kind == "zcdp":
        return f"The privacy loss is bounded in the sense of zCDP with rho = {short(total.rho)}."
    epsilon, delta = float(total.epsilon), float(total.delta)
    if epsilon > MEANINGLESS:
        return f"A factor of e^{epsilon:g} on the odds is allowed, which excludes almost nothing."
    even = min(1.0, (exp(epsilon) + delta) / (1 + exp(epsilon)))
    text = (
        "Nothing that the release may show is more than e^epsilon = "
        f"{exp(epsilon):.4g} times as likely under one version as under the other"
    )
    if delta > 0:
        text += f", plus delta = {short(total.delta)}{_one_in(delta)}"
    return text + (
        f". Whoever guesses which version it was, with even chances before, is right with probability "
        f"{even:.3g} at most."
    )


def _one_in(delta: float) -> str:
    return f" (one in {1 / delta:,.0f})" if 1e-15 < delta < 0.01 else ""


def _said(facts: Facts) -> Iterator[str]:
    about = facts.about
    yield "## What the paper claims, and what is proven"
    yield ""
    yield f"- The paper claims: {plain(about.claimed)}."
    if facts.plan.published != about.claimed:
        yield f"- With these parameters: {plain(facts.plan.published)}."
    yield f"- Proven for this program: {plain(about.proven)}."
    yield f"- Tested on the running program: {plain(about.audited)}."
    yield f"- Charged to the ledger: {plain(facts.plan.total.words())}."
    yield ""


def _assumed(facts: Facts, given: tuple[str, ...]) -> Iterator[str]:
    yield "## Assumptions"
    yield ""
    for text in assumptions(facts.schema, facts.plan) + given_assumptions(given):
        yield f"- {plain(text[:1].upper() + text[1:])}."
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


def _discovered(facts: Facts) -> Iterator[str]:
    found = discovered(facts.schema)
    if not found:
        return
    yield "## Facts that were paid for"
    yield ""
    yield (
        "These facts of the schema were found in the confidential data by noisy means. Their price is part "
        "of the total above:"
    )
    yield ""
    yield from (f"- {plain(group)}" for group in fact_words(found).split("; "))
    yield ""


def _limits(facts: Facts, tables: Tables | None) -> Iterator[str]:
    total = facts.plan.total
    yield "## What this does not protect"
    yield ""
    yield "- What is true of many people: a common pattern stays visible, and is meant to."
    if total.is_dp:
        yield f"- {groups(facts.plan)}"
        yield "- Against other releases of the same data: their prices add up."
    yield "- The schema itself: names, levels and bounds are published as they are."
    if tables is None:
        normal = bool(facts.plan.numbers)
    else:
        normal = isinstance(_first(tables).model, CellModel)
    stepped = any(column.within is not None for column in facts.schema)
    law = (
        "draws within a bin, by the weights in schema.toml"
        if stepped
        else "uniform draws within a bin"
    )
    within = "normal within a cell, then clipped" if normal else law
    yield (
        f"- Fitness for use: noise, binning and clamping distort; numbers are {within}. "
        "Check conclusions that matter on the original data."
    )
    if facts.schema.impossible:
        yield "- Declared impossible combinations are public facts and never occur in the output."
    yield ""


def _files(tables: Tables | None, csv: bool, raw: bool, in_parts: bool) -> Iterator[str]:
    yield "## Files, and how to check them"
    yield ""
    rows, text = "synthetic_1.parquet", "synthetic_1.csv"
    if in_parts:
        rows, text = (f"{name}/part-00000.{form}" for name, form in _FOLDERS)
    yield f"- `{rows}`, ...: the synthetic rows; missing is null."
    if csv and raw:
        yield (
            f"- `{text}`, ...: the same rows. **Text is not guarded: a spreadsheet may run "
            "cells that start with = + - @ as formulas.**"
        )
    elif csv:
        yield (
            f"- `{text}`, ...: the same rows; text that a spreadsheet would read as a formula "
            "starts with an apostrophe."
        )
    yield "- `schema.toml`: columns, levels, bounds, where each fact comes from."
    yield "- `codebook.html`: the same as a page for people."
    if tables is not None:
        yield "- `tables/`: the noisy tables (codes are positions in the schema, from 0)."
    yield "- `ledger.json`: the certificate: price, parameters, versions, and the ledger entry."
    yield "- `manifest.json`, `SHA256SUMS`: every file and its digest."
    yield ""
    yield (
        "`gibbous verify FOLDER` checks digests, arithmetic of the price, schema conformity of every "
        "row, and that "
        + ("the tables are" if tables is not None else "the rows are")
        + " those the ledger entry was made for. It needs neither the data nor the ledger. "
        "`sha256sum -c SHA256SUMS` checks the digests alone."
    )
    yield ""


def _words(facts: Facts) -> Iterator[str]:
    yield "## Words"
    yield ""
    for word, meaning in words_used(facts.plan, facts.schema.unit):
        yield f"- **{word}**: {meaning}."
    yield ""


def _table_line(table: Table, schema: Schema) -> str:
    context, noise = table.context, table.noise
    names = [
        ", ".join(schema.names[c] for c in group) for group in (context.targets, context.parents)
    ]
    kind = type(context.key).__name__.lower()
    given = names[1] + (
        "" if kind == "radix" or not names[1] else f" ({kind}, {context.keys} keys)"
    )
    kept = "all" if noise.threshold is None else f"noisy counts above {noise.threshold}"
    size = f"{sqrt(noise.variance):.4g} ({noise.law})"
    return f"| {plain(names[0])} | {plain(given) or '(all records)'} | {size} | {kept} |"


def _unit(facts: Facts) -> str:
    unit = facts.schema.unit
    if unit is None or unit.kind != "person":
        return (unit or Unit()).words().replace("one ", "any one ", 1)
    return f"any one person (column {unit.column}, at most {unit.max_rows} rows of each)"


def plain(text: str) -> str:
    """Text inside Markdown that cannot act as markup, without line breaks."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    for mark in "\\`*_{}[]<>|#":
        clean = clean.replace(mark, "\\" + mark)
    return clean
