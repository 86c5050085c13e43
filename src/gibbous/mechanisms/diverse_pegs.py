"""l-diverse PeGS: the least perturbation of each conditional that leaves it l-diverse."""

from __future__ import annotations

from typing import ClassVar, Literal

from gibbous.core.claim import l_diverse
from gibbous.core.codes import Codes
from gibbous.core.errors import ParameterError
from gibbous.core.exact import exact
from gibbous.core.method_card import About
from gibbous.core.params import Rule, at_least, check, mechanism, one_of, param
from gibbous.core.plan import Plan, Spend
from gibbous.core.protocols import CuratorLike
from gibbous.core.schema import Schema
from gibbous.mechanisms import _plans
from gibbous.perturb.diverse import Diverse
from gibbous.sampling.blocks import Empty
from gibbous.sampling.gibbs_rows import GibbsRows, without_zeros
from gibbous.structure.contexts import Choice, given_or_ring, tidy

L = 1.5  # unless l or share is given


@mechanism
class DiversePegs:
    """Draw rows from conditionals each of which has entropy of at least ln l, or a share of ln C.

    Guarantee:
        Entropy l-diversity of each redrawn value given the rest of its row. Not differential
        privacy, and not a bound of 1/l on guessing: the plan prints q*, the largest probability that
        one value may have. Claimed by the papers: l-diversity. Proven here: the same, of the last
        value that was redrawn (docs/proofs/diverse.md). Audited: the law of each key on small data.
    Source:
        [park2014, s3.3B], [park2013, s IV.B].
    """

    about: ClassVar[About] = About(
        name="diverse_pegs",
        title="l-diverse PeGS",
        paper="park2014, s3.3B; park2013",
        unit="row",
        kind="l_diversity",
        releases="rows",
        claimed="synthetic l-diversity of each value",
        proven="entropy of each redrawn value >= ln l given its row; not differentially private",
        audited="law of every key on small tables",
    )

    l: float = param(  # noqa: E741 - the papers' letter
        L, at_least(1), unit="levels", help="Effective number of levels a value has."
    )
    share: float | None = param(
        None,
        Rule(lambda v: 0 < v <= 1, "> 0 and <= 1"),
        help="In place of l: entropy as a share of the largest, ln C, of each column.",
    )
    form: Literal["alpha", "mix"] = param(
        "alpha",
        one_of("alpha", "mix"),
        help="Virtual records a key, or mixing with the uniform law.",
    )
    criterion: Literal["entropy", "max_probability"] = param(
        "entropy",
        one_of("entropy", "max_probability"),
        help="Entropy of at least ln l, or no value likelier than 1/l (stricter).",
    )
    parents: int = param(2, at_least(0), unit="columns", help="Context columns a column.")
    sweeps: int = param(1, at_least(1), help="Passes a row.")
    contexts: Choice = param(
        (), help="Public columns by name; ordered, lsh or minhash; empty for the ring."
    )

    fallback: Empty = param(
        "uniform",
        one_of("uniform", "nearest"),
        help="At a key without records: all levels alike, or a nearest key.",
    )

    def __post_init__(self) -> None:
        tidy(self)
        check(self)
        if self.share is not None and self.l != L:
            raise ParameterError(
                "LSHARE",
                "Both l and share of DiversePegs were given.",
                "Either says how diverse values are: l for all columns, share of ln C for each.",
                f"Leave one of them out, for example share={self.share:g} alone.",
            )

    def plan(self, schema: Schema, rows: int | None, sets: int = 1) -> Plan:
        """What is promised, and q*, the guessing probability it leaves, for each column.

        Raises:
            ParameterError: l is above the number of levels of some column.
            PrivacyRefused: the schema has impossible combinations.
        """
        draw = self._diverse()
        if schema.impossible:
            raise without_zeros()
        sizes = {column.name: column.size for column in schema if column.size > 1}
        for size in sizes.values():
            draw.check(size)
        worst = tuple(
            (f"q*: largest probability of one value of {name!r}", draw.largest_probability(size))
            for name, size in sizes.items()
        )
        least = min(map(draw.diversity, sizes.values() or (1,)))
        warnings: tuple[str, ...] = (
            (
                "l-diversity is not differential privacy: what others' records reveal is not bounded, "
                "and one value may still be as likely as q*."
            ),
        )
        if least == 1 and sizes:
            warnings += ("l = 1 perturbs nothing: rows can be copies of records.",)
        claim = l_diverse(least, unit="row", source="docs/proofs/diverse.md")
        detail = f"least {self.form} of each key, criterion {self.criterion}"
        asked = f"{self.share:g} of ln C" if self.share else f"ln l, l = {self.l:g}"
        return _plans.row_plan(
            self,
            rows,
            sets,
            spend=Spend("rows of diverse conditionals", claim, detail),
            units=_plans.paid_rows(self, rows, sets),
            contexts=given_or_ring(schema, self.contexts, self.parents),
            published=f"synthetic l-diversity: entropy of {asked}",
            outlook=(worst, warnings),
        )

    def run(self, curator: CuratorLike, rows: int | None, sets: int = 1) -> Codes:
        """Draw rows * sets rows with cryptographic words."""
        contexts = given_or_ring(curator.schema, self.contexts, self.parents)
        draw = GibbsRows(self._diverse(), self.sweeps, self.fallback)
        return curator.draw(contexts, draw, _plans.paid_rows(self, rows, sets))

    def _diverse(self) -> Diverse:
        if self.share is None:
            return Diverse(exact(self.l), self.form, self.criterion)
        return Diverse(form=self.form, criterion=self.criterion, share=exact(self.share))
