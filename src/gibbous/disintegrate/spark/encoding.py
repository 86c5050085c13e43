"""Encoding on executors: records in, slabs of codes and reports out; no key of the ledger, no exception.

What is wrong with the data comes back in the reports: columns and counts, never a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gibbous.core.codes import empty_codes
from gibbous.core.errors import UNCHARGED, EngineFailure
from gibbous.core.schema import Schema
from gibbous.disintegrate.spark import slabs
from gibbous.disintegrate.spark.faults import unstable
from gibbous.disintegrate.spark.shield import Batches, one_row, rows, shielded, task
from gibbous.encode.cell_text import as_cells
from gibbous.encode.encode import Slice

ENCODED = "rows bigint, sum bigint, bucket int, codes binary, numbers binary, people binary, report string"
TEXTS = "place int, text string, report string"
REPORTS = "task int, rows bigint, sum bigint, report string"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EncodeJob:
    """How records become codes.

    Attributes:
        schema: public.
        root: what hashing rows needs (`read.fingerprint.root_of`); secret, not the ledger's key.
        key: 64 bits derived from it, for checks and for choosing rows of a person.
        numbers: positions of numeric columns whose numbers are kept.
        slab: rows of a slab at most.
        buckets: into how many groups of persons rows are divided; 0 where the unit is a row.
        names: of the columns of the rows that come from Spark; () for those that they have there.
        paths: text files, one a task; () where rows come from Spark.
        options: how text files are read (`read.source.ReadOptions`).
        words: of each column the keyed words of its texts, uint64 (texts,), increasing: codes number the
            texts from 1, and 0 is missing; () where the schema says what codes are.
    """

    schema: Schema
    root: bytes
    key: int
    numbers: tuple[int, ...]
    slab: int
    buckets: int = 0
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    options: Any = None
    words: tuple[np.ndarray, ...] = ()


def different_texts(job: EncodeJob, batches: Batches) -> Iterator[Any]:
    """The texts of each column that a task meets, each once; see `TEXTS`."""
    return shielded(_different(job, _frames(job, batches)), _text_report)


def encoded(job: EncodeJob, batches: Batches) -> Iterator[Any]:
    """Validate and encode rows; see `ENCODED`. A row holds a slab, or a report."""
    return shielded(_encoded(job, _frames(job, batches)), _report_of)


def people_cut(job: EncodeJob, batches: Batches) -> Iterator[Any]:
    """Keep at most `max_rows` rows of each person; reports pass through."""
    return shielded(_cut(job, batches), _report_of)


def reported(batches: Batches) -> Iterator[Any]:
    """The reports of a partition, and what its slabs add up to; see `REPORTS`."""
    read = np.zeros(2, dtype=np.int64)
    for row in rows(batches):
        if row["report"] is not None:
            yield one_row(REPORTS, task=-1, rows=0, sum=0, report=row["report"])
        read += (row["rows"], row["sum"])
    yield one_row(REPORTS, task=task(), rows=int(read[0]), sum=int(read[1]))


def text_words(texts: pl.Series, root: bytes) -> np.ndarray:
    """A keyed word of each text, uint64 (texts,)."""
    words: np.ndarray = slabs.person_words(texts.cast(pl.String), root)[0]
    return words


def _different(job: EncodeJob, frames: Iterable[pl.DataFrame]) -> Iterator[Any]:
    found: dict[int, pl.Series] = {}
    for whole in frames:
        for place, cells in enumerate(_cells(whole, job)):
            new = cells.drop_nulls().unique()
            found[place] = pl.concat([found[place], new]).unique() if place in found else new
    for place, texts in found.items():
        yield from _text_batches(place, texts)


def _text_batches(place: int, texts: pl.Series) -> Iterator[Any]:
    import pyarrow as pa

    for start in range(0, len(texts), slabs.CELLS >> 5):
        some = texts[start : start + (slabs.CELLS >> 5)].to_list()
        told = {
            "place": pa.array([place] * len(some), pa.int32()),
            "text": pa.array(some, pa.string()),
        }
        told["report"] = pa.nulls(len(some), pa.string())
        yield pa.RecordBatch.from_pydict(told)


def _cells(frame: pl.DataFrame, job: EncodeJob) -> list[pl.Series]:
    """The text of each cell, one series a column of the schema."""
    return [as_cells(frame[name]) for name in job.schema.names]


def _numbered(frame: pl.DataFrame, job: EncodeJob) -> Slice:
    """Codes that number the texts of cells."""
    values = empty_codes(job.schema, frame.height)
    for at, (cells, words) in enumerate(zip(_cells(frame, job), job.words, strict=True)):
        texts = cells.drop_nulls().unique()
        own = text_words(texts, job.root)
        ranks = np.searchsorted(words, own)
        if not np.array_equal(words[np.minimum(ranks, len(words) - 1)], own):
            raise unstable(UNCHARGED)  # a text that was not there when texts were collected
        values[:, at] = cells.replace_strict(texts, ranks + 1, default=0, return_dtype=pl.UInt32)
    return Slice(values.T, (), (), ())


def _frames(job: EncodeJob, batches: Batches) -> Iterator[pl.DataFrame]:
    if job.paths:  # numbers of text files, which are read by the one reader of text files
        yield from _file_frames(job, batches)
        return
    import pyarrow as pa

    most = slabs.rows_of(len(job.schema))
    held, count = [], 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= most:
            yield _named(job, pa.Table.from_batches(held))
            held, count = [], 0
    if count:
        yield _named(job, pa.Table.from_batches(held))


def _named(job: EncodeJob, table: Any) -> pl.DataFrame:
    frame = pl.DataFrame(pl.from_arrow(table))
    frame.columns = list(job.names) or frame.columns
    return frame


def _file_frames(job: EncodeJob, batches: Batches) -> Iterator[pl.DataFrame]:
    from gibbous.read.source import read_slices

    for row in rows(batches):
        path = Path(job.paths[row["id"]])
        if not path.exists():
            raise EngineFailure(
                "NOTSHARED",
                f"An executor does not see the file {path.name!r}.",
                "Text files lie in a folder that every executor can read under the same path.",
                "Put it on the shared file system, or write it as Parquet where Spark reads.",
            )
        with read_slices(path, schema=job.schema, options=job.options) as (_, frames):
            yield from frames


def _encoded(job: EncodeJob, frames: Iterable[pl.DataFrame]) -> Iterator[Any]:
    from gibbous.encode.encode import SliceEncoder
    from gibbous.encode.levels import coded, dictionaries
    from gibbous.read.conform import check_years
    from gibbous.read.fingerprint import Fingerprint

    encoder = None if job.words else SliceEncoder(job.schema, numbers=job.numbers)
    mark = Fingerprint.of_root(job.root, job.schema.null if job.paths else "")
    known = {} if job.words else dictionaries(job.schema)
    place, before = 0, mark.state()
    most = slabs.rows_of(len(job.schema))
    for whole in frames:
        check_years(whole)
        for start in range(0, max(1, whole.height), most):
            some = whole.slice(start, most)
            frame = coded(some, known)
            part = encoder.encode(frame) if encoder else _numbered(some, job)
            mark.add(frame)
            now = mark.state()
            seen = [(a - b) % 2**64 for a, b in zip(now.sums, before.sums, strict=True)]
            report: dict[str, Any] = {
                "place": [task(), place],
                "rows": part.rows,
                "names": now.names,
                "sums": seen,
                "faults": [[index, *astuple(fault)] for index, fault in part.faults],
                "impossible": part.impossible,
            }
            people = _people(job, frame, report)
            yield _encoded_batch(report=json.dumps(report))
            if part.rows and not part.faults:
                kept = [numbers for _, numbers in part.numbers]
                numbers = np.stack(kept) if kept else np.empty((0, part.rows))
                yield from _slabs(job, part.codes, numbers, people)
            place, before = place + 1, now


def _slabs(
    job: EncodeJob, codes: np.ndarray, numbers: np.ndarray, people: np.ndarray | None
) -> Iterator[Any]:
    if people is None:
        for start in range(0, codes.shape[1], job.slab):
            which = slice(start, start + job.slab)
            yield _slab_batch(job, codes[:, which], numbers[:, which])
        return
    bucket = people[0] % np.uint64(job.buckets)
    order = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(job.buckets, dtype=np.uint64), side="right")
    for number, (low, high) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if low < high:
            chosen = order[low:high]
            yield _encoded_batch(
                codes=codes[:, chosen],
                numbers=numbers[:, chosen],
                people=people[:, chosen],
                bucket=number,
            )


def _cut(job: EncodeJob, batches: Batches) -> Iterator[Any]:
    codes, numbers, people = [], [], []
    for row in rows(batches):
        if row["report"] is not None:
            yield _encoded_batch(report=row["report"])
            continue
        one = slabs.opened(row, job.schema)
        codes.append(one.codes)
        numbers.append(one.numbers)
        people.append(np.frombuffer(row["people"], dtype=np.uint64).reshape(2, -1))
    if not codes:
        return
    values, kept = np.concatenate(codes, axis=1), np.concatenate(numbers, axis=1)
    unit = job.schema.unit
    assert unit is not None
    stay = slabs.bounded_rows(values, kept, np.concatenate(people, axis=1), unit.max_rows, job.key)
    values, kept = values[:, stay], kept[:, stay]
    for start in range(0, values.shape[1], job.slab):
        which = slice(start, start + job.slab)
        yield _slab_batch(job, values[:, which], kept[:, which])


def _people(job: EncodeJob, frame: pl.DataFrame, report: dict[str, Any]) -> np.ndarray | None:
    """Two keyed words of each row's person, uint64 (2, rows); what is missing goes into the report."""
    from gibbous.encode.persons import first_without, identifiers

    unit = job.schema.unit
    if unit is None or unit.column is None:
        return None
    values = identifiers(frame.get_column(unit.column))
    if without := first_without(values):
        report["nobody"] = without
    return slabs.person_words(values, job.root)


def _text_report(words: str) -> Any:
    return one_row(TEXTS, report=words)


def _report_of(words: str) -> Any:
    return _encoded_batch(report=json.dumps({"error": json.loads(words)}))


def _slab_batch(job: EncodeJob, codes: np.ndarray, numbers: np.ndarray) -> Any:
    total = slabs.check_of(codes, numbers, job.key)
    return _encoded_batch(codes=codes, numbers=numbers, total=total)


def _encoded_batch(
    *,
    codes: np.ndarray | None = None,
    numbers: np.ndarray | None = None,
    people: np.ndarray | None = None,
    total: int = 0,
    bucket: int = 0,
    report: str | None = None,
) -> Any:
    blocks = {"codes": codes, "numbers": numbers, "people": people}
    held = {name: None if block is None else block.tobytes() for name, block in blocks.items()}
    count = 0 if codes is None else codes.shape[1]
    return one_row(ENCODED, rows=count, sum=total, bucket=bucket, report=report, **held)
