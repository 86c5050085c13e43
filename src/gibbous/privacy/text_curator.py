"""The Curator of records that have no schema yet: it sells texts, and codes them under what was bought."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gibbous.core.errors import PrivacyRefused
from gibbous.core.protocols import How, Noise, TextRecords
from gibbous.core.schema import Schema
from gibbous.core.tables import Sparse
from gibbous.privacy.curator import Curator


class TextCurator(Curator):
    """A Curator whose engine holds text; see `Curator`."""

    __slots__ = ()

    def noisy_texts(
        self, names: Sequence[str], noise: Noise, how: Callable[[str, Any], Any]
    ) -> tuple[dict[str, int], ...]:
        """Spend: the texts of columns whose noisy number is above a threshold, with that number.

        Args:
            names: columns; a record has at most one text in each.
            noise: has a threshold, and knows its price for that many columns.
            how: public: how texts are written before they are counted; null for those that are not.
        Returns:
            For each column text -> noisy number of rows, in the order of the texts.
        Guarantee:
            `noise.cost` (docs/proofs/discovery.md): a text that one unit alone has is among them with
            at most its delta.
        Raises:
            PrivacyRefused: the price is not covered, or the noise has no threshold.
        """
        if noise.info().threshold is None:
            raise PrivacyRefused(
                "SEENKEYS",
                "The texts that occur were asked for without a stability threshold.",
                "Which texts occur is itself confidential.",
                "Use thresholded noise.",
            )
        self._pay(noise.cost(len(names), self._relation, self.max_rows))
        kept = []
        for texts, cells in self._text().texts(names, how):
            left = noise.add(cells)
            assert isinstance(left, Sparse)
            numbers = zip(left.levels.tolist(), left.values.tolist(), strict=True)
            kept.append({texts[place]: number for place, number in numbers})
        return tuple(kept)

    def coded(self, schema: Schema, how: How, numbers: How | None = None) -> Curator:
        """The same run with its records coded under a public schema, and the same budget; free.

        Args:
            schema: from public facts and from what was bought.
            how: the code of each text: public, and a function of one text at a time.
            numbers: as `how`, the number of each text in a column of bounds alone.
        Returns:
            A view; it is closed with this curator.
        """
        view = Curator(
            self._text().coded(schema, how, numbers),
            self._purse.budget,
            schema,
            relation=self._relation,
            words=self._words,
            progress=self._progress,
        )
        view._purse = self._purse
        self._views.append(view)
        return view

    def _text(self) -> TextRecords:
        engine = self._open()
        assert isinstance(engine, TextRecords)
        return engine
