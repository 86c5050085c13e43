"""The Curator of records that have no schema yet: it sells texts, and codes them under what was bought."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gibbous.core.errors import PrivacyRefused
from gibbous.core.protocols import How, Noise, TextRecords
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, KnownCounts, Sparse
from gibbous.privacy.curator import Curator
from gibbous.privacy.noise import Thresholded


class TextCurator(Curator):
    """A Curator whose engine holds text; see `Curator`."""

    __slots__ = ()

    def noisy_texts(
        self,
        names: Sequence[str],
        noise: Noise,
        how: Callable[[str, Any], Any],
        listed: Mapping[str, Sequence[str]] | None = None,
    ) -> tuple[dict[str, int], ...]:
        """Spend: the texts of columns whose noisy number is above a threshold, with that number.

        Texts of a public list have no threshold: all of them are there, whether a record has them or not.

        Args:
            names: columns; a record has at most one text in each.
            noise: has a threshold, and knows its price for that many columns.
            how: public: how texts are written before they are counted; null for those that are not.
            listed: column -> texts, each once, which follow from public things and from what was bought.
        Returns:
            For each column text -> noisy number of rows, in the order of the texts.
        Guarantee:
            `noise.cost` (docs/proofs/discovery.md): a text that one unit alone has is among them with
            at most its delta.
        Raises:
            PrivacyRefused: the price is not covered, or the noise has no threshold.
        """
        if not isinstance(noise, Thresholded):
            raise PrivacyRefused(
                "SEENKEYS",
                "The texts that occur were asked for without a stability threshold.",
                "Which texts occur is itself confidential.",
                "Use thresholded noise.",
            )
        self._pay(noise.cost(len(names), self._relation, self.max_rows))
        kept = []
        for name, (texts, cells) in zip(names, self._text().texts(names, how), strict=True):
            number = dict(zip(texts, cells.values.tolist(), strict=True))
            public = list((listed or {}).get(name, ()))
            stated = np.array([number.pop(text, 0) for text in public], dtype=np.int64)
            noisy = noise.base.add(Dense(stated)).values.tolist() if public else []
            others = list(number)
            places = np.arange(len(others), dtype=np.uint64)
            values = np.array([number[text] for text in others], dtype=np.int64)
            left = noise.add(Sparse(np.zeros_like(places), places, values))
            assert isinstance(left, Sparse)
            clear = zip(left.levels.tolist(), left.values.tolist(), strict=True)
            kept.append(
                dict(zip(public, noisy, strict=True))
                | {others[place]: number for place, number in clear}
            )
        return tuple(kept)

    def coded(
        self,
        schema: Schema,
        how: How,
        numbers: How | None = None,
        known: Mapping[int, KnownCounts] | None = None,
    ) -> Curator:
        """The same run with its records coded under a public schema, and the same budget; free.

        Args:
            schema: from public facts and from what was bought.
            how: the code of each text: public, and a function of one text at a time.
            numbers: as `how`, the number of each text in a column of bounds alone.
            known: what was bought of columns of levels, by position.
        """
        view = self._view(self._text().coded(schema, how, numbers), self._purse, schema)
        view._known = known or {}
        return view

    def _text(self) -> TextRecords:
        engine = self._open()
        assert isinstance(engine, TextRecords)
        return engine
