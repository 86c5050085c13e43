"""The synthetic sets of a release while they grow: parts that are on disk, and how the others get there."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from gibbous.core.codes import Codes
from gibbous.core.errors import EngineFailure
from gibbous.core.protocols import Progress, Workers
from gibbous.core.request import Output
from gibbous.core.tables import Tables
from gibbous.write import durable_files
from gibbous.write.labelled_files import written_by
from gibbous.write.partial import Partial, fresh_name
from gibbous.write.parts import (
    TOKEN,
    Drawing,
    FileDone,
    PartDone,
    forget,
    not_shared,
    versions,
    write_part,
)
from gibbous.write.set_files import fitting, part_span, set_folders


class Sets:
    """Parts in any order, perhaps more than once, from any process; each counts once.

    Args:
        output: with its seed and the rows of each set; parts grow where files would be too many.
        growing: the private folder of the release.
        workers: who draws and writes the parts, each with one core; None is this process, with all.
    """

    def __init__(
        self,
        source: Tables | Codes,
        digest: str,
        output: Output,
        growing: Partial,
        workers: Workers | None = None,
    ) -> None:
        assert output.rows is not None, "rows are settled before they are drawn"
        assert output.seed is not None, "a seed is settled before rows are drawn"
        part_rows = fitting(output.part_rows, output.rows, output.sets)
        self.job = Drawing(
            source=source,
            digest=digest,
            output=replace(output, part_rows=part_rows, out=None, sign=None),
            rows=output.rows,
            seed=output.seed,
            folder=str(growing.package.absolute()),
            scratch=str(growing.scratch.absolute()),
            token=fresh_name(),
            versions=versions(),
            threads=None if workers is None else 1,
        )
        self._partial, self._workers = growing, workers
        self._done: dict[tuple[int, int], PartDone] = {}
        self._rows = 0

    @property
    def sums(self) -> dict[str, str]:
        """Digest of every file of the sets, by name within the package."""
        return {file.name: file.sha256 for done in self._done.values() for file in done.files}

    def described(self) -> dict[str, Any]:
        """What a certificate says of the files, with the guarded cells of each set."""
        output, guarded = self.job.output, Counter[int]()
        for done in self._done.values():
            guarded[done.set] += done.guarded_cells
        return {
            "csv": "csv" in output.formats,
            "csv_raw": output.csv_raw,
            "guarded_cells": [guarded[number] for number in range(output.sets)],
            "part_rows": output.part_rows,
            **written_by(output.format),
        } | ({"types": dict(output.types)} if output.types else {})

    def changed(self) -> tuple[tuple[int, ...], ...]:
        """Of each set, the rows that each rule changed as they were written."""
        rules = self.job.source.schema.rules
        total = np.zeros((self.job.output.sets, len(rules)), dtype=np.int64)
        for done in self._done.values():
            total[done.set] += np.array(done.changed, dtype=np.int64)
        return tuple(tuple(one) for one in total.tolist())

    def write(self, progress: Progress) -> None:
        """Have all parts written that are not on disk yet; those finished stay where one fails."""
        self._keep_whole_ones()
        self._make_room()
        items = [item for item in self.job.items() if item not in self._done]
        total = self.job.rows * self.job.output.sets
        progress("rows", self._rows, total)
        finished = self._spread(items, progress, total)
        try:
            for done in finished:
                if self._is_new(done):
                    self.record(done)
                    progress("rows", self._rows, total)
        finally:
            finished.close()
            forget()
        if len(self._done) != len(self.job.items()):
            raise EngineFailure(
                "PARTS",
                "The workers ended before all parts of the sets were written.",
                "Each part is written by one of them.",
                "Run the same command again: finished parts are kept.",
            )
        durable_files.remove_folder(self._partial.scratch)  # a late task finds nothing to rename
        for folder in (self._partial.package, *self._folders()):
            durable_files.sync_folder(folder)

    def record(self, done: PartDone) -> None:
        """Note a part that is on disk, durably."""
        self._partial.note(asdict(done))
        self._done[done.set, done.part] = done
        self._rows += done.rows

    def _spread(
        self, items: list[tuple[int, int]], progress: Progress, total: int
    ) -> Generator[PartDone, None, None]:
        if self._workers is not None:
            if items:
                yield from self._workers.spread(write_part, self.job, items)
            return

        def told(_: str, done: int, __: int) -> None:
            progress("rows", self._rows + done, total)

        for item in items:
            yield write_part(self.job, item, progress=told)

    def _is_new(self, done: PartDone) -> bool:
        """Whether a result is the first of its part; a retried or speculative task gives another.

        OutputNotWritten where its files are not there, EngineFailure where two workers differ.
        """
        before = self._done.get((done.set, done.part))
        if before is not None and before != done:
            raise EngineFailure(
                "PARTS",
                f"Two workers wrote different bytes for part {done.part + 1} of set {done.set + 1}.",
                "The same versions on the same kind of processor write the same bytes.",
                "Install the same versions on all workers, and run the same command again.",
            )
        if not self._there(done):
            raise not_shared(self._partial.package)
        return before is None

    def _there(self, done: PartDone) -> bool:
        with contextlib.suppress(OSError):
            return all(
                (self._partial.package / file.name).stat().st_size == file.bytes
                for file in done.files
            )
        return False

    def _keep_whole_ones(self) -> None:
        """Take over the parts of a killed run whose bytes are what it noted."""
        wanted = set(self.job.items())
        for noted in self._partial.noted():
            with contextlib.suppress(KeyError, TypeError):
                done = _read(noted)
                item = (done.set, done.part)
                names = tuple(file.name for file in done.files)
                if item in wanted and names == self.job.names(item) and self._whole(done):
                    self._done[item] = done
        self._partial.note_only(map(asdict, self._done.values()))
        self._rows = sum(done.rows for done in self._done.values())

    def _whole(self, done: PartDone) -> bool:
        low, high = part_span(self.job.rows, self.job.output.part_rows, done.part)
        return (
            done.rows == high - low
            and self._there(done)
            and all(
                durable_files.sha256_of(self._partial.package / file.name) == file.sha256
                for file in done.files
            )
        )

    def _make_room(self) -> None:
        """Remove what is half-written; make the folders of the sets, and that for unfinished files."""
        package, kept = self._partial.package, self.sums
        for path in sorted(package.glob("synthetic_*"), reverse=True):
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                if file.relative_to(package).as_posix() not in kept:
                    durable_files.remove_folder(file) if file.is_dir() else file.unlink()
        for folder in self._folders():
            if not folder.is_dir():
                durable_files.make_folder(folder)
        durable_files.remove_folder(self._partial.scratch)
        durable_files.make_folder(self._partial.scratch)
        durable_files.write_bytes(self._partial.scratch / TOKEN, self.job.token.encode())

    def _folders(self) -> tuple[Path, ...]:
        job = self.job
        return tuple(self._partial.package / name for name in set_folders(job.rows, job.output))


def _read(noted: dict[str, Any]) -> PartDone:
    found = tuple(FileDone(**file) for file in noted["files"])
    return PartDone(**{**noted, "files": found, "changed": tuple(noted["changed"])})
