"""The flags that verbs share, each with its words; and what several flags make together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gibbous.cli.defaults import DEFAULT_METHOD

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions

Json = Annotated[bool, typer.Option("--json", help="Machine output on stdout, nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the last line and errors.")]
Debug = Annotated[
    bool, typer.Option("--debug", help="On an error, print code positions (no data).")
]
Sep = Annotated[str, typer.Option("--sep", help="Separator of the CSV input.")]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of the CSV input.")]
BadLine = Annotated[
    str,
    typer.Option("--on-bad-line", help="reject, or drop: ragged CSV lines, counted and reported."),
]
LedgerPath = Annotated[
    Path | None, typer.Option("--ledger", help="Ledger file; default: in GIBBOUS_HOME.")
]
NewData = Annotated[
    str | None,
    typer.Option(
        "--new-data", help="Why these are not other content of a capped data set; recorded."
    ),
]
SchemaFile = Annotated[Path | None, typer.Option("--schema", "-s", help="Schema file (TOML).")]
GeographyFile = Annotated[
    Path | None, typer.Option("--geography", help="Flows: file of the places (TOML), no schema.")
]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="A release.toml.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="KEY=VALUE: a method parameter, or a key of the configuration."),
]
Method = Annotated[
    str | None, typer.Option("--method", "-m", help=f"Method; default {DEFAULT_METHOD}.")
]
Epsilon = Annotated[
    str | None,
    typer.Option("--epsilon", "-e", help="Budget of the whole release, decimal text, nats."),
]
Delta = Annotated[str | None, typer.Option("--delta", "-d", help="Decimal text, e.g. 1e-9.")]
Relation = Annotated[str | None, typer.Option("--relation", help="add_remove or replace_one.")]
Rows = Annotated[
    int | None, typer.Option("--rows", "-n", help="Rows of one set; default: the noisy count.")
]
Sets = Annotated[int | None, typer.Option("--sets", help="Synthetic sets; default 1.")]
PerSetNoise = Annotated[
    bool,
    typer.Option("--per-set", help="Noise of its own for every set; the sets share the budget."),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seeds sampling only; noise has no seed.")]
Format = Annotated[str | None, typer.Option("--format", help="parquet or csv; default parquet.")]
CsvRaw = Annotated[
    bool, typer.Option("--csv-raw", help="Do not guard CSV text cells against formula injection.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Charge anew where a killed run left a charge and no tables."),
]
Accept = Annotated[
    bool,
    typer.Option(
        "--accept-inferred", help="Use facts read off the data; the guarantee omits them."
    ),
]
Understand = Annotated[
    bool,
    typer.Option(
        "--i-understand",
        help="Allow an epsilon outside [1e-6, 100], or a delta above 1/rows (1e-3 without --rows).",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="local or spark; default: what fits the source. duckdb and numpy mean local.",
    ),
]
Partitions = Annotated[
    int | None, typer.Option("--partitions", min=1, help="Spark: into how many parts work is cut.")
]
Master = Annotated[
    str | None, typer.Option("--master", help="Spark: the cluster, e.g. spark://host:7077.")
]
SparkConf = Annotated[
    list[str] | None,
    typer.Option("--spark-conf", help="Spark: KEY=VALUE of its session; repeatable."),
]
Scratch = Annotated[
    Path | None,
    typer.Option("--scratch", help="Folder for encoded records that do not fit memory."),
]
Records = Annotated[
    int | None,
    typer.Option("--input-rows", min=0, help="How many records, about: for what an engine needs."),
]
PartRows = Annotated[
    int | None,
    typer.Option("--part-rows", min=1, help="Most rows of one file of a set; default 4,194,304."),
]
Issuer = Annotated[
    str | None,
    typer.Option("--issuer", help="Who publishes the release: public text in METHODS.md."),
]
Contact = Annotated[str | None, typer.Option("--contact", help="Where questions go; public text.")]
Date = Annotated[str | None, typer.Option("--date", help="Day of publication, YYYY-MM-DD; public.")]
License = Annotated[
    str | None, typer.Option("--license", help="Under which the rows may be used; public text.")
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Most threads to use.")]


Names = Annotated[list[str] | None, typer.Option(help="Columns, separated by commas; repeatable.")]


def engine_flags(
    engine: str | None,
    partitions: int | None,
    master: str | None,
    conf: list[str] | None,
) -> dict[str, object]:
    """Flags of the engine under the dotted names of release.toml.

    Raises:
        UsageError: a setting of Spark that is not KEY=VALUE.
    """
    pairs = [text.partition("=") for text in conf or []]
    if any(not equals or not key for key, equals, _ in pairs):
        from gibbous.core.errors import UsageError

        raise UsageError(
            "SPARKCONF",
            "A --spark-conf is not KEY=VALUE.",
            "For example --spark-conf spark.executor.memory=4g.",
            "Put one = between key and value, without spaces.",
        )
    return {
        "engine.name": engine,
        "engine.partitions": partitions,
        "engine.master": master,
        "engine.conf": {key: value for key, _, value in pairs} or None,
    }


def request_flags(
    schema: Path | None,
    method: str | None,
    epsilon: str | None,
    delta: str | None,
    relation: str | None,
    rows: int | None,
    sets: int | None,
    per_set: bool,
) -> dict[str, object]:
    """Flags of a request under the dotted names of release.toml."""
    return {
        "schema": schema,
        "mechanism.name": method,
        "privacy.epsilon": epsilon,
        "privacy.delta": delta,
        "privacy.relation": relation,
        "output.rows": rows,
        "output.sets": sets,
        "output.per_set": per_set or None,
    }


def reading(sep: str, encoding: str, on_bad_line: str) -> Callable[[], ReadOptions]:
    """How to read the input; made late, because the reader is a heavy import."""

    def make() -> ReadOptions:
        from gibbous.read.source import ReadOptions

        return ReadOptions(sep=sep, encoding=encoding, on_bad_line=on_bad_line)  # type: ignore[arg-type]

    return make
