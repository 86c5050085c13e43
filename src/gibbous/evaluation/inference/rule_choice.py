"""The rule for a release, its variance and its reason in words; what goes against it, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.evaluation.inference import combining_rules
from gibbous.evaluation.inference.combining_rules import (
    RULES,
    Floats,
    Noise,
    Rule,
    Spread,
    Variance,
)
from gibbous.evaluation.inference.release_facts import FITTED, UNPERTURBED, Facts

NEEDS_TWO = ("reiter2003", "raghunathan2003")
FAR = 0.05  # |N/n - 1| from which a rule that wants N = n is told off
SHIFTED = 0.25  # standard errors of bias from another round of noise, from which it is said
HIDDEN = 0.1  # share of a variance that V_s cut to 0 may hide without being said
ODD = 1e-6  # a between-set variance that is less likely than this is reported


def check(rule: Rule, level: float, sets: int, facts: Facts) -> None:
    """Refuse what can be refused before anything is estimated.

    Raises:
        UsageError: no such rule or level, a rule that needs two sets, or N and n that it needs.
    """
    if rule not in RULES:
        raise UsageError(
            "RULE", f"There is no rule {rule!r}.", f"Rules are {', '.join(RULES)}.", "Correct rule."
        )
    if not 0 < level < 1:
        raise UsageError(
            "LEVEL", f"level={level} was given.", "0 < level < 1.", "Use for example level=0.95."
        )
    if rule in NEEDS_TWO and sets < 2:
        raise UsageError(
            "ONESET",
            f"The rule {rule} was asked for with one set.",
            "It needs the variance between sets, hence two sets or more.",
            "Use rule='unified' (or 'auto'), which holds for any number of sets, or more sets.",
        )
    if rule not in NEEDS_TWO:
        sizes(facts, "raab2016" if rule == "raab2016" else "the unified rule")


def chosen(
    moments: Spread, rule: Rule, facts: Facts, noise: Noise | None
) -> tuple[Variance, str, str]:
    """The variance, the rule that gave it, and the reason in words."""
    if rule == "reiter2003":
        return combining_rules.reiter2003(moments), rule, "It was asked for: T = W + B/m."
    if rule == "raghunathan2003":
        ratio = facts.ratio if facts.ratio is not None else math.nan
        variance = combining_rules.raghunathan2003(moments, ratio)
        if (variance.total <= 0).any():
            sizes(facts, "its T_f is not positive here, and the correction (N/n) W")
        return variance, rule, "It was asked for: T = (1 + 1/m) B - W, at least (N/n) W."
    if rule == "raab2016":
        ratio, _ = sizes(facts, "the rule raab2016")
        return (
            combining_rules.raab2016(moments, ratio, draws=facts.draws),
            rule,
            "It was asked for: T = W (N/n + 1/m), without a term for noise.",
        )
    return _unified(moments, rule, facts, noise)


def _unified(
    moments: Spread, rule: Rule, facts: Facts, noise: Noise | None
) -> tuple[Variance, str, str]:
    ratio, records = sizes(facts, "the unified rule")
    numbers = f"N = {facts.rows:,.0f} rows a set, n = {records:,.0f} ({facts.records_from})"
    start = "Asked for" if rule == "unified" else "Chosen"
    unknown = noise is None or bool(np.isnan(noise.variance).any())
    if facts.sanitized == "per_set" and unknown and (moments.sets >= 2).any():
        how = "drawn" if facts.method in UNPERTURBED else "drawn or noised"
        chosen_anew = "" if facts.alike else ", from tables that were chosen for it"
        why = (
            f"{start} because every set was {how} for itself{chosen_anew}, at a scale that B "
            f"shows: T = W N/n + B/m; {numbers}."
        )
        measured = combining_rules.unified_measured(
            moments, ratio, records=records, draws=facts.draws
        )
        return measured, "unified", why
    known = noise or Noise(np.zeros(moments.mean.size))
    variance = combining_rules.unified(
        moments,
        ratio,
        known,
        records=records,
        sanitized=facts.sanitized or "once",
        draws=facts.draws,
    )
    where = {
        "once": "tables were noised once and all sets are drawn from them",
        "per_set": "every set was noised for itself",
        None: "no noise was declared",
    }[facts.sanitized]
    if facts.method in UNPERTURBED:
        where = "every set was drawn from the records, without noise"
    term = "" if noise is None else " + V_s/m" if facts.sanitized == "per_set" else " + V_s"
    own = "W" if known.rows is None else "S"
    drawn = f"(W N/n + {own})/m" if facts.draws == "posterior" else f"{own}/m"
    why = f"{start} because {where}: T = W N/n{term} + {drawn}; {numbers}."
    if noise is not None:
        why += f" V_s: {noise.source}."
        if noise.rows is not None:
            why += (
                " S: the variance over sets drawn anew from the same tables, because rows that are moved to "
                "the model's margins vary less than W says."
            )
        # What was not found is shown as unknown, not as 0.
        lost = np.isnan(noise.variance)
        variance = replace(variance, noise=np.where(lost, np.nan, variance.noise))
    return variance, "unified", why


def remarks(
    moments: Spread, rule: str, facts: Facts, noise: Noise | None, variance: Variance, *, sets: int
) -> tuple[str, ...]:
    """What was assumed or went against the rule, before what no rule covers."""
    said = list(noise.notes) if noise else []
    if noise is not None and noise.shift is not None:
        said += _shifted(noise.shift, variance)
    if noise is not None and noise.error is not None and rule == "unified":
        said += _cut(noise, variance, moments.sets if facts.sanitized == "per_set" else 1.0)
    noised = facts.sanitized is not None and facts.method not in UNPERTURBED
    unseen = noise is None or bool((np.isnan(noise.variance) & (moments.sets > 0)).any())
    if rule == "unified" and facts.sanitized == "once" and unseen:
        said.insert(0, _UNSEEN if noise is None else _PARTLY_UNSEEN)
    alone = facts.sanitized == "per_set" and noise is None and not (moments.sets >= 2).any()
    if rule == "unified" and alone and noised and facts.method not in FITTED:
        said.insert(0, _ALONE)
    far = facts.ratio is not None and abs(facts.ratio - 1) > FAR
    if rule == "reiter2003" and far:
        said.append("reiter2003 holds at N = n only: use unified.")
    if rule == "reiter2003" and facts.sanitized == "once":
        said.append("reiter2003 misses noise that all sets share: use unified.")
    if rule == "raghunathan2003" and facts.sanitized == "per_set" and noised:
        said.append(
            "raghunathan2003 overestimates, severalfold, where every set has noise of its own: use "
            "unified."
        )
    if rule in ("raghunathan2003", "raab2016") and facts.sanitized == "once":
        said.append(f"{rule} has no term for noise in the tables: use unified.")
    if variance.floored.any():
        said.append(
            f"T_f was below (N/n) W for {int(variance.floored.sum())} of {variance.floored.size} "
            "estimates, which happens by chance; (N/n) W stands in for it."
        )
    if ((moments.sets > 0) & (moments.sets < sets)).any():
        said.append("Some estimates do not exist in every set: they are combined over fewer.")
    if rule == "unified" and facts.sanitized == "once" and facts.draws == "fitted":
        said += _odd(moments)
    return tuple(said)


def _shifted(shift: Floats, variance: Variance) -> list[str]:
    """Tell where noise moves estimates to one side: what it did once it would do again, about."""
    with np.errstate(invalid="ignore"):
        moved = int((np.abs(shift) > SHIFTED * np.sqrt(variance.total)).sum())
    if not moved:
        return []
    sentence = (
        f"Noise moves {moved} of {shift.size} estimates to one side (clipping, projection): another round "
        f"of it shifts them by more than {SHIFTED:g} standard errors. The intervals do not cover that."
    )
    return [sentence]


def _cut(noise: Noise, variance: Variance, shared: Floats | float) -> list[str]:
    """Tell where V_s is 0 only because the replicates were too few to see it; it counts 1 / shared."""
    with np.errstate(invalid="ignore", divide="ignore"):
        most = 2 * np.asarray(noise.error) / shared / variance.total
    hidden = (noise.variance == 0) & (most > HIDDEN)
    if not hidden.any():
        return []
    sentence = (
        f"V_s of {int(hidden.sum())} of {hidden.size} estimates came out at 0, too small for this number of "
        f"redraws to show: it may be up to {100 * most[hidden].max():.0f} % of the variance shown. The "
        "degrees of freedom allow for that; more redraws of the noise (replicates=, --replicates) settle it."
    )
    return [sentence]


def _odd(moments: Spread) -> list[str]:
    """Sets drawn from one set of tables differ by W; tell where they differ by far more, or not at all."""
    df = moments.sets - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = moments.between / moments.within
    known = np.isfinite(ratio)
    if not known.any():
        return []
    tail = need("scipy.special", "evaluate").chdtrc(df[known], df[known] * ratio[known])
    if (ratio[known] > 1e-9).all() and (tail * known.size > ODD).all():
        return []
    return [_ODD_WORDS]


def sizes(facts: Facts, what: str) -> tuple[float, float]:
    """N / n, and n; UsageError if one of them is unknown."""
    if facts.ratio is None or facts.records is None:
        missing = [n for n in ("rows", "records") if getattr(facts, n) is None]
        raise UsageError(
            "SIZES",
            f"The number of {' and of '.join(missing)} is not known, which {what} needs.",
            "rows is N, the rows of one set; records is n, the records that the sets were made from. "
            "A release without tables does not publish n.",
            "Pass them (on the command line --records); the data holder may state n.",
        )
    return facts.ratio, facts.records


_UNSEEN = (
    "THE NOISE IS NOT IN THIS INTERVAL, which is too short: V_s was not given, or left out by "
    "replicates=0. Analysis.combine and glm compute it from the public tables."
)
_PARTLY_UNSEEN = (
    "THE NOISE IS NOT IN SOME OF THESE INTERVALS, which are too short: V_s was not found."
)
_ALONE = (
    "ONE SET DOES NOT SHOW THE NOISE IT WAS MADE WITH: where it has noise of its own, this interval is too "
    "short. Make two sets or more, or give V_s."
)
_ODD_WORDS = (
    "The sets differ far more than rows drawn from the tables would, or not at all: check that the "
    "estimates are of different sets, and the variances those of one set; a model that understates its "
    "variance, such as a poisson one of counts that vary more, shows in the same way."
)
