"""`gibbous synthesize --tables`: rows from the tables of a release, whole or to go with given columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.cli import show
from gibbous.cli.config import FORMATS
from gibbous.cli.progress import Bars
from gibbous.cli.synthesize_verb import Run, at_most, output
from gibbous.core.errors import UsageError

if TYPE_CHECKING:
    from gibbous.core.protocols import Engine
    from gibbous.core.release import Release

OUTPUT = ("output.seed", "output.format", "output.path", "output.part_rows")
ROWS = ("output.rows", *OUTPUT, "engine.name", "engine.partitions", "engine.master", "engine.conf")


def run(
    tables: Path | None, given: Path | None, flags: Mapping[str, Any], configured: bool, how: Run
) -> None:
    """Draw from the public tables of a release: post-processing, costs nothing.

    Args:
        tables: folder of the release.
        given: file of given columns; None draws whole rows.
        flags: as given; only those of the output (and the engine of whole rows) may be among them.
        configured: whether a configuration was given, too.
    """
    if given is None:
        assert tables is not None
        _only(flags, ROWS, configured, "--rows, --seed, --format, --out")
        _whole_rows(tables, flags, how)
        return
    if tables is None:
        raise UsageError(
            "TABLES",
            "--given was given without --tables.",
            "Rows that go with given columns are drawn from the tables of a release.",
            "Make a release with adaptive_gibbs first, then pass --tables RELEASE --given FILE.",
        )
    if flags["output.rows"] is not None:
        raise UsageError(
            "ROWS",
            "--rows was given beside --given.",
            "One row is drawn for each given row.",
            "Leave --rows out, or give as many rows as you want.",
        )
    _only(flags, OUTPUT, configured, "--seed, --format, --part-rows, --out")
    _given_rows(tables, given, flags, how)


def _only(
    flags: Mapping[str, Any], allowed: tuple[str, ...], configured: bool, listed: str
) -> None:
    if configured or any(v is not None and key not in allowed for key, v in flags.items()):
        raise UsageError(
            "TABLES",
            "--tables was given together with flags that describe a new release.",
            f"Rows drawn from a release take only {listed}.",
            "Leave out data, schema, method, budget, sets and configuration.",
        )


def _whole_rows(tables: Path, flags: Mapping[str, Any], how: Run) -> None:
    rows, target = flags["output.rows"], output(flags["output.path"])
    if rows is None or rows < 0:
        raise UsageError(
            "ROWS", "--tables needs --rows.", "It is a whole number, >= 0.", "Pass --rows N."
        )
    form = _format(flags["output.format"] or target.suffix.removeprefix("."))
    from gibbous.pipeline import sample_more
    from gibbous.write.load import load

    with at_most(how.threads), Bars(quiet=how.quiet, json=how.json) as bars:
        sample_more(
            load(tables),  # before a cluster is asked for
            rows,
            seed=flags["output.seed"],
            out=target,
            format=form,
            csv_raw=how.csv_raw,
            engine=_writing_engine(flags),
            part_rows=flags["output.part_rows"],
            progress=bars,
        )
    if how.json:
        show.as_json({"path": str(target), "rows": rows, "cost": "none"})
        return
    show.line(
        f"total cost: nothing; {rows:,} rows drawn from the public tables of {tables} are in {target}."
    )


def _given_rows(tables: Path, given: Path, flags: Mapping[str, Any], how: Run) -> None:
    target = output(flags["output.path"])
    if target.suffix in (".csv", ".parquet"):
        raise UsageError(
            "OUT",
            "--given was given with a file as --out.",
            "The output is a folder: its METHODS.md says which columns were given.",
            "Name a folder; with --format csv it holds a CSV file, too.",
        )
    form = _format(flags["output.format"])
    from gibbous.core.request import PART_ROWS, Output
    from gibbous.write.given import write_conditional
    from gibbous.write.output import check_output

    for source in (tables, given):
        place = check_output(target, overwrite=how.overwrite, source=source)
    with at_most(how.threads), Bars(quiet=how.quiet, json=how.json) as bars:
        output_ = Output(
            seed=flags["output.seed"],
            format=form,
            csv_raw=how.csv_raw,
            overwrite=how.overwrite,
            part_rows=flags["output.part_rows"] or PART_ROWS,
        )
        release = write_conditional(
            tables, given, place, output_, options=how.options(), progress=bars
        )
    _tell(release, tables, target, how)


def _tell(release: Release, tables: Path, target: Path, how: Run) -> None:
    """What was drawn and what was given; the last line says both, and what no guarantee covers."""
    receipt = release.receipt
    rows, names = list(receipt["rows"]), receipt["given"]["columns"]
    if how.json:
        told = {"path": str(target), "rows": rows, "cost": "none", "given": names}
        show.as_json(told | {"guarantee": receipt["guarantee"], "receipt": receipt.to_json()})
        return
    if not how.quiet:
        show.line(f"{target}:")
        show.folder(target)
        show.line(f"  drawn, and covered as post-processing: {release.claim.words()}")
        show.line(f"  given, and covered by nothing: {', '.join(names)}")
        show.line(f"  next: gibbous verify {show.quoted(target)}")
    sets = f"{show.counted(len(rows), 'set')} of " if len(rows) > 1 else ""
    show.line(
        f"total cost: nothing; {sets}{show.counted(rows[0], 'row')} drawn from the public tables of "
        f"{tables} are in {target}. No guarantee covers the given columns ({', '.join(names)}): if they "
        "are confidential, so is this folder."
    )


def _format(wanted: str | None) -> str:
    form = wanted or "parquet"
    if form not in FORMATS:
        raise UsageError(
            "FORMAT",
            f"There is no format {form!r}.",
            "parquet or csv.",
            "Correct --format or --out.",
        )
    return form


def _writing_engine(flags: Mapping[str, Any]) -> Engine | None:
    """Who draws further rows: a cluster where one is asked for, else this process."""
    from gibbous.disintegrate import engine

    return engine(
        flags["engine.name"] or "local",
        partitions=flags["engine.partitions"],
        master=flags["engine.master"],
        conf=flags["engine.conf"],
    )
