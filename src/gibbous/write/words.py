"""The words of METHODS.md that a review board may not know, and the papers behind the short names."""

from __future__ import annotations

from collections.abc import Iterator

from gibbous.core.plan import Plan

SOURCES = {
    "park2014": "Park and Ghosh, PeGS: perturbed Gibbs samplers that generate privacy-compliant "
    "synthetic data, 2014",
    "park2013": "Park, Ghosh and Shankar, Perturbed Gibbs samplers for generating large-scale "
    "privacy-safe synthetic health data, 2013",
    "bowen2016": "Bowen and Liu, Differentially private data synthesis methods, 2016",
    "sbhg": "the stability-based hashed Gibbs sampler",
}

RELATIONS = {
    "add_remove": (
        "add or remove one",
        "the guarantee compares the data with and without one unit, so that the number of units "
        "is protected, too",
    ),
    "replace_one": (
        "replace one",
        "the guarantee compares the data with those in which one unit has other values; the number "
        "of units is public",
    ),
}


def words_used(plan: Plan) -> Iterator[tuple[str, str]]:
    """Words and meanings, only those that a release with this plan shows."""
    total, parts = plan.total, [spend.claim.kind for spend in plan.spends]
    if total.is_dp:
        yield (
            "differentially private",
            "whatever is published would have been almost as likely without the protected unit; "
            "epsilon and delta say how nearly",
        )
        yield (
            "epsilon",
            "the most that the logarithm of such a likelihood may change; 0 means not at all",
        )
        if total.delta > 0:
            yield "delta", "a probability that is left outside of the bound; it should be far below one in the number of units"
        if total.kind == "zcdp" or "zcdp" in parts:
            yield (
                "rho",
                "the measure in which the parts are added up (zero-concentrated differential privacy); "
                "the sum is converted once, to the total above",
            )
        yield RELATIONS[total.relation]
        yield (
            total.basis,
            {
                "proven": "a proof for this program is part of its documentation",
                "published": "only the paper says so; there is no proof for this program",
                "heuristic": "an estimate without a proof",
            }[total.basis],
        )
    yield (
        "inferred, declared",
        "a fact of the schema that was read off the data; one that was known without looking at them",
    )
    yield (
        "ledger",
        "the data holder's record of what each data set has spent; an entry is made before any "
        "record is counted",
    )
