"""The scikit-learn-like face of the pipeline: Synthesizer(method).fit(table, schema).sample(n)."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gibbous.core.boundary import guarded
from gibbous.core.claim import Claim
from gibbous.core.discovery import Discovery
from gibbous.core.errors import PrivacyRefused, UsageError
from gibbous.core.keywords import answering, answering_words
from gibbous.core.params import describe
from gibbous.core.protocols import Mechanism
from gibbous.core.release import Release, no_such_set
from gibbous.core.schema import Schema
from gibbous.privacy.ledger import Ledger

_BUDGET = {"method__epsilon": "epsilon", "method__delta": "delta"}


class Synthesizer:
    """Fit once (this spends), sample as often as the claim allows.

    With a method whose claim is per artifact, `sample` is post-processing of public tables: any
    number of rows, no further cost. With a method that pays by the row, `fit` needs `rows=`, and
    `sample` hands out those rows and never more.

    Args:
        method: a mechanism, for example NoisyPegs(epsilon=1, delta=1e-6), or a registered name; None
            is the default one. A parameter x of either is also set by set_params(method__x=...).
        epsilon, delta: of a method that is named.
        parameters: others of a method that is named, by name.
        risk: in place of an epsilon, the most that a membership test may find: "tpr@1%=3%".
        schema: of the tables that are fitted, where `fit` is given none.
        seed: seeds sampling from public tables only; noise has no seed.
        engine: "local" or "numpy".
        ledger: path of the ledger, a Ledger, or None for the default one.
        accept_inferred: accept schema facts that were read off the data; `claim_` then does not
            cover them.

    Attributes:
        release_: the Release, after fit.
        claim_: the guarantee of everything that was released, after fit.

    Example:
        >>> Synthesizer("adaptive_gibbs", epsilon=1, delta=1e-9).get_params()["engine"]
        'local'
    """

    @answering_words
    def __init__(
        self,
        method: Mechanism | str | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        risk: str | None = None,
        schema: Schema | Discovery | str | Path | None = None,
        seed: int | None = None,
        engine: str = "local",
        ledger: Any = None,
        accept_inferred: bool = False,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.parameters = parameters
        self.method, self.epsilon, self.delta, self.risk = method, epsilon, delta, risk
        self.schema, self.seed, self.engine, self.ledger = schema, seed, engine, ledger
        self.accept_inferred = accept_inferred

    def __repr__(self) -> str:
        own = self.get_params(deep=False).items()
        return f"Synthesizer({', '.join(f'{k}={v!r}' for k, v in own if v is not None)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name; with `deep` those of the method, too, as method__NAME."""
        found = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        if deep and dataclasses.is_dataclass(self.method):
            own = dataclasses.fields(self.method)
            found |= {f"method__{one.name}": getattr(self.method, one.name) for one in own}
        elif deep and isinstance(self.method, str):
            own_values = _defaults(self.method) | dict(self.parameters or {})
            found |= {f"method__{name}": value for name, value in own_values.items()}
        return found

    def set_params(self, **params: Any) -> Synthesizer:
        """Change constructor arguments, and parameters of the method (method__NAME); returns self.

        Raises:
            UsageError: an unknown name; nothing is changed then.
            ParameterError: a value of the mechanism is outside its range.
        """
        # The budget of a method that is named is ours.
        if not dataclasses.is_dataclass(params.get("method", self.method)):
            params = {_BUDGET.get(name, name): value for name, value in params.items()}
        nested = {n.removeprefix("method__"): v for n, v in params.items() if "__" in n}
        own = {name: value for name, value in params.items() if "__" not in name}
        known = Synthesizer(own.get("method", self.method)).get_params()
        for name in params:
            if name not in known:
                raise UsageError(
                    "UNKNOWNPARAM",
                    f"Synthesizer has no parameter {name!r}.",
                    f"Its parameters are {', '.join(known)}.",
                    "Parameters of a method are set as method__NAME.",
                )
        made: Any = own.get("method", self.method)
        if isinstance(made, str):
            kept = {} if made != self.method else dict(self.parameters or {})
            nested = dict(own.get("parameters", kept) or {}) | nested
            own["parameters"] = nested or None
        elif nested:
            own["method"] = dataclasses.replace(made, **nested)
        for name, value in own.items():
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Synthesizer:
        # A ledger is the record of one installation: a clone charges the same one.
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        # Asked by scikit-learn alone. It takes tables with a schema, which an array has not.
        from sklearn.utils import InputTags, Tags, TargetTags

        tables = InputTags(two_d_array=False, string=True, categorical=True, allow_nan=True)
        target = TargetTags(required=False)
        return Tags(None, target, non_deterministic=True, no_validation=True, input_tags=tables)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: parameters and public results; of a ledger its path alone."""
        held = dict(self.__dict__)
        if isinstance(self.ledger, Ledger):
            held["ledger"] = self.ledger.path
            held["_in_memory"] = self.ledger.path is None
        return held

    def __setstate__(self, held: dict[str, Any]) -> None:
        if held.pop("_in_memory", False):
            held["ledger"] = Ledger.ephemeral()  # never the default one, which lasts
        self.__dict__.update(held)

    @guarded
    @answering
    def fit(
        self,
        table: Any,
        schema: Schema | Discovery | str | Path | None = None,
        *,
        rows: int | None = None,
        sets: int = 1,
        fresh: bool = False,
    ) -> Synthesizer:
        """Spend the method's claim on the table; keep only public results.

        The same fit of the same data costs once: a second one takes the release that was bought.

        Args:
            table: a path or a frame (pandas, polars, pyarrow).
            schema: a Schema or a path to a schema file; None is that of the constructor.
            rows: rows to pay for; only for methods that pay by the row.
            sets: synthetic sets to pay for: with rows of their own, or with noise of their own (PerSet).
            fresh: charge again, for new noise.
        Returns:
            self, with `release_` and `claim_`.
        Raises:
            GibbousError: see `gibbous.synthesize`.
        """
        from gibbous.pipeline import synthesize

        self.release_: Release = synthesize(
            table,
            self.schema if schema is None else schema,
            self.method,
            epsilon=self.epsilon,
            delta=self.delta,
            risk=self.risk,
            rows=rows,
            sets=sets,
            fresh=fresh,
            seed=self.seed,
            engine=self.engine,
            ledger=self.ledger,
            accept_inferred=self.accept_inferred,
            **(self.parameters or {}),
        )
        self.claim_: Claim = self.release_.claim
        self._handed_out = [0] * sets
        return self

    @guarded
    @answering
    def sample(self, n: int, *, seed: int | None = None, set: int = 1) -> Any:
        """Draw n synthetic rows, as the kind of frame that was fitted.

        Args:
            n: number of rows, >= 0.
            seed: sampling seed of this call; None takes the constructor's: two calls then give the same
                rows, unless that is None, too. Paid rows are handed out once each, in order.
            set: rows of which set, from 1.
        Raises:
            UsageError: not fitted, n is negative, or there is no such set.
            PrivacyRefused: a method that pays by the row has no rows left.
        """
        if not hasattr(self, "release_"):
            raise UsageError(
                "NOTFITTED",
                "This Synthesizer is not fitted.",
                "sample follows fit.",
                "Call fit first.",
            )
        if n < 0:
            raise UsageError("ROWS", f"n={n} rows were asked for.", "n >= 0.", "Correct n.")
        if self.release_.tables is not None:
            return self.release_.sample(n, seed=self.seed if seed is None else seed, set=set)
        if set not in range(1, len(self._handed_out) + 1):
            raise no_such_set(set, len(self._handed_out))
        paid, start = self.release_.sets[set - 1], self._handed_out[set - 1]
        left = len(paid) - start
        if n > left:
            raise PrivacyRefused(
                "PAIDROWS",
                f"{n} rows were asked for; {left} of {len(paid)} paid rows are left.",
                "With this method each drawn row is itself what costs.",
                "Fit with a larger rows=, or use NoisyPegs, whose rows are free after the tables.",
            )
        self._handed_out[set - 1] += n
        return paid[start : start + n]


def _defaults(method: str) -> dict[str, Any]:
    """Parameters of a registered method, without its budget."""
    from gibbous.mechanisms.registry import load

    found = describe(load(method))
    return {one.name: one.default for one in found if one.name not in ("epsilon", "delta")}
