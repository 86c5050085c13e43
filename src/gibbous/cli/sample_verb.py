"""`gibbous synthesize --tables` and `--from-tables`: rows from tables that are already there."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.cli.config import Values, parts_of, spark_conf
from gibbous.cli.flags import EngineFlags, RequestFlags, keyed, unkeyed
from gibbous.cli.keys_verb import opened
from gibbous.cli.output_flags import OutputFlags, SignFlags, TablesFlags
from gibbous.cli.progress import Bars
from gibbous.cli.synthesize_verb import Flags, finish, folder_of, release_folder
from gibbous.core.errors import UsageError
from gibbous.core.machine import at_most
from gibbous.core.request import FORMATS

if TYPE_CHECKING:
    from gibbous.cli.flags import ReadingFlags, ScreenFlags
    from gibbous.core.release import Release

WRITTEN = ("seed", "format", "mode", "path", "part_rows", "sign")
OUTPUT = tuple(f"output.{name}" for name in WRITTEN)
MADE = ("schema", "output.rows", "output.sets")
ROWS = ("output.rows", *OUTPUT, "engine.name", "engine.partitions", "engine.master", "engine.conf")


def run(
    where: TablesFlags, data: str | None, flags: Flags, reading: ReadingFlags, screen: ScreenFlags
) -> None:
    """Draw from public tables: post-processing, costs nothing."""
    asked, written, computing, signing = flags[0], flags[1], flags[4], flags[5]
    tables, known = where.tables, where.given
    named = {*keyed(*flags), *(["data"] if data is not None else [])}
    named |= {"--config"} if asked.config or asked.setting else set()
    if where.from_tables is not None:
        if tables is not None or known is not None:
            raise _alone()
        _only(
            named,
            (*OUTPUT, *MADE),
            "--schema, --rows, --sets, --seed, --format, --mode, --sign, --out",
        )
        _made_elsewhere(where.from_tables, asked, written, signing, screen)
        return
    if known is None:
        assert tables is not None
        _only(named, ROWS, "--rows, --seed, --format, --mode, --out")
        _whole_rows(tables, asked, written, computing, signing, screen)
        return
    if tables is None:
        raise UsageError(
            "TABLES",
            "--given was given without --tables.",
            "Rows that go with given columns are drawn from the tables of a release.",
            "Make a release with adaptive_gibbs first, then pass --tables RELEASE --given FILE.",
        )
    if asked.rows is not None:
        raise UsageError(
            "ROWS",
            "--rows was given beside --given.",
            "One row is drawn for each given row.",
            "Leave --rows out, or give as many rows as you want.",
        )
    _only(named, OUTPUT, "--seed, --format, --mode, --part-rows, --out")
    with at_most(computing.threads):
        _given_rows(tables, known, (written, signing), reading, screen)


def _only(named: Collection[str], allowed: tuple[str, ...], listed: str) -> None:
    if not set(named) <= set(allowed):
        raise UsageError(
            "TABLES",
            "Tables that are already there were given together with flags that describe a new purchase.",
            f"Rows drawn from them take only {listed}.",
            "Leave out data, schema, method, budget, sets and configuration.",
        )


def _alone() -> UsageError:
    return UsageError(
        "TABLES",
        "--from-tables was given beside --tables or --given.",
        "Noisy tables made elsewhere first become a release; more rows are then drawn from it.",
        "Run --from-tables DIR --schema FILE --out RELEASE, then --tables RELEASE.",
    )


def _made_elsewhere(
    tables: Path, asked: RequestFlags, written: OutputFlags, signing: SignFlags, screen: ScreenFlags
) -> None:
    values, target = keyed(asked, written), release_folder(written.out)
    if "schema" not in values:
        raise UsageError(
            "NOSCHEMA",
            "--from-tables was given without a schema.",
            "Levels, bins and the privacy unit of the tables are declared in it.",
            "Pass --schema FILE.",
        )
    output, _ = parts_of(values, **unkeyed(written), sign=opened(signing))
    from gibbous.given_tables import released
    from gibbous.promise import load_schema

    with Bars(quiet=screen.quiet, json=screen.json) as bars:
        release = released(tables, load_schema(values["schema"]), output, bars)
    finish(release, target, screen)


def _whole_rows(
    tables: Path,
    asked: RequestFlags,
    written: OutputFlags,
    computing: EngineFlags,
    signing: SignFlags,
    screen: ScreenFlags,
) -> None:
    rows, target = asked.rows, folder_of(written.out)
    if rows is None:
        raise UsageError(
            "ROWS", "--tables needs --rows.", "It is a whole number, >= 0.", "Pass --rows N."
        )
    values: Values = {
        "engine.name": "local",
        "output.format": target.suffix.removeprefix(".") or FORMATS[0],
    }
    values |= keyed(asked, written, computing)
    values["engine.conf"] = spark_conf(computing.spark_conf or [])
    output, performance = parts_of(values, **unkeyed(written, computing), sign=opened(signing))
    from gibbous.pipeline import sample_more
    from gibbous.write.load import load

    release = load(tables)  # before a cluster is asked for
    with Bars(quiet=screen.quiet, json=screen.json) as bars:
        sample_more(release, output, performance, bars)
    if screen.json:
        show.as_json({"path": str(target), "rows": rows, "cost": "none"})
        return
    show.line(
        f"total cost: nothing; {rows:,} rows drawn from the public tables of {tables} are in {target}."
    )


def _given_rows(
    tables: Path,
    known: Path,
    flags: tuple[OutputFlags, SignFlags],
    reading: ReadingFlags,
    screen: ScreenFlags,
) -> None:
    written, signing = flags
    target = folder_of(written.out)
    if target.suffix in (".csv", ".parquet"):
        raise UsageError(
            "OUT",
            "--given was given with a file as --out.",
            "The output is a folder: its METHODS.md says which columns were given.",
            "Name a folder; with --format csv it holds a CSV file, too.",
        )
    output, _ = parts_of(keyed(written), **unkeyed(written), sign=opened(signing))
    from gibbous.write.conditional_rows import write_conditional
    from gibbous.write.output_path import check_output

    for source in (tables, known):
        path = check_output(target, overwrite=output.overwrite, source=source)
    with Bars(quiet=screen.quiet, json=screen.json) as bars:
        release = write_conditional(
            tables, known, path, output, options=reading.options(), progress=bars
        )
    _tell(release, tables, target, screen)


def _tell(release: Release, tables: Path, target: Path, screen: ScreenFlags) -> None:
    """What was drawn and what was given; the last line says both, and what no guarantee covers."""
    receipt = release.receipt
    rows, names = list(receipt["rows"]), receipt["given"]["columns"]
    if screen.json:
        told = {"path": str(target), "rows": rows, "cost": "none", "given": names}
        show.as_json(told | {"guarantee": receipt["guarantee"], "receipt": receipt.to_json()})
        return
    if not screen.quiet:
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
