"""The flags that verbs share, each with its words, in groups that are handed on whole.

A flag that is a key of a configuration, too, names that key: `keyed` gives what was set under it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer import Option

from gibbous.cli.emphasis_flags import EmphasisFlags
from gibbous.core.keywords import DEFAULT_METHOD

if TYPE_CHECKING:
    from gibbous.read.source import ReadOptions

SchemaFile = Annotated[Path | None, Option("--schema", "-s", help="Schema file (TOML)."), "schema"]
GeographyFile = Annotated[
    Path | None,
    Option("--geography", help="Flows: file of the places (TOML), no schema."),
    "geography",
]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="KEY=VALUE: a method parameter, or a key of the configuration."),
]
Epsilon = Annotated[
    str | None,
    Option("--epsilon", "-e", help="Budget of the whole release, decimal text, nats."),
    "privacy.epsilon",
]
Delta = Annotated[
    str | None, Option("--delta", "-d", help="Decimal text, e.g. 1e-9."), "privacy.delta"
]
Relation = Annotated[
    str | None, Option("--relation", help="add_remove or replace_one."), "privacy.relation"
]
LedgerPath = Annotated[
    Path | None, Option("--ledger", help="Ledger file; default: in GIBBOUS_HOME.")
]
NewData = Annotated[
    str | None,
    Option("--new-data", help="Why these are not other content of a capped data set; recorded."),
]
EngineName = Annotated[
    str | None,
    Option("--engine", help="local (duckdb and numpy: the same) or spark; default: what fits."),
    "engine.name",
]
Partitions = Annotated[
    int | None,
    Option("--partitions", min=1, help="Spark: into how many parts work is cut."),
    "engine.partitions",
]
Names = Annotated[list[str] | None, Option(help="Columns, separated by commas; repeatable.")]


@dataclass(frozen=True, eq=False, repr=False)
class MachineFlags:
    """Whom a verb talks to."""

    json: Annotated[
        bool, Option("--json", help="Machine output on stdout, nothing else there.")
    ] = False
    debug: Annotated[
        bool, Option("--debug", help="On an error, print code positions (no data).")
    ] = False


@dataclass(frozen=True, eq=False, repr=False)
class ScreenFlags(MachineFlags):
    """What is printed."""

    quiet: Annotated[bool, Option("--quiet", "-q", help="Only the last line and errors.")] = False

    @property
    def silent(self) -> bool:
        """Whether no bars are shown."""
        return self.json or self.quiet


@dataclass(frozen=True, eq=False, repr=False)
class TextFlags:
    """How text files are read."""

    sep: Annotated[str, Option("--sep", help="Separator of the CSV input.")] = ","
    encoding: Annotated[str, Option("--encoding", help="Encoding of the CSV input.")] = "utf-8"
    decimal: Annotated[str, Option("--decimal", help="Decimal mark of the CSV input.")] = "."
    amounts: Annotated[
        bool, Option("--amounts", help="Read $1,234.50, 12 % and (3.00) of the CSV as numbers.")
    ] = False

    def options(self) -> ReadOptions:
        """The same for the reader, which is a heavy import.

        Raises:
            UsageError: an encoding, a separator or a decimal mark that cannot be used.
        """
        from gibbous.read.source import ReadOptions

        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return ReadOptions(**own)


@dataclass(frozen=True, eq=False, repr=False)
class ReadingFlags(TextFlags):
    """How text files are read, where lines may be dropped."""

    on_bad_line: Annotated[
        str,
        Option("--on-bad-line", help="reject, or drop: ragged CSV lines, counted and reported."),
    ] = "reject"


@dataclass(frozen=True, eq=False, repr=False)
class CapFlags:
    """The most that a data set may ever spend."""

    epsilon: Annotated[str, Option("--epsilon", "-e", help="Most this data set may ever spend.")]
    delta: Annotated[str, Option("--delta", "-d", help="Most delta, decimal text.")] = "0"
    relation: Annotated[str, Option("--relation", help="add_remove or replace_one.")] = "add_remove"
    account: Annotated[
        str, Option("--account", help="How releases add up: sum, zcdp (rho) or gdp (mu).")
    ] = "sum"
    schema: SchemaFile = None
    new_data: NewData = None


@dataclass(frozen=True, eq=False, repr=False)
class RequestFlags(EmphasisFlags):
    """What is promised, and how much is made."""

    config: Annotated[Path | None, Option("--config", "-c", help="A release.toml.")] = None
    setting: Settings = None
    schema: SchemaFile = None
    geography: GeographyFile = None
    method: Annotated[
        str | None,
        Option("--method", "-m", help=f"Method; default {DEFAULT_METHOD}."),
        "mechanism.name",
    ] = None
    epsilon: Epsilon = None
    risk: Annotated[
        str | None,
        Option("--risk", help="In place of --epsilon: tpr@1%=3%, a membership test finds 3 %."),
        "privacy.risk",
    ] = None
    delta: Delta = None
    relation: Relation = None
    rows: Annotated[
        int | None,
        Option("--rows", "-n", help="Rows of one set; default: the noisy count."),
        "output.rows",
    ] = None
    sets: Annotated[
        int | None, Option("--sets", help="Synthetic sets; default 1."), "output.sets"
    ] = None
    per_set: Annotated[
        bool,
        Option("--per-set", help="Noise of its own for every set; the sets share the budget."),
        "output.per_set",
    ] = False


@dataclass(frozen=True, eq=False, repr=False)
class ConsentFlags:
    """What is allowed for once, said with each command."""

    accept_inferred: Annotated[
        bool,
        Option("--accept-inferred", help="Use facts read off the data; the guarantee omits them."),
    ] = False
    understand: Annotated[
        bool,
        Option(
            "--i-understand",
            help="Allow an epsilon outside [1e-6, 100], or a delta above 1/rows (1e-3 without --rows).",
        ),
    ] = False


@dataclass(frozen=True, eq=False, repr=False)
class LedgerFlags:
    """Which ledger is charged, and how."""

    ledger: LedgerPath = None
    new_data: NewData = None
    budget: Annotated[
        str | None, Option("--budget", help="Most epsilon this release may cost in total.")
    ] = None
    strict: Annotated[
        bool, Option("--strict", help="Charge anew where a killed run left a charge and no tables.")
    ] = False
    fresh: Annotated[
        bool, Option("--fresh", help="Charge again, for new noise, what was paid for.")
    ] = False


@dataclass(frozen=True, eq=False, repr=False)
class EngineFlags:
    """How it is computed: nothing here changes what is released."""

    engine: EngineName = None
    partitions: Partitions = None
    master: Annotated[
        str | None,
        Option("--master", help="Spark: the cluster, e.g. spark://host:7077."),
        "engine.master",
    ] = None
    spark_conf: Annotated[
        list[str] | None,
        Option("--spark-conf", help="Spark: KEY=VALUE of its session; repeatable."),
        "engine.conf",
    ] = None
    scratch: Annotated[
        Path | None, Option("--scratch", help="Folder for encoded records that do not fit memory.")
    ] = None
    threads: Annotated[int | None, Option("--threads", min=1, help="Most threads to use.")] = None


def keyed(*groups: Any) -> dict[str, Any]:
    """What was given, under the dotted keys of a configuration; flags without a key are left out."""
    return {
        key: getattr(group, name)
        for group in groups
        for name, key in _keys(type(group)).items()
        if (value := getattr(group, name)) not in (None, []) and value is not False  # 0 is given
    }


def unkeyed(*groups: Any) -> dict[str, Any]:
    """What is said with each command: flags that are not keys of a configuration, by name."""
    return {
        name: value
        for group in groups
        for name, value in vars(group).items()
        if name not in _keys(type(group))
    }


def _keys(group: type[Any]) -> dict[str, str]:
    hints = get_type_hints(group, include_extras=True)
    found = ((name, getattr(hint, "__metadata__", ())) for name, hint in hints.items())
    return {name: more[-1] for name, more in found if more and isinstance(more[-1], str)}


def verb(
    app: typer.Typer, short_help: str, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a verb. A parameter whose type is a group of flags stands for all of them."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        groups: dict[str, type] = {}
        flags = []
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            kind = parameter.annotation
            if dataclasses.is_dataclass(kind) and isinstance(kind, type):
                groups[parameter.name] = kind
                flags += _flags(kind)
            else:
                flags.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(function)
        def call(**values: Any) -> None:
            for group, kind in groups.items():
                own = {f.name: values.pop(f.name) for f in dataclasses.fields(kind)}
                values[group] = kind(**own)
            function(**values)

        call.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
        call.__annotations__ = {flag.name: flag.annotation for flag in flags}
        app.command(name, short_help=short_help)(call)
        return function

    return register


def _flags(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    empty = inspect.Parameter.empty
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=empty if field.default is dataclasses.MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]
