"""A request from three places, in this order: release.toml, --set key=value, flags; one reading of it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gibbous.cli.mistakes import unknown
from gibbous.cli.parameters import build_method
from gibbous.core.documents import Unreadable, read_text, toml
from gibbous.core.errors import UsageError
from gibbous.core.keywords import DEFAULT_METHOD
from gibbous.core.request import FORMATS, Imprint, Output, Performance, Request

if TYPE_CHECKING:
    from gibbous.core.protocols import Mechanism
    from gibbous.read.source import ReadOptions

Part = TypeVar("Part", Output, Performance)
Values = dict[str, Any]
"""Checked values by dotted key; parameters of the method under "mechanism." and "privacy."."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the value of a key is, in words, and whether a value is that."""

    words: str
    fits: Callable[[Any], bool]


def _whole(lowest: int | None) -> Kind:
    more = "" if lowest is None else f", >= {lowest}"
    return Kind(
        f"a whole number{more}", lambda v: type(v) is int and (lowest is None or v >= lowest)
    )


_PATH = Kind(
    "a path, as text",
    lambda v: isinstance(v, Path) or (isinstance(v, str) and v != "" and "\0" not in v),
)
_NAME = Kind("a name, as text", lambda v: isinstance(v, str) and v != "")
_TEXT = Kind("text", lambda v: isinstance(v, str | date))
_PARAMETER = Kind("a parameter of the method", lambda _: True)  # the method says what it may be

KEYS: dict[str, Kind] = {
    "data": _PATH,
    "schema": _PATH,
    "geography": _PATH,
    "privacy.relation": _PARAMETER,
    "privacy.epsilon": _PARAMETER,
    "privacy.delta": _PARAMETER,
    "privacy.risk": Kind("a risk, as text, for example 'tpr@1%=3%'", lambda v: isinstance(v, str)),
    "privacy.shares": _PARAMETER,
    "mechanism.name": _NAME,  # and its parameters
    "output.rows": _whole(0),
    "output.sets": _whole(1),
    "output.per_set": Kind("true or false", lambda v: isinstance(v, bool)),
    "output.seed": _whole(None),
    "output.format": Kind(f"one of {', '.join(FORMATS)}", lambda v: v in FORMATS),
    "output.mode": Kind("octal, for example '0640'", lambda v: isinstance(v, int | str)),
    "output.path": _PATH,
    "output.part_rows": _whole(1),
    "output.issuer": _TEXT,
    "output.contact": _TEXT,
    "output.date": _TEXT,
    "output.license": _TEXT,
    "output.sign": _PATH,
    "engine.name": _NAME,
    "engine.partitions": _whole(1),
    "engine.master": _NAME,
    "engine.conf": Kind("KEY=VALUE, or a table in the file", lambda v: isinstance(v, Mapping)),
}
TOP = tuple(key for key in KEYS if "." not in key)
ELSEWHERE: dict[str, tuple[str, ...]] = {"audit": ()} | {  # sections that other verbs read
    "evaluate": ("keys", "sensitive", "targets", "holdout", "path"),
    "studio": ("sep", "encoding", "decimal"),
}
SECTIONS: dict[str, tuple[str, ...]] = {
    section: tuple(k.partition(".")[2] for k in KEYS if k.startswith(f"{section}."))
    for section in ("privacy", "mechanism", "output", "engine")
} | ELSEWHERE
IMPRINT = tuple(field.name for field in dataclasses.fields(Imprint))
FLAGS = {"mechanism.name": "--method", "engine.name": "--engine", "engine.conf": "--spark-conf"}
FILES = (".csv", ".gz", ".tsv", ".txt", ".parquet", ".pq")
MAX_BYTES = 1 << 20


def resolve(
    config: Path | None,
    settings: Sequence[str],
    flags: Mapping[str, object],
    *,
    bought: bool = False,
) -> Values:
    """Merge the three places, and check every value.

    Args:
        settings: texts "key=value"; a key without a dot is a parameter of the method.
        flags: dotted key -> value; None for flags that were not given.
        bought: the schema is to be bought: there is none.
    Raises:
        UsageError: an unknown key, a key given twice with different values, a wrong type.
    """
    merged = (read_config(config) if config else {}) | _combined(settings, flags)
    values = {k: v for k, v in merged.items() if k.split(".")[0] not in ELSEWHERE}
    schema, geography = values.get("schema"), values.get("geography")
    given = [what for what in (schema, geography, bought or None) if what is not None]
    if len(given) != 1:
        raise UsageError(
            "NOSCHEMA",
            "No schema was given."
            if not given
            else "Facts to be bought were given beside a schema or a geography."
            if bought
            else "Both a schema and a geography were given.",
            "A run needs a schema file: levels, bounds and the privacy unit are declared in it. For "
            "flows a geography takes its place; or the facts are bought with a share of the budget.",
            "Pass --schema FILE; `gibbous schema infer DATA -o schema.toml` writes a draft. Or pass "
            "--header-is-public and --id COLUMN:ROWS (or --unit row), and no schema.",
        )
    for key, value in values.items():
        kind = KEYS.get(key, _PARAMETER)
        if not kind.fits(value):
            name = key.rpartition(".")[2].replace("_", "-")
            raise UsageError(
                "VALUE",
                f"{key} has a wrong value.",
                f"It is {kind.words}.",
                f"Correct {FLAGS.get(key, f'--{name}')}.",
            )
        if kind is _PATH and not (key == "data" and _is_table(value, Path())):
            values[key] = Path(str(value))
    return values


def request_of(values: Values, options: ReadOptions | None = None, /, **given: Any) -> Request:
    """The request that checked values make.

    Args:
        given: further fields of the request's parts, by name: what is said with each command.
    Raises:
        ParameterError, PrivacyRefused: a parameter of the method is refused.
        UsageError: the schema or the geography cannot be read, or does not fit the method.
    """
    from gibbous.promise import privacy_of

    output, performance = parts_of(values, **given)
    schema, method = values.get("schema"), None
    if schema is None:
        from gibbous.cli.flow_request import flow_request

        flows = flow_request(values)
        schema, method = flows.schema, flows.method
        engine = None if options is None else flows.engine(options)
        performance = dataclasses.replace(performance, engine=engine)
    promise = ("budget", "accept_inferred", "understand", "ledger", "new_data", "strict", "fresh")
    said = {name: given[name] for name in promise if given.get(name) is not None}
    risk = values.get("privacy.risk")
    privacy = privacy_of(schema, method or method_of(values), risk=risk, **said)
    return Request(values.get("data"), privacy, output, performance, options)


def parts_of(values: Values, **given: Any) -> tuple[Output, Performance]:
    """What is written and how it is computed, by checked values."""
    own = {
        k.partition(".")[2]: v for k, v in values.items() if k.startswith(("output.", "engine."))
    }
    own["out"], own["engine"] = own.pop("path", None), own.pop("name", None)
    own = {k: v for k, v in (own | given).items() if v is not None} | {
        "imprint": imprint_of(values)
    }
    return _part(Output, own), _part(Performance, own)


def imprint_of(values: Values) -> Imprint:
    """Who stands behind the release; a date of the file becomes text."""
    given = {name: values.get(f"output.{name}") for name in IMPRINT}
    return Imprint(**{name: str(value) for name, value in given.items() if value is not None})


def _part(kind: type[Part], given: Mapping[str, Any]) -> Part:
    names = [field.name for field in dataclasses.fields(kind)]
    return kind(**{name: given[name] for name in names if name in given})


def read_config(path: Path) -> dict[str, object]:
    """release.toml as dotted keys; relative paths are relative to the file.

    Raises:
        UsageError: not readable, not TOML, an unknown key.
    """
    try:
        document = toml(read_text(path, MAX_BYTES), parse_float=Decimal)
    except Unreadable as error:
        raise UsageError(
            "CONFIG",
            f"The configuration {str(path)!r} {error}.",
            "It is a UTF-8 text file in TOML of at most 1 MB; keys are data, schema, [privacy], "
            "[mechanism], [output].",
            "Check the path given to --config, or correct it; text is quoted, for example "
            'schema = "schema.toml".',
        ) from None
    flat = _flatten(document, str(path))
    for key, text in flat.items():
        if KEYS.get(key) is _PATH and isinstance(text, str):
            named = key == "data" and _is_table(text, path.parent)
            flat[key] = text if named else path.parent / text
    return flat


def _is_table(text: Any, folder: Path) -> bool:
    """Whether a source names a table: scheme://..., file::table, or catalog.db.table; no path."""
    if not isinstance(text, str) or "://" in text or "::" in text:
        return isinstance(text, str)
    plain = "/" in text or Path(text).suffix.lower() in FILES or "*" in text
    return not plain and text.count(".") in (1, 2) and not os.path.exists(folder / text)


def method_of(values: Values, fixed: Mapping[str, Any] | None = None) -> Mechanism:
    """The mechanism of a request; with noise of its own for every set, where that is asked for."""
    built = build_method(values.get("mechanism.name", DEFAULT_METHOD), parameters(values), fixed)
    if not values.get("output.per_set"):
        return built
    from gibbous.mechanisms.per_set import PerSet

    return PerSet(built)


def parameters(values: Values) -> dict[str, object]:
    """Parameters of the method, as given; epsilon is any where a risk stands for it.

    Raises:
        UsageError: epsilon and a risk were given.
    """
    given = {
        key.partition(".")[2]: value
        for key, value in values.items()
        if key.startswith(("privacy.", "mechanism."))
        and key not in ("mechanism.name", "privacy.risk")
    }
    if values.get("privacy.risk") is None:
        return given
    if "epsilon" in given:
        raise UsageError(
            "TWICE",
            "Both epsilon and a risk were given.",
            "A risk is turned into the epsilon of the method.",
            "Leave one of them out.",
        )
    return given | {"epsilon": 1}  # replaced by what the risk allows: privacy.risk.asked_for


def _combined(settings: Sequence[str], flags: Mapping[str, object]) -> dict[str, object]:
    given: dict[str, object] = {}
    for key, text in pairs(settings, "SET", "--set", "parents=3, or --set privacy.epsilon=0.5"):
        _add(given, _full_key(key.strip()), literal(text.strip()), "--set")
    for flag, value in flags.items():
        if value is not None:
            settled = spark_conf(value) if flag == "engine.conf" else value
            _add(given, flag, settled, "its flag")
    return given


def spark_conf(texts: Any) -> dict[str, str]:
    """Settings of a Spark session, from texts "key=value"."""
    return dict(pairs(texts, "SPARKCONF", "--spark-conf", "spark.executor.memory=4g"))


def pairs(texts: Sequence[str], name: str, flag: str, example: str) -> list[tuple[str, str]]:
    """Texts "key=value" as pairs; UsageError if one of them is something else."""
    found = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                name,
                f"{flag} {text!r} is not KEY=VALUE.",
                f"For example {flag} {example}.",
                "Put one = between key and value, without spaces.",
            )
        found.append((key, value))
    return found


def _add(given: dict[str, object], key: str, value: object, how: str) -> None:
    if key in given and str(given[key]) != str(value):
        raise UsageError(
            "TWICE",
            f"{key} is given twice with different values, the second time by {how}.",
            "Flags and --set override the file; nothing overrides within one of them.",
            "Give it once.",
        )
    given[key] = value


def _full_key(key: str) -> str:
    key = key.replace("-", "_")
    section, dot, name = key.partition(".")
    if not dot:
        # The budget lives in [privacy]; every other bare key is a parameter of the method.
        home = "privacy" if key in SECTIONS["privacy"] else "mechanism"
        return key if key in TOP else f"{home}.{key}"
    if section not in SECTIONS:
        raise unknown(section, [*TOP, *SECTIONS], "The configuration")
    if section == "mechanism" and name in SECTIONS["privacy"]:
        return f"privacy.{name}"
    if section != "mechanism" and SECTIONS[section] and name not in SECTIONS[section]:
        raise unknown(name, SECTIONS[section], f"[{section}]")
    return key


def _flatten(document: Mapping[str, object], path: str) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in document.items():
        if key in TOP:
            flat[key] = value
        elif key not in SECTIONS or not isinstance(value, dict):
            raise unknown(key, [*TOP, *SECTIONS], path)
        else:
            for name, inner in value.items():
                _add(flat, _full_key(f"{key}.{name}"), inner, path)
    return flat


def literal(text: str) -> object:
    """A --set value: read as TOML, else taken as text."""
    try:
        return toml(f"value = {text}", parse_float=Decimal)["value"]
    except Unreadable:
        return text
