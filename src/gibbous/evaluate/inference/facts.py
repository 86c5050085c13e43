"""What a combining rule needs to know of a release: m, N, n, where the noise went, how sets were drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gibbous.core.errors import UsageError
from gibbous.core.release import Release
from gibbous.core.tables import Dense, Sparse, Tables
from gibbous.evaluate.inference.rules import Draws, Sanitized

FITTED = ("pegs", "block_pegs", "diverse_pegs", "exponential_pegs", "contingency")
"""Methods that pay by the row and draw every set from the same fitted conditionals."""
CLUSTERS = "Clusters:"
"""Start of the one bias that is about the sampling variance, hence about released tables, too."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of how the sets were made.

    Attributes:
        sets: m; None where it is taken from the estimates.
        rows: N of one set (mean); None if unknown.
        records: n; None if unknown.
        records_from: where n comes from, in words.
        sanitized: "once": tables were noised once and all sets come from them; "per_set": each set
            was paid for; None: no noise is known of.
        draws: whether each set has parameters of its own.
        method: name; empty if unknown.
        biases: what no combining rule covers, in words.
    """

    sets: int | None = None
    rows: float | None = None
    records: float | None = None
    records_from: str = "given"
    sanitized: Sanitized | None = None
    draws: Draws = "fitted"
    method: str = ""
    biases: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """N / n; None if one of them is unknown."""
        if self.rows is None or self.records is None:
            return None
        return self.rows / self.records


def facts_of(release: Release, records: float | None = None) -> Facts:
    """Read the facts off a receipt and the public tables; no record is needed.

    Args:
        release: as loaded, or as synthesize returned it.
        records: n, where it is public; None takes the noisy number of rows of the tables.
    """
    receipt, tables = release.receipt, release.tables
    rows = [float(r) for r in receipt["rows"]]
    method = str(receipt["method"]["name"])
    found = Facts(
        sets=len(rows),
        rows=sum(rows) / len(rows),
        records=checked_size("records", records),
        sanitized="per_set" if tables is None else "once",
        draws="fitted" if tables is not None or method in FITTED else "posterior",
        method=method,
        biases=biases(release),
    )
    if records is not None or tables is None:
        return found
    words = "the noisy number of rows of the tables"
    if not _has_dense(tables):
        words += ", which lack the cells under their threshold: it is too small"
    return replace(found, records=float(max(1, tables.noisy_rows())), records_from=words)


def biases(release: Release) -> tuple[str, ...]:
    """What moves estimates in this release and is in no variance, one sentence each."""
    found = list(_of_tables(release.tables) if release.tables else _of_rows(release.receipt))
    unit = release.schema.unit
    if unit is not None and unit.max_rows > 1:
        found.append(
            f"{CLUSTERS} a person has up to {unit.max_rows} rows, and the sampling variance takes rows as "
            "independent: it is too small where rows of a person are alike."
        )
    binned = [column.name for column in release.schema if column.binned]
    if binned:
        found.append(
            f"Binning: values of {_listed(binned)} are uniform within their bins, so means shift and "
            "slopes on them are flattened where bins are wide."
        )
    return tuple(found)


def checked_size(name: str, value: float | None) -> float | None:
    """A number of rows or records.

    Raises:
        UsageError: it is not a positive number.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UsageError(
            name.upper(), f"{name}={value} was given.", f"{name} is > 0.", f"Correct {name}."
        )
    return float(value)


def _of_tables(tables: Tables) -> list[str]:
    recipe, found = tables.recipe, []
    wide = max((len(t.context.columns) for t in tables.items), default=0)
    if wide < len(tables.schema):
        found.append(
            "Structure: the rows follow tables of a few columns each; what a relation of columns "
            "that no released table holds together was in the records is not in them."
        )
    if any(isinstance(t.cells, Sparse) for t in tables.items):
        found.append("Threshold: cells under the stability threshold are missing altogether.")
    elif str(recipe.draw) == "loglinear":
        found.append("Projection: the tables are fitted by a log-linear model.")
    elif recipe.fit == "rake":
        found.append("Projection: noisy tables are moved to non-negative ones with common margins.")
    else:
        found.append("Clipping: negative noisy counts are read as 0, which lifts small cells.")
    if recipe.kappa > 0:
        found.append(
            f"Prior: each conditional is pulled to its margin by kappa = {recipe.kappa:g} counts."
        )
    return found


def _of_rows(receipt: Any) -> list[str]:
    name = str(receipt["method"]["name"])
    if name in ("contingency", "bootstrap"):
        return []
    sentence = (
        f"Perturbation: {name} moves every conditional toward the uniform one before it draws; how far "
        "depends on its parameters, and no variance shows it."
    )
    return [sentence]


def _has_dense(tables: Tables) -> bool:
    return any(isinstance(t.cells, Dense) for t in tables.items + tables.extra)


def _listed(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
