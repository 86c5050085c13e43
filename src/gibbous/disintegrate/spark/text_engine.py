"""SparkTextEngine: executors number the texts of cells; the driver knows the texts, for kinds and levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.errors import EngineFailure
from gibbous.core.protocols import Progress
from gibbous.disintegrate.spark.collect import texts_of
from gibbous.disintegrate.spark.encoding import EncodeJob, text_words
from gibbous.disintegrate.spark.engine import SparkEngine
from gibbous.disintegrate.spark.sources import Rows
from gibbous.disintegrate.text_records import TextRecords, all_texts, numbered
from gibbous.read.conform import check_header

TEXT_BYTES = 1 << 10  # of the driver's memory, for a text with its word, place and copies


class SparkTextEngine(TextRecords, SparkEngine):
    """The engine of a cluster before there is a schema; see `TextRecords`.

    Rows are read twice: for the different texts of each column, which come to the driver, and for codes
    that number them, which stay with the executors. No text is sent to an executor, only keyed words.
    """

    __slots__ = ("_texts",)

    def close(self) -> None:
        """Forget the text."""
        self._texts = ()
        super().close()

    def _looked(self, session: Any, rows: Rows, job: EncodeJob, progress: Progress) -> EncodeJob:
        most = self.memory_limit // TEXT_BYTES
        found = texts_of(session, rows, job, most=most, progress=progress)
        texts, words = list[pl.Series](), list[np.ndarray]()
        for name, some in zip(job.schema.names, found, strict=True):
            own = pl.Series(name, some, dtype=pl.String)
            word = text_words(own, job.root)
            order = np.argsort(word)
            texts.append(all_texts(name, own[order.tolist()]))
            words.append(word[order])
            if len(np.unique(word)) < len(word):
                raise EngineFailure(
                    "WORDS",
                    "Two texts of a column have the same keyed word of 64 bits.",
                    "Texts are told apart by such words.",
                    "Use engine='local', or declare a schema.",
                )
        check_header(job.schema.names, texts)
        self._texts = tuple(texts)
        return replace(job, schema=numbered(texts, job.schema.unit), words=tuple(words))
