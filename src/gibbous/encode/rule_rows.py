"""Rows while rules are applied to them: codes and numbers of the columns that the rules name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gibbous.core.column import Column
from gibbous.core.rule_laws import Law, Laws
from gibbous.core.rule_tests import Among, Between, Combined, Mapped, Test
from gibbous.core.stream import stream_key, words_at


@dataclass(frozen=True, slots=True, eq=False)
class RuleRows:
    """Some rows; the arrays in `codes` and `numbers` are changed in place.

    Attributes:
        columns: all columns of the schema.
        laws: its rules.
        codes: by position, of the columns that the rules name.
        numbers: by position, of those that have bins, float64; nan where the code says missing.
        names: number of each row within its set, uint64.
        stream: what names its words: seed, kind, set.
    """

    columns: Sequence[Column]
    laws: Laws
    codes: dict[int, np.ndarray]
    numbers: dict[int, np.ndarray]
    names: np.ndarray
    stream: tuple[int, ...]

    def part(self, at: np.ndarray) -> RuleRows:
        """Copies of the rows at some positions."""
        codes = {place: array[at] for place, array in self.codes.items()}
        numbers = {place: array[at] for place, array in self.numbers.items()}
        return RuleRows(self.columns, self.laws, codes, numbers, self.names[at], self.stream)

    def values(self, place: int) -> np.ndarray:
        """What a column counts in a comparison; nan where it has no value."""
        if place in self.numbers:
            return self.numbers[place]
        found: np.ndarray = self.laws.values[place][self.codes[place]]
        return found

    def uniforms(self, *stream: int) -> np.ndarray:
        """A number in [0, 1) a row, of the row's own."""
        words = words_at(stream_key(*self.stream, *stream), self.names)
        draws: np.ndarray = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return draws

    def broken(self, law: Law) -> np.ndarray:
        """Which rows break a law, bool."""
        found = ~self.holds(law.then)
        for test in law.when:
            found &= self.meets(test)
        return found

    def meets(self, test: Among | Between) -> np.ndarray:
        """Which rows meet a condition; a missing value does not."""
        if isinstance(test, Among):
            return self.holds(test)
        found: np.ndarray = self.holds(test) & ~np.isnan(self.sums(test))
        return found

    def holds(self, test: Test) -> np.ndarray:
        """Which rows are as a rule asks; a missing value is."""
        found: np.ndarray
        if isinstance(test, Among):
            found = test.codes[self.codes[test.place]]
            return found
        if isinstance(test, Combined):
            found = test.possible[tuple(self.codes[place] for place in test.places)]
            return found
        if isinstance(test, Between):
            sums = self.sums(test)
            low = sums <= test.low if test.open[0] else sums < test.low - test.close
            high = sums >= test.high if test.open[1] else sums > test.high + test.close
            found = ~(low | high)
            return found
        wanted = self.values_of_map(test)
        if test.group in self.numbers:
            found = np.isnan(wanted) | (self.numbers[test.group] == wanted)
        else:
            found = np.isnan(wanted) | (self.codes[test.group] == wanted)
        return found

    def sums(self, test: Between) -> np.ndarray:
        """The sum that a comparison is about."""
        total = np.zeros(len(self.names))
        for place, times in test.terms:
            values = self.values(place)
            total = total + (values if times == 1 else times * values)
        return total

    def rest(self, test: Between, place: int) -> np.ndarray:
        """What an equality makes of one of its columns, given the others."""
        own = dict(test.terms)[place]
        others = replace(test, terms=tuple(term for term in test.terms if term[0] != place))
        return (test.low - self.sums(others)) / own

    def values_of_map(self, test: Mapped) -> np.ndarray:
        """What the detail of each row determines; nan: anything."""
        found: np.ndarray = test.values[self.codes[test.detail]]
        return found
