"""The public report's sentences: what was released, what it promises, what it does not protect."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp

from gibbous.core.claim import short as exact
from gibbous.core.release import Receipt, Release
from gibbous.core.tables import Tables
from gibbous.report import odds
from gibbous.report.labels import percent, short
from gibbous.write.words import MATURITY, groups, noisy_parts, of_two, row_price


def summary(release: Release) -> Iterator[tuple[str, str]]:
    """The executive paragraph: (start in bold, rest) of each part."""
    yield "What was released.", _released(release)
    yield "What it promises.", _promised(release)
    if release.plan.total.is_dp:
        yield "In plain words.", _odds(release)
    yield "What it does not protect.", _not_protected(release)
    yield "How far to trust it.", MATURITY


def unit(release: Release) -> str:
    """The privacy unit as the object of a sentence."""
    found = release.receipt["unit"]
    if not found or found["words"] == "one row":
        return "any one row of the confidential data"
    words = found["words"].replace("one ", "any one ", 1).replace(", at most", " with at most", 1)
    return f"{words} of the confidential data"


def unprotected(release: Release) -> Iterator[str]:
    """What no reader may take the release to protect."""
    total = release.plan.total
    yield "What is true of many people: a common pattern stays visible, and is meant to."
    if total.is_dp:
        yield groups(release.plan)
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


def _released(release: Release) -> str:
    receipt, schema = release.receipt, release.schema
    sets, rows = receipt["sets"], receipt["rows"]
    name = f" of {schema.name}" if schema.name else ""
    size = f"{rows[0]:,} rows" if len(set(rows)) == 1 else f"{min(rows):,} to {max(rows):,} rows"
    many = "One synthetic data set" if sets == 1 else f"{sets} synthetic data sets"
    text = f"{many} of {size} and {len(schema)} columns, made from the confidential records{name}. "
    if release.tables is not None:
        cut = any(t.noise.threshold is not None for t in release.tables.published())
        return text + (
            f"{_counted(release.tables)}"
            + ("Of some tables only noisy counts above a threshold were kept. " if cut else "")
            + f"{_drawn(receipt)} was drawn from the {noisy_parts(release.tables)} and from nothing "
            "else; they are published, too."
        )
    if release.plan.total.is_dp:
        return text + (
            "Each synthetic row was drawn from counts of the records, or from a model fitted to them, by "
            "a rule on which one record has a bounded influence. "
            f"{row_price(release.plan)} Neither counts nor model are published."
        )
    return text + (
        "The rows were drawn from counts of the records, or from a model fitted to them. Neither counts "
        "nor model are published."
    )


def _drawn(receipt: Receipt) -> str:
    given = receipt.get("given")
    if not given:
        return "Every synthetic row"
    return (
        f"The columns {', '.join(given['columns'])} are as whoever made the rows gave them, and nothing "
        "covers them. Every other value, given these,"
    )


def _counted(tables: Tables) -> str:
    number = len(tables.published())
    many = "one table" if number == 1 else f"{number} tables"
    text = (
        f"The records were counted once, in {many}, and a random amount (noise) was added to each count, "
        "once. "
    )
    if tables.noisings > 1:
        text = (
            f"For each of the {tables.noisings} sets the records were counted, in {many} altogether, and a "
            "random amount (noise) was added to each count; a set is drawn from its own counts. "
        )
    if tables.parts:
        text += (
            f"Before that, each record was put into one of {len(tables.parts)} parts by chance. "
        )
    return text


def _promised(release: Release) -> str:
    total, words = release.plan.total, str(release.receipt["guarantee"])
    if total.is_dp:
        gap = " It has a gap, which the limits below name." if release.receipt["uncovered"] else ""
        return (
            f"{words[:1].upper()}{words[1:]}. This bounds what anybody can learn "
            f"from the release about {unit(release)}, whatever else they know, now or later.{gap}"
        )
    if total.kind == "l_diversity":
        return (
            f"Each redrawn value was at least as uncertain as a fair choice among {exact(total.l)} "
            "values, in the sense of entropy. This is not differential privacy."
        )
    return "Nothing that can be proven: the method makes no claim."


def _odds(release: Release) -> str:
    total = release.plan.total
    found = odds.stated(total)
    if found is None and total.kind == "zcdp":
        return f"The privacy loss is bounded in the sense of zCDP with rho = {exact(total.rho)}."
    if found is None:
        return (
            f"An epsilon of {exact(total.epsilon)} allows odds to change by a factor of "
            f"e^{float(total.epsilon):g}, which excludes almost nothing. Judge these data as data "
            "without a guarantee."
        )
    epsilon, delta = found
    factor = exp(epsilon)
    one = unit(release).removeprefix("any one ").removesuffix(" of the confidential data")
    versions = (
        f"whether a certain {one} is in the confidential data"
        if total.relation == "add_remove"
        else f"which of two values a certain {one} of the confidential data has"
    )
    after = percent(odds.belief(0.01, epsilon).high, "up")
    right = percent(odds.right_guess(epsilon, delta), "up")
    text = (
        f"Somebody wants to find out {versions}. The release changes the odds by a factor of at "
        f"most e^{epsilon:g} = {short(factor)}: who believed 1 % before may believe {after} at "
        f"most, and a guess between two equally likely answers is right with probability "
        f"{right} at most, where chance alone gives 50 %."
    )
    if delta > 0:
        text += (
            f" Because of delta = {exact(total.delta)} rare releases exceed that: odds change by more "
            f"than twice the factor with a probability of at most {exact(odds.exceeded(total.delta))}."
        )
    if total.relation == "add_remove":
        text += f" {of_two(total)}"
    return text


def _not_protected(release: Release) -> str:
    if not release.plan.total.is_dp:
        return (
            "Presence and values of single persons: rare combinations of the records may be copied. "
            "What is true of many people stays visible, too."
        )
    return (
        "What is true of many people stays visible and is meant to. The guarantee is for one unit; it "
        "weakens for groups, and with each further release of the same data. The schema is published "
        "as it is."
    )
