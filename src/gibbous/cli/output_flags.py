"""The flags that say what is written, who signs it, and of which tables that are already there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

Overwrite = Annotated[bool, Option("--overwrite", help="Replace an existing output.")]


@dataclass(frozen=True, eq=False, repr=False)
class OutputFlags:
    """What is written, and how."""

    seed: Annotated[
        int | None, Option("--seed", help="Seeds sampling only; noise has no seed."), "output.seed"
    ] = None
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder of the release."), "output.path"
    ] = None
    format: Annotated[
        str | None,
        Option("--format", help="parquet; or csv, sav, dta, xlsx beside it."),
        "output.format",
    ] = None
    mode: Annotated[
        str | None, Option("--mode", help="0640: a group may read it; default 0600."), "output.mode"
    ] = None
    csv_raw: Annotated[
        bool, Option("--csv-raw", help="Do not guard CSV text cells against formula injection.")
    ] = False
    overwrite: Overwrite = False
    part_rows: Annotated[
        int | None,
        Option("--part-rows", min=1, help="Most rows of one file of a set; default 4,194,304."),
        "output.part_rows",
    ] = None
    issuer: Annotated[
        str | None,
        Option("--issuer", help="Who publishes the release: public text in METHODS.md."),
        "output.issuer",
    ] = None
    contact: Annotated[
        str | None, Option("--contact", help="Where questions go; public text."), "output.contact"
    ] = None
    date: Annotated[
        str | None, Option("--date", help="Day of publication, YYYY-MM-DD; public."), "output.date"
    ] = None
    license: Annotated[
        str | None,
        Option("--license", help="Under which the rows may be used; public text."),
        "output.license",
    ] = None


@dataclass(frozen=True, eq=False, repr=False)
class SignFlags:
    """Who signs what is written."""

    sign: Annotated[
        Path | None,
        Option("--sign", help="Private key that signs it (Ed25519, OpenSSH's form)."),
        "output.sign",
    ] = None
    passphrase_file: Annotated[
        Path | None,
        Option("--passphrase-file", help="Its first line opens the key; -: stdin; else asked."),
    ] = None


@dataclass(frozen=True, eq=False, repr=False)
class TablesFlags:
    """Tables that rows are drawn from, in place of data; they are already there, and cost nothing."""

    tables: Annotated[
        Path | None, Option("--tables", help="Draw more rows from a release; costs nothing.")
    ] = None
    given: Annotated[
        Path | None,
        Option("--given", help="With --tables: file of known columns, one row drawn for each."),
    ] = None
    from_tables: Annotated[
        Path | None,
        Option("--from-tables", help="Folder of noisy tables made elsewhere; needs --schema."),
    ] = None

    @property
    def named(self) -> bool:
        """Whether there are any."""
        return any(vars(self).values())
