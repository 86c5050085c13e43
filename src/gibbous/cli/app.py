"""The verbs and their flags; each verb's work is in its own module and is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from gibbous.cli import declare_verbs, measuring_verbs, studio_verb
from gibbous.cli.discovery_flags import DiscoveryFlags
from gibbous.cli.flags import (
    CapFlags,
    ConsentFlags,
    EngineFlags,
    EngineName,
    LedgerFlags,
    LedgerPath,
    MachineFlags,
    Partitions,
    ReadingFlags,
    RequestFlags,
    SchemaFile,
    ScreenFlags,
    TextFlags,
    verb,
)
from gibbous.cli.output_flags import OutputFlags, Overwrite, SignFlags, TablesFlags
from gibbous.cli.show import print_version
from gibbous.core.keywords import DEFAULT_METHOD

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
    help="Draft, import, declare and check schema files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
keys_app = typer.Typer(
    help="Keys that releases are signed with.", no_args_is_help=True, rich_markup_mode=None
)
ledger_app = typer.Typer(
    help="What each data set has spent, and the most it may.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(schema_app, name="schema")
app.add_typer(ledger_app, name="ledger")
app.add_typer(keys_app, name="keys")


@app.callback()
def root(
    version: Annotated[
        bool, Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Synthetic microdata with stated, true disclosure guarantees."""


Data = Annotated[str, Argument(help="CSV or Parquet; or nickname, or fingerprint.")]


@verb(schema_app, "Draft a schema from the data.", "infer")
def schema_infer(
    data: Annotated[str, Argument(help="CSV or Parquet, or the address of a table.")],
    out: Annotated[Path, Option("--out", "-o", help="Schema file to write.")],
    reading: ReadingFlags,
    screen: ScreenFlags,
    overwrite: Overwrite = False,
    null: Annotated[str, Option("--null", help="Text that means missing in CSV.")] = "",
) -> None:
    """Draft a schema from the data; every fact in it is marked inferred, for you to declare."""
    from gibbous.cli import schema_verbs

    schema_verbs.infer(data, out, overwrite, null, reading, screen)


@verb(schema_app, "Buy a schema of the data.", "discover")
def schema_discover(
    data: Annotated[str, Argument(help="CSV or Parquet, or the address of a table.")],
    out: Annotated[Path, Option("--out", "-o", help="Schema file to write.")],
    epsilon: Annotated[str, Option("--epsilon", "-e", help="Its price, decimal text, nats.")],
    delta: Annotated[str, Option("--delta", "-d", help="Decimal text, e.g. 1e-9.")],
    public: DiscoveryFlags,
    reading: ReadingFlags,
    screen: ScreenFlags,
    overwrite: Overwrite = False,
    ledger: LedgerPath = None,
) -> None:
    """Spend: buy kinds, levels, bounds and cut points, charged to the ledger, and write a schema."""
    from gibbous.cli import schema_verbs

    price = {"epsilon": epsilon, "delta": delta, "ledger": ledger}
    schema_verbs.discover(data, out, overwrite, price, public, reading, screen)


@verb(schema_app, "Translate another tool's metadata.", "import")
def schema_import(
    file: Annotated[Path, Argument(help="A codebook, or metadata of another tool.")],
    out: Annotated[Path, Option("--out", "-o", help="Schema file to write.")],
    screen: ScreenFlags,
    data: Annotated[
        Path | None, Option("--data", help="Records, for metadata without levels or ranges.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Translate another tool's metadata into a schema file."""
    from gibbous.cli import schema_verbs

    schema_verbs.translate(file, data, out, overwrite, screen)


@verb(schema_app, "Check data against a schema.", "check")
def schema_check(
    schema: Annotated[Path, Argument(help="Schema file.")],
    reading: ReadingFlags,
    screen: ScreenFlags,
    data: Annotated[
        str | None, Argument(help="CSV or Parquet to check against it, or the address of a table.")
    ] = None,
) -> None:
    """Read a schema, list facts that are not declared, and check data against it. Spends nothing."""
    from gibbous.cli import schema_verbs

    schema_verbs.check(schema, data, reading, screen)


verb(schema_app, "Declare facts of a column.")(declare_verbs.declare)
verb(schema_app, "Suggest facts from names.")(declare_verbs.suggest)


@verb(app, "The methods, and what each one promises.")
def methods(
    machine: MachineFlags,
    name: Annotated[str | None, Argument(help="One method in detail.")] = None,
    scaffold: Annotated[
        str | None, Option("--scaffold", help="Print a new mechanism file of this name.")
    ] = None,
) -> None:
    """List the methods: paper, unit of the claim, published and proven guarantee."""
    from gibbous.cli import methods_verb

    methods_verb.run(name, scaffold, machine.json)


@verb(app, "What a run will cost, from the schema alone.")
def plan(
    asked: RequestFlags,
    public: DiscoveryFlags,
    consent: ConsentFlags,
    screen: ScreenFlags,
    engine: EngineName = None,
    partitions: Partitions = None,
    records: Annotated[
        int | None,
        Option("--input-rows", min=0, help="How many records, about: for what an engine needs."),
    ] = None,
) -> None:
    """Cost, expected error and memory, from the schema alone: opens no record, spends nothing."""
    from gibbous.cli import plan_verb

    plan_verb.run(asked, consent, EngineFlags(engine, partitions), records, screen, public)


@verb(app, "Write a synthetic release of confidential data.")
def synthesize(
    asked: RequestFlags,
    public: DiscoveryFlags,
    written: OutputFlags,
    charging: LedgerFlags,
    consent: ConsentFlags,
    computing: EngineFlags,
    signing: SignFlags,
    reading: ReadingFlags,
    screen: ScreenFlags,
    tables: TablesFlags,
    data: Annotated[
        str | None, Argument(help="CSV, Parquet (file, folder, pattern), or a table of the engine.")
    ] = None,
) -> None:
    """Spend a budget on the data and write a release folder: rows, tables, receipt, METHODS.md."""
    flags = (asked, written, charging, consent, computing, signing)
    if tables.named:
        from gibbous.cli import sample_verb

        sample_verb.run(tables, data, flags, reading, screen)
    else:
        from gibbous.cli import synthesize_verb

        synthesize_verb.run(data, flags, reading, screen, public)


Key = Annotated[
    Path | None, Option("--key", help="Public keys, one a line: one of them has to have signed.")
]


@verb(app, "Check a release without the data.")
def verify(
    release: Annotated[Path, Argument(help="A release folder.")],
    screen: ScreenFlags,
    ledger: Annotated[
        Path | None, Option("--ledger", help="Ledger that must hold its two entries.")
    ] = None,
    key: Key = None,
) -> None:
    """Check a release without the data: hashes, signature, price, papers, conformity of every row."""
    from gibbous.cli import release_verbs

    release_verbs.verify(release, ledger, key, screen)


for _function, _words in (*measuring_verbs.VERBS, studio_verb.VERB):
    verb(app, _words, _function.__name__.removeprefix("flow_"))(_function)  # `map` is a builtin


@verb(ledger_app, "Spent, reserved and left.", "show")
def ledger_show(
    text: TextFlags,
    machine: MachineFlags,
    data: Annotated[
        str | None, Argument(help="Only this data set: file, nickname or fingerprint.")
    ] = None,
    schema: SchemaFile = None,
    ledger: LedgerPath = None,
) -> None:
    """Spent, reserved and left, by data set and release."""
    from gibbous.cli import ledger_verbs

    ledger_verbs.show(data, schema, ledger, text, machine.json)


@verb(ledger_app, "The most a data set may ever spend.", "cap")
def ledger_cap(
    data: Data, cap: CapFlags, text: TextFlags, screen: ScreenFlags, ledger: LedgerPath = None
) -> None:
    """Set the most a data set may ever spend, whatever its file is called."""
    from gibbous.cli import ledger_verbs

    ledger_verbs.cap(data, cap, ledger, text, screen)


@verb(ledger_app, "Two versions of the data, one account.", "link")
def ledger_link(
    new: Annotated[str, Argument(help="The later version: file, nickname or fingerprint.")],
    old: Annotated[str, Argument(help="The one that the ledger has: likewise.")],
    text: TextFlags,
    machine: MachineFlags,
    ledger: LedgerPath = None,
) -> None:
    """Join two accounts for good: what both have spent is one sum, under one cap."""
    from gibbous.cli import ledger_verbs

    ledger_verbs.link(new, old, ledger, text, machine.json)


@verb(ledger_app, "A nickname for a data set.", "name")
def ledger_name(
    data: Data,
    nickname: Annotated[str, Argument(help="A letter, then letters, digits, - and _.")],
    text: TextFlags,
    machine: MachineFlags,
    ledger: LedgerPath = None,
) -> None:
    """Give a data set a nickname, which stands for it wherever a data set is named."""
    from gibbous.cli import ledger_verbs

    ledger_verbs.name(data, nickname, ledger, text, machine.json)


@verb(ledger_app, "The newest entry in one line, for a notary.", "head")
def ledger_head(
    signing: SignFlags,
    machine: MachineFlags,
    ledger: LedgerPath = None,
    check: Annotated[
        Path | None, Option("--check", help="File with such a line: is it still in the ledger?")
    ] = None,
    key: Key = None,
) -> None:
    """Print the newest entry of the ledger as one line, signed if asked; or check such a line."""
    from gibbous.cli import head_verb

    head_verb.run(ledger, signing, check, key, machine)


@verb(keys_app, "A new key to sign with.", "new")
def keys_new(
    out: Annotated[Path, Argument(help="File of the private key; FILE.pub is written beside it.")],
    screen: ScreenFlags,
    name: Annotated[str, Option("--name", help="Who signs with it: public text.")],
    passphrase_file: Annotated[
        Path | None,
        Option("--passphrase-file", help="Its first line locks the key; -: stdin; else asked."),
    ] = None,
    plain: Annotated[
        bool, Option("--no-passphrase", help="Leave the private key without a passphrase.")
    ] = False,
) -> None:
    """Make a key to sign releases with: a private file for you, a public one for whoever checks."""
    from gibbous.cli import keys_verb

    keys_verb.new(out, name, passphrase_file, plain, screen)


@verb(app, "A release of real data that come along.")
def demo(
    screen: ScreenFlags,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder of the release; default: ./gibbous-demo.")
    ] = None,
    method: Annotated[str, Option("--method", "-m", help="Any method.")] = DEFAULT_METHOD,
    overwrite: Overwrite = False,
) -> None:
    """The main job on real data: the RAND health insurance experiment that statsmodels ships."""
    from gibbous.cli import demo_verb

    demo_verb.run(out, method, overwrite, screen)


@verb(app, "Compile the kernels once.")
def warmup(screen: ScreenFlags) -> None:
    """Compile the kernels once, so that the first run does not have to."""
    from gibbous.cli import release_verbs

    release_verbs.warmup(screen)
