"""The verbs and their flags; each verb's work is in its own module and is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gibbous.cli.defaults import DEFAULT_METHOD

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions

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
SchemaFile = Annotated[Path | None, typer.Option("--schema", "-s", help="Schema file (TOML).")]
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
Seed = Annotated[int | None, typer.Option("--seed", help="Seeds sampling only; noise has no seed.")]
Format = Annotated[str | None, typer.Option("--format", help="parquet or csv; default parquet.")]
CsvRaw = Annotated[
    bool, typer.Option("--csv-raw", help="Do not guard CSV text cells against formula injection.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
Accept = Annotated[
    bool,
    typer.Option(
        "--accept-inferred", help="Use facts read off the data; the guarantee omits them."
    ),
]
Understand = Annotated[
    bool, typer.Option("--i-understand", help="Allow an epsilon outside [1e-6, 100].")
]
Engine = Annotated[str, typer.Option("--engine", help="local (compiled) or numpy.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Most threads to use.")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"gibbous {version('gibbous')}")
        raise typer.Exit


Names = Annotated[list[str] | None, typer.Option(help="Columns, separated by commas; repeatable.")]


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

    schema_verbs.infer(
        data, out, overwrite, null, _options(sep, encoding, on_bad_line), json, quiet
    )


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

    schema_verbs.check(schema, data, _options(sep, encoding, on_bad_line), json, quiet)


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
    method: Method = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    rows: Rows = None,
    sets: Sets = None,
    accept_inferred: Accept = False,
    i_understand: Understand = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Cost, expected error and memory, from the schema alone: opens no record, spends nothing."""
    from gibbous.cli import plan_verb
    from gibbous.cli.config import resolve

    request = resolve(
        config, setting or [], _flags(schema, method, epsilon, delta, relation, rows, sets)
    )
    plan_verb.run(request, accept_inferred, i_understand, json, quiet)


@app.command(short_help="Write a synthetic release of confidential data.")
def synthesize(
    data: Annotated[Path | None, typer.Argument(help="CSV or Parquet.")] = None,
    config: Config = None,
    setting: Settings = None,
    schema: SchemaFile = None,
    method: Method = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    rows: Rows = None,
    sets: Sets = None,
    seed: Seed = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the release.")] = None,
    format: Format = None,
    csv_raw: CsvRaw = False,
    overwrite: Overwrite = False,
    tables: Annotated[
        Path | None, typer.Option("--tables", help="Draw more rows from a release; costs nothing.")
    ] = None,
    ledger: LedgerPath = None,
    budget: Annotated[
        str | None, typer.Option("--budget", help="Most epsilon this release may cost in total.")
    ] = None,
    accept_inferred: Accept = False,
    i_understand: Understand = False,
    engine: Engine = "local",
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

    flags = _flags(schema, method, epsilon, delta, relation, rows, sets) | {
        "data": data,
        "output.seed": seed,
        "output.format": format,
        "output.path": out,
    }
    run = synthesize_verb.Run(
        csv_raw=csv_raw,
        overwrite=overwrite,
        ledger=ledger,
        budget=budget,
        accept_inferred=accept_inferred,
        understand=i_understand,
        engine=engine,
        threads=threads,
        options=_options(sep, encoding, on_bad_line),
        json=json,
        quiet=quiet,
    )
    if tables is not None:
        synthesize_verb.more(tables, flags, bool(config or setting), run)
    else:
        synthesize_verb.run(resolve(config, setting or [], flags), run)


@app.command(short_help="Check a release without the data.")
def verify(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check a release without the data: hashes, receipt arithmetic, conformity of every row."""
    from gibbous.cli import release_verbs

    release_verbs.verify(release, json, quiet)


@app.command(short_help="How good and how risky synthetic rows are; confidential.")
def evaluate(
    real: Annotated[Path, typer.Argument(help="The confidential records: CSV or Parquet.")],
    synth: Annotated[list[Path], typer.Argument(help="A release folder, or synthetic files.")],
    schema: SchemaFile = None,
    keys: Names = None,
    sensitive: Names = None,
    targets: Names = None,
    formula: Annotated[
        list[str] | None,
        typer.Option("--formula", help='A regression, "y ~ a + b"; repeatable.'),
    ] = None,
    given: Names = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Findings, or utility, risk.")
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option("--holdout", help="Records no synthesizer saw.")
    ] = None,
    fraction: Annotated[
        float | None, typer.Option("--fraction", help="Share of the population in REAL.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of samples and references.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="New folder of the report.")
    ] = None,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    on_bad_line: BadLine = "reject",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare synthetic rows with the real records: findings beside references, internal report."""
    from gibbous.cli import evaluate_verb

    asked = evaluate_verb.Asked(
        real,
        synth,
        schema,
        keys or [],
        sensitive or [],
        targets or [],
        formula or [],
        given or [],
        only or [],
        holdout,
        fraction,
        seed,
        _options(sep, encoding, on_bad_line),
    )
    evaluate_verb.run(asked, out, json, quiet)


@app.command(short_help="The public or the internal report of a release.")
def report(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    audience: Annotated[str, typer.Option("--audience", help="public or internal.")] = "public",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="HTML file, JSON twin beside it; default (public): in the release."
        ),
    ] = None,
    real: Annotated[
        Path | None, typer.Option("--real", help="Real records to compare with.")
    ] = None,
    findings: Annotated[
        Path | None, typer.Option("--findings", help="findings.json, in place of --real.")
    ] = None,
    schema: SchemaFile = None,
    keys: Names = None,
    sensitive: Names = None,
    targets: Names = None,
    formula: Annotated[
        list[str] | None,
        typer.Option("--formula", help='A regression, "y ~ a + b"; repeatable.'),
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option("--holdout", help="Records no synthesizer saw.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of samples and references.")] = 0,
    overwrite: Overwrite = False,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    on_bad_line: BadLine = "reject",
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write one self-contained page: public (from the release alone), internal (with real data)."""
    from gibbous.cli import report_verb

    compared = report_verb.Compared(
        options=_options(sep, encoding, on_bad_line),
        real=real,
        schema=schema,
        holdout=holdout,
        findings=findings,
        keys=keys or [],
        sensitive=sensitive or [],
        targets=targets or [],
        formulas=formula or [],
        seed=seed,
    )
    report_verb.run(release, audience, out, compared, overwrite, json, quiet)


@app.command(short_help="Estimates and intervals from a release.")
def infer(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    formula: Annotated[str, typer.Argument(help='For example "y ~ a + b".')],
    family: Annotated[
        str, typer.Option("--family", help="gaussian, binomial, multinomial or poisson.")
    ] = "gaussian",
    rule: Annotated[
        str,
        typer.Option("--rule", help="auto, unified, raghunathan2003, reiter2003 or raab2016."),
    ] = "auto",
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    records: Annotated[
        float | None, typer.Option("--records", help="Number of records, where public.")
    ] = None,
    replicates: Annotated[
        int | None, typer.Option("--replicates", help="Redraws of the noise.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the redrawn noise.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a model to every set of a release and combine; needs no real data and spends nothing."""
    from gibbous.cli import infer_verb

    infer_verb.run(release, formula, family, rule, level, records, replicates, seed, json, quiet)


@app.command(short_help="Try to refute what a method claims.")
def audit(
    method: Annotated[str, typer.Argument(help="A registered method.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = None,
    setting: Settings = None,
    seconds: Annotated[float, typer.Option("--seconds", help="CPU seconds, about.")] = 60.0,
    runs: Annotated[int | None, typer.Option("--runs", help="Runs of each part instead.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seeds the canaries' coins.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="JSON file to write.")] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Attack a method on constructed tables; no real data, no budget."""
    from gibbous.cli import audit_verb

    code = audit_verb.run(
        method, (epsilon, delta), relation, setting or [], (seconds, runs, seed), out, json, quiet
    )
    if code:
        raise typer.Exit(code)


@app.command(short_help="Methods side by side on one table.")
def compare(
    config: Annotated[Path, typer.Option("--config", "-c", help="A study file (TOML).")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the study; goes on where it stopped.")
    ],
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; default: all cores.")
    ] = None,
    public_data: Annotated[
        bool, typer.Option("--public-data", help="The records are public: no mark on the figures.")
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Charge each run here; default: nothing is.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run methods at several budgets, measure what comes out, draw risk-utility maps; resumable."""
    from gibbous.cli import compare_verb

    compare_verb.run(config, out, workers, public_data, ledger, json, quiet)


@ledger_app.command("show", short_help="Spent, reserved and left.")
def ledger_show(
    data: Annotated[Path | None, typer.Argument(help="Only this data set.")] = None,
    schema: SchemaFile = None,
    ledger: LedgerPath = None,
    sep: Sep = ",",
    encoding: Encoding = "utf-8",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Spent, reserved and left, by data set and release."""
    from gibbous.cli import ledger_verbs

    ledger_verbs.show(data, schema, ledger, _options(sep, encoding, "reject"), json)


@ledger_app.command("cap", short_help="The most a data set may ever spend.")
def ledger_cap(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet.")],
    epsilon: Annotated[
        str, typer.Option("--epsilon", "-e", help="Most this data set may ever spend.")
    ],
    delta: Annotated[str, typer.Option("--delta", "-d", help="Most delta, decimal text.")] = "0",
    relation: Annotated[
        str, typer.Option("--relation", help="add_remove or replace_one.")
    ] = "add_remove",
    schema: SchemaFile = None,
    ledger: LedgerPath = None,
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
        _options(sep, encoding, "reject"),
        json,
        quiet,
    )


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


def _flags(
    schema: Path | None,
    method: str | None,
    epsilon: str | None,
    delta: str | None,
    relation: str | None,
    rows: int | None,
    sets: int | None,
) -> dict[str, object]:
    return {
        "schema": schema,
        "mechanism.name": method,
        "privacy.epsilon": epsilon,
        "privacy.delta": delta,
        "privacy.relation": relation,
        "output.rows": rows,
        "output.sets": sets,
    }


def _options(sep: str, encoding: str, on_bad_line: str) -> Callable[[], ReadOptions]:
    """How to read the input; made late, because the reader is a heavy import."""

    def make() -> ReadOptions:
        from gibbous.read.source import ReadOptions

        return ReadOptions(sep=sep, encoding=encoding, on_bad_line=on_bad_line)  # type: ignore[arg-type]

    return make
