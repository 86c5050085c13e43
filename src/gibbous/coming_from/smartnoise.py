"""Names that are called as those of SmartNoise: of snsql for queries, of snsynth for rows.

    import gibbous.coming_from.smartnoise as snsql
    from gibbous.coming_from.smartnoise import Privacy, Synthesizer

A reader buys one synthetic table with the budget that it was given, and answers all queries from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gibbous.coming_from import METHOD, Fitted, stated, without
from gibbous.core.errors import UsageError
from gibbous.estimator import Synthesizer as Fitter
from gibbous.read.metadata.codebook import draft_of
from gibbous.read.metadata.domains import of_smartnoise
from gibbous.read.metadata.files import import_draft

_SCHEMA = re.compile(r"(?i)\b(from|join)\s+(?:\w+\.)+")  # before the name of a table


class Privacy:
    """Of a reader and all its queries together, where SmartNoise means each query."""

    def __init__(
        self, *, epsilon: float | None = None, delta: float | None = None, **options: Any
    ) -> None:
        without("Privacy", options)
        self.budget = stated("Privacy", epsilon, delta)


class Reader:
    """Queries over synthetic rows: the first one is charged, the others cost nothing.

    Args:
        data: a frame, or the path of a file.
        privacy: the budget.
        metadata: of SmartNoise: a dictionary, or the path of a file.
        ledger: as for `gibbous.synthesize`.
    """

    def __init__(self, data: Any, *, privacy: Privacy, metadata: Any, ledger: Any = None) -> None:
        known = isinstance(metadata, Mapping)
        draft = draft_of(of_smartnoise(metadata)) if known else import_draft(metadata)
        if draft.schema is None:
            raise UsageError(
                "UNSTATED",
                "The metadata state no bounds of any column.",
                "Numbers have lower and upper; levels of text are not stated by SmartNoise.",
                "State bounds, or declare a schema and use gibbous.synthesize.",
            )
        self._data, self._schema = data, draft.schema
        self._left = [one.name for one in draft.left_open]
        self._fitter = Fitter(METHOD, **privacy.budget, ledger=ledger)

    def execute(self, query: str) -> list[Any]:
        """The names of the answer, then its rows.

        Raises:
            GibbousError: as for `gibbous.synthesize`; or the query cannot be answered.
        """
        found = self._answer(query)
        return [list(found.columns), *found.rows()]

    def execute_df(self, query: str) -> Any:
        """The answer as a pandas frame."""
        return self._answer(query).to_pandas()

    def _answer(self, query: str) -> Any:
        import polars as pl

        if not hasattr(self._fitter, "release_"):
            self._fitter.fit(self._data, self._schema)
        rows, name = self._fitter.release_.sets[0], self._schema.name
        frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows)
        try:
            return pl.SQLContext({name: frame}).execute(_SCHEMA.sub(r"\1 ", query), eager=True)
        except pl.exceptions.PolarsError:
            pass
        left = f"; {', '.join(self._left)} had no bounds" if self._left else ""
        raise UsageError(
            "QUERY",
            "The query cannot be answered.",
            f"The table is {name}, with the columns {', '.join(frame.columns)}{left}.",
            "Correct it, or declare a schema that has the column.",
        )


from_df = Reader


class Synthesizer(Fitted):
    """As snsynth's, whatever the model: levels and bounds are bought within epsilon, never beside it."""

    @classmethod
    def create(cls, synth: str, **given: Any) -> Synthesizer:
        """One model stands for "mst", "aim", "mwem" and all others."""
        return cls(**given)

    def fit(self, data: Any, *, continuous_columns: Any = (), **options: Any) -> None:
        """Spend: levels, bounds and a model.

        Args:
            continuous_columns: numbers; other columns are read as what they are.
            options: preprocessor_eps (part of epsilon here), categorical_columns, ordinal_columns.
        """
        known = ("preprocessor_eps", "categorical_columns", "ordinal_columns")
        without("fit", {name: value for name, value in options.items() if name not in known})
        self.buy(data, numeric=tuple(continuous_columns or ()))

    def sample(self, samples: int) -> Any:
        """Rows from what was paid for."""
        return self.release.sample(samples)

    def fit_sample(self, data: Any, **given: Any) -> Any:
        """`fit`, then as many rows as were bought with it."""
        self.fit(data, **given)
        return self.release.sets[0]
