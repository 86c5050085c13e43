"""Rows whose drawing is the mechanism: exact draws from perturbed confidential counts, with their price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gibbous.core.claim import Claim, Relation, l_diverse, pure
from gibbous.core.codes import Codes
from gibbous.core.context import Context, keys_of
from gibbous.core.errors import PrivacyRefused
from gibbous.core.protocols import Words64
from gibbous.core.rule_tests import Mapped
from gibbous.core.schema import Schema
from gibbous.core.tables import Counts
from gibbous.sampling.blocks import CHUNK, Block, Empty, Perturbation
from gibbous.sampling.structural_zeros import (
    Rule,
    Seeds,
    allowed_levels,
    maps_of,
    rules_of,
    uniform_rows,
    within_groups,
)
from gibbous.sampling.unprotected_rows import BootstrapRows, JointRows

__all__ = ["BootstrapRows", "GibbsRows", "JointRows", "ResetBlocks"]

RESET_AT_VISIT = True
"""A constant of the method; the contract's saboteur turns it off to show that the audit notices."""


@dataclass(frozen=True, slots=True)
class GibbsRows:
    """Each row: a fresh public seed row, then `sweeps` passes over the columns in scan order.

    A visited column is drawn from the perturbed exact counts of its key. No record is ever a seed.

    Guarantee:
        With a perturbation that has `loss`: pure epsilon-DP, the sum of the losses of all draws,
        rows x sweeps x columns of them. With one that has `diversity`: entropy
        l-diversity of each redrawn value, and no differential privacy. Columns with one level are
        not drawn and cost nothing. Proven: docs/proofs/pegs.md, docs/proofs/diverse.md.
    Source:
        [park2014, s3], [park2013, alg. 1].

    Attributes:
        sweeps: passes a row, >= 1; each one costs.
        fallback: "uniform", or "nearest" key with records (only without a DP claim).
        own: (column, perturbation) of columns that have one of their own, in place of `perturb`.
        seeds: what seed rows are drawn by, column by column: public, or bought before; () for uniform.
    """

    perturb: Perturbation
    sweeps: int = 1
    fallback: Empty = "uniform"
    own: tuple[tuple[int, Perturbation], ...] = ()
    seeds: Seeds = ()

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """The guarantee of all rows together, from public facts alone.

        Raises:
            PrivacyRefused: a nearest-key fallback under a DP claim, or a column that cannot reach l.
        """
        _single(contexts)
        if hasattr(self.perturb, "diversity"):
            return _diverse(self.perturb, contexts, relation)
        if self.fallback != "uniform":
            raise _raw_fallback()
        each = sum((_loss(own_of(self, c), c, relation, max_rows) for c in contexts), Fraction(0))
        return pure(
            each * rows * self.sweeps,
            unit="dataset",
            relation=relation,
            source="docs/proofs/pegs.md",
        )

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows, public codes (rows, columns); one context a column, in scan order."""
        rules = _rules(self.perturb, schema)
        drawn = [c for c in counts if c.context.levels > 1]
        blocks = [Block(c, own_of(self, c.context), self.fallback) for c in drawn]
        maps = maps_of(schema, [c.context.targets[0] for c in drawn])
        coarse = maps if hasattr(self.perturb, "prior") else {}
        state = uniform_rows(schema, rows, words, self.seeds)
        for _ in range(self.sweeps):
            for block in blocks:
                _redraw(block, state, rules, words, None, coarse)
        return Codes(schema, state.T)


@dataclass(frozen=True, slots=True)
class ResetBlocks:
    """Blocks of rows from one chain; a key that was visited is uniform for the rest of its block.

    Row i + 1 of a block starts from row i. A block starts from a fresh uniform seed row and from
    the data again. The reset happens at the visit, so a key is never drawn from twice.

    Guarantee:
        Pure epsilon-DP. One block costs the sum over tables of the loss of one draw (add/remove),
        or of the two keys that a replaced record touches (replace-one), for any block length and
        any number of sweeps; the file costs ceil(rows / block) blocks.
        Proven: docs/proofs/block.md.
    Source:
        [park2014, s3.4], with the reset moved to the visit.

    Attributes:
        block: rows a block, >= 1.
        own: (column, perturbation) of columns that have one of their own, in place of `perturb`.
        seeds: what seed rows are drawn by, column by column: public, or bought before; () for uniform.
    """

    perturb: Perturbation
    block: int
    sweeps: int = 1
    own: tuple[tuple[int, Perturbation], ...] = ()
    seeds: Seeds = ()

    def cost(
        self, contexts: Sequence[Context], rows: int, relation: Relation, max_rows: int
    ) -> Claim:
        """The guarantee of all rows together: ceil(rows / block) blocks."""
        _single(contexts)
        used = [own_of(self, c) for c in contexts]
        if not all(hasattr(one, "reset_loss") for one in (self.perturb, *used)):
            raise PrivacyRefused(
                "RESETCLAIM",
                f"Reset blocks were asked for with {type(self.perturb).__name__}.",
                "They need a perturbation with a privacy loss: Add, Mix or Tilt.",
                "Use GibbsRows for l-diversity.",
            )
        each = sum(
            (
                one.reset_loss(c.levels, relation, max_rows)  # type: ignore[attr-defined]
                for one, c in zip(used, contexts, strict=True)
            ),
            Fraction(0),
        )
        return pure(
            each * -(-rows // self.block),
            unit="dataset",
            relation=relation,
            source="docs/proofs/block.md",
        )

    def __call__(
        self, counts: Sequence[Counts], schema: Schema, rows: int, words: Words64
    ) -> Codes:
        """Draw the rows, all blocks side by side."""
        rules = _rules(self.perturb, schema)
        blocks = [Block(c, own_of(self, c.context)) for c in counts if c.context.levels > 1]
        chains = -(-rows // self.block)
        state = uniform_rows(schema, chains, words, self.seeds)
        seen = [_Visits(chains, self.block * self.sweeps) for _ in blocks]
        out = np.empty((len(schema), chains, self.block), dtype=state.dtype)
        for row in range(self.block if rows else 0):
            for _ in range(self.sweeps):
                for block, visits in zip(blocks, seen, strict=True):
                    _redraw(block, state, rules, words, visits, {})
            out[:, :, row] = state
        return Codes(schema, out.reshape(len(schema), -1)[:, :rows].T)


def own_of(draw: GibbsRows | ResetBlocks, context: Context) -> Perturbation:
    """The perturbation of the column that a context redraws."""
    return dict(draw.own).get(context.targets[0], draw.perturb)


class _Visits:
    """Keys that each chain has visited in its block."""

    __slots__ = ("_count", "_keys")

    def __init__(self, chains: int, most: int) -> None:
        self._keys = np.zeros((most, chains), dtype=np.uint64)
        self._count = 0

    def mark(self, keys: np.ndarray) -> np.ndarray:
        """Whether each chain's key was visited before; it now is."""
        before: np.ndarray = (self._keys[: self._count] == keys).any(axis=0)
        self._keys[self._count] = keys
        self._count += 1
        return before


def _redraw(
    block: Block,
    state: np.ndarray,
    rules: tuple[Rule, ...],
    words: Words64,
    visits: _Visits | None,
    maps: dict[int, list[Mapped]],
) -> None:
    """Draw one column of all chains anew, given their other columns; state (columns, rows).

    Levels that are left out take their virtual records with them, but in reset blocks, whose price
    under replace-one rests on all virtual records of a key.
    """
    keys = keys_of(block.context, state.T)
    visited = visits.mark(keys) if visits is not None and RESET_AT_VISIT else None
    target, levels = block.context.targets[0], block.context.levels
    for at in range(0, len(keys), step := max(1, CHUNK // levels)):
        some = slice(at, at + step)
        allowed = allowed_levels(rules, state[:, some], target, levels)
        state[target, some] = block.draw(
            keys[some],
            words,
            allowed=within_groups(maps.get(target, ()), state[:, some], allowed),
            visited=None if visited is None else visited[some],
            shared=visits is not None,
        )


def _loss(perturb: Perturbation, context: Context, relation: Relation, max_rows: int) -> Fraction:
    if not hasattr(perturb, "loss"):
        raise PrivacyRefused(
            "NOLOSS",
            f"{type(perturb).__name__} states neither a privacy loss nor a diversity.",
            "A perturbation of drawn rows has `loss` or `diversity`.",
            "Use Add, Mix, Tilt or Diverse.",
        )
    return Fraction(perturb.loss(context.levels, relation, max_rows))


def _diverse(perturb: Perturbation, contexts: Sequence[Context], relation: Relation) -> Claim:
    drawn = [context.levels for context in contexts if context.levels > 1]
    for levels in drawn:
        perturb.check(levels)  # type: ignore[attr-defined]
    return l_diverse(
        min(map(perturb.diversity, drawn or (1,))),  # type: ignore[attr-defined]
        unit="row",
        relation=relation,
        source="docs/proofs/diverse.md",
    )


def _rules(perturb: Perturbation, schema: Schema) -> tuple[Rule, ...]:
    rules = rules_of(schema)
    if rules and hasattr(perturb, "diversity"):
        raise without_zeros()
    return rules


def without_zeros() -> PrivacyRefused:
    """The refusal of l-diversity on a schema with structural zeros."""
    return PrivacyRefused(
        "DIVERSEZEROS",
        "l-diversity was asked for on a schema with impossible combinations.",
        "A structural zero can leave a value with fewer than l levels.",
        "Remove [[impossible]] from the schema, or use a differentially private method.",
    )


def _single(contexts: Sequence[Context]) -> None:
    if any(len(c.targets) != 1 for c in contexts):
        raise ValueError("each context redraws one column")


def _raw_fallback() -> PrivacyRefused:
    return PrivacyRefused(
        "RAWFALLBACK",
        "A nearest-key fallback on exact counts was asked for under differential privacy.",
        "Which keys have records is itself confidential; a key without records is drawn as zeros.",
        "Use fallback='uniform', or a method that publishes noisy tables.",
    )
