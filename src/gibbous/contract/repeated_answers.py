"""Runs whose answers are kept: what the first of two runs is answered, the second is answered again.

Each run leaves a list of purchases: what was asked for, the price, the exact counts, and what samplers
were told and gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from gibbous.contract.laws import function_law
from gibbous.contract.losses import Purchase, both_have, named_cells
from gibbous.contract.runs import curated, described
from gibbous.contract.saboteurs import patched
from gibbous.core.claim import Claim
from gibbous.core.codes import Codes
from gibbous.core.plan import Plan
from gibbous.core.protocols import Mechanism, Progress, Words64, silent
from gibbous.core.tables import Cells, Counts, Dense, NoiseInfo, Sparse
from gibbous.disintegrate.records import LocalEngine
from gibbous.privacy import entropy
from gibbous.privacy.curator import Curator
from gibbous.sampling import blocks, cdf_rows, public_rows
from gibbous.sampling.imputation import imputed_rows as imputed
from gibbous.structure.cdf_grid import CdfGrid


class Answers:
    """The two sides of a coupled run; what the first is answered, the second is answered again."""

    def __init__(self, rare: bool) -> None:
        self._rare = rare
        self.sides: tuple[list[Purchase], list[Purchase]] = ([], [])
        self.leaks: list[str] = []
        self._second = False
        self._open: Purchase | None = None
        self._loose = (Purchase("", ()), Purchase("", ()))  # words that divide the records

    def run(
        self, mechanism: Mechanism, codes: Codes, plan: Plan, rows: int | None, sets: int
    ) -> Any:
        """One side: the first draws, the second repeats."""
        self._open, self._second = None, bool(self.sides[0])
        with (
            self._doors(),
            curated(mechanism, codes, plan, words=self._words, progress=self._progress) as curator,
        ):
            try:
                return mechanism.run(curator, rows, sets)
            except _Apart:
                return Codes(codes.schema, codes.values[:0])

    @contextmanager
    def _doors(self) -> Iterator[None]:
        with ExitStack() as stack:
            doors: tuple[tuple[object, str, Callable[..., Any]], ...] = (
                (Curator, "noisy_counts", partial(self._bought, "counts")),
                (Curator, "noisy_moments", partial(self._bought, "sums")),
                (Curator, "choose", partial(self._bought, "choice")),
                (Curator, "draw", partial(self._bought, "draw")),
                (Curator, "_pay", self._pay),
                (Curator, "_count", partial(self._look, True)),  # noqa: FBT003 - what is counted is kept
                (LocalEngine, "tally", partial(self._look, False)),  # noqa: FBT003
                (LocalEngine, "sums", partial(self._look, True)),  # noqa: FBT003
                (entropy, "_sampler", lambda honest, law, scale: _Told(law, scale, honest)),
                (entropy, "_noised", self._noised),
                (entropy, "_chooser", self._chooser),
                (entropy, "exponential_choice", self._choice),
                (entropy, "words", lambda honest, count: self._words(count)),
                (blocks, "draw_levels", self._levels),
                (imputed, "draw_levels", self._levels),
                (public_rows, "draw_levels", self._levels),
                (cdf_rows, "draw_function", self._function),
            )
            for owner, name, door in doors:
                answer = _through(door, getattr(owner, name))
                stack.enter_context(patched(owner, name, value=answer))
            yield

    @property
    def _twin(self) -> Purchase:
        """What the first side saw of the purchase that is open on the second."""
        return self.sides[0][len(self.sides[1]) - 1]

    def _bought(self, kind: str, honest: Any, curator: Curator, /, *args: Any, **given: Any) -> Any:
        asked = _asked(curator, kind, args, given)
        mine = self.sides[self._second]
        mine.append(Purchase(kind, asked, args[1] if len(args) > 1 else None))
        self._open = mine[-1]
        if self._second and (
            len(mine) > len(self.sides[0]) or self._twin.asked != self._open.asked
        ):
            self.leaks.append("what is asked for depends on the record that differs")
            raise _Apart
        released = honest(curator, *args, **given)
        self._open.answer = released
        answer = self._answered(released) if self._second else released
        self._open = None
        return answer

    def _answered(self, released: Any) -> Any:
        """The first side's answer; a leak where post-processing of the same noise gave another."""
        one, two = self._twin, self._open
        assert two is not None
        # Empty cells of a sparse table under a pure price have noise of their own.
        simulated = one.prices[0].kind == "pure"
        if one.kind in ("counts", "sums"):
            for before, after, counts in zip(one.answer, released, one.counts, strict=True):
                if simulated and isinstance(before.cells, Sparse):
                    continue
                if not _same(before.cells, after.cells, counts.cells, before.noise):
                    self.leaks.append("a table shows more than its noise")
        elif one.kind == "choice" and one.answer != released:
            self.leaks.append("a choice shows more than its draw")
        elif one.kind == "draw" and one.levels and described(one.answer) != described(released):
            self.leaks.append("rows show more than the levels that were drawn")
        return one.answer

    def _pay(self, honest: Any, curator: Curator, price: Claim) -> None:
        honest(curator, price)
        if self._open is not None:
            self._open.prices.append(price)

    def _look(
        self, keep: bool, honest: Any, holder: Any, asked: Any, /, **given: Any
    ) -> Sequence[Counts]:
        """A look at the records: a leak without a purchase; what a purchase counts is kept."""
        counts: Sequence[Counts] = honest(holder, asked, **given)
        if self._open is None or not self._open.prices:
            self.leaks.append("records are counted without a purchase")
        elif keep:
            self._open.counts.extend(_copied(one) for one in counts)
        return counts

    def _progress(self, stage: str, done: int, total: int) -> None:
        if stage == "noise" and self._open is not None and done < total:
            self._open.drawn.append([])

    def _noised(
        self, honest: Any, values: np.ndarray, told: _Told, progress: Progress
    ) -> np.ndarray:
        mine = self._open
        if mine is None or (mine.kind == "counts" and not mine.drawn):
            return np.asarray(honest(values, told, silent))
        if mine.kind == "sums":
            mine.drawn.append([])
        place, turn = len(mine.drawn) - 1, len(mine.drawn[-1])
        if self._second:
            noisy = self._repeated(values, place, turn)
        elif self._rare:  # no cell comes out as it is
            noisy = values + 1 + (_fresh(values.size) % _FAR).astype(np.int64).reshape(values.shape)
        else:
            noisy = np.asarray(honest(values, told, silent))
        mine.drawn[-1].append((told.law, told.scale, noisy.ravel()))
        return noisy

    def _repeated(self, values: np.ndarray, place: int, turn: int) -> np.ndarray:
        """The first side's noisy values of the same cells; those of this side alone stay at the threshold."""
        one, two = self._twin, self._open
        assert two is not None
        before = one.drawn[place][turn][2] if turn < len(one.drawn[place]) else None
        cells = one.counts[place].cells, two.counts[place].cells
        if before is not None and isinstance(cells[0], Sparse) and isinstance(cells[1], Sparse):
            at, back = both_have(cells[0], cells[1])
            told = one.by.info().threshold  # type: ignore[attr-defined]
            noisy = np.full(len(values), told or 0, dtype=np.int64)
            if len(before) == len(cells[0].values) and len(noisy) == len(cells[1].values):
                noisy[back] = before[at]
            return noisy
        if before is None or before.size != values.size:
            self.leaks.append("the number of noisy cells depends on the record that differs")
            return np.array(values)
        return np.asarray(before.reshape(np.shape(values)).copy())

    def _choice(self, honest: Any, scores: np.ndarray, **given: Any) -> int:
        if self._open is not None:
            flat = np.asarray(scores, dtype=np.float64).ravel().copy()
            self._open.scores = (flat, Fraction(given["sensitivity"]))
        return int(honest(scores, **given))

    def _chooser(
        self, honest: Any, scale: Fraction, epsilon: Fraction
    ) -> Callable[[np.ndarray], int]:
        def pick(steps: np.ndarray) -> int:
            if self._open is not None:
                self._open.steps = (steps.copy(), scale)
            return int(self._twin.answer if self._second else honest(scale, epsilon)(steps))

        return pick

    def _levels(
        self, honest: Any, sums: np.ndarray, slots: np.ndarray, words: Words64
    ) -> np.ndarray:
        mine = self._open
        if mine is None:
            return np.asarray(honest(sums, slots, words))
        turn = len(mine.levels)
        weights = np.diff(sums[slots], axis=1, prepend=np.uint64(0))
        if not self._second and self._rare:
            levels = np.argmin(np.where(weights > 0, weights, _MOST), axis=1)
        elif not self._second:
            levels = np.asarray(honest(sums, slots, lambda count: _fresh(count)))
        elif turn < len(self._twin.levels) and len(self._twin.levels[turn][0]) == len(slots):
            levels = np.asarray(self._twin.levels[turn][0])
        else:
            self.leaks.append("how much is drawn depends on the record that differs")
            raise _Apart
        own = np.take_along_axis(weights, levels[:, None], axis=1)[:, 0]
        with np.errstate(divide="ignore"):
            logs = np.log(own.astype(np.float64)) - np.log(sums[slots, -1].astype(np.float64))
        mine.levels.append((levels, logs))
        return np.asarray(levels)

    def _function(
        self, honest: Any, grid: CdfGrid, counts: np.ndarray, epsilon: Fraction, words: Words64
    ) -> np.ndarray:
        mine = self._open
        if mine is None:
            return np.asarray(honest(grid, counts, epsilon, words))
        if self._second:
            function = self._twin.levels[len(mine.levels)][0]
        elif self._rare:  # all mass in the first group
            function = np.full(grid.groups, grid.steps)
        else:
            function = np.asarray(honest(grid, counts, epsilon, lambda count: _fresh(count)))
        mine.levels.append((function, np.array([function_law(grid, counts, epsilon, function)])))
        return function

    def _words(self, count: int) -> np.ndarray:
        """Fresh words on the first side; the same ones, and more where more are asked for, on the second."""
        mine = self._open or self._loose[self._second]
        fresh = _fresh(count)
        if self._second:
            before = (self._twin if self._open else self._loose[0]).words
            if len(mine.words) < len(before):
                again = before[len(mine.words)][:count]
                fresh[: len(again)] = again
        mine.words.append(fresh)
        return fresh.copy()


@dataclass(frozen=True, slots=True)
class _Told:
    """A sampler that remembers what law and scale it was made for."""

    law: str
    scale: Fraction
    make: Callable[[str, Fraction], Callable[[np.ndarray], list[int]]]

    def __call__(self, values: np.ndarray) -> list[int]:
        return self.make(self.law, self.scale)(values)


class _Apart(Exception):
    """The second side left the first one's path; what is wrong was noted."""


_fresh = entropy.words
_MOST = np.uint64((1 << 64) - 1)
_FAR = np.uint64(97)  # counts


def _through(door: Callable[..., Any], honest: Any) -> Callable[..., Any]:
    """What stands in for something honest: a door that gets it before what was given."""
    return lambda *args, **given: door(honest, *args, **given)


def _asked(
    curator: Curator, kind: str, args: tuple[Any, ...], given: dict[str, Any]
) -> tuple[object, ...]:
    """What a purchase asks for, as far as it is public and comparable."""
    told: list[object] = [kind, curator.schema.sizes, tuple(args[0])]
    if kind == "counts":
        told.append(args[1].info())
    elif kind == "sums":
        told.append(tuple(noise.info() for noise in args[1]))
    elif kind == "draw":
        told += [type(args[1]), args[2]]
    return (*told, tuple((name, _plain(one)) for name, one in sorted(given.items())))


def _plain(value: object) -> object:
    """A public argument in a form that can be compared: of a map, its function and what it holds."""
    if isinstance(value, partial):
        return (value.func, *((name, _plain(one)) for name, one in sorted(value.keywords.items())))
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def _copied(one: Counts) -> Counts:
    cells = one.cells
    if isinstance(cells, Dense):
        return Counts(one.context, Dense(cells.values.copy()))
    return Counts(one.context, Sparse(cells.keys.copy(), cells.levels.copy(), cells.values.copy()))


def _same(one: Cells, two: Cells, exact: Cells, noise: NoiseInfo) -> bool:
    """Whether two noisy tables are alike, or differ where a cell of the first side alone was kept."""
    if isinstance(one, Dense) and isinstance(two, Dense):
        return bool(np.array_equal(one.values, two.values))
    if isinstance(one, Dense) or isinstance(two, Dense) or noise.threshold is None:
        return False
    assert isinstance(exact, Sparse)
    first, second, mine = (named_cells(cells) for cells in (one, two, exact))
    return all(first.get(name) == value for name, value in second.items()) and all(
        name in second or name in mine for name in first
    )
