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

from gibbous.core.errors import EngineFailure
from gibbous.core.schema import Schema
from gibbous.disintegrate.spark import slabs
from gibbous.disintegrate.spark.shield import Batches, one_row, rows, shielded, task

ENCODED = "rows bigint, sum bigint, bucket int, codes binary, numbers binary, people binary, report string"
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
        days: columns of days with a time of day, which is midnight in every row.
        timed: such columns where it is not.
        buckets: into how many groups of persons rows are divided; 0 where the unit is a row.
        names: of the columns of the rows that come from Spark; () for those that they have there.
        paths: text files, one a task; () where rows come from Spark.
        options: how text files are read (`read.source.ReadOptions`).
    """

    schema: Schema
    root: bytes
    key: int
    numbers: tuple[int, ...]
    slab: int
    days: tuple[str, ...] = ()
    timed: tuple[str, ...] = ()
    buckets: int = 0
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    options: Any = None


def timed_columns(batches: Batches) -> Iterator[Any]:
    """Which columns of days have a time of day in some row: one JSON list a task."""
    return shielded(_timed(batches), _report_of)


def encoded(job: EncodeJob, batches: Batches) -> Iterator[Any]:
    """Validate and encode rows; see `ENCODED`. A row holds a slab, or a report."""
    return shielded(_encoded(job, _frames(job, batches)), _report_of)


def encoded_files(job: EncodeJob, batches: Batches) -> Iterator[Any]:
    """The same for text files, which are read by the one reader of text files."""
    return shielded(_encoded(job, _file_frames(job, batches)), _report_of)


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


def _frames(job: EncodeJob, batches: Batches) -> Iterator[pl.DataFrame]:
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


def _timed(batches: Batches) -> Iterator[Any]:
    found: set[str] = set()
    for batch in batches:
        for values in pl.DataFrame(pl.from_arrow(batch)):
            if not (values.dt.date().cast(values.dtype) == values).all():
                found.add(values.name)
    yield _encoded_batch(report=json.dumps({"timed": sorted(found)}))


def _encoded(job: EncodeJob, frames: Iterable[pl.DataFrame]) -> Iterator[Any]:
    from gibbous.encode.encode import SliceEncoder
    from gibbous.encode.levels import coded, dictionaries
    from gibbous.read.conform import check_years
    from gibbous.read.fingerprint import Fingerprint

    encoder = SliceEncoder(job.schema, numbers=job.numbers)
    mark = Fingerprint.of_root(job.root, job.schema.null if job.paths else "")
    known = dictionaries(job.schema)
    place, before = 0, mark.state()
    most = slabs.rows_of(len(job.schema))
    for whole in frames:
        check_years(whole)
        for start in range(0, max(1, whole.height), most):
            frame = coded(_settled(whole.slice(start, most), job), known)
            part = encoder.encode(frame)
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
    from gibbous.encode.persons import first_without

    unit = job.schema.unit
    if unit is None or unit.column is None:
        return None
    values = frame.get_column(unit.column)
    if without := first_without(values):
        report["nobody"] = without
    return slabs.person_words(values, job.root)


def _settled(frame: pl.DataFrame, job: EncodeJob) -> pl.DataFrame:
    """Columns of days with a time of day, as all rows together say: days, or text of an instant."""
    dates = {c.name for c in job.schema if c.kind == "date"}
    found = [pl.col(name).dt.date() for name in job.days]
    # A date column refuses such values, row by row.
    found += [pl.col(name).dt.to_string("iso") for name in job.timed if name not in dates]
    return frame.with_columns(found) if found else frame


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
