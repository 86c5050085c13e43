"""Scripts of other tools, with their import line changed and their budget stated: `sdv`, `smartnoise`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from gibbous.core.discovery import Discovery
from gibbous.core.errors import PrivacyRefused, UsageError
from gibbous.core.release import Release
from gibbous.core.schema import Unit
from gibbous.estimator import Synthesizer

METHOD = "adaptive_gibbs"
"""What stands for every model of the other tools."""


class NotHere(UsageError, AttributeError):  # type: ignore[misc]  # both have a name
    """Something that the other tool has, and that no guarantee covers here."""


class Fitted:
    """What samples once it is fitted.

    Args:
        epsilon, delta: of everything; stated, never assumed.
        unit: the privacy unit; None is one row.
        ledger: as for `gibbous.synthesize`.
        options: of the other tool; none means anything here.

    Attributes:
        release: after the fit.
    """

    def __init__(
        self, *, epsilon: float | None = None, delta: float | None = None, unit: Unit | None = None,
        ledger: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        without(type(self).__name__, options)
        self.budget = stated(type(self).__name__, epsilon, delta)
        self.unit, self.ledger = unit or Unit("row"), ledger
        self.fitted: Release | None = None

    def buy(self, data: Any, **facts: Any) -> None:
        """Spend: levels, bounds and a model of a table, of which names and types are public.

        Args:
            facts: `numeric` and `date`, as for `Discovery`.
        """
        known = Discovery.of(data, self.unit, types_are_public=True, **facts)
        made = Synthesizer(METHOD, **self.budget, schema=known, ledger=self.ledger)
        self.fitted = made.fit(data).release_
        if left := self.fitted.schema.ignore:
            warnings.warn(
                f"Left out, since no levels or bounds that enough rows share were found: {', '.join(left)}.",
                stacklevel=3,
            )

    @property
    def release(self) -> Release:
        """What was paid for.

        Raises:
            UsageError: nothing is fitted.
        """
        if self.fitted is None:
            raise UsageError("NOTFITTED", "Nothing is fitted.", "A fit comes first.", "Call fit.")
        return self.fitted


def stated(tool: str, epsilon: object, delta: object) -> dict[str, Any]:
    """The budget, if both of its numbers are stated.

    Raises:
        PrivacyRefused: one is not.
    """
    if epsilon is None or delta is None:
        raise PrivacyRefused(
            "BUDGET",
            f"{tool} was made without a budget.",
            "A fit is charged here: epsilon and delta of everything it does are stated, never assumed.",
            f"Pass both, for example {tool}(..., epsilon=1, delta=1e-9).",
        )
    return {"epsilon": epsilon, "delta": delta}


def without(tool: str, options: Mapping[str, object]) -> None:
    """Refuse options that mean nothing here.

    Raises:
        UsageError: there is one.
    """
    if options:
        raise UsageError(
            "FOREIGN",
            f"{tool} takes no {', '.join(map(repr, options))} here.",
            "Options that steer models, constraints or transformers of another tool have no guarantee.",
            "Leave them out; docs/how-to/coming-from.md says what stands for what.",
        )
