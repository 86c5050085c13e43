"""One part of a synthetic set: drawn, decoded and written, by any process, any number of times.

What is here runs wherever an engine has workers: it holds public things alone, makes no noise, and
the bytes of a part depend on the release, the seed and the numbers of set and part.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gibbous.core.codes import Codes
from gibbous.core.errors import EngineFailure, OutputNotWritten
from gibbous.core.protocols import Progress, silent
from gibbous.core.request import Output
from gibbous.core.tables import Tables
from gibbous.sampling.sample import Prepared, prepared, stream
from gibbous.write.durable_files import not_written, sha256_of, writing
from gibbous.write.partial import fresh_name
from gibbous.write.rows import write_files
from gibbous.write.set_files import part_name, part_span, parts

TOKEN = "token"  # noqa: S105  the name of a file, which shows that a worker sees the folder


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Drawing:
    """What all parts of a release share: public, and pickled once for each worker.

    Attributes:
        source: public tables, or the drawn rows of all sets, one set after the other.
        digest: of `source`, as committed to the ledger.
        output: sets and format, and the rows of one part.
        rows: rows of each set.
        seed: sampling seed.
        folder: absolute path of the package while it grows, on a file system that all workers see.
        scratch: folder beside it for files that are not finished; it holds the token.
        token: what the file of that name says.
        versions: of the packages that decide the bytes, as the driver has them.
        threads: for drawing one part; None for all cores of the process. Never changes a byte.
    """

    source: Tables | Codes
    digest: str
    output: Output
    rows: int
    seed: int
    folder: str
    scratch: str
    token: str
    versions: tuple[tuple[str, str], ...]
    threads: int | None = None

    def __repr__(self) -> str:
        return f"<Drawing: {self.output.sets} sets of {self.rows:,} rows>"

    def items(self) -> tuple[tuple[int, int], ...]:
        """All parts: (set from 0, part from 0)."""
        each = parts(self.rows, self.output.part_rows)
        return tuple((number, part) for number in range(self.output.sets) for part in range(each))

    def names(self, item: tuple[int, int]) -> tuple[str, ...]:
        """Names of the files of a part within the package, one a format."""
        number, part = item
        return tuple(
            part_name(number + 1, self.rows, self.output.part_rows, part, form)
            for form in self.output.formats
        )


@dataclass(frozen=True, slots=True)
class FileDone:
    """One file of a part: name within the package, hex digest, size in bytes."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class PartDone:
    """What a worker says about a part that is on disk.

    Attributes:
        set, part: which, both from 0.
        rows: rows of the part.
        guarded_cells: text cells that were prefixed with an apostrophe, in CSV.
        files: one a format.
        changed: rows that each rule of the schema changed.
    """

    set: int
    part: int
    rows: int
    guarded_cells: int
    files: tuple[FileDone, ...]
    changed: tuple[int, ...] = ()


def write_part(job: Drawing, item: tuple[int, int], progress: Progress = silent) -> PartDone:
    """Draw, decode and write a part (set, part), from 0; its files appear whole, under their final names.

    Writing it again, here or elsewhere, gives the same bytes under the same names. `progress` is told
    ("rows", rows of this part that are drawn, rows of this part).

    Raises:
        OutputNotWritten: this process does not see the folder, or may not write there.
        ResourceLimit: the disk is full; a table is too large to draw from.
        EngineFailure: this process has other versions than the driver.
    """
    _check_here(job)
    names = job.names(item)
    own, done = fresh_name(), []  # two tasks may write one part at a time
    drafts = tuple(Path(job.scratch) / f"{own}-{form}" for form in job.output.formats)
    try:
        written = write_files(
            _batches(job, item, progress),
            job.source.schema,
            dict(zip(job.output.formats, drafts, strict=True)),
            seed=job.seed,
            first=(item[0], item[1] * job.output.part_rows),
            csv_raw=job.output.csv_raw,
            types=job.output.types,
        )
        for name, draft in zip(names, drafts, strict=True):
            done.append(FileDone(name, sha256_of(draft), draft.stat().st_size))
            with writing(Path(job.folder) / name):
                draft.replace(Path(job.folder) / name)
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)
    return PartDone(*item, written.rows, written.guarded_cells, tuple(done), written.changed)


def versions() -> tuple[tuple[str, str], ...]:
    """Versions of the packages that decide the bytes of a part."""
    import numpy as np
    import polars as pl

    from gibbous import __version__

    return (("gibbous", __version__), ("numpy", np.__version__), ("polars", pl.__version__))


def _batches(job: Drawing, item: tuple[int, int], progress: Progress) -> Iterator[Codes]:
    start, stop = part_span(job.rows, job.output.part_rows, item[1])
    if isinstance(job.source, Codes):
        first = item[0] * job.rows
        yield job.source.part(slice(first + start, first + stop))
        return
    yield from stream(
        _ready(job, job.source, item[0]),
        stop - start,
        seed=job.seed,
        set_index=item[0],
        start=start,
        threads=job.threads,
        progress=progress,
    )


_held: dict[tuple[str, int], Prepared] = {}
_one_at_a_time = threading.Lock()


def _ready(job: Drawing, tables: Tables, number: int) -> Prepared:
    """The tables of a set, prepared once a process: the last ones used are kept, no others."""
    key = (job.digest, number if tables.noisings > 1 else 0)
    with _one_at_a_time:
        if key not in _held:
            _held.clear()
            _held[key] = prepared(tables, number)
        return _held[key]


def forget() -> None:
    """Drop the tables that this process prepared: its parts are done."""
    with _one_at_a_time:
        _held.clear()


def _check_here(job: Drawing) -> None:
    here = versions()
    if here != job.versions:
        pairs = zip(here, job.versions, strict=True)
        both = [f"{one[0]} {one[1]} there, {other[1]} here" for one, other in pairs if one != other]
        raise EngineFailure(
            "VERSIONS",
            f"A worker has other versions than the driver ({'; '.join(both)}).",
            "The same versions write the same bytes, wherever a part is drawn.",
            "Install the driver's versions on the workers.",
        )
    try:
        seen = (Path(job.scratch) / TOKEN).read_text("ascii")
    except (FileNotFoundError, ValueError):
        seen = ""
    except OSError as error:
        raise not_written(Path(job.scratch), error) from None
    if seen != job.token:
        raise not_shared(Path(job.folder))


def not_shared(folder: Path) -> OutputNotWritten:
    """The error for an output folder that is not the same for all workers."""
    return OutputNotWritten(
        "NOTSHARED",
        f"A worker does not see the output folder {str(folder.parent)!r}, or may not use it.",
        "Parts are written by the workers: the folder is on a file system that all of them mount "
        "under one path, as one user.",
        "Choose an --out on a shared file system, or write with the local engine.",
    )
