"""Blind runs: each paid look at the records gets a fixed answer, and all else must then be equal.

Records reach an output through three doors: noise on counts, a private choice, a paid draw. Behind
`blinded` each door answers without looking. An output that still differs between two tables went
around the doors: read a level, a bin, a size, an order or a key off the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fractions import Fraction

import numpy as np

from gibbous.contract.saboteurs import patched
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.protocols import Progress, RowDraw, Words64, silent
from gibbous.core.stream import stream_key, words
from gibbous.privacy import curator as curator_module
from gibbous.privacy import entropy
from gibbous.privacy.curator import Curator
from gibbous.sampling.blocks import Block
from gibbous.sampling.gibbs_rows import GibbsRows, ResetBlocks

OURS = (GibbsRows, ResetBlocks)  # their draws from counts all go through Block.draw


@contextmanager
def one_by_one(
    work: Callable[[int], object], items: Sequence[int], at_once: int, *, name: str
) -> Iterator[Iterator[object]]:
    """In place of `machine.beside`: answers depend on how often was asked, so parts take turns."""
    yield map(work, items)


@contextmanager
def blinded() -> Iterator[None]:
    """Within it noise, choices and draws answer without looking; two equal runs answer equally."""
    asked = _Answers()
    with ExitStack() as stack:
        for owner, name, value in (
            (entropy, "geometric", asked.noise),
            (entropy, "gaussian", asked.noise),
            (entropy, "exponential_choice", asked.choice),
            (entropy, "words", asked.words),
            (Block, "draw", asked.levels),
            (Curator, "draw", asked.rows(Curator.draw)),
            (curator_module, "beside", one_by_one),
        ):
            stack.enter_context(patched(owner, name, value=value))
        yield


class _Answers:
    """Fixed answers: functions of public shapes and of how often was asked."""

    def __init__(self) -> None:
        self._asked = 0

    def words(self, count: int) -> np.ndarray:
        """In place of the operating system's words."""
        self._asked += 1
        return words(stream_key(20260301, self._asked), 0, count)

    def noise(
        self, values: np.ndarray, scale: Fraction, *, progress: Progress = silent
    ) -> np.ndarray:
        """In place of noisy cells. How many cells occur is secret, too: such a list loses them all."""
        if values.ndim == 1:
            return np.zeros_like(values)
        fixed = self.words(values.size) % np.uint64(97)
        return fixed.astype(np.int64).reshape(values.shape)

    def choice(self, scores: np.ndarray, *, epsilon: Fraction, sensitivity: Fraction | int) -> int:
        """In place of the exponential mechanism."""
        return int(self.words(1)[0] % np.uint64(np.size(scores)))

    @property
    def levels(self) -> object:
        """In place of Block.draw: a level that only the key (public) and the question decide."""

        def draw(
            block: Block,
            keys: np.ndarray,
            words: Words64,
            *,
            allowed: np.ndarray | None = None,
            visited: np.ndarray | None = None,
            shared: bool = True,
        ) -> np.ndarray:
            mixed = self.words(1)[0] ^ (keys * np.uint64(0x9E3779B97F4A7C15))
            start = (mixed >> np.uint64(33)) % np.uint64(block.context.levels)
            if allowed is None:
                level: np.ndarray = start.astype(np.int64)
                return level
            size = block.context.levels
            order = (start.astype(np.int64)[:, None] + np.arange(size)) % size
            first = np.take_along_axis(allowed, order, axis=1).argmax(axis=1)
            chosen: np.ndarray = order[np.arange(len(order)), first]
            return chosen

        return draw

    def rows(self, honest: object) -> object:
        """In place of Curator.draw: ours draw blind; any other draw is one door as a whole."""

        def draw(curator: Curator, contexts: Sequence[Context], draw: RowDraw, rows: int) -> Codes:
            if isinstance(draw, OURS):
                curator._words = self.words
                return honest(curator, contexts, draw, rows)  # type: ignore[operator, no-any-return]
            curator._pay(draw.cost(contexts, rows, curator.relation, curator.max_rows))
            schema = curator.schema
            return Codes(schema, np.zeros((len(schema), rows), dtype=schema.code_dtype()).T)

        return draw
