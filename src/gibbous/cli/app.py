"""The verbs and their flags; each verb's work is in its own module and is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gibbous.cli import measuring
from gibbous.cli.defaults import DEFAULT_METHOD
from gibbous.cli.flags import (
    Accept,
    BadLine,
    Config,
    Contact,
    CsvRaw,
    Date,
    Debug,
    Delta,
    Encoding,
    Engine,
    Epsilon,
    Format,
    GeographyFile,
    Issuer,
    Json,
    LedgerPath,
    License,
    Master,
    Method,
    NewData,
    Overwrite,
    Partitions,
    PartRows,
    PerSetNoise,
    Quiet,
    Records,
    Relation,
    Rows,
    SchemaFile,
    Scratch,
    Seed,
    Sep,
    Sets,
    Settings,
    SparkConf,
    Strict,
    Threads,
    Understand,
    engine_flags,
    reading,
    request_flags,
)

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
EPILOG = (
    "Exit codes: 0 ok, 1 bug, 2 usage, 3 input, 4 schema, 5 privacy, 6 budget, 7 ledger, 8 release, "
    "9 output, 10 resources, 11 engine, 130 Ctrl-C, 143 SIGTERM."
)

app = typer.Typer(
    name="gibbous",
    help="Synthetic microdata with stated, true disclosure guarantees.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)
schema_app = typer.Typer(
    help="Draft, import and check schema files.", no_args_is_help=True, rich_markup_mode=None
)
ledger_app = typer.Typer(
    help="What each data set has spent, and the most it may.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(schema_app, name="schema")
app.add_typer(ledger_app, name="ledger")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"gibbous {version('gibbous')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Synthetic microdata with stated, true disclosure guarantees."""


@schema_app.command("infer", short_help="Draft a schema from the data.")
def schema_infer(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Schema file to write.")],
    overwrite: Overwrite = False,
    null: Annotated[str, typer.Option("--null", help="Text that means missing in CSV.")] = "",
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    on_bad_line: BadLine = "reject",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draft a schema from the data; every fact in it is marked inferred, for you to declare."""
    from gibbous.cli import schema_verbs

    schema_verbs.infer(data, out, overwrite, null, reading(sep, encoding, on_bad_line), json, quiet)


@schema_app.command("import", short_help="Translate another tool's metadata.")
def schema_import(
    file: Annotated[Path, typer.Argument(help="domain.json (column: size) or SDV metadata V2.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Schema file to write.")],
    data: Annotated[
        Path | None, typer.Option("--data", help="Records, for metadata without levels or ranges.")
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Translate another tool's metadata into a schema file."""
    from gibbous.cli import schema_verbs

    schema_verbs.translate(file, data, out, overwrite, json, quiet)


@schema_app.command("check", short_help="Hold data against a schema.")
def schema_check(
    schema: Annotated[Path, typer.Argument(help="Schema file.")],
    data: Annotated[Path | None, typer.Argument(help="CSV or Parquet to hold against it.")] = None,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    on_bad_line: BadLine = "reject",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Read a schema, list facts that are not declared, and hold data against it. Spends nothing."""
    from gibbous.cli import schema_verbs

    schema_verbs.check(schema, data, reading(sep, encoding, on_bad_line), json, quiet)


@app.command(short_help="The methods, and what each one promises.")
def methods(
    name: Annotated[str | None, typer.Argument(help="One method in detail.")] = None,
    scaffold: Annotated[
        str | None, typer.Option("--scaffold", help="Print a new mechanism file of this name.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """List the methods: paper, unit of the claim, published and proven guarantee."""
    from gibbous.cli import methods_verb

    methods_verb.run(name, scaffold, json)


@app.command(short_help="What a run will cost, from the schema alone.")
def plan(
    config: Config = None,
    setting: Settings = None,
    schema: SchemaFile = None,
    geography: GeographyFile = None,
    method: Method = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    rows: Rows = None,
    sets: Sets = None,
    per_set: PerSetNoise = False,
    accept_inferred: Accept = False,
    i_understand: Understand = False,
    engine: Engine = None,
    partitions: Partitions = None,
    records: Records = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Cost, expected error and memory, from the schema alone: opens no record, spends nothing."""
    from gibbous.cli import plan_verb
    from gibbous.cli.config import resolve

    request = resolve(
        config,
        setting or [],
        request_flags(schema, method, epsilon, delta, relation, rows, sets, per_set)
        | {"geography": geography}
        | engine_flags(engine, partitions, None, None),
    )
    plan_verb.run(
        request,
        accept_inferred,
        i_understand,
        json,
        quiet,
        geography=request.geography,
        records=records,
    )


@app.command(short_help="Write a synthetic release of confidential data.")
def synthesize(
    data: Annotated[
        str | None,
        typer.Argument(help="CSV, Parquet (file, folder, pattern), or a table of the engine."),
    ] = None,
    config: Config = None,
    setting: Settings = None,
    schema: SchemaFile = None,
    geography: GeographyFile = None,
    method: Method = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    rows: Rows = None,
    sets: Sets = None,
    per_set: PerSetNoise = False,
    seed: Seed = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the release.")] = None,
    format: Format = None,
    csv_raw: CsvRaw = False,
    overwrite: Overwrite = False,
    tables: Annotated[
        Path | None, typer.Option("--tables", help="Draw more rows from a release; costs nothing.")
    ] = None,
    given: Annotated[
        Path | None,
        typer.Option(
            "--given",
            help="With --tables: file of known columns, one row drawn for each of its rows.",
        ),
    ] = None,
    ledger: LedgerPath = None,
    new_data: NewData = None,
    budget: Annotated[
        str | None, typer.Option("--budget", help="Most epsilon this release may cost in total.")
    ] = None,
    strict: Strict = False,
    accept_inferred: Accept = False,
    i_understand: Understand = False,
    engine: Engine = None,
    partitions: Partitions = None,
    master: Master = None,
    spark_conf: SparkConf = None,
    scratch: Scratch = None,
    part_rows: PartRows = None,
    issuer: Issuer = None,
    contact: Contact = None,
    date: Date = None,
    license: License = None,
    threads: Threads = None,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    on_bad_line: BadLine = "reject",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Spend a budget on the data and write a release folder: rows, tables, receipt, METHODS.md."""
    from gibbous.cli import synthesize_verb
    from gibbous.cli.config import resolve

    flags = (
        request_flags(schema, method, epsilon, delta, relation, rows, sets, per_set)
        | {
            "data": data,
            "geography": geography,
            "output.seed": seed,
            "output.format": format,
            "output.path": out,
            "output.part_rows": part_rows,
            "output.issuer": issuer,
            "output.contact": contact,
            "output.date": date,
            "output.license": license,
        }
        | engine_flags(engine, partitions, master, spark_conf)
    )
    run = synthesize_verb.Run(
        csv_raw=csv_raw,
        overwrite=overwrite,
        ledger=ledger,
        new_data=new_data,
        budget=budget,
        strict=strict,
        accept_inferred=accept_inferred,
        understand=i_understand,
        threads=threads,
        scratch=scratch,
        options=reading(sep, encoding, on_bad_line),
        json=json,
        quiet=quiet,
    )
    if tables is not None or given is not None:
        from gibbous.cli import further_verb

        further_verb.run(tables, given, flags, bool(config or setting), run)
    else:
        synthesize_verb.run(resolve(config, setting or [], flags), run)


@app.command(short_help="Check a release without the data.")
def verify(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Ledger that must hold its two entries.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check a release without the data: hashes, price, papers, conformity of every row."""
    from gibbous.cli import release_verbs

    release_verbs.verify(release, ledger, json, quiet)


for _function, _words in measuring.VERBS:
    # `map` alone has another name in Python, where that is a builtin.
    app.command(_function.__name__.removeprefix("flow_"), short_help=_words)(_function)


@ledger_app.command("show", short_help="Spent, reserved and left.")
def ledger_show(
    data: Annotated[
        str | None, typer.Argument(help="Only this data set: file, nickname or fingerprint.")
    ] = None,
    schema: SchemaFile = None,
    ledger: LedgerPath = None,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Spent, reserved and left, by data set and release."""
    from gibbous.cli import ledger_verbs

    ledger_verbs.show(data, schema, ledger, reading(sep, encoding, "reject"), json)


@ledger_app.command("cap", short_help="The most a data set may ever spend.")
def ledger_cap(
    data: Annotated[str, typer.Argument(help="CSV or Parquet; or nickname, or fingerprint.")],
    epsilon: Annotated[
        str, typer.Option("--epsilon", "-e", help="Most this data set may ever spend.")
    ],
    delta: Annotated[str, typer.Option("--delta", "-d", help="Most delta, decimal text.")] = "0",
    relation: Annotated[
        str, typer.Option("--relation", help="add_remove or replace_one.")
    ] = "add_remove",
    schema: SchemaFile = None,
    ledger: LedgerPath = None,
    new_data: NewData = None,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Set the most a data set may ever spend, whatever its file is called."""
    from gibbous.cli import ledger_verbs

    ledger_verbs.cap(
        data,
        (epsilon, delta, relation),
        schema,
        ledger,
        reading(sep, encoding, "reject"),
        json,
        quiet,
        new_data,
    )


@ledger_app.command("link", short_help="Two versions of the data, one account.")
def ledger_link(
    new: Annotated[str, typer.Argument(help="The later version: file, nickname or fingerprint.")],
    old: Annotated[str, typer.Argument(help="The one that the ledger has: likewise.")],
    ledger: LedgerPath = None,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Join two accounts for good: what both have spent is one sum, under one cap."""
    from gibbous.cli import ledger_verbs

    ledger_verbs.link(new, old, ledger, reading(sep, encoding, "reject"), json)


@ledger_app.command("name", short_help="A nickname for a data set.")
def ledger_name(
    data: Annotated[str, typer.Argument(help="CSV or Parquet; or nickname, or fingerprint.")],
    nickname: Annotated[str, typer.Argument(help="A letter, then letters, digits, - and _.")],
    ledger: LedgerPath = None,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Give a data set a nickname, which stands for it wherever a data set is named."""
    from gibbous.cli import ledger_verbs

    ledger_verbs.name(data, nickname, ledger, reading(sep, encoding, "reject"), json)


@app.command(short_help="A release of real data that come along.")
def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the release; default: ./gibbous-demo."),
    ] = None,
    method: Annotated[str, typer.Option("--method", "-m", help="Any method.")] = DEFAULT_METHOD,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """The main job on real data: the RAND health insurance experiment that statsmodels ships."""
    from gibbous.cli import demo_verb

    demo_verb.run(out, method, overwrite, json, quiet)


@app.command(short_help="Compile the kernels once.")
def warmup(json: Json = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Compile the kernels once, so that the first run does not have to."""
    from gibbous.cli import release_verbs

    release_verbs.warmup(json, quiet)
