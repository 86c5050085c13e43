"""A release in, estimates with honest intervals out: models, tables, any estimator; no real record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gibbous.core.codes import Codes
from gibbous.core.errors import UsageError
from gibbous.core.protocols import Progress, silent
from gibbous.core.release import Release
from gibbous.core.schema import Schema
from gibbous.evaluation.inference import models, released_tables
from gibbous.evaluation.inference.combine import combine
from gibbous.evaluation.inference.combined_estimate import Fit, Shares
from gibbous.evaluation.inference.combining_rules import Floats, Noise, Rule
from gibbous.evaluation.inference.measurement_model import TableRule, by_law
from gibbous.evaluation.inference.noise_replicates import (
    DRAWN_AGAIN,
    Estimator,
    ignored,
    noise_variance,
    row_variance,
)
from gibbous.evaluation.inference.release_facts import Facts, facts_of
from gibbous.evaluation.inference.rule_choice import check
from gibbous.evaluation.tables import Side, plain, side, values_of
from gibbous.evaluation.utility.train_and_test import one_thread

if TYPE_CHECKING:
    import polars as pl

    from gibbous.evaluation.inference.combined_estimate import Combined

Analyst = Callable[["pl.DataFrame"], tuple[npt.ArrayLike, npt.ArrayLike]]
"""analyst(frame) -> (estimates, variances): a number each, or one an estimate."""


@dataclass(frozen=True, slots=True)
class Options:
    """How intervals are made.

    Attributes:
        rule: a combining rule; "auto" reads the receipt.
        level: of the interval.
        replicates: how often the noise is drawn anew for V_s; None for the default, 0 leaves it out.
        seed: of that noise.
        progress: told how far it is.
    """

    rule: Rule = "auto"
    level: float = 0.95
    replicates: int | None = None
    seed: int = 0
    progress: Progress = field(default=silent, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """A release, ready to be analyzed.

    Attributes:
        records: n where it is public; None takes the noisy number of rows of the tables.
    """

    release: Release
    records: float | None = None

    def __repr__(self) -> str:
        return f"<Analysis of {self.release!r}>"

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return plain(self.release.schema)

    @cached_property
    def facts(self) -> Facts:
        """What the receipt says of sets, rows, records and noise."""
        return facts_of(self.release, self.records)

    @cached_property
    def sets(self) -> tuple[Side, ...]:
        """The synthetic sets as codes and values."""
        schema = self.schema
        return tuple(side(one, schema) for one in self.release.sets)

    @cached_property
    def _unfloored(self) -> tuple[Side, ...]:
        """Sets drawn once more, floored variances as large as their noise allows; () without such."""
        from gibbous.sampling.cells.cell_moments import unfloored
        from gibbous.sampling.sample import sample

        tables = self.release.tables
        if tables is None:
            return ()
        raised, places = unfloored(tables)
        drawn = [
            sample(raised, one.rows, seed=0, set_index=index)
            for index, one in enumerate(self.sets if places else ())
        ]
        return tuple(Side(one, values_of(one, one.schema.names, 0)) for one in drawn)

    def _at_least(
        self, variances: Sequence[npt.ArrayLike], of: Callable[[Side], npt.ArrayLike]
    ) -> Floats:
        """Variances of the estimates in each set; not below what the noise in a variance may hide."""
        own = np.asarray(variances, dtype=np.float64)
        if not self._unfloored:
            return own
        return np.asarray(np.fmax(own, np.array([of(one) for one in self._unfloored])))

    @one_thread("scipy.linalg")
    def glm(
        self,
        formula: str,
        family: str = "gaussian",
        *,
        rule: Rule = "auto",
        level: float = 0.95,
        replicates: int | None = None,
        seed: int = 0,
        progress: Progress = silent,
        reference: Mapping[str, str] | None = None,
        first: Callable[[Fit], None] | None = None,
    ) -> Fit:
        """A generalized linear model on every set, combined.

        Args:
            formula: "response ~ terms"; columns with levels become contrasts with one of them.
            family: gaussian, binomial (the level that is not the reference is the success),
                multinomial (each level against the reference), poisson; canonical links.
            rule, level, replicates, seed, progress: see Options.
            reference: column -> the level to compare with; by default the first in the schema.
            first: given a provisional answer, from few redraws of the noise, where more are made.
        Returns:
            Coefficients with intervals; `summary()` prints them.
        Raises:
            UsageError: the formula does not fit the release, or the rule does not fit the sets.
            EngineFailure: a library for models is not installed.
        """
        models.require()
        model = models.parse(formula, family, self.schema, reference)
        options = self._options(Options(rule, level, replicates, seed, progress))
        each = [models.fit(model, one.codes, one.frame) for one in self.sets]

        def coefficients(codes: Codes) -> Floats:
            try:
                return models.fit(model, codes, values_of(codes, model.columns, seed)).estimates
            except UsageError:  # redrawn rows without a complete one, or with log(0)
                return np.full(len(each[0].names), np.nan)

        own = np.array([one.estimates for one in each])
        variances = self._at_least(
            [one.variances for one in each],
            lambda one: models.fit(model, one.codes, one.frame).variances,
        )

        whole = partial(combine, own, variances, release=self.facts, rule=rule, level=level)

        def combined(noise: Noise | None) -> Fit:
            found = whole(noise_variance=noise, names=each[0].names)
            return Fit(model.text, model.family, found, models.remarks(each), model.references)

        def early(noise: Noise) -> None:
            (first or ignored)(replace(combined(noise), provisional=True))

        return combined(self._noise(coefficients, options, early))

    def table(
        self,
        columns: Sequence[str],
        *,
        ci: bool = True,
        rule: TableRule = "auto",
        level: float = 0.95,
        replicates: int | None = None,
        seed: int = 0,
        progress: Progress = silent,
    ) -> Shares:
        """Shares of every combination of some columns, numbers and days by their bins.

        Where a released noisy table holds the columns together it is used directly, else the rows.

        Args:
            columns: names.
            ci: with intervals; without, nothing is drawn anew.
            rule, level, replicates, seed, progress: see Options. A rule other than auto or unified
                is about sets of rows: the rows are then used. "measurement" sums over the records that
                may be behind the release; auto takes it for rows of `dirichlet` and `dp_prior`.
        Raises:
            UsageError: no such column, more than 100,000 combinations, or a law that is not known.
        """
        schema, again = self.schema, replicates if ci else 0
        used: Rule = "auto" if rule == "measurement" else rule
        options = self._options(Options(used, level, again, seed, progress))
        places = released_tables.positions(schema, columns)
        names = released_tables.names(schema, places)
        keys = tuple(" ".join(one.values()) for one in names)
        counted = np.array([released_tables.counted(one.codes, places) for one in self.sets])
        rows = np.array([[max(one.rows, 1)] for one in self.sets])
        found = by_law(
            self.release,
            places,
            counted * rows,
            facts=self.facts,
            rule=rule,
            level=level,
            names=keys,
        )
        if found is not None:
            source = "rows" if self.release.tables is None else "released table"
            return Shares(tuple(columns), tuple(names), found, source, ci)
        inside = (counted * rows + 0.5) / (rows + 1)  # a level without rows has a variance, too
        combined = combine(
            counted,
            inside * (1 - inside) / rows,
            release=self.facts,
            rule=used,
            noise_variance=self._noise(lambda c: released_tables.counted(c, places), options),
            level=level,
            names=keys,
        )
        return Shares(tuple(columns), tuple(names), combined, "rows", ci)

    @one_thread("scipy.linalg")
    def combine(
        self,
        analyst: Analyst,
        *,
        names: Sequence[str] = (),
        rule: Rule = "auto",
        level: float = 0.95,
        replicates: int | None = None,
        seed: int = 0,
        progress: Progress = silent,
    ) -> Combined:
        """Any estimator on every set, combined.

        Args:
            analyst: of a polars frame with the schema's columns: (estimates, variances), the
                variances computed as if its rows were a sample.
            rule, level, replicates, seed, progress: see Options.
        """
        options = self._options(Options(rule, level, replicates, seed, progress))
        answers = [_numbers(analyst, one.frame) for one in self.sets]

        def estimator(codes: Codes) -> Floats:
            return _numbers(analyst, values_of(codes, codes.schema.names, seed))[0].reshape(-1)

        return combine(
            np.array([q for q, _ in answers]),
            self._at_least([v for _, v in answers], lambda one: _numbers(analyst, one.frame)[1]),
            release=self.facts,
            rule=rule,
            noise_variance=self._noise(estimator, options),
            level=level,
            names=names,
        )

    @one_thread("scipy.linalg")
    def noise_variance(
        self,
        estimate: Callable[[pl.DataFrame], npt.ArrayLike],
        *,
        replicates: int | None = None,
        seed: int = 0,
        progress: Progress = silent,
    ) -> Noise | None:
        """V_s of an estimator of a frame; None where no table was noised for all sets."""

        def estimator(codes: Codes) -> Floats:
            frame = values_of(codes, codes.schema.names, seed)
            return np.asarray(estimate(frame), dtype=np.float64).reshape(-1)

        return self._noise(estimator, Options(replicates=replicates, seed=seed, progress=progress))

    def _options(self, options: Options) -> Options:
        """The options, if the release can be combined with them."""
        check(options.rule, options.level, len(self.release.sets), self.facts)
        return options

    def _noise(
        self, estimator: Estimator, options: Options, early: Callable[[Noise], None] = ignored
    ) -> Noise | None:
        tables = self.release.tables
        if tables is None or options.rule not in ("auto", "unified") or options.replicates == 0:
            return None
        if self.facts.sanitized == "per_set" and not self.facts.alike:
            return None  # what was chosen for each set shows in B alone
        noise = noise_variance(
            tables,
            estimator,
            seed=options.seed,
            replicates=options.replicates,
            progress=options.progress,
            early=early,
        )
        rows = row_variance(tables, estimator, self.sets[0].rows, options.seed)
        return replace(noise, rows=rows, rows_df=DRAWN_AGAIN - 1.0)


def load_release(path: str | Path, *, records: float | None = None) -> Analysis:
    """Read a release package for analysis; the real data are never needed.

    Args:
        path: the folder.
        records: n, the number of records, where it is public; None takes the noisy number of rows of
            the released tables.
    Raises:
        ModelRejected: it is not an intact release.
        UsageError: records is not > 0, or the rows were drawn to go with given columns.
    """
    from gibbous.write.load import load

    release = load(path)
    if release.receipt.get("given"):
        raise UsageError(
            "GIVEN",
            "The rows of this release were drawn to go with given columns.",
            "Combining rules hold for rows that were drawn whole from the tables.",
            "Load the release that it was drawn from.",
        )
    return Analysis(release, records)


def _numbers(analyst: Analyst, frame: pl.DataFrame) -> tuple[Floats, Floats]:
    try:
        estimates, variances = analyst(frame)
        return np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            "ESTIMATOR",
            "The estimator did not return two numbers, or two arrays of numbers.",
            "It takes a polars frame and returns (estimates, variances).",
            "Correct it; try it on release.sets[0].",
        ) from None
