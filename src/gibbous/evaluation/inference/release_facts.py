"""What a combining rule needs to know of a release: m, N, n, where the noise went, how sets were drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from gibbous.core.errors import UsageError
from gibbous.core.release import Release
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, Sparse, Tables
from gibbous.evaluation.inference.combining_rules import Draws, Sanitized

FITTED = (
    "pegs",
    "block_pegs",
    "diverse_pegs",
    "exponential_pegs",
    "contingency",
    "imputation",
    "perturbed_imputation",
    "dp_prior",
    "smoothed_histogram",
)
"""Methods that pay by the row and draw every set from the same fitted conditionals."""
SHARED = ("cdf",)
"""Methods that release rows, all sets of which come from one noisy choice."""
UNPERTURBED = ("contingency", "bootstrap", "multiple_synthesis", "imputation")
"""Methods whose rows follow the records without any perturbation."""
WIDE = 0.75
"""Share of a column's range in one bin from which its mean and slopes hang on that bin."""
ANOTHER, APART = 0.1, 5.0
"""Share, and standard deviations of the noise, by both of which a given n is not that of the tables."""
CLUSTERS = "Clusters:"
"""Start of the one bias that is about the sampling variance, hence about released tables, too."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of how the sets were made.

    Attributes:
        sets: m; None where it is taken from the estimates.
        rows: N of one set (mean); None if unknown.
        records: n; None if unknown.
        sanitized: "once": tables were noised once and all sets come from them; "per_set": each set
            was paid for; None: no noise is known of.
        draws: whether each set has parameters of its own.
        alike: whether all sets with noise of their own have tables of the same columns. Where tables
            were chosen for each set, V_s given its tables is not all that differs between sets.
    """

    sets: int | None = None
    rows: float | None = None
    records: float | None = None
    records_from: str = "given"
    sanitized: Sanitized | None = None
    draws: Draws = "fitted"
    method: str = ""
    biases: tuple[str, ...] = ()
    alike: bool = True

    @property
    def ratio(self) -> float | None:
        """N / n; None if one of them is unknown."""
        if self.rows is None or self.records is None:
            return None
        return self.rows / self.records


def facts_of(release: Release, records: float | None = None) -> Facts:
    """Facts off a receipt and the public tables; n is `records`, or the tables' noisy number of rows."""
    receipt, tables = release.receipt, release.tables
    rows = [float(r) for r in receipt["rows"]]
    method = inner_method(receipt)
    facts = Facts(
        sets=len(rows),
        rows=sum(rows) / len(rows),
        records=checked_size("records", records),
        sanitized=_sanitized(tables, method),
        draws=_draws(tables, method, receipt["method"].get("params") or {}),
        method=method,
        biases=biases(release),
        alike=tables is None or _alike(tables),
    )
    if tables is None:
        return facts
    if records is not None:
        return replace(facts, biases=(*facts.biases, *_another_size(tables, records)))
    words = "the noisy number of rows of the tables"
    if not any(isinstance(t.cells, Dense) for t in tables.published()):
        words += ", which lack the cells under their threshold: it is too small"
    return replace(facts, records=float(max(1, tables.noisy_rows())), records_from=words)


def _another_size(tables: Tables, records: float) -> tuple[str, ...]:
    seen = tables.noisy_rows()
    if abs(records - seen) <= max(ANOTHER * seen, APART * tables.noisy_rows_error()):
        return ()
    return (
        f"Size: n = {records:,.0f} was given, but the noisy tables hold about {seen:,} records.",
    )


def inner_method(receipt: Any) -> str:
    """Name of the method; of a combinator (per_set, parallel, paid_bins) that of the method inside."""
    params = receipt["method"].get("params") or {}
    return str(_innermost(str(receipt["method"]["name"]), params))


def biases(release: Release) -> tuple[str, ...]:
    """What moves estimates in this release and is in no variance, one sentence each."""
    sentences = list(_of_tables(release.tables) if release.tables else _of_rows(release.receipt))
    unit = release.schema.unit
    if unit is not None and unit.max_rows > 1:
        sentences.append(
            f"{CLUSTERS} a person has up to {unit.max_rows} rows, and the sampling variance takes rows as "
            "independent: it is too small where rows of a person are alike."
        )
    binned = [c.name for c in release.schema if c.binned and c.within is None]
    if binned and not _numbers(release):
        sentences.append(
            f"Binning: values of {_listed(binned)} are uniform within their bins, so means shift and "
            "slopes on them are flattened where bins are wide."
            f"{_widest(release.schema)}"
        )
    stepped = [column.name for column in release.schema if column.within is not None]
    if stepped and not _numbers(release):
        sentences.append(
            f"Binning: values of {_listed(stepped)} follow their own noisy law within a bin, whatever the "
            "other columns say, so slopes on them are flattened where bins are wide. The noise of "
            "that law is in V_s where replicates redraw it, as of one's own estimator of numbers; "
            "values too rare to be found are not."
        )
    return tuple(sentences)


def _widest(schema: Schema) -> str:
    """A caution where one bin is most of its column's range, as an open end that was closed far out."""
    wide = []
    for column in (one for one in schema if one.binned and one.within is None):
        edges = [float(edge) for edge in column.edges]
        widths = [high - low for low, high in zip(edges, edges[1:], strict=False)]
        if max(widths) > WIDE * (edges[-1] - edges[0]):
            wide.append(f"{column.name} {column.labels()[widths.index(max(widths))]}")
    if not wide:
        return ""
    return (
        f" One bin is most of the range of {_listed(wide)}: rows drawn in it may lie far from all records "
        "and take means and slopes with them; the intervals do not cover that."
    )


def checked_size(name: str, value: float | None) -> float | None:
    """A number of rows or records; UsageError if it is not a positive, finite number."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise UsageError(
            name.upper(), f"{name}={value} given.", f"{name} is > 0 and finite.", f"Correct {name}."
        )
    return float(value)


def _innermost(name: str, params: dict[str, Any]) -> str:
    if name not in ("per_set", "parallel", "paid_bins") or not isinstance(
        params.get("method"), str
    ):
        return name
    return _innermost(params["method"], dict(params.get("options") or ()))


def _sanitized(tables: Tables | None, method: str) -> Sanitized:
    if tables is None:
        return "once" if method in SHARED else "per_set"
    return "per_set" if tables.noisings > 1 else "once"


def _draws(tables: Tables | None, method: str, params: Any) -> Draws:
    if tables is None:
        if "posterior" in (params.get("draws"), dict(params.get("options") or ()).get("draws")):
            return "posterior"
        return "fitted" if method in FITTED + SHARED else "posterior"
    first = (tables.of_set(0).parts or (tables,))[0]
    return getattr(first.model, "draws", "fitted")


def _alike(tables: Tables) -> bool:
    contexts = [
        {table.context for table in tables.of_set(index).published()}
        for index in range(tables.noisings)
    ]
    return all(one == contexts[0] for one in contexts)


def _of_tables(tables: Tables) -> list[str]:
    if tables.parts:
        return [_PARTS.format(len(tables.parts)), *_of_tables(tables.of_set(0).parts[0])]
    recipe, sentences = tables.recipe, []
    if recipe.draw == "cells":
        from gibbous.sampling.cells.cell_moments import unfloored

        normal = [_NORMAL] if any(column.binned for column in tables.schema) else []
        floored = [tables.schema.names[place] for place in unfloored(tables)[1]]
        return [*(_FLOOR.format(_listed(floored)) for _ in floored[:1]), *normal, _CLIPPING]
    wide = max((len(t.context.columns) for t in tables.items), default=0)
    if wide < len(tables.schema):
        sentences.append(
            "Structure: the rows follow tables of a few columns each; what a relation of columns "
            "that no released table holds together was in the records is not in them."
        )
    if any(isinstance(t.cells, Sparse) for t in tables.items):
        sentences.append("Threshold: cells under the stability threshold are missing altogether.")
    elif str(recipe.draw) == "loglinear":
        sentences.append("Projection: the tables are fitted by a log-linear model.")
    elif recipe.fit == "rake":
        sentences.append(
            "Projection: noisy tables are moved to non-negative ones with common margins."
        )
    else:
        sentences.append(_CLIPPING)
    if recipe.kappa > 0:
        sentences.append(
            f"Prior: each conditional is pulled to its margin by kappa = {recipe.kappa:g} counts."
        )
    diverse = [tables.schema.names[column] for column, _ in recipe.diverse]
    if diverse:
        sentences.append(
            f"Diversity: conditionals of {_listed(diverse)} are mixed with the uniform law, which weakens "
            "what other columns say of it."
        )
    return sentences


def _of_rows(receipt: Any) -> list[str]:
    name, order = inner_method(receipt), (receipt["method"].get("params") or {}).get("order")
    if name == "contingency" and order:
        sentence = (
            f"Structure: the rows follow a log-linear model; what more than {order} columns have to do with "
            "each other, beyond smaller groups of them, is not in them."
        )
        return [sentence]
    if name in UNPERTURBED:
        return []
    sentence = (
        f"Perturbation: {name} moves every conditional toward the uniform one before it draws; how far "
        "depends on its parameters, and no variance shows it."
    )
    return [sentence]


def _numbers(release: Release) -> bool:
    if release.tables is None:
        return inner_method(release.receipt) == "multiple_synthesis"
    first = release.tables.of_set(0)
    return (first.parts or (first,))[0].recipe.draw == "cells"


def _listed(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


_PARTS = (
    "Parts: the rows come from tables of {} random parts of the records, each with noise of its own; "
    "what a part clips or projects it does on fewer records."
)
_CLIPPING = "Clipping: negative noisy counts are read as 0, which lifts small cells."
_FLOOR = (
    "Floor: noise left nothing of the variance of {0}, so rows hardly differ there: slopes on {0} and shares "
    "of its bins are noise. Intervals of models and estimators that are fitted here take the largest "
    "variance that the noise allows for that of the rows; those of numbers computed elsewhere are too short."
)
_NORMAL = (
    "Normal: numbers follow a normal law within each cell, clipped to the bounds; skewness, heavy tails "
    "and heaped values of the records are not in the rows."
)
