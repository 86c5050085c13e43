"""Further rows of a release, drawn from its public tables: one file, or a folder that can be verified."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gibbous import __version__
from gibbous.core.codes import Codes
from gibbous.core.errors import PrivacyRefused
from gibbous.core.protocols import Progress, Workers, silent
from gibbous.core.release import Release
from gibbous.core.request import Output, nothing_to_sign
from gibbous.core.schema import Schema
from gibbous.read.schema_write import schema_toml
from gibbous.sampling.sample import stream
from gibbous.write import durable_files, manifest, partial
from gibbous.write.certificate import versions as all_versions
from gibbous.write.durable_files import not_written
from gibbous.write.glossary import NO_COST
from gibbous.write.kept_rules import rules_of_receipt
from gibbous.write.partial import drawn_seed
from gibbous.write.release_digest import digest_of
from gibbous.write.release_texts import described
from gibbous.write.rows import write_files
from gibbous.write.sampler import types_of
from gibbous.write.set_files import fitting
from gibbous.write.sets import Sets
from gibbous.write.sidecars import SIDECARS
from gibbous.write.signature import SigningKey

FORMAT = "gibbous-rows/1"


def write_sampled(
    release: Release,
    output: Output,
    target: Path,
    *,
    workers: Workers | None = None,
    progress: Progress = silent,
) -> Path:
    """Draw further rows: post-processing, no cost. A few slices of them are in memory at a time.

    Args:
        output: rows, seed and format; a folder holds Parquet, and CSV beside it.
        target: what `check_output` returned: a file if its name has an ending, else a folder.
        workers: who draws and writes the parts of a folder; None is this process.
        progress: told ("rows", done, rows).
    Raises:
        PrivacyRefused: the release has no public tables.
        OutputNotWritten, ResourceLimit: it appeared meanwhile, or cannot be written.
    """
    if release.tables is None:
        raise paid_rows()
    rows, seed = output.rows or 0, drawn_seed() if output.seed is None else output.seed
    if target.suffix:
        if output.sign:
            raise nothing_to_sign()
        batches = stream(release.tables, rows, seed=seed, progress=progress)
        types = types_of(release.receipt, release.schema)
        return write_file(batches, release.schema, target, replace(output, seed=seed, types=types))
    part_rows = fitting(output.part_rows, rows, 1)
    digest, types = digest_of(release.tables), types_of(release.receipt, release.schema)
    output = replace(output, types=types)
    facts = [__version__, digest, rows, seed, output.format, output.csv_raw, part_rows]
    request = hashlib.sha256(json.dumps(facts).encode()).digest()
    growing = partial.acquire(target, request, seed)
    sets = Sets(release.tables, digest, replace(output, seed=seed), growing, workers)
    try:
        _fill(growing, sets, release, output.sign, progress)
        durable_files.move_into_place(growing.package, target, overwrite=False, mode=output.mode)
    except BaseException:
        # Parts that took long are kept for the same command; a single file is quickly drawn again.
        growing.close() if len(sets.job.items()) > 1 else growing.remove()
        raise
    try:
        durable_files.sync_name(target)
    finally:
        growing.remove()
    return target


def write_file(
    batches: Iterable[Codes],
    schema: Schema,
    target: Path,
    output: Output,
    progress: Progress = silent,
) -> Path:
    """Write rows to one new file, which appears whole or not at all.

    `target` is what `check_output` returned. OutputNotWritten or ResourceLimit where it appeared
    meanwhile, or cannot be written.
    """
    partial.sweep_files(target)
    fresh = target.with_name(f".{target.name}.partial-{partial.fresh_name()[:8]}")
    try:
        write_files(
            batches,
            schema,
            {output.format: fresh},
            seed=output.seed or 0,
            csv_raw=output.csv_raw,
            types=output.types,
            progress=progress,
        )
        durable_files.share(fresh, int(output.mode))
        os.link(fresh, target)  # unlike a rename, this replaces nothing
    except FileExistsError:
        raise durable_files.exists(target) from None
    except OSError as error:
        raise not_written(target, error) from None
    finally:
        with contextlib.suppress(OSError):  # swept by the next run
            fresh.unlink(missing_ok=True)
    durable_files.sync_name(target)
    return target


def _fill(
    growing: partial.Partial,
    sets: Sets,
    release: Release,
    sign: SigningKey | None,
    progress: Progress,
) -> None:
    for name in ("schema.toml", "codebook.html", manifest.FURTHER, *SIDECARS):
        (growing.package / name).unlink(missing_ok=True)  # of a killed run
    sets.write(progress)
    durable_files.write_bytes(growing.package / "schema.toml", schema_toml(release.schema).encode())
    origin = _origin(sets, release)
    durable_files.write_json(growing.package / manifest.FURTHER, origin)
    for name, text in described(origin, release.schema, sets.sums).items():
        durable_files.write_bytes(growing.package / name, text)
    manifest.seal(growing.package, known=sets.sums, sign=sign)


def _origin(sets: Sets, release: Release) -> dict[str, Any]:
    """What the folder says about itself: which release its rows are from, and how they were drawn."""
    receipt, job = release.receipt, sets.job
    return {
        "format": FORMAT,
        "cost": NO_COST,
        "release": {
            "digest": receipt["digest"],
            "reservation": receipt["ledger"]["reservation"],
            "method": receipt["method"]["name"],
            "guarantee": receipt["guarantee"],
            "total": receipt["total"],
            "uncovered": receipt["uncovered"],
        },
        "imprint": receipt.get("imprint", {}),
        "seed": job.seed,
        "rows": [job.rows],
        "sets": 1,
        "files": sets.described(),
        **rules_of_receipt(release.schema, sets.changed()),
        "versions": all_versions(),
    }


def paid_rows() -> PrivacyRefused:
    """The refusal of further rows where each row was paid for."""
    return PrivacyRefused(
        "PAIDROWS",
        "This release has no public tables.",
        "Its method releases rows, not tables.",
        "Use a method whose rows are free after its tables (noisy_pegs, sbhg).",
    )
