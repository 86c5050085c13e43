"""The public report: made of a release package alone, and of nothing that touched real records."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

from gibbous.core.claim import Claim, short
from gibbous.core.errors import UsageError
from gibbous.core.plan import Plan
from gibbous.core.release import Release
from gibbous.core.request import Imprint
from gibbous.core.schema import Schema
from gibbous.reporting import html_page, labels, odds, public_figures
from gibbous.reporting.flow_map import Mapped, flow_blocks
from gibbous.reporting.html_page import PACKAGE
from gibbous.reporting.labels import percent
from gibbous.reporting.page_parts import Block, Bullets, Code, Grid, Notice, Page, Section, Text
from gibbous.write import glossary
from gibbous.write.codebook import COLUMNS, TEXTS, combinations, overview, texts
from gibbous.write.glossary import origin, words_used
from gibbous.write.kept_rules import changed_words
from gibbous.write.rendering import paragraphs

MAPPED = "the release package and the public places of a map alone"
_ROWS_FROM = {"noisy count": "from the noisy count"}


def public_report(
    release: Release | str | Path,
    path: str | Path,
    *,
    mapped: Mapped | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the public report and its JSON twin.

    Args:
        mapped: public geography of a release of flows: maps are drawn; no records are among it.
    Raises:
        ModelRejected: the folder is not an intact release.
        OutputNotWritten: one of the files exists or cannot be written.
        EngineFailure: the extra "report" is not installed.
    """
    target = Path(path)
    html_page.check_path(target, overwrite=overwrite)
    return html_page.write(public_page(opened(release), mapped), target, overwrite=overwrite)


def opened(release: Release | str | Path) -> Release:
    """The release itself, read from its folder if need be."""
    if isinstance(release, Release):
        return release
    from gibbous.write.load import load

    return load(Path(release))


def public_page(release: Release, mapped: Mapped | None = None) -> Page:
    """Everything that the public report shows, from public facts only."""
    receipt, plan = release.receipt, release.plan
    name = release.schema.name
    columns = len(release.schema)
    facts = [
        ("Total cost", plan.total.amount()),
        *(_protected(receipt) if plan.total.is_dp else ()),
        ("Basis", plan.total.basis if plan.total.is_dp else "no claim of differential privacy"),
        ("Synthetic data", f"{_sets(receipt)}, {columns} columns"),
        ("Method", receipt["method"]["title"]),
        ("Maturity", "alpha; proofs without outside review"),
        *Imprint.from_json(receipt.get("imprint", {})).lines(),
    ]
    sections = [
        Section("summary", "Summary", tuple(_summary(release))),
        Section("meaning", "What the guarantee means for an attacker",
                tuple(public_figures.meaning(plan.total))),
        Section("limits", "Assumptions and limits", tuple(_limits(release))),
        Section("cost", "The cost, part by part", tuple(_cost(plan))),
        Section("method", "Method: published, proven, audited", tuple(_method(receipt))),
        Section("data", "Noisy tables and synthetic rows", tuple(public_figures.data(release))),
        Section("flows", "Maps of flows", tuple(_flows(release, mapped))),
        Section("codebook", "Codebook", tuple(_codebook(release.schema, release.receipt))),
        Section("receipt", "Receipt", tuple(_receipt(receipt))),
        Section("verify", "How to verify", tuple(_verify(receipt))),
        Section("words", "Words", (Grid("Words of this report", ("word", "meaning"),
                                        tuple(words_used(plan, release.schema.unit))),)),
    ]  # fmt: skip
    return Page(
        audience="public",
        title=f"Synthetic data of {name}" if name else "Synthetic data",
        subtitle="What was released, what it promises, and how to check both without the data",
        headline=str(receipt["guarantee"])[:1].upper() + str(receipt["guarantee"])[1:] + ".",
        facts=tuple(facts),
        sections=tuple(s for s in sections if s.blocks),
        twin={"receipt": receipt.to_json()},
        foot=(
            f"Made from {'the release package alone' if mapped is None else MAPPED}: no number in "
            "this file was computed against real "
            "records. It may be published with the release. The receipt has no times: entries of the "
            "ledger are ordered by their numbers."
        ),
    )


def _sets(receipt: Any) -> str:
    rows = receipt["rows"]
    sizes = f"{rows[0]:,}" if len(set(rows)) == 1 else f"{min(rows):,} to {max(rows):,}"
    return f"{len(rows)} set{'s' if len(rows) > 1 else ''} of {sizes} rows"


def _summary(release: Release) -> Iterator[Block]:
    yield from (Text(words, strong) for strong, words in summary(release))
    if not release.plan.total.is_dp:
        yield Notice(
            "No budget bounds what these data reveal about a person. Treat them like a copy "
            "of the records when you decide who may have them.",
            "Not differentially private.",
        )
    elif release.receipt["uncovered"]:
        yield Notice(
            "Some facts of the schema were read off the confidential data and published without "
            "being paid for; they are listed under the assumptions and limits. With respect to them the "
            "release is not differentially private.",
            "The bound has a gap.",
        )


def _flows(release: Release, mapped: Mapped | None) -> Iterator[Block]:
    if mapped is None:
        return
    if mapped.real is not None:
        raise UsageError(
            "AUDIENCE",
            "Confidential flows were given for a public report.",
            "A public report is made from the release and public geography alone.",
            "Leave them out, or ask for the internal report.",
        )
    yield from flow_blocks(release, mapped)


def _cost(plan: Plan) -> Iterator[Block]:
    if not plan.total.is_dp:
        yield Text("Nothing was charged: a method without a claim has no price, and no bound.")
        return
    if plan.claim.unit in ("row", "block"):
        yield Text(
            f"The method has a price per {plan.claim.unit}: {plan.headline()}. What counts for this "
            "release is the total of all its files."
        )
    else:
        yield Text(
            f"Everything in the release together cost {plan.total.amount()}. "
            f"{glossary.charged(plan)}"
        )
    figure = public_figures.spends(plan)
    if figure is not None:
        yield figure
    if plan.errors:
        yield Grid(
            "Expected errors, computed before the data were opened", ("error", "value"),
            tuple((name, float(value)) for name, value in plan.errors),
        )  # fmt: skip


def _method(receipt: Any) -> Iterator[Block]:
    about, total = receipt["method"], Claim.from_json(receipt["total"])
    yield Text(f"{about['title']} ({about['name']}), {origin(about['paper'])}.")
    rows = [
        ("Published", "what the paper claims", about["claimed"]),
        ("Published", "with these parameters", receipt["published"]),
        ("Proven", "for this program", about["proven"]),
        ("Audited", "tested on the running program", about["audited"]),
        ("Charged", "to the ledger", "nothing here" if total.basis == "stated" else total.words()),
    ]
    if receipt["published"] == about["claimed"]:
        del rows[1]
    yield Grid("What is claimed, by whom", ("basis", "of what", "claim"), tuple(rows))
    yield Grid(
        "Parameters of the run", ("parameter", "value"),
        tuple((k, _value(v)) for k, v in about["params"].items()), folded=True,
    )  # fmt: skip


def _value(value: object) -> str | int | float | bool | None:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _protected(receipt: Any) -> tuple[tuple[str, str], ...]:
    relation = "add or remove one" if receipt["relation"] == "add_remove" else "replace one"
    unit = (receipt["unit"] or {"words": "one row"})["words"]
    return ("Protected", unit), ("Neighbors", relation)


def _limits(release: Release) -> Iterator[Block]:
    receipt = release.receipt
    promised = release.plan.total.is_dp or release.plan.total.kind == "l_diversity"
    yield Text("The guarantee holds if:" if promised else "What was assumed; no guarantee follows:")
    yield Bullets(tuple(f"{a[:1].upper()}{a[1:]}." for a in receipt["assumptions"]))
    if receipt["uncovered"]:
        from gibbous.core.schema import fact_words

        yield Notice(f"{fact_words(receipt['uncovered'])}.", "Read off the data, and not covered:")
    yield Text("It does not protect:")
    yield Bullets(tuple(unprotected(release)))
    if release.plan.warnings:
        yield Text("The plan warned, before the data were opened:")
        yield Bullets(release.plan.warnings)


def _codebook(schema: Schema, receipt: Any) -> Iterator[Block]:
    inferred = schema.inferred()
    yield Text(
        f"{len(schema)} columns. "
        + (
            "Every fact was declared, which means known without looking at the data."
            if not inferred
            else f"{len(inferred)} facts were read off the data (inferred); all others were declared."
        )
    )
    yield Grid("Columns", COLUMNS, tuple(overview(schema)))
    if said := texts(schema):
        yield Grid("What is said of columns", TEXTS, tuple(said))
    meant = {(c.name, str(level)): (text,) for c in schema for level, text in c.level_labels}
    codes = ((c.name, k, label) for c in schema for k, label in enumerate(c.labels()))
    rows = tuple((*row, *(meant.get(row[::2], ("",)) if meant else ())) for row in codes)
    heads = ("column", "code", "level or bin", *(("label",) if meant else ()))
    yield Grid("All levels and bins", heads, rows, folded=True)
    if schema.impossible:
        yield Grid(
            "Declared impossible combinations: public facts that never occur in the output",
            ("combination",),
            tuple((sentence,) for sentence in combinations(schema)),
        )
    if schema.rules:
        yield Grid(
            "Declared rules, which every row keeps, and how many rows were changed until they did",
            ("rule", "rows it changed"),
            tuple(changed_words(receipt.get("rules", ()), receipt["rows"])),
        )


def _receipt(receipt: Any) -> Iterator[Block]:
    proof = receipt["ledger"]
    yield Text(
        "One entry was made in the ledger of the data holder before the records were counted, and one "
        "when the release was complete. Whoever has the ledger finds both under these hashes."
    )
    rows: list[tuple[str, str]] = [
        ("ledger", str(proof["ledger"])),
        ("reservation", str(proof["reservation"])),
        ("hash of the reservation", str(proof["entries"]["reserve"]["hash"])),
        ("hash of the commitment", str(proof["entries"]["commit"]["hash"])),
        ("head of the ledger then", str(proof["head"])),
        ("digest of what was released", str(receipt["digest"])),
        ("sampling seed (the noise has none)", str(receipt["seed"])),
        _drawn(receipt),
        ("number of rows", _ROWS_FROM.get(receipt["rows_from"], receipt["rows_from"])),
        *((f"version of {k}", str(v)) for k, v in receipt["versions"].items()),
    ]
    exact = Claim.from_json(receipt["total"])
    rows.insert(0, ("total, exact", _exact(exact)))
    yield Grid("Receipt", ("entry", "value"), tuple(rows))


def _drawn(receipt: Any) -> tuple[str, str]:
    how = "for all sets together" if receipt["sanitized"] == "once" else "for each set on its own"
    return ("noise was added" if receipt["tables"] else "rows were drawn from counts", how)


def _exact(claim: Claim) -> str:
    named: list[tuple[str, Fraction]] = [
        ("epsilon", claim.epsilon), ("delta", claim.delta), ("rho", claim.rho),
        ("mu squared", claim.mu_squared),
    ]  # fmt: skip
    parts = [f"{name} = {value}" for name, value in named if value]
    if claim.kind == "l_diversity":
        parts.append(f"l = {short(claim.l)}")
    return ", ".join(parts) or claim.words()


def _verify(receipt: Any) -> Iterator[Block]:
    what = "tables" if receipt["tables"] is not None else "rows"
    yield Text(
        "Put the folder of the release on any computer. The first command checks every file against "
        "its digest, the arithmetic of the cost, that each synthetic row fits the schema, and that "
        f"the {what} are those that the ledger entry was made for. It needs neither the data nor the "
        "ledger. The second checks the digests alone."
    )
    yield Code(("gibbous verify FOLDER", "cd FOLDER && sha256sum -c SHA256SUMS"))


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
        number=labels.short,
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
